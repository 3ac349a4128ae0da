"""Crashes: an engine started from what is on disk at any moment has all that was acknowledged, once."""

import asyncio
import random
from pathlib import Path

import pytest
from engine_harness import BASE, CANDIDATES, House, T, house, run

from saferank.service.calls import RankAnswer


def clicks_of(h: House) -> dict[str, int]:
    return {page.id.hex(): page.clicks for page in h.core.state.open_pages.values()}


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
            page = h.rank(dice.choice("cd"), session_id=f"s{number}", candidates=[*CANDIDATES, *churn])
            pages.append(page)
            reported = dice.choice(pages[-20:])
            item = dice.choice(reported.ranking)
            answer = await h.accept(reported, item, event_id=f"{seed}-{number}-{len(houses)}")
            if answer.accepted:
                acknowledged.setdefault(reported.impression_id, set()).add(item)

        for round_ in range(8):
            h = houses[-1]
            visits = [asyncio.create_task(visit(h, 100 * round_ + number)) for number in range(dice.randrange(10, 60))]
            await asyncio.sleep(dice.random() * 0.01)
            h.later(dice.choice([0.1, 1, 3]))
            known = {name: set(items) for name, items in acknowledged.items()}
            fresh = await h.crashed_copy(tmp_path / str(round_ + 1))
            for name, items in known.items():
                story = await fresh.engine.impression(T, name)
                assert items <= set(story.clicks)
            await asyncio.gather(*visits)  # in the old house: what is acknowledged there now is of another world
            acknowledged.clear()
            acknowledged.update(known)
            houses.append(fresh)
        for h in houses:
            report = await h.stop_and_replay()
            assert report.snapshots > 0

    run(test())


def test_pages_that_were_not_on_disk_come_back_with_their_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            settled = old.rank(session_id="settled")
            await old.accept(settled)
            old.core.journal.hurry = lambda: None  # type: ignore[method-assign]  # from here on nothing reaches the disk
            lost = old.rank(session_id="s", candidates=[*CANDIDATES, "brand new"])
            elsewhere = old.rank(context="lost context", session_id="s", base_ranking=["p", "q", "r"], candidates=["t"])
            fresh = await old.crashed_copy(tmp_path / "b")
            del old.core.journal.hurry
            old.core.journal.hurry()
            context = fresh.core.state.by_name[T, "c"]
            assert context.learner.round == 1
            assert (await fresh.accept(lost, lost.ranking[1])).accepted
            assert (await fresh.accept(lost, lost.ranking[1])).duplicate
            assert context.learner.round == 2
            assert fresh.rank(session_id="s").token == lost.token
            assert (await fresh.accept(elsewhere, elsewhere.ranking[0])).accepted
            story = await fresh.engine.impression(T, lost.impression_id)
            assert (story.recovered, story.counted, story.ranking) == (True, True, lost.ranking)
            assert fresh.engine.counters()["pages_recovered_total"] == 2
            fresh.close()
            assert fresh.engine.context(T, "lost context").arms["explore"].clicks == 1
            found = fresh.rank(context="lost context", base_ranking=["p", "q", "r"], candidates=["t"])
            assert set(found.ranking) <= set("pqrt")
            await fresh.stop_and_replay()

    run(test())


def test_a_lost_page_whose_window_has_ended_is_late(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(old.rank())
            old.core.journal.hurry = lambda: None  # type: ignore[method-assign]
            lost = old.rank()
            fresh = await old.crashed_copy(tmp_path / "b")
            del old.core.journal.hurry
            old.core.journal.hurry()
            fresh.later(10)
            assert (await fresh.accept(lost, lost.ranking[0])).late
            await fresh.stop_and_replay()

    run(test())


def test_a_lost_page_does_not_count_when_its_session_has_another(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(old.rank())
            old.core.journal.hurry = lambda: None  # type: ignore[method-assign]
            lost = old.rank(session_id="s")
            fresh = await old.crashed_copy(tmp_path / "b")
            del old.core.journal.hurry
            old.core.journal.hurry()
            fresh.later(1)
            second = fresh.rank(session_id="s")
            assert second.token != lost.token
            assert (await fresh.accept(lost, lost.ranking[0])).accepted
            assert fresh.rank(session_id="s") == second
            story = await fresh.engine.impression(T, lost.impression_id)
            assert (story.recovered, story.counted, story.clicks) == (True, False, [lost.ranking[0]])
            fresh.close()
            assert all(pair.n == 0 for pair in fresh.engine.context(T, "c").pairs)
            await fresh.stop_and_replay()

    run(test())


def test_a_page_brought_back_is_learnt_in_the_order_in_which_pages_were_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a") as old:
            await old.accept(old.rank())
            old.core.journal.hurry = lambda: None  # type: ignore[method-assign]
            old.later(1)
            lost = old.rank()
            fresh = await old.crashed_copy(tmp_path / "b")
            del old.core.journal.hurry
            old.core.journal.hurry()
            fresh.later(1)
            newer = fresh.rank()
            await fresh.accept(lost, lost.ranking[0])
            queue = [page.id for page in fresh.core.state.by_name[T, "c"].queue]
            assert queue[1:] == [fresh.claim(lost).impression, fresh.claim(newer).impression]
            await fresh.stop_and_replay()

    run(test())


def test_what_became_due_while_down_is_closed_at_the_start(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank()
            await h.accept(page, page.ranking[0])
            await h.engine.stop()
            h.later(100)
            await h.start()
            assert h.engine.context(T, "c").open_pages == 0
            assert h.engine.context(T, "c").arms["explore"].clicks == 1

    run(test())


def test_a_start_reads_snapshots_and_the_tail_and_equals_the_whole_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "a", snapshot_every=10, holdout_share=0.2) as h:
            for number in range(120):
                page = h.rank(
                    "cde"[number % 3], session_id=f"s{number}", base_ranking=BASE if number % 5 else BASE[::-1]
                )
                await h.accept(page, page.ranking[number % 3], event_id=f"e{number}")
                h.later(0.3)
                for due in h.core.snapshots_due():
                    h.core.snapshot(due)
            h.engine.close_due()
            await h.core.journal.until(h.core.journal.seq)
            fresh = await h.crashed_copy(tmp_path / "b")
            assert fresh.states() == h.states()
            assert clicks_of(fresh) == clicks_of(h)
            await fresh.stop_and_replay()

    run(test())
