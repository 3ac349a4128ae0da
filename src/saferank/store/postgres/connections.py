"""Connections to PostgreSQL: a bounded number, each used by one call at a time, none trusted after an error.

psycopg's own pool doubles its pauses while a server is away, so a server can be back long before that is seen.
Here a call that finds no connection makes one, and a call that fails throws all idle ones away. A call that takes too
long is given up at once (a partition is silent); what is left of it ends in the background.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from saferank.store.contract import SCHEMA_VERSION, SHARDS, DamagedStoreError, StoreError, StoreUnavailableError
from saferank.store.sql import check_version, new_facts, schema, statements

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]

CALL_SECONDS = 6.0
"""Longer than the statement_timeout, so that the server's own sentence comes first if it can."""

_CONNECT_SECONDS = 3
_MOST = 8
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
"""Other errors of psycopg are mistakes of the caller."""

_DAMAGE = (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)
"""What PostgreSQL says when the checksum of a block is wrong, or an index does not fit its table."""


async def connect(address: str) -> Connection:
    """A new connection as the store needs it; psycopg.Error says why not."""
    connection = await AsyncConnection.connect(
        address, autocommit=True, connect_timeout=_CONNECT_SECONDS, prepare_threshold=2, application_name="saferank",
        keepalives_idle=5, keepalives_interval=2, keepalives_count=3, tcp_user_timeout=6000,
    )  # fmt: skip
    try:
        await connection.execute(statements("postgres")["prepare"])
    except BaseException:
        await connection.close()
        raise
    return connection


class Connections:
    """``run`` hands a connection to some work."""

    def __init__(self, address: str, name: str) -> None:
        self._address, self._name = address, name
        self._idle: list[Connection] = []
        self._places = asyncio.Semaphore(_MOST)
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do some work; StoreUnavailableError when the server does not answer in time or ends the connection."""
        if self._closed:
            raise StoreUnavailableError(f"{self._name}: is not open")
        task = asyncio.create_task(self._work(work))
        self._running.add(task)
        task.add_done_callback(self._ended)
        done, _ = await asyncio.wait({task}, timeout=CALL_SECONDS)
        if not done:
            task.cancel()
            raise StoreUnavailableError(f"{self._name}: did not answer within {CALL_SECONDS:g} seconds")
        with in_sentences(self._name):
            return task.result()

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._drop_idle()

    async def _work(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._places:
            connection = self._idle.pop() if self._idle else await connect(self._address)
            try:
                result = await work(connection)
            except BaseException as problem:
                await connection.close()
                if isinstance(problem, _AWAY):
                    await self._drop_idle()
                raise
            self._idle.append(connection)
            return result

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # it was told to the callers that waited, or none waits any more


@contextmanager
def in_sentences(name: str) -> Iterator[None]:
    """Errors of PostgreSQL as those of the contract."""
    try:
        yield
    except _DAMAGE as problem:
        what = f"is damaged ({first_line(problem)}). Restore the store from a backup"
        raise DamagedStoreError(f"{name}: {what}") from problem
    except _AWAY as problem:
        raise StoreUnavailableError(f"{name}: {first_line(problem)}") from problem


def first_line(problem: BaseException) -> str:
    """What PostgreSQL said, without its details."""
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


# --- the schema ``saferank`` of a database: made or checked before anything is served ---


_OLDEST = 14


def name_of(address: str) -> str:
    """The address without its password, for sentences; StoreError when it is none."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error as problem:
        raise StoreError(f"the address of the store cannot be read: {first_line(problem)}") from problem
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


async def check(address: str, name: str, *, makes: bool) -> None:
    """Connect, check the server, and make (or not) or check its schema; StoreError says why it cannot be used."""
    try:
        connection = await connect(address)
    except psycopg.Error as problem:
        raise StoreError(f"{name}: cannot be connected to: {_reason(problem)}") from problem
    try:
        found = server_version(connection) // 10_000
        if found < _OLDEST:
            raise StoreError(f"{name}: is PostgreSQL {found}; saferank needs {_OLDEST} or newer")
        await _make_or_check(connection, name, makes)
    except psycopg.errors.InsufficientPrivilege as problem:
        raise StoreError(
            f"{name}: the role {connection.info.user} lacks a right ({first_line(problem)}); "
            "it needs CREATE on the database, or a schema saferank of its own"
        ) from problem
    except psycopg.Error as problem:
        raise StoreError(f"{name}: cannot be used as a store: {first_line(problem)}") from problem
    finally:
        await connection.close()


def server_version(connection: Connection) -> int:
    """The version of PostgreSQL, such as 180001."""
    return connection.info.server_version


async def _make_or_check(connection: Connection, name: str, makes: bool) -> None:
    """Make the tables, all at once or not at all; servers that start together come one after the other."""
    sql = statements("postgres")
    async with connection.transaction():
        await connection.execute(sql["lock_schema"])
        exists, ours, relations = await (await connection.execute(sql["schema"])).fetchone() or (False, False, 0)
        if ours:
            (version,) = await (await connection.execute(sql["schema_version"])).fetchone() or (0,)
            check_version(int(version or 0), name)
            return
        if relations:
            raise StoreError(f"{name}: has a schema saferank of something else; name another database")
        if not makes:
            raise StoreError(f"{name}: has no store; name the database of one")
        if not exists:
            await connection.execute(sql["create_schema"])
        await connection.execute(schema("postgres"))
        for row in new_facts():
            await connection.execute(sql["put_meta"], row)
        await connection.execute(sql["add_shards"], (SHARDS,))
        await connection.execute(sql["set_schema_version"], (SCHEMA_VERSION,))


def _reason(problem: psycopg.Error) -> str:
    """The sentence of PostgreSQL inside that of libpq, with the fix for the most common one."""
    text = " ".join(str(problem).split())
    _, fatal, reason = text.rpartition("FATAL: ")
    said = reason.strip() if fatal else text
    return f"{said}; create it first (createdb)" if said.startswith("database") and "does not exist" in said else said


# --- A connection that listens: servers tell each other of publications and operations by NOTIFY ---


_PAUSE_SECONDS = 0.5
_ROUND_SECONDS = 60.0


class Listener:
    """``wait`` returns when something was told. While the connection is away, it returns after its time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._told = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when listening, or when it did not work at once."""
        self._task = asyncio.create_task(self._listen())
        await self._ready.wait()

    async def stop(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def wait(self, seconds: float) -> None:
        """Return when something was told since the last call returned, or after a number of seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._told.wait()
        self._told.clear()

    async def _listen(self) -> None:
        while True:
            with suppress(psycopg.Error, OSError):
                await self._listen_once()
            self._ready.set()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen_once(self) -> None:
        async with await connect(self._address) as connection:
            await connection.execute(statements("postgres")["listen"])
            self._ready.set()
            self._told.set()  # what was told before is not known
            while True:
                async for _ in connection.notifies(timeout=_ROUND_SECONDS):
                    self._told.set()
                await connection.execute("SELECT 1")  # notices a connection that died in silence
