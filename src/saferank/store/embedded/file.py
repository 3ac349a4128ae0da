"""The file of the SQLite store: locked, opened, made and checked.

WAL with synchronous=FULL: when a commit returns, it survives the loss of power. One process at a time has it: a lock
file beside it, which the operating system lets go of when the process ends in any way.
"""

import asyncio
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from saferank.store.contract import SCHEMA_VERSION, SHARDS, DamagedStoreError, StoreError, StoreUnavailableError
from saferank.store.page_record import first_id
from saferank.store.sql import check_version, new_facts, schema, statements

FILE_NAME = "log.sqlite3"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

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
        path = lock_of(store)
        try:
            self._file: BinaryIO = path.open("ab")
            path.chmod(PRIVATE_FILE)
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


def lock_of(store: Path) -> Path:
    """The lock file of a store; a backup has none."""
    return Path(f"{store}.lock")


def file_at(address: str | Path) -> Path:
    """The file of a store: in a folder, or the file of a backup."""
    path = Path(address)
    return path if path.is_file() else path / FILE_NAME


def make_folder(path: Path) -> None:
    """Make the folder of a file; StoreError when that is not possible."""
    try:
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be used as a store: {problem}") from problem


def for_writing(path: Path) -> sqlite3.Connection:
    """The connection of the one writer; StoreError when the file cannot be used."""
    try:
        _make_private(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    except (OSError, sqlite3.Error) as problem:
        raise _refused(path, problem) from problem
    try:
        _prepare(connection, path)
    except BaseException as problem:
        connection.close()  # what is not committed is rolled back
        if isinstance(problem, sqlite3.Error):
            raise _refused(path, problem) from problem
        raise
    return connection


def _make_private(path: Path) -> None:
    """A store holds keys: it is its owner's alone. SQLite gives the files beside it the same rights."""
    path.touch(mode=PRIVATE_FILE)
    if path.stat().st_mode & 0o077:
        path.chmod(PRIVATE_FILE)


def for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10, check_same_thread=False
    )
    connection.create_function("first_id", 1, first_id, deterministic=True)
    return connection


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


def _refused(path: Path, problem: sqlite3.Error | OSError) -> StoreError:
    kind = DamagedStoreError if getattr(problem, "sqlite_errorcode", None) in DAMAGE else StoreError
    return kind(f"{path}: cannot be used as a store: {getattr(problem, 'strerror', None) or problem}")


def damage(connection: sqlite3.Connection, path: Path) -> list[str]:
    """What SQLite's own check finds wrong: it reads all of the file, and compares tables with their indexes."""
    try:
        found = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_DAMAGE})")]
        if path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0]:  # SQLite reads zeros behind it
            found = ["the last block was cut off"]
    except sqlite3.DatabaseError as problem:
        found = [str(problem)]
    what = "; ".join(" ".join(text.split()) for text in found)
    return [] if found == ["ok"] else [f"{path}: is damaged ({what}). Restore the store from a backup"]


