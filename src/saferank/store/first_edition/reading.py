"""The log of a first-edition store, read from its beginning."""

import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from saferank.store.contract import AlarmRow, CatalogueRow, StoreError
from saferank.store.embedded.file import FILE_NAME, for_reading
from saferank.store.first_edition.contexts import Kind, OldContext
from saferank.store.sql import statements

_SCHEMAS = (1, 2)
_DAMAGE = (LookupError, ValueError, TypeError, zlib.error)


class OldStore(NamedTuple):
    """Everything that a new store takes over."""

    contexts: list[OldContext]
    catalogues: list[CatalogueRow]
    deliveries: list[tuple[str, str, bytes]]
    alarms: list[AlarmRow]
    killed_tenants: dict[str, str]  # tenant: why
    session_key: bytes
    versions: int


def read_store(folder: Path) -> OldStore:
    """Read a store of the first edition; StoreError says why it cannot be."""
    path = folder / FILE_NAME if folder.is_dir() else folder
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file; name the folder of a store of the first edition")
    try:
        with closing(for_reading(path)) as connection:
            _check(connection, path)
            return _Log(connection).read()
    except sqlite3.Error as problem:
        raise StoreError(f"{path}: cannot be read: {problem}") from problem
    except StoreError:
        raise
    except _DAMAGE as problem:
        raise StoreError(f"{path}: the log is damaged: {problem!r}") from problem


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not {"event", "leader", "delivery"} <= tables:
        raise StoreError(f"{path}: is no store of the first edition; there is nothing to convert")
    if version not in _SCHEMAS:
        raise StoreError(f"{path}: has schema {version}; only schemas 1 and 2, the first edition's, can be converted")


class _Log:
    """Follows the events in order."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._sql = connection, statements("first_edition")
        self._contexts: dict[int, OldContext] = {}
        self._alarms: list[AlarmRow] = []
        self._killed: dict[str, str] = {}
        self._catalogues: dict[bytes, CatalogueRow] = {}
        self._versions: dict[int, list[tuple[int, int, bytes | None]]] = defaultdict(list)  # by event

    def read(self) -> OldStore:
        """Everything."""
        leaders = list(self._rows("leaders"))
        for context, version, seq, impression in leaders:
            self._versions[seq].append((context, version, impression))
        for seq, kind, context, at, impression, body in self._rows("events"):
            self._event(seq, kind, context, at, impression, body or b"")
            self._mark(seq)
        ((session_key,),) = self._rows("session_key")
        return OldStore(
            list(self._contexts.values()), list(self._catalogues.values()), list(self._rows("deliveries")),
            self._alarms, self._killed, session_key, len(leaders),
        )  # fmt: skip

    def _rows(self, name: str, *arguments: Any) -> Iterator[tuple[Any, ...]]:
        return self._connection.execute(self._sql[name], arguments)

    def _event(self, seq: int, kind: int, number: int, at: int, impression: bytes, body: bytes) -> None:
        if kind == Kind.OPENED:
            context = self._contexts[number] = OldContext(number, at, body)
            self._keep(context.catalogue)
        elif kind in (Kind.KILL, Kind.UNKILL):
            self._switch(kind, number, json.loads(body))
        elif kind == Kind.ALARM:
            self._alarms.append(AlarmRow(at, number, "illegal_page", body.decode("utf-8")))
        else:
            self._of_context(self._contexts[number], seq, kind, at, impression, body)

    def _of_context(
        self, context: OldContext, seq: int, kind: int, at: int, impression: bytes, body: bytes
    ) -> None:  # fmt: skip
        if kind == Kind.PAGE:
            context.add_page(impression, body)
        elif kind == Kind.CLICKS:
            context.click(impression, body)
        elif kind == Kind.CLOSED:
            context.close(at, self._versions_by_page(seq))
        elif kind == Kind.CATALOGUE:
            ((packed,),) = self._rows("catalogue", body)
            base, candidates = json.loads(zlib.decompress(packed))
            self._keep(context.set_catalogue(base, candidates, body))
        elif kind == Kind.ROLLBACK:
            context.roll_back(json.loads(body)["version"])
        elif kind != Kind.FROZEN:
            raise ValueError(f"event {seq} is of the unknown kind {kind}")

    def _switch(self, kind: int, number: int, facts: dict[str, Any]) -> None:
        why = facts["why"] if kind == Kind.KILL else ""
        if number:
            self._contexts[number].killed = why
        else:
            self._killed[facts["tenant"]] = why

    def _keep(self, row: CatalogueRow) -> None:
        self._catalogues[row.digest] = row

    def _versions_by_page(self, seq: int) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = defaultdict(list)
        for _, version, impression in self._versions.get(seq, ()):
            if impression is not None:
                found[impression].append(version)
        return found

    def _mark(self, seq: int) -> None:
        for number, version, _ in self._versions.get(seq, ()):
            context = self._contexts[number]
            if version not in context.versions:
                context.mark(version)
