"""A byte that was changed in the store is named by whoever reads it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from saferank.store.contract import CatalogueRow, DamagedStoreError, Group, OperationKind, Store
from saferank.store.embedded.file import FILE_NAME
from saferank.store.opening import open_store
from tests.store.postgres_database import without_store
from tests.store.stores import lease_of, now_of, opened, page, publication, report, said, version

Change = Callable[[str], None]
Read = Callable[[Store], Awaitable[object]]

PAGES = [page(1, 10**12, clicks=5, window=10**13) for _ in range(3)]


async def fill(store: Store) -> None:
    context = await opened(store)
    assert await now_of(store) < PAGES[0].closes_at
    await store.write(Group([report(PAGES[0], 6)], PAGES, [CatalogueRow(b"d" * 16, b"body")]))
    await store.publish(await lease_of(store, context), publication(1), [version(1, 1)], keep=True)
    await store.add_operation("t", 0, OperationKind.KILL, "{}")


async def consumed(rows: AsyncIterator[object]) -> list[object]:
    return [row async for row in rows]


async def close(store: Store) -> int:
    return await store.close_through(await lease_of(store, 1), 1, 1)


DAMAGE: dict[str, tuple[str, Read]] = {
    "the record of a page": ("UPDATE {}page SET record = {blob}", lambda store: consumed(store.all_pages())),
    "when a page closes": ("UPDATE {}page SET closes_at = 7", lambda store: store.page(PAGES[1].impression)),
    "the context of a page": ("UPDATE {}page SET context = 2", lambda store: store.page(PAGES[1].impression)),
    "the number of a page": ("UPDATE {}page SET number = 0", lambda store: store.pages_between(1, 0, 10**13)),
    "the clicks of a page": ("UPDATE {}page SET clicks = {clicks}", lambda store: store.page(PAGES[0].impression)),
    "a publication": ("UPDATE {}publication SET body = {blob}", lambda store: store.publication(1)),
    "the time of a publication": ("UPDATE {}publication SET through = 3", lambda store: store.publication(1)),
    "a snapshot": ("UPDATE {}snapshot SET body = {blob}", lambda store: store.snapshots(1)),
    "a version": ("UPDATE {}version SET leader = '[]'", lambda store: store.versions(1)),
    "an operation": ("UPDATE {}operation SET kind = 2", lambda store: store.operations(0)),
    "a context": ("UPDATE {}context SET terms = '[]'", lambda store: store.contexts()),
    "through when a context is closed, at a report": (
        "UPDATE {}context SET closed_through = 1 << 41",
        lambda store: said(store, report(PAGES[1], 1)),
    ),
    "through when a context is closed, at the next closing": (
        "UPDATE {}context SET closed_through = 1 << 41",
        close,
    ),
    "through when pages were deleted": (
        "UPDATE {}context SET pruned_through = 1",
        lambda store: store.pruned_through(1),
    ),
    "a catalogue": ("UPDATE {}catalogue SET body = {blob}", lambda store: store.catalogue(b"d" * 16)),
    "a secret": ("UPDATE {}meta SET value = {blob}", lambda store: store.meta("session_key")),
}


async def check(address: str, name: str, change: Change) -> None:
    statement, read = DAMAGE[name]
    store = open_store(address)
    await store.open()
    await fill(store)
    await read(store)
    change(statement)
    with pytest.raises(DamagedStoreError, match=r"the row .* of table \w+ is damaged: its checksum is wrong"):
        await read(store)
    await store.close()


@pytest.mark.parametrize("name", DAMAGE)
def test_sqlite_names_what_was_changed(tmp_path: Path, name: str) -> None:
    def change(statement: str) -> None:
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute(statement.format("", blob="x'00'", clicks="x'0500000000'"))
            connection.commit()

    asyncio.run(check(str(tmp_path), name, change))


@pytest.mark.parametrize("name", DAMAGE)
def test_postgres_names_what_was_changed(postgres_address: str, name: str) -> None:
    def change(statement: str) -> None:
        with psycopg.connect(postgres_address, autocommit=True) as connection:
            connection.execute(statement.format("saferank.", blob="'\\x00'", clicks="set_bit(clicks, 90, 1)"))

    asyncio.run(check(postgres_address, name, change))
    if name == "a secret":
        without_store(postgres_address)


@pytest.mark.parametrize(
    "change", ["server = x'00'", "number = 'many'", "closes_at = 1e300", "clicks = 5", "record = 'a'"]
)
def test_columns_of_another_kind_are_named(tmp_path: Path, change: str) -> None:
    async def within() -> None:
        store = open_store(tmp_path)
        await store.open()
        await fill(store)
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute(f"UPDATE page SET {change}")
            connection.commit()
        with pytest.raises(DamagedStoreError, match="is damaged"):
            await store.page(PAGES[1].impression)
        await store.close()

    asyncio.run(within())


def test_clicks_of_one_page_do_not_pass_for_those_of_another(tmp_path: Path) -> None:
    async def within() -> None:
        store = open_store(tmp_path)
        await store.open()
        await fill(store)
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute("UPDATE page SET clicks = (SELECT clicks FROM page LIMIT 1)")
            connection.commit()
        with pytest.raises(DamagedStoreError, match="table clicks"):
            await store.page(PAGES[1].impression)
        await store.close()

    asyncio.run(within())