def for_many(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Run a statement with VALUES (?) for many rows, or one with IN (?) or FROM (?) for many keys."""
    before, _, behind = statement.partition("(?)")
    form = "{}" if before.endswith("VALUES ") else "(VALUES {})"
    found: list[tuple[Any, ...]] = []
    start = 0
    for size in _CHUNKS:
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            places = f"({', '.join('?' * len(chunk[0]))})"
            values = list(chain.from_iterable(chunk))
            found += connection.execute(before + form.format(", ".join([places] * size)) + behind, values)
            start += size
    return found


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set it up, and make the tables of a new store, all at once or not at all."""
    new = _is_new(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute("PRAGMA cache_size = -65536")
    if new:
        connection.executescript(f"BEGIN IMMEDIATE;\n{schema('embedded')}\nPRAGMA user_version = {SCHEMA_VERSION};")
        for_many(connection, statements("embedded")["put_meta"], new_facts())
        for_many(connection, statements("embedded")["add_shard"], [(shard,) for shard in range(SHARDS)])
        connection.execute("COMMIT")


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


# --- the clock of the SQLite store: milliseconds that never go back, not even over a restart ---


Clock = Callable[[], int]

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux


def wall_clock() -> Clock:
    """Milliseconds since 1970: the wall clock's reading now, and from then on the time that passed.

    Somebody who sets the wall clock changes nothing until the next start. Time passes also while the machine sleeps:
    windows end meanwhile, as they do for the service.
    """
    passed = time.monotonic_ns if _BOOT_TIME is None else partial(time.clock_gettime_ns, _BOOT_TIME)
    before = time.time_ns() - passed()
    return lambda: (before + passed()) // 1_000_000


def not_before(clock: Clock, newest: int) -> Clock:
    """A clock that continues from the newest time in the store when the given one is behind it."""
    ahead = newest - clock()
    return clock if ahead <= 0 else lambda: clock() + ahead


# --- where SQLite runs: one thread that writes, a few that read. The event loop never waits for a disk ---
# The writer watches its file and its write-ahead log: what is written to a path that is no longer the open file would
# be lost, and so would what is written behind a gap in the log, because a recovery reads it from its beginning.


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

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Do some reading; StoreUnavailableError or DamagedStoreError when it fails."""
        return asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    def close(self) -> None:
        """Let go of the file."""
        self._threads.shutdown()
        for connection in self._open:
            connection.close()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with in_sentences(self._path):
            connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
            if connection is None:
                connection = self._own.connection = for_reading(self._path)
                self._open.append(connection)
            return work(connection)


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
        opened = path.stat()
        self._files = {path: (opened.st_dev, opened.st_ino)}  # in use, by path; the log is the last
        self._log_size, self._log_head = 0, b""  # after the last commit
        self._thread = ThreadPoolExecutor(1, "saferank-writer")
        self.whole = True
        """False once the log was cut off: then it must not be copied into the file."""

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Do some writing in one transaction, all of it or nothing; when this has come it is durable."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work)

    def close(self) -> None:
        """Finish what was begun and let go of the file."""
        self._thread.shutdown()
        self._connection.close()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        with in_sentences(self._path):
            self._check_files()
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
        """Before a transaction: what is written comes into the files that were opened, and behind no gap."""
        for path, opened in self._files.items():
            try:
                found = path.stat()
                why = None if (found.st_dev, found.st_ino) == opened else "is another file than the one that was opened"
            except OSError as problem:
                why = f"the file is gone: {problem.strerror}"
            if why is not None:
                self._rescue(path)
                raise StoreUnavailableError(f"{path}: {why}; put it back or restart the service")
        if 0 < found.st_size < self._log_size:  # the log was the last
            self.whole = False
        if not self.whole:
            raise self._cut_off()

    def _check_log(self) -> None:
        """After a commit, before it is acknowledged: the log has no gap, so that a recovery finds what was written.

        A log that was emptied and begun again has another head: somebody has copied it into the file. One that was cut
        off is continued where it ended before, behind a gap.
        """
        with self._log.open("rb") as log:
            facts, head = os.fstat(log.fileno()), log.read(_LOG_HEAD)
            size = end = facts.st_size
            with suppress(OSError):  # a file system that cannot tell
                end = os.lseek(log.fileno(), 0, os.SEEK_HOLE)
        self._files.setdefault(self._log, (facts.st_dev, facts.st_ino))  # made by the first transaction; it stays
        if end < size or (size and not any(head)) or (size < self._log_size and head == self._log_head):
            self.whole = False
        self._log_size, self._log_head = size, head
        if not self.whole:
            raise self._cut_off()

    def _cut_off(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"{self._log}: was cut off while it was in use; nothing more is written. Restart the service: what was "
            "written since the log was copied into the file for the last time may be lost"
        )

    def _rescue(self, path: Path) -> None:
        """A log that has no name any more is lost at the next crash, unless it is in the file by then."""
        if path == self._log:
            self._connection.execute("PRAGMA wal_checkpoint(FULL)")


@contextmanager
def in_sentences(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of the contract."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a mistake of the caller
    except (sqlite3.Error, OSError) as problem:
        if getattr(problem, "sqlite_errorcode", None) in DAMAGE:
            raise DamagedStoreError(f"{path}: is damaged ({problem}). Restore the store from a backup") from problem
        raise StoreUnavailableError(f"{path}: {problem}") from problem
