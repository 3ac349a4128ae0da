"""The past as the log tells it: leaders by version and time, stories of pages, export."""

import json
from pathlib import Path

import pytest
from engine_harness import BASE, CANDIDATES, House, T, house, run

from saferank.learner import Learner
from saferank.service.clock import moment
from saferank.service.learning import random_words
from saferank.service.problems import Problem


async def teach(h: House, pages: int) -> None:
    for _ in range(pages):
        page = h.rank()
        await h.accept(page, *(["b"] if "b" in page.ranking else []))
        h.later(1)
    h.engine.close_due()


def test_leaders_by_version_and_moment_with_the_evidence(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=1, rule="paper:0.1") as h:
            before = h.now
            await teach(h, 60)
            changes = (await h.engine.changes(T, "c")).changes
            assert [change.version for change in changes] == list(range(1, len(changes) + 1))
            assert (changes[0].cause, changes[0].leader) == ("opened", BASE[:3])
            moved = changes[1]
            assert moved.cause == "page" and moved.impression_id is not None
            assert [(pair.better, pair.worse, pair.decided) for pair in moved.evidence] == [("b", "a", True)]
            assert moved.evidence[0].s > 0
            story = await h.engine.impression(T, moved.impression_id)
            assert "b" in story.clicks and story.state == "closed"
            assert (await h.engine.leader_at(T, "c", None)).version == len(changes)
            assert (await h.engine.leader_at(T, "c", "1")).until == moved.at
            assert (await h.engine.leader_at(T, "c", moved.at)).version >= 2
            assert (await h.engine.leader_at(T, "c", moment(h.now + 5))).until is None
            for wrong, status in [("99", 404), ("0", 404), (moment(before - 1), 404), ("yesterday", 422), ("-1", 422)]:
                with pytest.raises(Problem) as caught:
                    await h.engine.leader_at(T, "c", wrong)
                assert (caught.value.status, caught.value.field) == (status, "at")

    run(test())


def test_the_story_of_a_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(request_id="r", session_id="s")
            claim = h.claim(page)
            await h.accept(page, page.ranking[1])
            open_story = await h.engine.impression(T, page.impression_id)
            h.rank(base_ranking=["q", "r", "s"], candidates=[])
            h.close()
            story = await h.engine.impression(T, page.impression_id)
            assert (open_story.state, open_story.closed_at, story.state) == ("open", None, "closed")
            assert (story.base_ranking, story.candidates, story.leader) == (BASE, CANDIDATES, BASE[:3])
            assert (story.ranking, story.clicks) == (page.ranking, [page.ranking[1]])
            assert [item for group in story.groups for item in group] == list(claim.row)
            assert story.hidden == list(claim.row[3:])
            assert (story.coins, story.request_id, story.round) == (claim.coins.hex(), "r", 1)
            assert story.closes_at == page.closes_at
            assert "were learnt" in story.explanation
            for unknown in ("A" * 22, "nonsense"):
                with pytest.raises(Problem, match="no impression"):
                    await h.engine.impression(T, unknown)
            with pytest.raises(Problem, match="no impression"):
                await h.engine.impression("you", page.impression_id)

    run(test())


def test_the_coins_of_a_page_give_the_page_again(tmp_path: Path) -> None:
    """Whoever doubts a choice can repeat it: the state before, the coins, the same page."""

    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            for _ in range(20):
                before = Learner.load(h.core.state.by_name[T, "c"].learner.save())
                page = h.rank()
                story = await h.engine.impression(T, page.impression_id)
                again = before.names(before.issue(random_words(bytes.fromhex(story.coins))).shown)
                assert list(again) == page.ranking

    run(test())


def test_export_is_the_whole_log_of_a_tenant_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank()
            await h.accept(page, page.ranking[0])
            h.rank("d")
            h.rank(tenant="you")
            h.rank(candidates=["fresh"])
            await h.engine.kill(T, None, True, "pause")
            h.close()
            lines = [json.loads(line) async for line in h.engine.export(T, None, None)]
            kinds = [line["kind"] for line in lines]
            assert kinds == [
                "opened", "page", "clicks", "opened", "page", "catalogue", "page", "kill", "closed", "closed",
            ]  # fmt: skip
            assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
            assert lines[2]["clicks"] == [page.ranking[0]]
            assert lines[1]["ranking"] == page.ranking
            assert lines[5]["candidates"] == ["fresh"]
            only = [json.loads(line) async for line in h.engine.export(T, "d", None)]
            assert {line["context"] for line in only} == {"d"}
            rest = [json.loads(line) async for line in h.engine.export(T, None, lines[3]["seq"])]
            assert rest == lines[4:]
            with pytest.raises(Problem, match="no context"):
                await anext(aiter(h.engine.export(T, "nowhere", None)))

    run(test())


def test_an_export_of_many_events_is_read_in_pieces(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for _ in range(1234):
                h.rank()
            lines = [line async for line in h.engine.export(T, None, None)]
            assert len(lines) == 1235

    run(test())
