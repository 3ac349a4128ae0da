"""The SQL of a store, one folder each: the tables in ``schema.sql``, named statements in ``statements.sql``.

What both stores ask in the same words is in ``SqlStore``.
"""

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib import resources
from secrets import token_bytes
from typing import Any, ClassVar, TypeVar

from saferank.store.contract import (
    SCHEMA_VERSION,
    AlarmRow,
    ContextRow,
    OperationRow,
    PageRow,
    Publication,
    Snapshot,
    StoreError,
    VersionRow,
)
from saferank.store.page_record import first_id

T = TypeVar("T")

_MARK = "-- name: "
_CHUNK = 1000
_MARGIN_MS = 10_000
"""A publication is stamped before it is committed; who asks in between must find it the next time. A statement of
PostgreSQL ends within half of this time or not at all."""


class SqlStore(ABC):
    """The part of the contract that is one statement each: reading."""

    _sql: ClassVar[dict[str, str]]
    _clicks: "ClassVar[staticmethod[[Any], int]]"  # from what the store keeps of the clicks of a page

    @abstractmethod
    def _rows(self, statement: str, *arguments: Any) -> Awaitable[list[tuple[Any, ...]]]:
        """The rows that a named statement finds."""

    async def _pages(self, statement: str, *arguments: Any) -> list[PageRow]:
        rows = await self._rows(statement, *arguments)
        *columns, clicks = zip(*rows, strict=True) if rows else [()]
        return list(map(PageRow._make, zip(*columns, map(self._clicks, clicks), strict=False)))

    async def _all(self, kind: Callable[..., T], statement: str, *arguments: Any) -> list[T]:
        return [kind(*row) for row in await self._rows(statement, *arguments)]

    async def _one(self, kind: Callable[..., T], statement: str, *arguments: Any) -> T | None:
        rows = await self._rows(statement, *arguments)
        return kind(*rows[0]) if rows else None

    async def find_context(self, tenant: str, name: str) -> ContextRow | None:
        return await self._one(ContextRow, "find_context", tenant, name)

    async def context(self, number: int) -> ContextRow | None:
        return await self._one(ContextRow, "context", number)

    async def contexts(self) -> Sequence[ContextRow]:
        return await self._all(ContextRow, "contexts")

    async def catalogue(self, digest: bytes) -> bytes | None:
        return await self._one(bytes, "catalogue", digest)

    async def page(self, impression: bytes) -> PageRow | None:
        return next(iter(await self._pages("page", impression)), None)

    async def pages_between(self, context: int, after: int, through: int) -> Sequence[PageRow]:
        return await self._pages("pages_between", context, first_id(after + 1), first_id(through + 1))

    async def count_pages(self, context: int, after: int) -> int:
        return await self._one(int, "count_pages", context, first_id(after + 1)) or 0

    async def publication(self, context: int) -> Publication | None:
        return await self._one(Publication, "publication", context)

    async def published(self, since: int) -> Mapping[int, int]:
        return dict(await self._rows("published", since - _MARGIN_MS))

    async def pruned_through(self, context: int) -> int:
        return await self._one(int, "pruned_through", context) or 0

    async def operations(self, after: int) -> Sequence[OperationRow]:
        return await self._all(OperationRow, "operations", after)

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        return (await self._all(VersionRow, "versions", context, newest))[::-1]

    async def snapshots(self, context: int) -> Sequence[Publication]:
        return await self._all(Publication, "snapshots", context)

    async def snapshot_heads(self, context: int) -> Sequence[Snapshot]:
        return await self._all(Snapshot, "snapshot_heads", context)

    async def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[Sequence[PageRow]]:
        statement, which = ("pages_after", ()) if context is None else ("pages_of_context_after", (context,))
        while pages := await self._pages(statement, *which, after, _CHUNK):
            yield pages
            if len(pages) < _CHUNK:
                return
            after = pages[-1].impression

    async def alarms(self, context: int) -> Sequence[AlarmRow]:
        return await self._all(AlarmRow, "alarms", context)

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        return await self._all(AlarmRow, "newest_alarms", most)

    async def meta(self, name: str) -> bytes | None:
        return await self._one(bytes, "meta", name)


@functools.cache
def statements(store: str) -> dict[str, str]:
    """Name -> statement, of the store of this name (``embedded`` or ``postgres``)."""
    found: dict[str, str] = {}
    for part in _text(store, "statements.sql").split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        found[name.strip()] = " ".join(" ".join(lines).split())
    return found


def schema(store: str) -> str:
    """The script that makes the tables of a new store, for one transaction."""
    return _text(store, "schema.sql")


def check_version(found: int, name: str) -> None:
    """StoreError unless a store has the schema of this saferank."""
    if found != SCHEMA_VERSION:
        raise StoreError(
            f"{name}: has schema version {found}; this saferank reads version {SCHEMA_VERSION} only: "
            "use the saferank that wrote it, or name another store"
        )


def new_facts() -> list[tuple[str, bytes]]:
    """The first rows of table meta: the secrets of a new store."""
    keys = json.dumps({f"k{token_bytes(4).hex()}": token_bytes(32).hex()})
    return [("session_key", token_bytes(32)), ("token_keys", keys.encode())]


def _text(store: str, name: str) -> str:
    return (resources.files(f"saferank.store.{store}") / name).read_text(encoding="utf-8")
