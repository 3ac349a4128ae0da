"""What can never be written, and more contexts than fit into memory: neither takes the others along."""

from pathlib import Path
from typing import Any

import pytest

from saferank.service.knowledge.arms import EXPLORE
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall
from saferank.store.contract import Group, Written
from tests.service.house import T, house, run

CONTEXTS, LOADED = 60, 10


class Poisoned:
    """A store that cannot write one page, from any server: as if its bytes broke a rule of the database."""

    def __init__(self, store: Any, impression_of: dict[str, bytes]) -> None:
        self._write, self._poison, self.attempts = store.write, impression_of, 0

    async def write(self, group: Group) -> Written:
        pages = [*group.pages, *(report.page for report in group.reports)]
        if any(page.impression == self._poison.get("page") for page in pages):
            self.attempts += 1
            raise ValueError("a value that the database cannot hold")
        written: Written = await self._write(group)
        return written


def test_a_poisoned_page_is_dropped_and_the_others_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [await h.rank() for _ in range(4)]
            poisoned = Poisoned(h.store, {"page": h.record(pages[1]).impression})
            monkeypatch.setattr(h.store, "write", poisoned.write)
            await h.server.writer.flush()
            assert len([page async for some in h.store.all_pages() for page in some]) == 3
            assert poisoned.attempts == 2, "once in its group, once alone, and never again"
            await h.accept(pages[0], pages[0].ranking[0])
            assert h.server.not_ready() is None

    run(test())


def test_a_poisoned_report_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            first, second = await h.rank(), await h.rank()
            await h.server.writer.flush()
            poisoned = Poisoned(h.store, {"page": h.record(first).impression})
            monkeypatch.setattr(h.store, "write", poisoned.write)
            with pytest.raises(ValueError, match="cannot hold"):
                await h.click(first, first.ranking[0])
            calls = [FeedbackCall(token=second.token, clicks=second.ranking[:1])]
            (answer,) = await h.server.feedback(T, calls)
            assert isinstance(answer, FeedbackAnswer) and answer.accepted

    run(test())


def test_contexts_that_are_not_asked_for_are_put_away_and_come_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_loaded_contexts=LOADED) as h:
            for number in range(CONTEXTS):
                page = await h.rank(f"context {number}")
                await h.accept(page, page.ranking[0])
            await h.close()
            await h.rank("context 0")
            assert len(list(h.server.contexts)) <= LOADED
            view = await h.server.show_context(T, "context 1")
            assert (view.arms["explore"].pages, view.arms["explore"].clicks) == (1, 1)

    run(test())


def test_open_pages_of_one_tenant_are_no_limit_for_another(tmp_path: Path) -> None:
    """Far more pages are open than may wait for the store: once written they take nothing from anybody."""

    async def test() -> None:
        async with house(tmp_path, max_pending=20) as h:
            greedy = []
            for _ in range(10):
                greedy += [await h.rank(tenant="greedy") for _ in range(15)]
                await h.server.writer.flush()
            page = await h.rank(tenant="modest")
            assert h.record(page).arm == EXPLORE
            assert (await h.accept(page, page.ranking[0], tenant="modest")).accepted
            assert (await h.accept(greedy[0], greedy[0].ranking[0], tenant="greedy")).accepted
            assert h.server.writer.pending < 20

    run(test())
