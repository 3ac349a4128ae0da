"""A server that goes away: nothing is acknowledged meanwhile, and everything works again when it is back."""

import asyncio

import psycopg
import pytest

from saferank.store.contract import Group, Lease, OperationKind, Outcome, StoreUnavailableError
from saferank.store.postgres import connections
from saferank.store.postgres.store import PostgresStore
from tests.postgres_process import PostgresProcess, Proxy
from tests.store.postgres_database import emptied
from tests.store.stores import now_of, opened, page, publication, report, said

END_OTHERS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'saferank' AND pid <> pg_backend_pid()
"""


async def recovered(store: PostgresStore) -> int:
    """The store's clock, as soon as it answers again."""
    for _ in range(20):
        try:
            return await now_of(store)
        except StoreUnavailableError:
            continue
    raise AssertionError("the store did not come back")


def test_connections_that_were_ended_are_replaced(postgres_address: str) -> None:
    async def within() -> None:
        store = PostgresStore(postgres_address)
        await store.open()
        await asyncio.gather(*(now_of(store) for _ in range(6)))
        with psycopg.connect(postgres_address, autocommit=True) as other:
            assert (other.execute(END_OTHERS).fetchone() or (0,))[0] > 1
        with pytest.raises(StoreUnavailableError, match="postgresql://"):
            await store.write(Group())
        await now_of(store)  # one failure says that all others are gone too
        await store.wait(0.001)
        waiting = asyncio.create_task(store.wait(600))  # the listener is back as well, or will be
        await store.add_operation("t", 0, OperationKind.KILL, "{}")
        await asyncio.wait_for(waiting, 60)
        await store.close()

    asyncio.run(within())


def test_a_killed_server_loses_nothing_that_was_acknowledged(postgres_process: PostgresProcess) -> None:
    async def within() -> None:
        store = PostgresStore(emptied(postgres_process.address()))
        await store.open()
        context, now = await opened(store), await now_of(store)
        row = page(context, now)
        assert await said(store, report(row, 5, "e")) == [Outcome.ACCEPTED]
        postgres_process.kill()
        for call in (now_of(store), store.heartbeat("a", 0, 1000), store.publication(context)):
            with pytest.raises(StoreUnavailableError):
                await call
        await asyncio.to_thread(postgres_process.start)
        assert await recovered(store) >= now
        assert await said(store, report(row, 5, "e")) == [Outcome.DUPLICATE]
        assert await store.page(row.impression) == row._replace(clicks=5)
        await store.close()

    asyncio.run(within())


def test_a_silent_network_is_given_up_in_time(
    postgres_process: PostgresProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CALL_SECONDS", 0.2)

    async def within() -> None:
        emptied(postgres_process.address())
        proxy = Proxy(postgres_process.socket)
        await proxy.start()
        store = PostgresStore(proxy.address("postgres"))
        await store.open()
        monkeypatch.setattr(connections, "CALL_SECONDS", 30.0)
        await now_of(store)
        monkeypatch.setattr(connections, "CALL_SECONDS", 0.2)
        proxy.cut()
        with pytest.raises(StoreUnavailableError, match="did not answer within"):
            await now_of(store)
        monkeypatch.setattr(connections, "CALL_SECONDS", 30.0)
        proxy.mend(lose=True)
        await recovered(store)
        await store.close()
        await proxy.stop()

    asyncio.run(within())


def test_a_client_that_stalls_inside_a_transaction_does_not_stop_the_others(postgres_address: str) -> None:
    """Its connection is ended by the server, and with it its locks."""

    async def within() -> None:
        store, stalled = PostgresStore(postgres_address), await connections.connect(postgres_address)
        await store.open()
        context, now = await opened(store), await now_of(store)
        await stalled.execute("SET idle_in_transaction_session_timeout = 300")
        await stalled.execute("BEGIN")
        await stalled.execute("SELECT 1 FROM saferank.context FOR UPDATE")
        assert await said(store, report(page(context, now), 1)) == [Outcome.ACCEPTED]
        with pytest.raises(psycopg.Error):
            await stalled.execute("COMMIT")
        await stalled.close()
        await store.close()

    asyncio.run(within())


def test_calls_after_the_end_are_refused(postgres_address: str) -> None:
    async def within() -> None:
        store = PostgresStore(postgres_address)
        await store.open()
        await store.close()
        with pytest.raises(StoreUnavailableError, match="is not open"):
            await store.publish(Lease(1, 1, 1), publication(1), [])

    asyncio.run(within())
