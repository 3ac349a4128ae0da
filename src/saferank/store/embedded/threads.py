"""Where SQLite runs: one thread that writes, a few that read. The event loop never waits for a disk.

The writer watches its file and the file of its write-ahead log: what is written to a path that is no longer the open
file would be lost.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from saferank.store.contract import DamagedStoreError, StoreUnavailableError
from saferank.store.embedded.file import for_reading, for_writing, identity

T = TypeVar("T")

_READERS = 2
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Readers:
    """Connections that cannot write, one for each thread."""

    def __init__(self, path: Path) -> None:
        self._path, self._own = path, threading.local()
        self._open: list[sqlite3.Connection] = []
        self._threads = ThreadPoolExecutor(_READERS, "saferank-reader")

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some reading; StoreUnavailableError or DamagedStoreError when it fails."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    def close(self) -> None:
        """Let go of the file."""
        self._threads.shutdown()
        for connection in self._open:
            connection.close()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with sentences(self._path):
            return work(self._connection())

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = for_reading(self._path)
            self._open.append(connection)
        return connection


class WriterThread:
    """The one connection that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = for_writing(path)
        self._log = path.with_name(f"{path.name}-wal")
        self._files: dict[Path, tuple[int, int]] = {path: identity(path)}
        self._thread = ThreadPoolExecutor(1, "saferank-writer")

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some writing in one transaction, all of it or nothing; when this returns it is durable."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work)

    def close(self) -> None:
        """Finish what was begun and let go of the file."""
        self._thread.shutdown()
        self._connection.close()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with sentences(self._path):
            self._check_files()
            connection = self._connection
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = work(connection)
                connection.execute("COMMIT")
                if self._log not in self._files:  # it is made by the first transaction, and stays while this is open
                    self._files[self._log] = identity(self._log)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

    def _check_files(self) -> None:
        for path, opened in self._files.items():
            try:
                why = None if identity(path) == opened else "is another file than the one that was opened"
            except OSError as problem:
                why = f"the file is gone: {problem.strerror}"
            if why is not None:
                self._rescue(path)
                raise StoreUnavailableError(f"{path}: {why}; put it back or restart the service")

    def _rescue(self, path: Path) -> None:
        """What is in a log that has no name any more is lost at the next crash, unless it is in the file by then."""
        if path == self._log:
            self._connection.execute("PRAGMA wal_checkpoint(FULL)")


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of the contract."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a mistake of the caller
    except sqlite3.Error as problem:
        if getattr(problem, "sqlite_errorcode", None) in _DAMAGE:
            raise DamagedStoreError(f"{path}: is damaged ({problem}). Restore the store from a backup") from problem
        raise StoreUnavailableError(f"{path}: {problem}") from problem
    except OSError as problem:
        raise StoreUnavailableError(f"{path}: {problem}") from problem
