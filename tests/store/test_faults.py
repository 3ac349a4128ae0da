"""Pages and operations that are missing, and impossible times of contexts, are named, on both stores."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from saferank.store.contract import DamagedStoreError, Group, Mark, OperationKind, Store
from saferank.store.embedded.file import FILE_NAME
from saferank.store.faults import AHEAD_MS, time_faults
from saferank.store.opening import open_store
from saferank.store.past import Past
from saferank.store.sql import migrations
from saferank.store.tables import CopiedStore
from tests.store.stores import lease_of, now_of, opened, page, publication, report

Change = Callable[[str], None]
NOW = 10**12


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Change]:
    """The address of an empty store, and a way to change it behind its back."""
    if request.param == "sqlite":

        def change(statement: str) -> None:
            with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
                connection.execute(statement.format(""))
                connection.commit()

        return str(tmp_path), change
    address: str = request.getfixturevalue("postgres_address")

    def change_database(statement: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement.format("saferank."))

    return address, change_database


async def details(store: Store) -> list[str]:
    return [fault.detail for fault in await store.faults()]


async def used(store: CopiedStore) -> None:
    """Pages written in every way, and deleted in every way."""
    context, now = await opened(store), await now_of(store)
    rows = [page(context, now - 100 + number) for number in range(10)]
    await store.write(Group([report(rows[0], 1), report(rows[0], 2)], rows[:6]))
    await store.write(Group([report(rows[5], 1), report(rows[6], 1)], rows))
    await store.load(Past(pages=[page(context, now - 200)]))
    lease = await lease_of(store, context)
    await store.close_through(lease, context, now)
    await store.publish(lease, publication(context, through=now), [], keep=True)
    mark = Mark(1, now, 0)
    assert await store.prune(lease, context, mark, now - 98, 0, 2) == 2
    assert (await store.delete_pages(lease, context, mark, [rows[9].impression], [])).pages == 1


def test_a_store_that_was_used_has_no_faults_and_one_without_a_page_has(place: tuple[str, Change]) -> None:
    async def test() -> None:
        store = open_store(place[0])
        await store.open()
        await used(store)
        assert await details(store) == []
        place[1]("DELETE FROM {0}page WHERE number = (SELECT MAX(number) FROM {0}page)")
        (detail,) = await details(store)
        assert "1 pages are missing: 8 were written, the log has 7" in detail
        with pytest.raises(DamagedStoreError, match="1 pages are missing"):
            [chunk async for chunk in store.dump()]
        await store.close()

    asyncio.run(test())


def test_a_copy_has_no_faults(place: tuple[str, Change], tmp_path: Path) -> None:
    async def test() -> None:
        store, copy = open_store(place[0]), open_store(tmp_path / "copy")
        await store.open()
        await used(store)
        chunks = [chunk async for chunk in store.dump()]
        await copy.open()
        await copy.fill(chunks)
        assert await details(copy) == [] and await copy.pruned_through(1) > 0
        await copy.close()
        await store.close()

    asyncio.run(test())


async def operated(store: Store) -> None:
    for kind in (OperationKind.KILL, OperationKind.UNKILL, OperationKind.ROLLBACK, OperationKind.RESET):
        await store.add_operation("t", 1, kind, "{}")


@pytest.mark.parametrize("lost", ["number = 4", "number > 2", "number = 2", "number > 0"])
def test_operations_that_are_missing_are_named_and_their_numbers_not_given_again(
    place: tuple[str, Change], lost: str
) -> None:
    """Servers obey what they have read: they would take a new operation of that number for a known one."""

    async def test() -> None:
        store = open_store(place[0])
        await store.open()
        await operated(store)
        assert [row.number for row in await store.operations(0)] == [1, 2, 3, 4]
        assert await details(store) == [] and await store.operations(4) == []
        place[1](f"DELETE FROM {{0}}operation WHERE {lost}")
        missing = "operations are missing or too many: 4 were written, the store has "
        with pytest.raises(DamagedStoreError, match=missing):
            await store.operations(0)
        with pytest.raises(DamagedStoreError, match=missing):
            await store.operations(1)
        with pytest.raises(DamagedStoreError, match=missing):
            await store.add_operation("t", 1, OperationKind.KILL, "{}")
        with pytest.raises(DamagedStoreError, match=missing):
            [chunk async for chunk in store.dump()]
        (detail,) = await details(store)
        assert missing in detail
        assert (await store.heartbeat("me", 0, 1000)).operations == 4
        await store.close()

    asyncio.run(test())


def test_a_copy_notices_what_it_loses(place: tuple[str, Change], tmp_path: Path) -> None:
    async def test() -> None:
        store, copy = open_store(place[0]), open_store(tmp_path / "copy")
        await store.open()
        await operated(store)
        chunks = [chunk async for chunk in store.dump()]
        await store.close()
        await copy.open()
        await copy.fill(chunks)
        assert (await copy.add_operation("t", 1, OperationKind.KILL, "{}")).number == 5
        assert await details(copy) == []
        with closing(sqlite3.connect(tmp_path / "copy" / FILE_NAME)) as connection:
            connection.execute("DELETE FROM operation WHERE number = 5")
            connection.commit()
        with pytest.raises(DamagedStoreError, match="5 were written, the store has 4"):
            await copy.operations(0)
        await copy.close()

    asyncio.run(test())


def test_operations_of_an_older_schema_are_counted_when_it_is_migrated(tmp_path: Path) -> None:
    async def test() -> None:
        store = open_store(tmp_path)
        await store.open()
        await operated(store)
        await store.close()
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.executescript(
                "DROP TRIGGER operation_written; ALTER TABLE tally DROP COLUMN operations; PRAGMA user_version = 6"
            )
        await store.open()
        assert len(await store.operations(0)) == 4 and await details(store) == []
        assert (await store.add_operation("t", 1, OperationKind.KILL, "{}")).number == 5
        assert len(await store.operations(4)) == 1
        await store.close()

    asyncio.run(test())


def test_operations_of_an_older_database_are_counted_when_it_is_migrated(postgres_address: str) -> None:
    async def test() -> None:
        store = open_store(postgres_address)
        await store.open()
        await operated(store)
        await store.close()
        with psycopg.connect(postgres_address, autocommit=True) as connection:
            connection.execute("DROP TRIGGER operation_written ON saferank.operation")
            connection.execute("DROP FUNCTION saferank.count_operation")
            connection.execute("DROP TABLE saferank.operation_tally")
            connection.execute("UPDATE saferank.schema_version SET version = 4")
        store = open_store(postgres_address)
        await store.open()
        assert len(await store.operations(0)) == 4 and await details(store) == []
        assert (await store.add_operation("t", 1, OperationKind.KILL, "{}")).number == 5
        await store.close()

    assert max(migrations("postgres")) == 5, "drop here what later migrations made, too"
    asyncio.run(test())


def test_damaged_times_of_a_context_are_named(place: tuple[str, Change]) -> None:
    async def test() -> None:
        store = open_store(place[0])
        await store.open()
        await used(store)
        place[1]("UPDATE {}context SET closed_through = closed_through + (CAST(1 AS bigint) << 42)")
        (fault,) = await store.faults()
        assert fault.context == 1 and "the row 1 of table context is damaged" in fault.detail
        await store.close()

    asyncio.run(test())


@pytest.mark.parametrize(
    ("closed", "pruned", "published", "why"),
    [
        (NOW + AHEAD_MS + 1, 0, 0, "in the future"),
        (4, 0, 5, "is closed through 4, but what was published stands for pages through 5"),
        (9, 6, 5, "has pages deleted through 6"),
        (NOW + AHEAD_MS, 5, 5, None),
    ],
)
def test_impossible_times_are_named(closed: int, pruned: int, published: int, why: str | None) -> None:
    found = time_faults("store", [(3, closed, pruned, published, True)], NOW)
    assert [fault.context for fault in found] == ([] if why is None else [3])
    assert why is None or why in found[0].detail
