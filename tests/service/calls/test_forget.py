"""The pages of a session or of a source go; everybody else's stay, and so does what was learnt."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from saferank.errors import ArgumentError
from saferank.service.calls.forget import Forgotten, NotForgottenError, forget
from saferank.service.calls.replay import ReplayReport, verify
from saferank.service.clock import SystemClock
from saferank.service.identifiers import visitor
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import ForgetCall, RankCall, moment
from saferank.store.contract import CopiedStore, Lease, OperationKind, StoreError
from saferank.store.copying import backup, restore
from saferank.store.embedded.store import SqliteStore
from saferank.store.opening import open_store
from saferank.store.record_columns import unpacked
from tests.postgres_process import PostgresProcess
from tests.service.house import BASE, BUBBLE, CANDIDATES, House, T, house, run

SESSIONS = ["ann", "bob", "cid"]
Opened = Callable[[], CopiedStore]


async def traffic(h: House, rounds: int = 12) -> None:
    """Each session sees two contexts again and again, over many windows; ann and bob share a source."""
    for number in range(rounds):
        for name in SESSIONS:
            for context in ("c", "d"):
                page = await h.rank(context, session_id=name, source="one" if name != "cid" else "two")
                await h.accept(page, *page.ranking[: number % 3], event_id=f"{name}-{context}-{number}")
        await h.later(4)


def filled(folder: Path, more: Callable[[House], Any] | None = None) -> None:
    async def fill() -> None:
        house = House(folder, snapshot_every=10)
        await house.start()
        await traffic(house)
        await house.close()
        if more is not None:
            await more(house)
        await house.stop()

    run(fill())


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresProcess]:
    process = PostgresProcess()
    yield process
    process.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """The same traffic in a store of either kind, which no server uses."""
    filled(tmp_path / "store")
    if request.param == "sqlite":
        return lambda: open_store(tmp_path / "store")
    address = request.getfixturevalue("postgres").database(f"forget_{request.node.name.partition('[')[0][:50]}")
    asyncio.run(backup(open_store(tmp_path / "store", readonly=True), tmp_path / "file"))
    asyncio.run(restore(tmp_path / "file", open_store(address)))
    return lambda: open_store(address)


async def rows_of(store: CopiedStore) -> dict[str, list[Any]]:
    await store.open()
    try:
        found: dict[str, list[Any]] = {}
        async for chunk in store.dump():
            found.setdefault(chunk.table, []).extend(chunk.rows)
        return found
    finally:
        await store.close()


def visitors(rows: dict[str, list[Any]]) -> dict[bytes, int]:
    """Pages by visitor."""
    found: dict[bytes, int] = {}
    for row in rows["page"]:
        key = unpacked(row[3]).visitor
        found[key] = found.get(key, 0) + 1
    return found


def replayed(store: CopiedStore) -> ReplayReport:
    return asyncio.run(verify(store))


def test_pages_and_event_ids_of_a_session_go_and_the_rest_stays(opened: Opened) -> None:
    before = asyncio.run(rows_of(opened()))
    assert len(before["page"]) == len(before["delivery"]) == 72 and replayed(opened()).pruned == 0
    told = asyncio.run(forget(opened(), T, "ann"))
    assert told == Forgotten(pages=24, contexts=2, events=24)
    assert told.sentences()[0] == "removed 24 pages of 2 contexts, and 24 event ids"
    after = asyncio.run(rows_of(opened()))
    (gone,) = visitors(before).keys() - visitors(after).keys()
    assert visitors(after) == {key: 24 for key in visitors(before) if key != gone}
    assert {row[1].partition("-")[0] for row in after["delivery"]} == {"bob", "cid"}
    for table in ("publication", "version", "operation", "catalogue"):
        assert after.get(table) == before.get(table)
    report = replayed(opened())
    assert (report.pruned, report.contexts, report.lost, report.publications) == (2, 2, 0, 2)
    assert asyncio.run(forget(opened(), T, "ann")).pages == 0


def test_a_source_goes_with_all_its_sessions(opened: Opened) -> None:
    assert asyncio.run(forget(opened(), T, source="one")).pages == 48
    assert list(visitors(asyncio.run(rows_of(opened()))).values()) == [24]
    assert asyncio.run(forget(opened(), T, "cid", "one")).pages == 24
    assert replayed(opened()).lost == 0


def test_a_server_goes_on_afterwards(opened: Opened) -> None:
    async def serve() -> None:
        settings = Settings(store="unused", policy=BUBBLE["policy"], rule=BUBBLE["rule"])
        server = Server(settings, opened(), SystemClock())
        await server.start(loops=False)
        for name in ("c", "c", "d", "new"):
            call = RankCall(context=name, base_ranking=BASE, candidates=CANDIDATES, k=3, session_id="ann")
            assert len((await server.rank(T, call)).ranking) == 3
            await server.writer.flush()
        assert (await server.show_context(T, "c")).leader == BASE[:3]
        await server.stop()

    asyncio.run(forget(opened(), T, "ann"))
    run(serve())
    report = replayed(opened())
    assert (report.pages, report.contexts, report.lost) == (4, 3, 0)  # the pages since the deletion


def test_an_unknown_session_removes_nothing_and_says_so(opened: Opened) -> None:
    before = asyncio.run(rows_of(opened()))
    told = asyncio.run(forget(opened(), T, "nobody", "nowhere"))
    assert told == Forgotten() and told.sentences() == ["the log has no page of it: nothing was removed"]
    assert asyncio.run(rows_of(opened())) == before
    assert replayed(opened()).pruned == 0
    with pytest.raises(NotForgottenError, match=f"'other' has no contexts; tenants that have some: {T}"):
        asyncio.run(forget(opened(), "other", "ann"))
    with pytest.raises(ArgumentError, match="name a session, a source or both"):
        asyncio.run(forget(opened(), T))


async def pages_of(h: House, name: str) -> int:
    """How many pages of a session are stored."""
    key = visitor(h.server.session_key, T, name, None, None).key
    await h.server.writer.flush()
    return sum([unpacked(page.record).visitor == key async for some in h.store.all_pages() for page in some])


def test_a_session_is_forgotten_while_the_service_runs(tmp_path: Path) -> None:
    """Pages that were learnt from go at once, those in open windows when these end, and no others. The replay at
    the end agrees, and a restart in between goes on."""

    async def test() -> None:
        async with house(tmp_path, snapshot_every=10) as h:
            await traffic(h, 6)
            late = await h.rank(session_id="ann")
            await h.accept(late, late.ranking[0])
            others, pages = await pages_of(h, "bob"), await pages_of(h, "ann")
            assert pages > 10
            answer = await h.server.forget(T, ForgetCall("a request", session_id="ann"))
            await h.server.closer.close_due(everything=True)
            await h.server.forgetting.carry_out()
            left = await pages_of(h, "ann")
            assert 0 < left < pages  # open windows
            await h.restart()
            await h.later(1)
            returned = await h.rank(session_id="ann")  # after the request: a new beginning
            await h.close()
            h.now += 60_000
            await h.server.closer.close_due(everything=True)
            await h.server.forgetting.carry_out()
            assert await pages_of(h, "ann") == 1 and h.record(returned).visitor
            assert await pages_of(h, "bob") == others
            assert answer.done_by <= moment(h.now)
            await h.restart()
            await h.server.forgetting.carry_out()
            assert h.server.forgetting.pages == 0  # it is known to be done
            lines = [facts async for facts in h.server.export(T, None)]
            assert not [line for line in lines if "a request" in str(line)]

    run(test())


def test_a_page_that_its_token_brings_back_after_the_request_goes_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank(session_id="bob")
            with monkeypatch.context() as patched:
                patched.setattr(h.server.writer, "add_page", lambda row: None)  # a crash takes it
                lost = await h.rank(session_id="ann")
            await h.server.forget(T, ForgetCall("a request", session_id="ann"))
            await h.server.forgetting.carry_out()
            await h.accept(lost, lost.ranking[0])
            assert await pages_of(h, "ann") == 1
            await h.close()
            h.now += 60_000
            await h.server.closer.close_due(everything=True)
            await h.server.forgetting.carry_out()
            assert (await pages_of(h, "ann"), await pages_of(h, "bob")) == (0, 1)

    run(test())


def test_pages_that_a_rollback_may_need_stay_until_it_is_carried_out(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await traffic(h, 6)
            await h.close()
            number = h.fold().context
            await h.store.add_operation(T, number, OperationKind.ROLLBACK, '{"version": 1, "why": "wrong"}')
            await h.server.forget(T, ForgetCall("a request", session_id="ann"))
            pages = await pages_of(h, "ann")
            await h.server.forgetting.carry_out()
            left = await pages_of(h, "ann")
            assert 0 < left < pages, "those of the other context went"
            await h.server.closer.close_due(everything=True)
            h.now += 60_000
            await h.server.forgetting.carry_out()
            assert await pages_of(h, "ann") == 0 and h.fold().version > 1

    run(test())
    assert replayed(open_store(tmp_path)).lost == 0


def test_a_store_in_use_is_refused(opened: Opened) -> None:
    async def story() -> None:
        store = opened()
        await store.open()
        try:
            await store.heartbeat("alive", 0, 60_000)
            with pytest.raises((NotForgottenError, StoreError), match=r"1 servers use this store|another server"):
                await forget(opened(), T, "ann")
            await store.leave("alive")
        finally:
            await store.close()
        assert (await forget(opened(), T, "ann")).pages == 24

    asyncio.run(story())


def test_a_server_that_was_killed_counts_until_its_lease_ends(tmp_path: Path) -> None:
    filled(tmp_path)

    async def story() -> None:
        store = SqliteStore(tmp_path)
        await store.open()
        await store.heartbeat("killed", 0, 60_000)
        await store.close()
        with pytest.raises(NotForgottenError, match="1 servers use this store; stop them first"):
            await forget(SqliteStore(tmp_path), T, "ann")

    asyncio.run(story())


class TakenOver(SqliteStore):
    """A store whose shards another server takes when pages are about to be deleted."""

    async def keep_publication(self, lease: Lease, context: int) -> None:
        await super().keep_publication(lease, context)
        await self.leave("saferank forget")
        await self.heartbeat("new", 0, 60_000)


def test_a_server_that_has_taken_over_meanwhile_ends_it(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(NotForgottenError, match="a server was started meanwhile; pages may be left: stop it"):
        asyncio.run(forget(TakenOver(tmp_path), T, "ann"))
    assert replayed(SqliteStore(tmp_path)).lost == 0


def test_open_pages_are_refused_until_they_are_learnt(tmp_path: Path) -> None:
    async def one_more(h: House) -> None:
        await h.accept(await h.rank(session_id="ann"), event_id="last")

    filled(tmp_path, one_more)
    with pytest.raises(NotForgottenError, match="1 of the pages in context 'c' have not been learnt from yet: start"):
        asyncio.run(forget(SqliteStore(tmp_path), T, "ann"))
    assert len(asyncio.run(rows_of(SqliteStore(tmp_path)))["page"]) == 73
    assert asyncio.run(forget(SqliteStore(tmp_path), T, "bob")).pages == 24  # open pages of others do not matter

    async def start_and_stop() -> None:
        house = House(tmp_path)
        house.now += 600_000
        await house.start()
        await house.stop()

    run(start_and_stop())
    assert asyncio.run(forget(SqliteStore(tmp_path), T, "ann")) == Forgotten(25, 2, 25)
    assert replayed(SqliteStore(tmp_path)).lost == 0


def test_a_rollback_that_waits_is_carried_out_first(tmp_path: Path) -> None:
    async def ask(h: House) -> None:
        context = await h.server.known_context(T, "c")
        body = '{"version": 1, "why": "back"}'
        await h.store.add_operation(T, context.number, OperationKind.ROLLBACK, body)

    filled(tmp_path, ask)
    with pytest.raises(NotForgottenError, match="context 'c' waits for a rollback"):
        asyncio.run(forget(SqliteStore(tmp_path), T, "ann"))


def test_a_report_of_a_page_that_was_deleted_is_late_and_does_not_bring_it_back(tmp_path: Path) -> None:
    async def story() -> None:
        house = House(tmp_path)
        await house.start()
        page = await house.rank(session_id="ann")
        await house.accept(page, page.ranking[0])
        await house.close()
        await house.stop()
        told = await forget(SqliteStore(tmp_path, clock=lambda: house.now + 3_600_000), T, "ann")
        assert told.pages == 1
        await house.start()
        answer = await house.accept(page, page.ranking[0])
        assert (answer.accepted, answer.late) == (False, True)
        assert await house.store.page(house.record(page).impression) is None
        again = await house.rank(session_id="ann")
        await house.accept(again, again.ranking[0])
        await house.close()
        assert (await house.stop_and_replay()).lost == 0

    run(story())
