"""The SQL of a store, one folder each: the tables in ``schema.sql``, named statements in ``statements.sql``.

What both stores do in the same steps is in ``SqlStore``.
"""

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib import resources
from secrets import token_bytes
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TypeVar

from saferank.store.contract import (
    CATALOGUE_MS,
    CHUNK,
    SCHEMA_VERSION,
    SHARDS,
    AlarmRow,
    Chunk,
    ContextRow,
    Lease,
    OperationKind,
    OperationRow,
    PageRow,
    Publication,
    Snapshot,
    StaleLeaseError,
    StoreError,
    VersionRow,
)
from saferank.store.page_record import CATALOGUE_PLACE, first_id

T = TypeVar("T")
P = ParamSpec("P")

_MARK = "-- name: "
_MARGIN_MS = 10_000
"""A publication is stamped before it is committed; who asks in between must find it the next time. A statement of
PostgreSQL ends within half of this time or not at all."""


class Done(NamedTuple):
    """What a statement did."""

    rows: list[tuple[Any, ...]]  # that it found or gives back
    changed: int  # rows


On = Callable[..., Awaitable[Done]]
"""Carries out a named statement with its arguments, by place or by name, in a transaction."""


def in_transaction(
    work: "Callable[Concatenate[Any, On, P], Awaitable[T]]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]":
    """A call of the contract: the function below runs in one transaction."""

    @functools.wraps(work)
    async def call(self: "SqlStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._transact(lambda on: work(self, on, *args, **kwargs))

    return call


class SqlStore(ABC):
    """The part of the contract that is the same steps in both."""

    _sql: ClassVar[dict[str, str]]
    _clicks: "ClassVar[staticmethod[[Any], int]]"  # from what the store keeps of the clicks of a page
    _list: "ClassVar[staticmethod[[Sequence[int]], str]]"  # numbers as one argument

    @abstractmethod
    async def _transact(self, work: Callable[[On], Awaitable[T]]) -> T:
        """Do some writing, all of it or nothing. It waits for nothing but its statements."""

    @abstractmethod
    def _rows(self, statement: str, *arguments: Any, **facts: Any) -> Awaitable[list[tuple[Any, ...]]]:
        """The rows that a named statement finds."""

    async def _pages(self, statement: str, *arguments: Any) -> list[PageRow]:
        return self._as_pages(await self._rows(statement, *arguments))

    def _as_pages(self, rows: Sequence[tuple[Any, ...]]) -> list[PageRow]:
        *columns, clicks = zip(*rows, strict=True) if rows else [()]
        return list(map(PageRow._make, zip(*columns, map(self._clicks, clicks), strict=False)))

    def _chunk(self, table: str, rows: list[tuple[Any, ...]]) -> Chunk:
        """Rows of a table as those of a backup."""
        return Chunk(table, [*self._as_pages(rows)] if table == "page" else rows)

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

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        rows = await self._rows("due", shards=self._list(list(shards)), all=SHARDS, after=after, now=now)
        return [number for (number,) in rows]

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        rows = await self._rows("contexts_with_pages_before", SHARDS, self._list(shards), first_id(before))
        return [number for (number,) in rows]

    async def count_pages(self, context: int, after: int) -> int:
        return await self._one(int, "count_pages", context, first_id(after + 1)) or 0

    async def publication(self, context: int) -> Publication | None:
        return await self._one(Publication, "publication", context)

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        return await self._all(Publication, "publications", self._list(contexts))

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
        while pages := await self._pages(statement, *which, after, CHUNK):
            yield pages
            if len(pages) < CHUNK:
                return
            after = pages[-1].impression

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        return await self._all(AlarmRow, "newest_alarms", most)

    async def meta(self, name: str) -> bytes | None:
        return await self._one(bytes, "meta", name)

    # --- writing ---

    @in_transaction
    async def leave(self, on: On, server: str) -> None:
        await on("leave_shards", server)
        await on("leave", server)

    async def _fence(self, on: On, lease: Lease, context: int) -> None:
        """StaleLeaseError unless the lease is the newest of the shard of a context."""
        check_shard(lease, context)
        if not (await on("fence", lease.shard, lease.epoch)).rows:
            raise stale(lease, context)

    @in_transaction
    async def open_context(self, on: On, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        await on("lock_contexts")
        found = (await on("find_context", tenant, name)).rows
        if not found:
            found = (await on("add_context", tenant=tenant, name=name, terms=terms, most=most)).rows
        return ContextRow(*found[0]) if found else None

    @in_transaction
    async def keep_publication(self, on: On, lease: Lease, context: int) -> None:
        await self._fence(on, lease, context)
        await on("keep_publication", context)

    @in_transaction
    async def prune(
        self, on: On, lease: Lease, context: int, snapshot: Snapshot, before: int, seen: int, most: int
    ) -> int:
        await self._fence(on, lease, context)
        await on("hold_operations")  # who adds one afterwards sees what is deleted here
        if (await on("newer_operation", context, seen)).rows:
            return 0
        await self._stand_for(on, context, snapshot)
        return (await on("forget_pages", context, first_id(before), most)).changed

    async def _stand_for(self, on: On, context: int, snapshot: Snapshot) -> None:
        """From now on the log of a context begins with a snapshot."""
        await on("set_pruned", through=snapshot.through, context=context)
        await on("forget_snapshots", context, snapshot.number)

    @in_transaction
    async def prune_events(self, on: On, before: int, most: int) -> int:
        return (await on("forget_events", before, most)).changed

    @in_transaction
    async def prune_catalogues(self, on: On, before: int, most: int) -> int:
        behind = first_id(before + 2 * CATALOGUE_MS)
        done = await on("forget_catalogues", before=before, behind=behind, place=CATALOGUE_PLACE, most=most)
        return done.changed

    @in_transaction
    async def add_operation(self, on: On, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        await on("lock_operations")
        ((number, at, *_),) = (
            await on("add_operation", tenant=tenant, context=context, kind=int(kind), body=body)
        ).rows
        return OperationRow(number, at, tenant, context, int(kind), body)

    @in_transaction
    async def add_alarm(self, on: On, alarm: AlarmRow) -> None:
        await on("put_alarm", *alarm)

    @in_transaction
    async def put_meta(self, on: On, name: str, value: bytes) -> None:
        await on("put_meta", name, value)


def check_shard(lease: Lease, context: int) -> None:
    """StaleLeaseError for a lease of another shard than that of a context."""
    if context % SHARDS != lease.shard:
        raise stale(lease, context)


def stale(lease: Lease, context: int) -> StaleLeaseError:
    """What is said of a lease that is not the newest of the shard of a context."""
    return StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")


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
