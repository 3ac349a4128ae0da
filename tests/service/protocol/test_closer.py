"""Crashes: a server started from what is on disk at any moment has all that was acknowledged, once."""

import asyncio
import logging
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from saferank.service.knowledge.arms import EXPLORE, OFF
from saferank.service.knowledge.fold import Fold, pack
from saferank.service.protocol import closer
from saferank.service.protocol.closer import RETRY_MS
from saferank.service.server import Server
from saferank.service.wire.calls import RankAnswer
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from tests.service.house import BASE, CANDIDATES, House, T, house, run
from tests.store.stores import alarms_of


def test_a_start_that_has_many_pages_to_fold_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setattr(closer, "_MANY", 3)
        async with house(tmp_path) as h:
            for _ in range(3):
                await h.rank()
            with caplog.at_level(logging.INFO, "saferank.service"):
                await h.close()
        (record,) = [record for record in caplog.records if record.getMessage() == "folding many pages"]
        assert record.saferank_fields["pages"] == 3  # type: ignore[attr-defined]

    run(test())


def test_a_context_is_closed_again_after_a_share_of_its_window(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=100) as h:
            for _ in range(4):
                await h.rank()
                await h.later(0.5)
            await h.later(98.0)
            counts = []
            for _ in range(5):
                await h.later(0.5)
                await h.server.closer.close_due()
                counts.append(h.server.closer.closed)
            assert counts == [2, 2, 4, 4, 4]  # once in a second, and nothing that was put off is forgotten

    run(test())


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_any_moment_loses_nothing_acknowledged(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        dice = random.Random(seed)
        houses = [House(tmp_path / "0", snapshot_every=40)]
        await houses[0].start()
        acknowledged: dict[str, set[str]] = {}
        pages: list[RankAnswer] = []

        async def visit(h: House, number: int) -> None:
            churn = [f"n{number % 7}"] if number % 3 == 0 else []
            page = await h.rank(dice.choice("cd"), session_id=f"s{number}", candidates=[*CANDIDATES, *churn])
            pages.append(page)
            reported = dice.choice(pages[-20:])
            item = dice.choice(reported.ranking)
            answer = await h.accept(reported, item, event_id=f"{seed}-{number}-{len(houses)}")
            if answer.accepted:
                acknowledged.setdefault(reported.impression_id, set()).add(item)

        for round_ in range(8):
            h = houses[-1]
            visits = [asyncio.create_task(visit(h, 100 * round_ + number)) for number in range(dice.randrange(10, 60))]
            wanted = dice.randrange(1, len(visits) // 2)  # answered when the crash comes; others are under way
            while sum(task.done() for task in visits) < wanted:
                await asyncio.sleep(0.001)
            await h.later(dice.choice([0.1, 1, 3]))
            known = {name: set(items) for name, items in acknowledged.items()}
            fresh = await h.crashed_copy(tmp_path / str(round_ + 1))
            for name, items in known.items():
                story = await fresh.server.impression(T, name)
                assert items <= set(story.clicks)
            await asyncio.gather(*visits)  # in the old house: what is acknowledged there now is of another world
            acknowledged.clear()
            acknowledged.update(known)
            houses.append(fresh)
        await houses[-1].close()
        for h in houses:
            report = await h.stop_and_replay()
            assert report.pages > 0
        assert report.learnt > 0 and report.snapshots > 0

    run(test())


def test_pages_that_were_not_on_disk_come_back_with_their_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            settled = await old.rank(session_id="settled")
            await old.accept(settled)
            lost = await old.rank(session_id="s", candidates=[*CANDIDATES, "brand new"])
            elsewhere = await old.rank(
                context="lost context", session_id="s", base_ranking=["p", "q", "r"], candidates=["t"]
            )
            fresh = await old.crashed_copy(tmp_path / "b")
            assert (await fresh.accept(lost, lost.ranking[1])).accepted
            assert (await fresh.accept(lost, lost.ranking[1])).duplicate
            assert (await fresh.accept(elsewhere, elsewhere.ranking[0])).accepted
            story = await fresh.server.impression(T, lost.impression_id)
            assert (story.counted, story.ranking) == (True, lost.ranking)
            await fresh.close()
            assert (await fresh.server.show_context(T, "lost context")).arms["explore"].clicks == 1
            found = await fresh.rank(context="lost context", base_ranking=["p", "q", "r"], candidates=["t"])
            assert set(found.ranking) <= set("pqrt")
            await fresh.stop_and_replay()

    run(test())


def test_a_lost_page_whose_window_has_ended_is_late(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(await old.rank())
            lost = await old.rank()
            fresh = await old.crashed_copy(tmp_path / "b")
            await fresh.later(10)
            assert (await fresh.accept(lost, lost.ranking[0])).late
            await fresh.stop_and_replay()

    run(test())


def test_of_a_lost_page_and_another_of_its_session_the_first_shown_counts(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(await old.rank())
            lost = await old.rank(session_id="s")
            fresh = await old.crashed_copy(tmp_path / "b")
            await fresh.later(1)
            second = await fresh.rank(session_id="s")
            assert second.token != lost.token
            assert (await fresh.accept(lost, lost.ranking[0])).accepted
            await fresh.accept(second, second.ranking[1])
            story = await fresh.server.impression(T, lost.impression_id)
            assert (story.counted, story.clicks) == (True, [lost.ranking[0]])
            assert not (await fresh.server.impression(T, second.impression_id)).counted
            await fresh.close()
            assert all(n == 1 for _, n in (await fresh.pairs()).values())
            assert (await fresh.server.show_context(T, "c")).arms["repeat"].clicks == 1
            await fresh.stop_and_replay()

    run(test())


def test_a_page_brought_back_is_learnt_in_the_order_in_which_pages_were_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(await old.rank())
            await old.later(1)
            lost = await old.rank()
            fresh = await old.crashed_copy(tmp_path / "b")
            await fresh.later(1)
            newer = await fresh.rank()
            await fresh.accept(lost, lost.ranking[0])
            await fresh.server.writer.flush()
            pages = [page.impression async for some in fresh.store.all_pages() for page in some]
            assert pages[1:] == [fresh.record(lost).impression, fresh.record(newer).impression]
            await fresh.stop_and_replay()

    run(test())


def test_what_became_due_while_down_is_closed_at_the_start(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            await h.accept(page, page.ranking[0])
            await h.server.stop()
            await h.later(100)
            await h.start()
            assert (await h.server.show_context(T, "c")).open_pages == 0
            assert (await h.server.show_context(T, "c")).arms["explore"].clicks == 1

    run(test())


def test_a_start_answers_before_everything_that_is_due_is_closed(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for number in range(20):
                await h.accept(await h.rank(f"context {number}"))
            await h.stop()
            await h.later(100)
            server = Server(h.settings, SqliteStore(tmp_path, clock=lambda: h.now), h)
            await server.start()
            assert server.closer.closed < 20
            while server.closer.closed < 20:
                await asyncio.sleep(0.001)
            await server.stop()
            await h.start()

    run(test())


def test_a_start_reads_snapshots_and_the_tail_and_equals_the_whole_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a", snapshot_every=10, holdout_share=0.2) as h:
            for number in range(120):
                page = await h.rank(
                    "cde"[number % 3], session_id=f"s{number}", base_ranking=BASE if number % 5 else BASE[::-1]
                )
                await h.accept(page, page.ranking[number % 3], event_id=f"e{number}")
                await h.later(0.3)
            await h.server.closer.close_due(everything=True)
            await h.server.writer.flush()
            fresh = await h.crashed_copy(tmp_path / "b")
            for name in "cde":
                await fresh.server.show_context(T, name)
            assert fresh.states() == h.states()
            await fresh.stop_and_replay()

    run(test())


@pytest.mark.parametrize("step", [0, 1], ids=["all in one millisecond", "a millisecond apart"])
def test_a_closing_that_is_cancelled_between_two_chunks_counts_every_page_once(tmp_path: Path, step: int) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = 250
            for _ in range(pages):
                page = await h.rank()
                await h.accept(page, page.ranking[0])
                h.now += step
            await h.server.writer.flush()
            h.now += 10_000 - step * 100  # some are due now, others in the next round
            await h.server.heartbeat.attempt()
            closing = asyncio.create_task(h.server.closer.close_due())
            while not h.fold().pages:
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await h.later(10)
            await h.server.closer.close_due(everything=True)
            view = await h.server.show_context(T, "c")
            assert view.arms["explore"].pages == view.arms["explore"].clicks == pages
            assert h.server.closer.arms["arm_pages_total"]["explore"] == pages

    run(test())


def change(h: House, statement: str) -> None:
    with closing(sqlite3.connect(h.folder / FILE_NAME)) as connection:
        assert connection.execute(statement).rowcount > 0
        connection.commit()


async def closed_clicks(h: House, context: str) -> int:
    return (await h.server.show_context(T, context)).arms["explore"].clicks


@pytest.mark.parametrize("started_again", [False, True])
def test_a_context_that_cannot_be_closed_gets_production_and_stops_no_other(
    tmp_path: Path, started_again: bool
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for name in ("damaged", "whole"):
                page = await h.rank(name)
                await h.accept(page, page.ranking[0])
            await h.server.writer.flush()
            change(h, "UPDATE page SET record = CAST(record || x'00' AS BLOB) WHERE context = 1")
            if started_again:
                await h.stop()
                await h.later(10)
                await h.start()
            else:
                await h.close()
            await h.server.heartbeat.attempt()
            assert (await closed_clicks(h, "damaged"), await closed_clicks(h, "whole")) == (0, 1)
            (alarm,) = await alarms_of(h.store, 1)
            assert alarm.kind == "not_closed" and "the checksum of a page record is wrong" in alarm.detail
            assert h.server.counters()["alarms_total"] == 1
            assert [h.record(await h.rank(name)).arm for name in ("damaged", "whole")] == [OFF, EXPLORE]

            whole = "substr(record, 1, length(record) - 1)"
            change(h, f"UPDATE page SET record = {whole} WHERE context = 1 AND length(clicks) > 0")
            await h.later(RETRY_MS / 1000)
            await h.server.heartbeat.attempt()
            await h.server.closer.close_due(everything=True)
            assert await closed_clicks(h, "damaged") == 1
            assert h.record(await h.rank("damaged")).arm == EXPLORE
            assert len(await alarms_of(h.store, 1)) == 1

    run(test())


def test_a_context_of_another_server_by_now_is_no_longer_set_aside(tmp_path: Path) -> None:
    async def test() -> None:
        h = House(tmp_path)
        await h.start()
        await h.accept(await h.rank())
        change(h, "UPDATE page SET record = CAST(record || x'00' AS BLOB)")
        await h.close()
        assert h.server.contexts.set_aside
        h.server.heartbeat.leases = {}
        await h.server.closer.close_due()
        assert not h.server.contexts.set_aside
        await h.stop()

    run(test())


def test_knowledge_is_packed_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large context takes milliseconds: calls must not wait for it."""

    async def test() -> None:
        async with house(tmp_path) as h:
            threads = []

            def noted(fold: Fold) -> bytes:
                threads.append(threading.current_thread())
                return pack(fold)

            monkeypatch.setattr(closer, "pack", noted)
            await h.accept(await h.rank(session_id="s"), "b")
            await h.close()
            assert threads and threading.current_thread() not in threads

    run(test())


def test_publishing_waits_longer_the_longer_packing_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=1) as h:
            packed = []

            def slow(fold: Fold) -> bytes:
                packed.append(h.now)
                h.now += 4000
                return pack(fold)

            async def visit(number: int, seconds: float) -> None:
                await h.accept(await h.rank(session_id=f"s{number}"), "b")
                await h.later(seconds)
                await h.server.closer.close_due()

            await visit(0, 12)
            monkeypatch.setattr(closer, "pack", slow)
            await visit(1, 12)
            assert len(packed) == 1
            for number in (2, 3):  # 4 seconds of packing are a tenth of 40
                await visit(number, 12)
                assert len(packed) == 1
            await visit(4, 12)
            assert len(packed) == 2
            await h.accept(await h.rank(session_id="s5"), "b")
            await h.later(2)
            await h.server.closer.close_due()
        assert len(packed) == 3  # a stop publishes everything

    run(test())
