"""A disk that is full, and more writes than it takes: refused politely, nothing lost."""

import asyncio
from pathlib import Path

import pytest

from saferank.service.knowledge.arms import EXPLORE, OFF
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankCall
from saferank.service.wire.problems import Problem
from saferank.store.contract import Group, StoreError, Written
from tests.service.house import BASE, House, T, house, run, store_down


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, freshness_seconds=5) as h:
            page, other = await h.rank(), await h.rank()
            await h.accept(page, page.ranking[0])
            with store_down(h):
                with pytest.raises(Problem, match="does not take writes") as caught:
                    await h.click(page, page.ranking[1], event_id="e")
                assert (caught.value.status, caught.value.retry_after) == (503, 1)
                assert "does not take writes" in str(h.server.not_ready())
                told = [str(h.server.not_ready()), caught.value.detail]  # to anybody: not where the store is
                assert not [text for text in told if "disk is full" in text]
                with pytest.raises(Problem) as refused:
                    await h.click(other, other.ranking[0])
                assert refused.value.status == 503
                explored = await h.rank(session_id="s")  # the lease of freshness has not run out
                assert h.record(explored).arm == EXPLORE
                stranger = await h.rank(context="unknown")
                assert (stranger.ranking, stranger.mode) == (BASE[:3], "off")
                h.now += 4_999
                await h.server.heartbeat.attempt()
                production = await h.rank(session_id="s")
                assert (production.ranking, production.mode, h.record(production).arm) == (BASE[:3], "off", OFF)
            await h.server.heartbeat.attempt()
            assert h.record(await h.rank()).arm == EXPLORE
            assert (await h.accept(page, page.ranking[1], event_id="e")).accepted
            assert h.server.not_ready() is None
            assert (await h.accept(other, other.ranking[0])).accepted
            for unlogged in (production, stranger):
                assert (await h.accept(unlogged, unlogged.ranking[0])).accepted
                assert not (await h.server.impression(T, unlogged.impression_id)).counted
            assert (await h.server.impression(T, explored.impression_id)).counted
            assert set((await h.server.impression(T, page.impression_id)).clicks) == set(page.ranking[:2])
            assert h.server.counters()["commit_failures_total"] != 0

    run(test())


def test_a_kill_switch_works_at_once_on_a_full_disk_and_is_durable_when_it_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            with store_down(h):
                with pytest.raises(Problem, match="try again"):
                    await h.server.kill(T, "c", True, "now")
                assert h.record(await h.rank()).arm == OFF
            assert h.record(await h.rank()).arm == OFF
            assert (await h.server.kill(T, "c", True, "now")).on
            await h.restart()
            assert h.record(await h.rank()).arm == OFF

    run(test())


class SlowDisk:
    """A store whose writes wait for a gate."""

    def __init__(self, h: House) -> None:
        self.gate = asyncio.Event()
        self._write = h.store.write
        h.store.write = self.write  # type: ignore[method-assign]

    async def write(self, group: Group) -> Written:
        await self.gate.wait()
        return await self._write(group)


def test_too_many_waiting_writes_are_refused_and_rank_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_pending=20) as h:
            pages = [await h.rank() for _ in range(5)]
            await h.server.writer.flush()
            disk = SlowDisk(h)
            waiting = [asyncio.create_task(h.click(page, page.ranking[0])) for page in pages]
            for _ in range(40):
                await h.rank()
            assert h.server.writer.overloaded and h.server.writer.pending <= 27
            await asyncio.sleep(0)
            waiting.append(asyncio.create_task(h.click(pages[0], pages[0].ranking[1])))
            await asyncio.sleep(0)
            h.now += 3000
            with pytest.raises(Problem, match="wait for the store") as caught:
                await h.click(pages[0], pages[0].ranking[0])
            assert (caught.value.status, caught.value.retry_after) == (503, 1)
            assert (await h.server.rank(T, RankCall(context="c", base_ranking=BASE, k=3))).ranking == BASE[:3]
            disk.gate.set()
            assert all(isinstance(answer, FeedbackAnswer) for answer in await asyncio.gather(*waiting))
            assert (await h.accept(pages[0], pages[0].ranking[0])).duplicate

    run(test())


def test_reports_that_arrive_during_a_commit_share_the_next_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [await h.rank() for _ in range(64)]
            await h.server.writer.flush()
            before = h.server.writer.counts.commits
            await asyncio.gather(
                *(h.server.feedback(T, [FeedbackCall(token=page.token, clicks=page.ranking[:1])]) for page in pages)
            )
            assert h.server.writer.counts.commits - before <= 3
            assert h.server.writer.counts.last_rows >= 20

    run(test())


def test_a_caller_who_leaves_does_not_take_the_others_along(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [await h.rank() for _ in range(8)]
            calls = [asyncio.create_task(h.click(page, page.ranking[0])) for page in pages]
            await asyncio.sleep(0)
            calls[0].cancel()
            answers = await asyncio.gather(*calls[1:])
            assert len(answers) == 7
            assert (await h.accept(pages[0], pages[0].ranking[0])).duplicate

    run(test())


def test_a_second_server_on_the_same_store_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path):
            with pytest.raises(StoreError, match="another server"):
                await House(tmp_path).start()

    run(test())


@pytest.mark.parametrize(
    ("policy", "rule", "why"),
    [
        ("top-rank", "paper:1e-5", "top-rank cannot be served: it has no follows_base"),
        ("nothing", "paper:1e-5", "unknown policy 'nothing'"),
        ("safe-draw", "paper:1e-5", "safe-draw takes the rule anytime:ALPHA"),
    ],
)
def test_a_policy_that_cannot_be_served_is_refused_before_anything_starts(policy: str, rule: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Settings(policy=policy, rule=rule)


def test_many_clients_on_one_context_lose_no_update(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:

            async def client(number: int) -> None:
                for visit in range(8):
                    page = await h.rank(session_id=f"{number}/{visit}", candidates=["x", f"n{number}"])
                    assert len(set(page.ranking)) == 3
                    await h.accept(page, page.ranking[visit % 3], event_id=f"{number}/{visit}")

            await asyncio.gather(*(client(number) for number in range(64)))
            await h.close()
            assert (await h.server.show_context(T, "c")).arms["explore"].clicks == 64 * 8
            assert h.knowledge().pages == 64 * 8

    run(test())
