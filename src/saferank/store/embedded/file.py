"""The file of the SQLite store: opened, checked, brought to the present schema.

WAL with synchronous=FULL: when a commit returns, it survives the loss of power.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from saferank.store.checksums import sealed
from saferank.store.contract import SHARDS, StoreError
from saferank.store.facts import new_facts
from saferank.store.sql import migration, migrations, statements

FILE_NAME = "log.sqlite3"

_CHUNKS = (256, 64, 16, 4, 1)
"""Rows per statement: few different statements, all of which stay prepared. Every statement lets go of Python's lock
and has to wait for it again, so a row per statement would be slow."""

_CHECKPOINT_PAGES = 4000
_APPLICATION = 1399935073  # as in migrations/004.sql
_FIRST = min(migrations("embedded"))


def make_folder(path: Path) -> None:
    """Make the folder of a file; StoreError when that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be used as a store: {problem}") from problem


def for_writing(path: Path) -> sqlite3.Connection:
    """The connection of the one writer; StoreError when the file cannot be used."""
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        _prepare(connection, path)
    except BaseException as problem:
        if connection is not None:
            connection.close()
        if isinstance(problem, sqlite3.Error):
            raise StoreError(f"{path}: cannot be used as a store: {problem}") from problem
        raise
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10, check_same_thread=False
    )


def check(path: Path) -> None:
    """StoreError unless the file is a store of the present schema."""
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file; name the folder of a store")
    try:
        with closing(for_reading(path)) as connection:
            version = _version(connection, path)
    except sqlite3.Error as problem:
        raise StoreError(f"{path}: cannot be used as a store: {problem}") from problem
    if migration("embedded", version, str(path)):
        raise StoreError(f"{path}: has the older schema version {version}; start the service once to migrate")


def identity(path: Path) -> tuple[int, int]:
    """What tells the file at a path from any other."""
    found = path.stat()
    return found.st_dev, found.st_ino


def insert(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement with VALUES (?) for many rows."""
    before, _, behind = statement.partition("(?)")
    start = 0
    for size in _CHUNKS:
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            places = f"({', '.join('?' * len(chunk[0]))})"
            values = [value for row in chunk for value in row]
            connection.execute(f"{before}{', '.join([places] * size)}{behind}", values)
            start += size


def select_in(connection: sqlite3.Connection, statement: str, keys: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Run a statement with IN (?) or FROM (?) for many keys."""
    before, _, behind = statement.partition("(?)")
    found: list[tuple[Any, ...]] = []
    start = 0
    for size in _CHUNKS:
        while len(keys) - start >= size:
            chunk = keys[start : start + size]
            places = f"({', '.join('?' * len(chunk[0]))})"
            values = [value for key in chunk for value in key]
            found += connection.execute(f"{before}(VALUES {', '.join([places] * size)}){behind}", values)
            start += size
    return found


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute("PRAGMA cache_size = -65536")
    if script := migration("embedded", version, str(path)):
        _migrate(connection, version, script)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file, 0 for an empty one; StoreError when it is no store of this edition."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if 0 < version < _FIRST and {"event", "delivery"} <= tables:
        raise StoreError(
            f"{path}: is a store of the first edition (schema {version}); "
            "`saferank migrate OLD NEW` converts it into a new folder"
        )
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if (tables and application != _APPLICATION) or (version > 0 and not tables):
        raise StoreError(f"{path}: is a database of something else; name another folder")
    migration("embedded", version, str(path))  # refuses a newer one
    return int(version)


def _migrate(connection: sqlite3.Connection, version: int, script: str) -> None:
    """Bring the schema up to date, all at once or not at all."""
    newest = max(migrations("embedded"))
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {newest};")
        if version == 0:
            insert(connection, statements("embedded")["add_meta"], [sealed(row) for row in new_facts()])
            insert(connection, statements("embedded")["add_shard"], [(shard,) for shard in range(SHARDS)])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
