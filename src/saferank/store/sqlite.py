"""One SQLite file: opened, brought to the present schema, appended to by one writer, read by anyone.

WAL with synchronous=FULL: when ``commit`` returns, the batch survives the loss of power. Rows of a batch are inserted
many per statement, because every statement lets go of Python's lock and has to wait for it again.
"""

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from saferank.store.events import Batch
from saferank.store.statements import migrations, statements

_CHUNKS = (256, 64, 16, 4, 1)
"""Rows per statement: few different statements, all of which stay prepared."""

_CHECKPOINT_PAGES = 4000


class StoreError(ValueError):
    """Why a file cannot be used as a store, in a sentence that begins with its name."""


class ReadableStore:
    """The log in a file that somebody else may be writing to."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @contextmanager
    def reading(self) -> Iterator["Reader"]:
        """A reader of its own, for the thread that asks."""
        with closing(self.reader()) as reader:
            yield reader

    def reader(self) -> "Reader":
        """A reader that the caller closes."""
        return Reader(self.path)

    def check(self) -> None:
        """StoreError unless the file is a log of the present schema."""
        if not self.path.is_file():
            raise StoreError(f"{self.path}: there is no such file; name the store of a service")
        try:
            with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                version = self._checked_version(connection)
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path}: cannot be used as a store: {problem}") from problem
        if version < max(migrations()):
            raise StoreError(f"{self.path}: has the older schema version {version}; start the service once to migrate")

    def _checked_version(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > max(migrations()):
            raise StoreError(
                f"{self.path}: has schema version {version}; this saferank knows versions up to {max(migrations())}: "
                "upgrade it"
            )
        if version == 0 and connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]:
            raise StoreError(f"{self.path}: is a database of something else; name another file")
        return int(version)


class Store(ReadableStore):
    """The log for its one writer. ``commit`` may be used by one thread at a time, in one process."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        try:
            self._connection = self._opened()
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path}: cannot be used as a store: {problem}") from problem

    def commit(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing; sqlite3.Error when the disk does not take it."""
        sql, connection = statements(), self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            _insert(connection, sql["add_context"], batch.contexts)
            _insert(connection, sql["add_catalogue"], batch.catalogues)
            _insert(connection, sql["add_event"], batch.events)
            _insert(connection, sql["add_leader"], batch.leaders)
            _insert(connection, sql["add_delivery"], batch.deliveries)
            _insert(connection, sql["add_snapshot"], batch.snapshots)
            if batch.clean is not None:
                connection.execute(sql["set_meta"], ("clean", batch.clean))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            version = self._checked_version(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute("PRAGMA cache_size = -65536")
            _migrate(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection


class Reader:
    """Named statements over a connection that cannot write."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10
        )

    def rows(self, name: str, *arguments: Any) -> Iterator[tuple[Any, ...]]:
        """The rows that a statement finds."""
        return self._connection.execute(statements()[name], arguments)

    def row(self, name: str, *arguments: Any) -> tuple[Any, ...] | None:
        """The first row, or None."""
        found: tuple[Any, ...] | None = self._connection.execute(statements()[name], arguments).fetchone()
        return found

    def value(self, name: str, *arguments: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.row(name, *arguments)
        return None if found is None else found[0]

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """All that is read inside is of one moment of the log."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def _insert(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    start = 0
    for size in _CHUNKS:
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            places = f"({', '.join('?' * len(chunk[0]))})"
            connection.execute(f"{statement} {', '.join([places] * size)}", [value for row in chunk for value in row])
            start += size


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the schema up to date, all at once or not at all."""
    steps = {number: script for number, script in migrations().items() if number > version}
    if not steps:
        return
    script = "\n".join(steps.values())
    if version == 0:
        script += f"\nINSERT INTO meta (name, value) VALUES ('session_key', x'{secrets.token_hex(32)}');"
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {max(steps)};\nCOMMIT;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
