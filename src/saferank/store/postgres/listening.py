"""A connection that listens: servers tell each other of publications and operations by NOTIFY."""

import asyncio
from contextlib import suppress

import psycopg

from saferank.store.postgres.connections import connect
from saferank.store.sql import statements

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
        """Return when something was told since the last call returned, or after so many seconds."""
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
