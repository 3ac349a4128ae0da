"""Pinned items of a rank call: they keep their places, are compared with nothing, and the log still proves all pages.

What is learnt around pins is what is learnt from the same pages without them: page by page, to the last digit.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from saferank.checks.state import same
from saferank.service.knowledge.arms import EXPLORE
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.propensities import decisions_of
from saferank.service.knowledge.view import View
from saferank.service.wire.calls import MisuseError, PageNotes, RankCall
from saferank.store.page_record import free_positions
from tests.service.house import CANDIDATES, T, house, run
from tests.service.knowledge.worlds import laid_out, recorded

PAGE = ["a", "b", "c", "d", "e"]
DRAW = {"policy": "safe-draw", "rule": "anytime:0.1", "trust": 0.5}


@pytest.mark.parametrize("n_others", [6, 30])
def test_what_is_learnt_around_pins_is_what_is_learnt_without_the_pinned_items(n_others: int) -> None:
    """Both plans: the one for up to 12 items and the one beyond. Pinned items are clicked, too."""
    others, dice = [f"i{number}" for number in range(n_others)], random.Random(3)
    ranked, rest = others[:4], others[4:]
    page, pins = ["p", *ranked[:2], "q", *ranked[2:]], 0b1001
    terms = Terms("safe-draw", "anytime:0.1", 1000, 0, 0)
    around, without = Knowledge(terms, 6, others), Knowledge(terms, 4, others)
    for number in range(600):
        coins = dice.randbytes(32)
        mine = View(around, page, rest, 6, pins).page(coins)
        theirs = View(without, ranked, rest, 4).page(coins)
        assert (mine.row, mine.law, mine.used) == (theirs.row, theirs.law, theirs.used), number
        assert (mine.shown[0], mine.shown[3]) == ("p", "q")
        assert [mine.shown[at] for at in (1, 2, 4, 5)] == list(theirs.shown)
        clicks = [dice.random() < 0.1 + 0.02 * (item in rest) for item in theirs.shown]
        whole = sum(click << at for click, at in zip(clicks, (1, 2, 4, 5), strict=True)) | dice.choice([0, 1, 8, 9])
        record = recorded(around, mine)._replace(k=6, pins=pins, base=tuple(page))
        list(around.learn(laid_out(around, [(record, whole)])))
        bits = sum(click << at for at, click in enumerate(clicks))
        list(without.learn(laid_out(without, [(recorded(without, theirs), bits)])))
        around.changed_certificates(), without.changed_certificates()
    evidence, expected = (
        [one for one in knowledge.learner.evidence if not callable(one)] for knowledge in (around, without)
    )
    assert expected and all(same(one, other) for one, other in zip(evidence, expected, strict=True))


@pytest.mark.parametrize("policy", ["safe-draw", "kl-ucb-br", "bubble-rank"])
def test_pinned_items_keep_their_places_and_the_log_proves_it(tmp_path: Path, policy: str) -> None:
    """With other pins from call to call; at the end the log is replayed, and every page is found legal again."""

    async def test() -> None:
        async with house(tmp_path, **{**DRAW, "policy": policy}) as h:
            kinds, moved = [["a"], ["b", "d"], [], ["e", "a", "c"]], 0
            for number in range(240):
                pinned = kinds[number % 4]
                page = await h.rank(base_ranking=PAGE, k=5, pinned=pinned, session_id=f"s{number}")
                record = h.record(page)
                assert record.arm == EXPLORE and list(record.shown) == page.ranking
                assert all(page.ranking[PAGE.index(item)] == item for item in pinned)
                assert not set(record.row) & set(pinned)
                moved += sum(item != mine for item, mine in zip(PAGE, page.ranking, strict=True))
                await h.accept(page, "a" if "a" in page.ranking else page.ranking[0])
                if number % 60 == 59:
                    await h.close()
            assert moved > 50
            pairs = await h.pairs()
            assert pairs and h.fold().learnt == 240
            report = await h.crashed_copy(tmp_path / "copy")
            found = await report.stop_and_replay()
            assert found.legal == found.explored == 240

    run(test())


def test_a_click_on_a_pinned_item_teaches_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **DRAW) as h:
            for number in range(40):
                page = await h.rank(pinned=["a"], session_id=f"s{number}")
                await h.accept(page, "a")
            await h.close()
            assert all(s == 0 for s, _ in (await h.pairs()).values())

    run(test())


def test_a_page_around_pins_is_explained_and_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **DRAW) as h:
            page = await h.rank(pinned=["a", "c"], explain=True)
            assert isinstance(page.explanation, PageNotes)
            first, second, third = page.explanation.positions
            assert first.role == third.role == "pinned: stands where production has it, compared with nothing"
            assert (first.first, second.first, third.first) == (1.0, 0.0, 0.0)
            assert second.role.startswith(("of the leader", "unranked"))
            free = await h.rank(pinned=["b"], explain=True)
            assert isinstance(free.explanation, PageNotes)
            assert free.explanation.positions[0].first > 0 and free.explanation.positions[1].first == 0
            await h.later(1)
            story = await h.server.impression(T, free.impression_id)
            assert story.ranking == free.ranking and story.leader == ["a", "b", "c"]
            assert not any("b" in group for group in story.groups)
            lines = [facts async for facts in h.server.export(T, "c")]
            assert sum(line.get("pinned") == ["a", "c"] for line in lines) == 1

    run(test())


def test_decisions_name_positions_of_the_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **DRAW) as h:
            found = 0
            for number in range(30):
                record = h.record(await h.rank(base_ranking=PAGE, k=5, pinned=["b"], session_id=f"s{number}"))
                for decision in decisions_of(record):
                    assert record.shown[decision.place] == decision.item != "b"
                    found += 1
                    if decision.other_place is None:
                        assert decision.other in record.hidden
                    else:
                        assert record.shown[decision.other_place] == decision.other
            assert found > 30

    run(test())


def test_shadow_pages_note_what_would_stand_around_pins(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, mode="shadow", **DRAW) as h:
            pages = [await h.rank(pinned=["b"], session_id=f"s{number}") for number in range(20)]
            assert {tuple(page.ranking) for page in pages} == {("a", "b", "c")}
            await h.later(1)
            chosen = [(await h.server.impression(T, page.impression_id)).would_have_shown or [] for page in pages]
            assert {page[1] for page in chosen} == {"b"} and len({tuple(page) for page in chosen}) > 1
            await h.close()
            assert h.fold().shadow.pages == 20

    run(test())


def test_production_is_shown_as_it_is_whatever_is_pinned(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, mode="off", **DRAW) as h:
            assert (await h.rank(pinned=["b"])).ranking == ["a", "b", "c"]

    run(test())


@pytest.mark.parametrize(
    ("pinned", "where", "why"),
    [
        (["a", "a"], "pinned[1]", "'a' is in the list twice; keep one"),
        (["x"], "pinned[0]", "'x' is not among the first 3 items of base_ranking and has no place to keep"),
        (["a", "d"], "pinned[1]", "'d' is not among the first 3 items of base_ranking and has no place to keep"),
        (["c", "a", "b"], "pinned", "leaves nothing to rank: all 3 positions are pinned; leave one free"),
    ],
)
def test_pins_that_cannot_be_are_refused_with_the_field(pinned: list[str], where: str, why: str) -> None:
    call: dict[str, Any] = {"context": "c", "base_ranking": ["a", "b", "c", "d"], "candidates": CANDIDATES, "k": 3}
    with pytest.raises(MisuseError) as problem:
        RankCall(**call, pinned=pinned)
    assert (problem.value.where, str(problem.value)) == (where, why)


def test_pins_are_positions() -> None:
    assert RankCall(context="c", base_ranking=["a", "b", "c"], k=3, pinned=["c", "a"]).pins == 0b101
    assert RankCall(context="c", base_ranking=["a", "b", "c"], k=3).pins == 0
    assert free_positions(3, 0b101) == [1]
