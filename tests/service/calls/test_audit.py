"""The past as the log tells it: leaders by version and time, stories of pages, export."""

import json
import random
from pathlib import Path

import pytest

from saferank.service.calls.audit import leader_of_page
from saferank.service.calls.export import Bounds
from saferank.service.knowledge.view import View
from saferank.service.wire.calls import RankAnswer, moment
from saferank.service.wire.exports import Facts
from saferank.service.wire.problems import Problem
from saferank.store.contract import VersionRow
from saferank.store.page_record import PageRecord
from tests.service.house import BASE, CANDIDATES, House, T, house, run


async def teach(h: House, pages: int) -> None:
    for _ in range(pages):
        page = await h.rank()
        await h.accept(page, *(["b"] if "b" in page.ranking else []))
        await h.later(1)
    await h.server.closer.close_due(everything=True)


def test_leaders_by_version_and_moment_with_the_evidence(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=1, rule="paper:0.1") as h:
            before = h.now
            await teach(h, 60)
            changes = (await h.server.changes(T, "c")).changes
            assert [change.version for change in changes] == list(range(1, len(changes) + 1))
            assert (changes[0].cause, changes[0].leader) == ("opened", BASE[:3])
            moved = next(change for change in changes if change.leader != BASE[:3])
            assert moved.cause == "page" and moved.impression_id is not None
            assert [(pair.better, pair.worse, pair.decided) for pair in moved.evidence] == [("b", "a", True)]
            assert moved.evidence[0].s > 0
            story = await h.server.impression(T, moved.impression_id)
            assert "b" in story.clicks and story.state == "closed"
            assert (await h.server.leader_at(T, "c", None)).version == len(changes)
            assert (await h.server.leader_at(T, "c", "1")).until == changes[1].at
            assert (await h.server.leader_at(T, "c", moved.at)).version >= 2
            assert (await h.server.leader_at(T, "c", moment(h.now + 5))).until is None
            for wrong, status in [("99", 404), ("0", 404), (moment(before - 1), 404), ("yesterday", 422), ("-1", 422)]:
                with pytest.raises(Problem) as caught:
                    await h.server.leader_at(T, "c", wrong)
                assert (caught.value.status, caught.value.field) == (status, "at")

    run(test())


def test_the_story_of_a_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(request_id="r", session_id="s")
            record = h.record(page)
            await h.accept(page, page.ranking[1])
            open_story = await h.server.impression(T, page.impression_id)
            await h.rank(base_ranking=["q", "r", "s"], candidates=[])
            await h.close()
            story = await h.server.impression(T, page.impression_id)
            assert (open_story.state, open_story.closed_at, story.state) == ("open", None, "closed")
            assert (story.base_ranking, story.candidates, story.leader) == (BASE, CANDIDATES, BASE[:3])
            assert (story.ranking, story.clicks) == (page.ranking, [page.ranking[1]])
            assert [item for group in story.groups for item in group] == list(record.row)
            assert story.hidden == list(record.hidden)
            assert (story.coins, story.request_id, story.round) == (record.coins.hex(), "r", record.round)
            assert story.closes_at == page.closes_at
            assert "were learnt" in story.explanation
            for unknown in ("A" * 22, "nonsense"):
                with pytest.raises(Problem, match="no impression"):
                    await h.server.impression(T, unknown)
            with pytest.raises(Problem, match="no impression"):
                await h.server.impression("you", page.impression_id)

    run(test())


def test_the_coins_of_a_page_give_the_page_again(tmp_path: Path) -> None:
    """A doubtful reader can repeat a choice: what was known, the coins, the same page."""

    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            for _ in range(20):
                page = await h.rank()
                story = await h.server.impression(T, page.impression_id)
                again = View(h.knowledge(), BASE, CANDIDATES, 3).page(bytes.fromhex(story.coins))
                record = h.record(page)
                assert (again.row, again.law, again.round) == (record.row, record.law, record.round)

    run(test())


