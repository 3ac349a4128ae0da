"""The file of the SQLite store: locked, opened, made and checked.

WAL with synchronous=FULL: when a commit returns, it survives the loss of power. One process at a time has it: a lock
file beside it, which the operating system lets go of when the process ends in any way.
"""

import fcntl
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from saferank.store.contract import SCHEMA_VERSION, SHARDS, DamagedStoreError, StoreError
from saferank.store.sql import check_version, new_facts, schema, statements

FILE_NAME = "log.sqlite3"

_CHUNKS = (256, 64, 16, 4, 1)
"""Rows per statement: few different statements, all of which stay prepared. Every statement lets go of Python's lock
and has to wait for it again, so a row per statement would be slow."""

_CHECKPOINT_PAGES = 4000
_APPLICATION = 1399935073  # as in schema.sql
_MOST_DAMAGE = 3  # of which SQLite tells
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors that say that a file is not as SQLite wrote it."""


class StoreLock:
    """Held from creation until ``release``. The lock file has a byte while the store is in use."""

    def __init__(self, store: Path) -> None:
        path = Path(f"{store}.lock")
        try:
            self._file: BinaryIO = path.open("ab")
        except OSError as problem:
            raise StoreError(f"{path}: cannot be opened: {problem.strerror or problem}") from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            self._file.close()
            raise StoreError(f"{store}: another server is using this store; stop it first or name another") from problem
        self.after_crash = self._file.tell() > 0
        if not self.after_crash:
            self._file.write(b"1")
            self._file.flush()

    def release(self, clean: bool = True) -> None:
        """Let another server have the store; unless the end was a clean one, it looks for damage first."""
        if clean:
            self._file.truncate(0)
        self._file.close()


def file_at(address: str | Path) -> Path:
    """The file of a store: in a folder, or the file of a backup."""
    path = Path(address)
    return path if path.is_file() else path / FILE_NAME


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
            raise _refused(path, problem) from problem
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
            new = _is_new(connection, path)
    except sqlite3.Error as problem:
        raise _refused(path, problem) from problem
    if new:
        raise StoreError(f"{path}: is empty; name the folder of a store")


def _refused(path: Path, problem: sqlite3.Error) -> StoreError:
    kind = DamagedStoreError if getattr(problem, "sqlite_errorcode", None) in DAMAGE else StoreError
    return kind(f"{path}: cannot be used as a store: {problem}")


def damage(connection: sqlite3.Connection, path: Path) -> list[str]:
    """What SQLite's own check finds wrong: it reads all of the file, and compares tables with their indexes."""
    try:
        found = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_DAMAGE})")]
    except sqlite3.DatabaseError as problem:
        found = [str(problem)]
    what = "; ".join(" ".join(text.split()) for text in found)
    return [] if found == ["ok"] else [f"{path}: is damaged ({what}). Restore the store from a backup"]


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
    new = _is_new(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute("PRAGMA cache_size = -65536")
    if new:
        _make(connection)


def _is_new(connection: sqlite3.Connection, path: Path) -> bool:
    """True for an empty file; StoreError unless it is that or a store of the present schema."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    if version == tables == 0:
        return True
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if not tables or application != _APPLICATION:
        raise StoreError(f"{path}: is a database of something else; name another folder")
    check_version(int(version), str(path))
    return False


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables, all at once or not at all."""
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{schema('embedded')}\nPRAGMA user_version = {SCHEMA_VERSION};")
        insert(connection, statements("embedded")["put_meta"], new_facts())
        insert(connection, statements("embedded")["add_shard"], [(shard,) for shard in range(SHARDS)])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
