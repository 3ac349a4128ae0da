"""Where SQLite runs: one thread that writes, a few that read. The event loop never waits for a disk.

The writer watches its file and its write-ahead log: what is written to a path that is no longer the open file would be
lost, and so would what is written behind a gap in the log, because a recovery reads it from its beginning.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from saferank.store.contract import DamagedStoreError, StoreUnavailableError
from saferank.store.embedded.file import DAMAGE, damage, for_reading, for_writing, identity

T = TypeVar("T")

_READERS = 2
_LOG_HEAD = 32
"""Bytes at the beginning of a write-ahead log: who begins it again writes others."""


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
    """The one connection that writes; after a crash it looks for damage first (DamagedStoreError)."""

    def __init__(self, path: Path, after_crash: bool = False) -> None:
        self._path = path
        self._connection = for_writing(path)
        for sentence in damage(self._connection, path) if after_crash else ():
            self._connection.close()
            raise DamagedStoreError(sentence)
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a log that was cut off earlier has gaps
        self._log = path.with_name(f"{path.name}-wal")
        self._files: dict[Path, tuple[int, int]] = {path: identity(path)}
        self._log_size, self._log_head = 0, b""  # after the last commit
        self._thread = ThreadPoolExecutor(1, "saferank-writer")
        self.whole = True
        """False once the log was cut off: then it must not be copied into the file."""

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
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._check_log()
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
        if self._log in self._files and 0 < self._log.stat().st_size < self._log_size:
            self.whole = False
        self._refuse_gaps()

    def _check_log(self) -> None:
        """After a commit, before it is acknowledged: the log has no gap, so that a recovery finds what was written.

        A log that was emptied and begun again has another head: somebody has copied it into the file. One that was cut
        off is continued where it ended before, behind a gap.
        """
        with self._log.open("rb") as log:
            size, head = os.fstat(log.fileno()).st_size, log.read(_LOG_HEAD)
            end = size
            with suppress(OSError):  # a file system that cannot tell
                end = os.lseek(log.fileno(), 0, os.SEEK_HOLE)
            self._files.setdefault(self._log, identity(self._log))  # made by the first transaction; it stays while open
        if end < size or (size and not any(head)) or (size < self._log_size and head == self._log_head):
            self.whole = False
        self._log_size, self._log_head = size, head
        self._refuse_gaps()

    def _refuse_gaps(self) -> None:
        if not self.whole:
            raise StoreUnavailableError(
                f"{self._log}: was cut off while it was in use; nothing more is written. Restart the service: what was "
                "written since the log was copied into the file for the last time may be lost"
            )

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
        if getattr(problem, "sqlite_errorcode", None) in DAMAGE:
            raise DamagedStoreError(f"{path}: is damaged ({problem}). Restore the store from a backup") from problem
        raise StoreUnavailableError(f"{path}: {problem}") from problem
    except OSError as problem:
        raise StoreUnavailableError(f"{path}: {problem}") from problem