def test_export_is_the_whole_log_of_a_tenant_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            await h.accept(page, page.ranking[0])
            await h.later(0.1)
            await h.rank("d")
            await h.rank(tenant="you")
            await h.later(0.1)
            await h.rank(candidates=["fresh"])
            await h.later(0.1)
            await h.server.kill(T, None, True, "pause")
            await h.close()
            lines = [facts async for facts in h.server.export(T, None)]
            kinds = [line["kind"] for line in lines]
            assert kinds == ["opened", "page", "opened", "page", "page", "kill"]
            assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
            assert (lines[1]["ranking"], lines[1]["clicks"]) == (page.ranking, [page.ranking[0]])
            assert lines[0]["candidates"] == CANDIDATES
            assert lines[4]["catalogue"] != lines[1]["catalogue"]
            only = [facts async for facts in h.server.export(T, "d")]
            assert {line["context"] for line in only} == {"d"}
            rest = [facts async for facts in h.server.export(T, None, Bounds(lines[3]["seq"]))]
            assert rest == lines[4:]
            assert [facts async for facts in h.server.export(T, None, Bounds(lines[-1]["seq"]))] == []
            with pytest.raises(Problem, match="no context"):
                await anext(aiter(h.server.export(T, "nowhere")))

    run(test())


def test_a_continued_export_equals_a_whole_one_and_knows_all_clicks(tmp_path: Path) -> None:
    """Pages are written later than they are issued, clicks come later still, another server writes when it can."""

    async def test() -> None:
        async with house(tmp_path, rule="paper:0.1") as h:
            pieces: list[Facts] = []
            cursor, dice = "start", random.Random(1)
            waiting: list[RankAnswer] = []

            async def go_on() -> int:
                nonlocal cursor
                bounds = await h.server.export_bounds(T, cursor)
                cursor = bounds.cursor
                found = [facts async for facts in h.server.export(T, None, bounds)]
                pieces.extend(found)
                return len(found)

            for number in range(150):
                waiting.append(await h.rank(dice.choice("cde")))
                if dice.random() < 0.5:
                    page = waiting.pop(dice.randrange(len(waiting)))
                    await h.click(page, page.ranking[dice.randrange(3)])
                if dice.random() < 0.3:
                    await h.later(dice.choice([0.5, 3, 9]))
                if number % 20 == 3:
                    await go_on()
                if number == 70:
                    await h.server.kill(T, "c", True, "a test")
                    await h.server.kill(T, "c", False, "a test")
            await h.close()
            await h.later(20)
            assert await go_on() > 0
            assert await go_on() == 0
            assert pieces == [facts async for facts in h.server.export(T, None)]
            clicked = [facts["clicks"] for facts in pieces if facts["kind"] == "page"]
            assert len(clicked) == 150 and sum(map(len, clicked)) > 15
            for wrong in ("", "c1.", "c1.xyz", "1700000000000", "c1." + "g" * 12, "c1.-00000000001"):
                with pytest.raises(Problem, match="is not a cursor of an export; begin with 'start'") as caught:
                    await h.server.export_bounds(T, wrong)
                assert (caught.value.status, caught.value.field) == (422, "cursor")

    run(test())


def test_an_export_waits_for_pages_that_are_not_folded_yet(tmp_path: Path) -> None:
    """They may bring a version about, which is of the time of its page."""

    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            h.now += 100
            page = await h.rank(session_id="a")
            await h.accept(page, page.ranking[0])
            issued, h.now = h.now, h.now + 60_000  # its window is long over, and nobody has closed it
            assert (await h.server.export_bounds(T, "start")).through < issued
            await h.close()
            assert (await h.server.export_bounds(T, "start")).through > issued

    run(test())


def test_an_export_of_many_events_is_read_in_pieces(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for _ in range(1234):
                await h.rank()
            lines = [facts async for facts in h.server.export(T, None)]
            assert len(lines) == 1235

    run(test())


def test_of_two_items_that_may_replace_another_the_leader_has_the_one_with_the_smaller_number() -> None:
    """As its plan had: the call's candidates come in another order than that in which the context met them."""
    gained = {"gained": [["x", "c", 9, 9], ["y", "c", 9, 9]], "lost": []}
    versions = [VersionRow(1, 2, 0, "page", "[]", None, json.dumps(gained))]
    record = PageRecord(bytes(16), "t", "c", "kl-ucb-br", 0, 2, 1, 1000, 3, b"", bytes(16), bytes(32), tuple("abcy"))
    for first, second in ("xy", "yx"):
        numbers = {item: number for number, item in enumerate(["a", "b", "c", first, second])}
        assert leader_of_page(versions, record, (list("abc"), ["y", "x"]), numbers) == ["a", "b", first]
