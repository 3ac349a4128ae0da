"""Stores of every kind for the tests, and rows to fill them with."""

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from saferank.store.contract import (
    AlarmRow,
    ClickReport,
    Group,
    Lease,
    Outcome,
    PageRow,
    Publication,
    Store,
    VersionRow,
)
from saferank.store.embedded.store import SqliteStore
from saferank.store.page_record import RANDOM_BYTES, TIME_BYTES
from tests.store.memory import MemoryStore

WINDOW = 600_000
_numbers: Iterator[int] = itertools.count(1)


class Kind(Protocol):
    """A way to have stores: each call of ``connect`` is one more server of the same store."""

    name: str
    several: bool

    async def connect(self) -> Store: ...


class Memory:
    name, several = "memory", True

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def connect(self) -> Store:
        return self._store


class Embedded:
    """One process, one store object: further servers of a test share it."""

    name, several = "sqlite", True

    def __init__(self, folder: Path) -> None:
        self._store, self._opened = SqliteStore(folder), False

    async def connect(self) -> Store:
        if not self._opened:
            await self._store.open()
            self._opened = True
        return self._store


@asynccontextmanager
async def connected(kind: Kind, count: int = 1) -> AsyncIterator[list[Store]]:
    """So many servers' views of one store."""
    stores = [await kind.connect() for _ in range(count)]
    try:
        yield stores
    finally:
        for store in {id(store): store for store in stores}.values():
            await store.close()


def over_store(test: Callable[[Store], Awaitable[None]]) -> Callable[[Kind], None]:
    """A test of one server."""

    @functools.wraps(test)
    def run(kind: Kind) -> None:
        async def within() -> None:
            async with connected(kind) as (store,):
                await test(store)

        asyncio.run(within())

    del run.__wrapped__  # pytest reads its arguments from the wrapper
    return run


async def now_of(store: Store) -> int:
    return (await store.write(Group())).now


async def opened(store: Store, name: str = "c", tenant: str = "t") -> int:
    row = await store.open_context(tenant, name, "{}", 1000)
    assert row is not None
    return row.id


def page(context: int, at: int, clicks: int = 0, window: int = WINDOW) -> PageRow:
    number = next(_numbers)
    impression = at.to_bytes(TIME_BYTES, "big") + number.to_bytes(RANDOM_BYTES, "big")
    return PageRow(impression, context, at + window, b"record %d" % number, clicks)


def report(row: PageRow, clicks: int, event_id: str | None = None, tenant: str = "t") -> ClickReport:
    return ClickReport(row._replace(clicks=clicks), tenant, event_id)


async def said(store: Store, *reports: ClickReport) -> list[Outcome]:
    return list((await store.write(Group(reports=reports))).outcomes)


async def lease_of(store: Store, context: int, server: str = "closer") -> Lease:
    beat = await store.heartbeat(server, 0, 60_000)
    return next(lease for lease in beat.leases if lease.shard == context % 64)


def publication(context: int, number: int = 1, through: int = 0, body: bytes = b"knowledge") -> Publication:
    return Publication(context, number, through, 0, body)


def version(context: int, number: int, why: str | None = None) -> VersionRow:
    return VersionRow(context, number, 1000 + number, "page", '["a", "ö"]', b"i" * 16, "[]", why)


async def alarms_of(store: Store, context: int) -> list[AlarmRow]:
    """The alarms of a context, oldest first."""
    return [row for row in reversed(await store.newest_alarms(1000)) if row.context == context]
