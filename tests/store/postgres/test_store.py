"""What only PostgreSQL has to keep: transactions that run at the same time, seen in the middle."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from saferank.store.contract import SHARDS, DamagedStoreError, Group, OperationKind, Outcome, Snapshot
from saferank.store.copying import backup
from saferank.store.postgres.connections import Connection, connect
from saferank.store.postgres.store import PostgresStore, group_columns
from saferank.store.sql import statements
from tests.store.stores import lease_of, now_of, opened, page, publication, report, said

SQL = statements("postgres")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


async def blocked(task: "asyncio.Task[Any]", watch: Connection) -> bool:
    """True as soon as the task waits for a lock; False when it ended without."""
    while not task.done():
        row = await (await watch.execute(WAITING)).fetchone()
        if row and row[0]:
            return True
        await asyncio.sleep(0.005)
    return False


async def between(address: str) -> tuple[PostgresStore, Connection, Connection]:
    """A store, a transaction of another server that has begun, and somebody who watches."""
    store = PostgresStore(address)
    await store.open()
    other = await connect(address)
    await other.execute("BEGIN")
    return store, other, await connect(address)


def test_a_closing_waits_for_a_report_that_is_being_written(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        row, lease = page(context, now), await lease_of(store, context)
        await other.execute(SQL["write_group"], group_columns(Group(reports=[report(row, 5)])))
        closing = asyncio.create_task(store.close_through(lease, context, now))
        assert await blocked(closing, watch)
        await other.execute("COMMIT")
        assert await closing == now
        assert list(await store.pages_between(context, now - 1, now)) == [row._replace(clicks=5)]
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_a_report_waits_for_a_closing_and_is_late(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        row, lease = page(context, now), await lease_of(store, context)
        await other.execute(SQL["close_through"], (lease.shard, lease.epoch, context, now))
        reporting = asyncio.create_task(said(store, report(row, 5, "e")))
        assert await blocked(reporting, watch)
        await other.execute("COMMIT")
        assert await reporting == [Outcome.LATE]
        assert await store.page(row.impression) is None
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_a_publication_waits_for_pages_that_are_being_written_and_finds_them_due(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        lease = await lease_of(store, context)
        await store.write(Group(pages=[page(context, now)]))
        await other.execute(SQL["write_group"], group_columns(Group(pages=[page(context, now + 5)])))
        publishing = asyncio.create_task(store.publish(lease, publication(context, 1, now), []))
        assert await blocked(publishing, watch)
        await other.execute("COMMIT")
        await publishing
        assert list(await store.due([lease.shard], 0, now + 600_005)) == [context]
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_an_event_id_that_is_being_written_is_waited_for(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        row = page(context, now)
        await other.execute(SQL["write_group"], group_columns(Group(reports=[report(row, 1, "e")])))
        same = asyncio.create_task(said(store, report(row, 1, "e"), report(page(context, now), 1, "e")))
        assert await blocked(same, watch)
        await other.execute("COMMIT")
        assert await same == [Outcome.DUPLICATE, Outcome.ACCEPTED]  # the id of another page is another id
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_a_takeover_waits_for_a_closing_under_the_old_lease(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        lease = await lease_of(store, context)
        await store.leave("closer")
        await other.execute(SQL["close_through"], (lease.shard, lease.epoch, context, now))
        taking = asyncio.create_task(lease_of(store, context, "next"))
        assert await blocked(taking, watch)
        await other.execute("COMMIT")
        assert (await taking).epoch == lease.epoch + 1
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_contexts_are_opened_one_after_the_other(postgres_address: str) -> None:
    """Otherwise two servers give the same number to two contexts."""

    async def within() -> None:
        store, other, watch = await between(postgres_address)
        await other.execute(SQL["lock_contexts"])
        opening = asyncio.create_task(opened(store, "new"))
        assert await blocked(opening, watch)
        await other.execute("COMMIT")
        assert await opening == 1
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_pages_are_not_deleted_while_an_operation_is_added_that_may_need_them(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        context, now = await opened(store), await now_of(store)
        lease, row = await lease_of(store, context), page(context, now)
        await store.write(Group(pages=[row]))
        await other.execute(SQL["lock_operations"])
        pruning = asyncio.create_task(store.prune(lease, context, Snapshot(1, now, 0), now + 1, 0, 10))
        assert await blocked(pruning, watch)
        facts = {"tenant": "t", "context": context, "kind": int(OperationKind.ROLLBACK), "body": "{}"}
        await other.execute(SQL["add_operation"], facts)
        await other.execute("COMMIT")
        assert await pruning == 0 and await store.page(row.impression) == row
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_an_operation_waits_for_the_number_before_it(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        await other.execute(SQL["lock_operations"])
        adding = asyncio.create_task(store.add_operation("t", 0, OperationKind.KILL, "{}"))
        assert await blocked(adding, watch)
        await other.execute("COMMIT")
        assert (await adding).number == 1
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_an_operation_waits_for_a_heartbeat_that_does_not_know_of_it(postgres_address: str) -> None:
    """Otherwise a kill switch returns without having seen the server, which explores after that."""

    async def within() -> None:
        store, other, watch = await between(postgres_address)
        beat = await (await other.execute(SQL["heartbeat"], ("new", 0, 60_000, SHARDS))).fetchone()
        assert beat is not None and beat[2] == 0
        adding = asyncio.create_task(store.add_operation("t", 0, OperationKind.KILL, "{}"))
        assert await blocked(adding, watch)
        await other.execute("COMMIT")
        assert (await adding).number == 1
        assert [(row.server, row.acknowledged) for row in await store.servers()] == [("new", 0)]
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_a_heartbeat_does_not_wait_for_pages_that_are_being_deleted(postgres_address: str) -> None:
    async def within() -> None:
        store, other, watch = await between(postgres_address)
        await other.execute(SQL["hold_operations"])  # as retention does
        beating = asyncio.create_task(store.heartbeat("s", 0, 60_000))
        assert not await blocked(beating, watch)
        await asyncio.gather(other.close(), watch.close(), store.close())

    asyncio.run(within())


def test_commits_are_durable_even_where_the_database_says_otherwise(postgres_address: str) -> None:
    with psycopg.connect(postgres_address, autocommit=True) as admin:
        admin.execute("ALTER ROLE postgres SET synchronous_commit = off")
        try:

            async def within() -> str:
                connection = await connect(postgres_address)
                row = await (await connection.execute("SHOW synchronous_commit")).fetchone()
                await connection.close()
                return str((row or ("",))[0])

            assert asyncio.run(within()) == "on"
        finally:
            admin.execute("ALTER ROLE postgres RESET synchronous_commit")


def test_what_the_database_cannot_hold_is_not_taken_for_an_outage(postgres_address: str) -> None:
    """Otherwise its writer would try again forever, and all others would wait for it."""

    async def within() -> None:
        store = PostgresStore(postgres_address)
        await store.open()
        context, now = await opened(store), await now_of(store)
        good, poison = page(context, now), page(context, now)._replace(closes_at=1 << 70)
        with pytest.raises(psycopg.DataError):
            await store.write(Group(pages=[good, poison]))
        assert [row async for some in store.all_pages() for row in some] == []
        await store.write(Group(pages=[good]))
        assert [row async for some in store.all_pages() for row in some] == [good]
        await store.close()

    asyncio.run(within())


def test_blocks_that_postgresql_has_found_damaged_end_a_backup(
    postgres_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SQL, "checksum_failures", "SELECT 3::bigint")
    with pytest.raises(DamagedStoreError, match="PostgreSQL has met 3 blocks with a wrong checksum in this database"):
        asyncio.run(backup(PostgresStore(postgres_address), tmp_path / "file"))
    assert not list(tmp_path.iterdir())
