"""A disk that is full, and more writes than it takes: refused politely, nothing lost."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from engine_harness import BASE, House, T, house, run

from saferank.service.arms import OFF
from saferank.service.calls import FeedbackCall
from saferank.service.problems import Problem
from saferank.store.events import Batch
from saferank.store.sqlite import StoreError


class FullDisk:
    """A store whose commits fail for a while."""

    def __init__(self, h: House) -> None:
        self._store, self.full = h.engine._store, True
        self._commit = self._store.commit
        self._store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batch: Batch) -> None:
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        self._commit(batch)


async def eventually_ready(h: House) -> None:
    async with asyncio.timeout(30):
        while h.engine.not_ready() is not None:
            await asyncio.sleep(0.01)


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page, other = h.rank(), h.rank()
            await h.accept(page, page.ranking[0])
            disk = FullDisk(h)
            with pytest.raises(Problem, match="disk is full") as caught:
                await h.click(page, page.ranking[1], event_id="e")
            assert (caught.value.status, caught.value.retry_after) == (503, 1)
            assert "disk is full" in str(h.engine.not_ready())
            events = h.core.journal.seq
            with pytest.raises(Problem) as refused:
                await h.click(other, other.ranking[0])
            assert refused.value.status == 503
            production = h.rank(session_id="s")
            stranger = h.rank(context="unknown")
            assert (production.ranking, production.mode, h.claim(production).arm) == (BASE[:3], "off", OFF)
            assert h.core.journal.seq == events  # what cannot be written does not pile up
            disk.full = False
            await eventually_ready(h)
            assert (await h.accept(page, page.ranking[1], event_id="e")).duplicate
            assert (await h.accept(other, other.ranking[0])).accepted
            for unlogged in (production, stranger):
                assert (await h.accept(unlogged, unlogged.ranking[0])).accepted
                assert not (await h.engine.impression(T, unlogged.impression_id)).counted
            assert set((await h.engine.impression(T, page.impression_id)).clicks) == set(page.ranking[:2])
            assert h.engine.counters()["commit_failures_total"] >= 1

    run(test())


def test_a_kill_switch_works_at_once_on_a_full_disk_and_is_durable_afterwards(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            await h.core.journal.until(h.core.journal.seq)
            disk = FullDisk(h)
            with pytest.raises(Problem, match="try again"):
                await h.engine.kill(T, "c", True, "now")
            disk.full = False
            await eventually_ready(h)
            assert h.claim(h.rank()).arm == OFF
            await h.restart()
            assert h.claim(h.rank()).arm == OFF

    run(test())


def test_too_many_waiting_writes_are_refused_and_rank_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_pending=20) as h:
            pages = [h.rank() for _ in range(5)]
            gate = threading.Event()
            commit = h.engine._store.commit

            def slow(batch: Batch) -> None:
                gate.wait(30)
                commit(batch)

            h.engine._store.commit = slow  # type: ignore[method-assign]
            for _ in range(40):
                h.rank()
            assert h.core.overloaded and h.core.journal.pending <= 22
            with pytest.raises(Problem, match="wait for the disk") as caught:
                await h.click(pages[0], pages[0].ranking[0])
            assert (caught.value.status, caught.value.retry_after) == (503, 1)
            assert h.rank().ranking == BASE[:3]
            gate.set()
            await h.core.journal.until(h.core.journal.seq)
            assert (await h.accept(pages[0], pages[0].ranking[0])).accepted

    run(test())


def test_reports_that_arrive_during_a_commit_share_the_next_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [h.rank() for _ in range(64)]
            await h.core.journal.until(h.core.journal.seq)
            before = h.core.journal.counts.commits
            await asyncio.gather(
                *(h.engine.feedback(T, [FeedbackCall(token=page.token, clicks=page.ranking[:1])]) for page in pages)
            )
            assert h.core.journal.counts.commits - before <= 3
            assert h.core.journal.counts.last_events >= 20

    run(test())


def test_a_caller_who_leaves_does_not_take_the_others_along(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [h.rank() for _ in range(8)]
            calls = [asyncio.create_task(h.click(page, page.ranking[0])) for page in pages]
            await asyncio.sleep(0)
            calls[0].cancel()
            answers = await asyncio.gather(*calls[1:])
            assert len(answers) == 7
            assert (await h.accept(pages[0], pages[0].ranking[0])).duplicate

    run(test())


def test_a_second_engine_on_the_same_store_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path):
            with pytest.raises(StoreError, match="another server"):
                await House(tmp_path).start()

    run(test())


def test_a_policy_without_a_promise_for_a_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="top-rank gives no promise for a single page"):
        run(House(tmp_path, policy="top-rank").start())


def test_many_clients_on_one_context_lose_no_update(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:

            async def client(number: int) -> None:
                for visit in range(8):
                    page = h.rank(session_id=f"{number}/{visit}", candidates=["x", f"n{number}"])
                    assert len(set(page.ranking)) == 3
                    await h.accept(page, page.ranking[visit % 3], event_id=f"{number}/{visit}")

            await asyncio.gather(*(client(number) for number in range(64)))
            h.close()
            assert h.engine.context(T, "c").arms["explore"].clicks == 64 * 8
            assert h.core.state.by_name[T, "c"].learner.round == 64 * 8

    run(test())
