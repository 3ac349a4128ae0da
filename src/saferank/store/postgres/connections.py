"""Connections to PostgreSQL: a bounded number, each used by one call at a time, none trusted after an error.

psycopg's own pool doubles its pauses while a server is away, so a server can be back long before that is seen.
Here a call that finds no connection makes one, and a call that fails throws all idle ones away. A call that takes too
long is given up at once (a partition is silent); what is left of it ends in the background.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from saferank.store.contract import DamagedStoreError, StoreUnavailableError
from saferank.store.sql import statements

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]

CALL_SECONDS = 6.0
"""Longer than the statement_timeout, so that the server's own sentence comes first if it can."""

_CONNECT_SECONDS = 3
_MOST = 8
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
"""Other errors of psycopg are mistakes of the caller."""

DAMAGE = (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)
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
        try:
            return task.result()
        except DAMAGE as problem:
            raise damaged(self._name, problem) from problem
        except _AWAY as problem:
            raise StoreUnavailableError(f"{self._name}: {first_line(problem)}") from problem

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
            task.exception()  # it was told to whoever waited, or nobody waits any more


def damaged(name: str, problem: psycopg.Error) -> DamagedStoreError:
    """What is said of a database that PostgreSQL finds damaged."""
    return DamagedStoreError(f"{name}: is damaged ({first_line(problem)}). Restore the store from a backup")


def first_line(problem: BaseException) -> str:
    """What PostgreSQL said, without its details."""
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
