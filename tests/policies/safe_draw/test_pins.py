"""Pinned items stand where production has them and are compared with nothing; the others are ranked around them.

The policy has as many places and items fewer, so pages, random words and odds are those of the transcription for the
items that are not pinned. Pages are out while pins change: each is learnt at the odds of its own law.
"""

from typing import Any

import numpy as np
import pytest

from saferank import Page, Ranker, RankerError
from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from tests.policies.at_work import AtWork
from tests.policies.safe_draw.test_slots_transcribed import assert_same_reference
from tests.reference.safe_draw import slow_safe_draw

PINS: list[list[int]] = [[], [0, 3], [2], [2], [0, 1, 2, 3], [4]]
"""By turn, of production's five items."""


@pytest.mark.parametrize("n_items", [9, 14, 20])
@pytest.mark.parametrize("seed", range(3))
def test_pages_around_pins_are_those_of_the_transcription(n_items: int, seed: int) -> None:
    """Of 14 items two or more are pinned now and then, and then the plan is the one for up to 12."""
    state = AtWork(POLICIES["safe-draw"], Setup(n_items, 5, decision_rule("anytime:0.2"), trust=0.9))
    rng, users = stream(seed, "policy"), np.random.default_rng(seed)
    slow = slow_safe_draw((n_items, 5), 0.2, rng.tolist(), trust=0.9)
    out: list[tuple[Any, Any]] = []
    for turn in range(24):
        pinned = PINS[turn % len(PINS)]
        if pinned != PINS[(turn - 1) % len(PINS)]:
            for one in (state, slow):
                one.call([x for x in range(5) if x not in pinned], list(range(5, n_items)))
        for _ in range(20):
            impression, page = state.issue(rng), slow.rank()
            assert len(impression.shown) == 5 - len(pinned)
            assert impression.ranking[: impression.places[0]].tolist() == page.row
            assert rng.tolist() == slow.coins.words
            out.append((impression, page))
            if len(out) > 6:
                impression, page = out.pop(0)
                clicks = [int(users.random() < 0.9 * (item * 7 % n_items) / n_items) for item in page.shown]
                state.learn(impression, np.array(clicks), frozen=True)
                slow.learn(page, clicks)
    kept = state.duels.certificates
    found = list(zip(kept.better[: kept.given[0]].tolist(), kept.worse[: kept.given[0]].tolist(), strict=True))
    assert found == [(better, worse) for better, worse, _ in slow.certificates] and len(found) > 2
    if n_items > 12:
        assert_same_reference(state, slow)


def ranker_of(n_items: int, seed: int = 1) -> Ranker:
    return Ranker("safe-draw", original=range(5), candidates=range(5, n_items), rule="anytime:0.1", seed=seed)


def visited(ranker: Ranker, pages: int, pins: list[list[int]], users: np.random.Generator) -> list[Page]:
    """Pages with pins that change by the page, each answered six pages later."""
    issued: list[Page] = []
    for number in range(pages):
        issued.append(ranker.rank(pinned=pins[number // 3 % len(pins)]))
        if number >= 6:
            page = issued[number - 6]
            ranker.feedback(page, [item for item in page.items if users.random() < 0.1 + 0.02 * int(item)])
    return issued


@pytest.mark.parametrize("n_items", [8, 13, 30])
def test_pinned_items_keep_their_places_and_are_compared_with_nothing(n_items: int) -> None:
    """Also when pins take a catalogue across 12 items, to the other plan and back."""
    ranker = ranker_of(n_items)
    for page in visited(ranker, 200, PINS, np.random.default_rng(0)):
        assert len(set(page.items)) == 5
        assert all(page.items[int(item)] == page.leader[int(item)] == item for item in page.pinned)
        assert not {item for group in page.groups for item in group} & set(page.pinned)
        assert page.risk is not None and page.risk.worst is not None
        assert page.risk.worst <= page.risk.allowance
    assert "position 5: 4, pinned: stands where production has it" in str(ranker.explain(ranker.rank(pinned=[4])))
    assert [one.items for one in visited(ranker_of(n_items), 200, PINS, np.random.default_rng(0))][-1] == page.items


def test_a_click_on_a_pinned_item_teaches_nothing() -> None:
    ranker, twin = ranker_of(8), ranker_of(8)
    for one, clicked in ((ranker, [0]), (twin, [])):
        for _ in range(20):
            one.feedback(one.rank(pinned=[0]), clicked)
    assert [ranker.duels(0, other) for other in range(1, 8)] == [(0, 0)] * 7
    assert ranker.rank().items == twin.rank().items


@pytest.mark.parametrize("n_items", [8, 13, 30])
def test_a_ranker_saved_among_pins_goes_on_exactly(n_items: int) -> None:
    ranker = ranker_of(n_items)
    visited(ranker, 40, PINS, np.random.default_rng(0))
    ranker.remove(n_items - 1)
    ranker.add("new")
    ranker.rank(pinned=[2, 0])
    twin = Ranker.load(ranker.save())
    for one in (ranker, twin):
        one.feedback(one.rank(pinned=[0, 2]), [1])
    assert ranker.rank(pinned=[2]).items == twin.rank(pinned=[2]).items


@pytest.mark.parametrize(
    ("pinned", "why"),
    [
        ([6], "pinned holds 6, which is not in production's ranking and has no place there"),
        ([0, 0], "item 0 is given twice"),
        ([99], "unknown item 99"),
        ([0, 1, 2, 3, 4], "pinned holds 5 items of 5 positions: none is left to rank"),
        ("0", "pinned must be a list of items in order"),
    ],
)
def test_pins_that_cannot_be_are_refused_and_change_nothing(pinned: Any, why: str) -> None:
    ranker = ranker_of(20)
    before = ranker.save()
    with pytest.raises(RankerError, match=why):
        ranker.rank(candidates=[9, 8], pinned=pinned)
    assert ranker.save() == before


def test_a_policy_that_cannot_rank_around_pins_says_so() -> None:
    ranker = Ranker("pbm-ucb", original=range(3), examination=[1.0, 0.5, 0.2])
    with pytest.raises(RankerError, match="pbm-ucb cannot rank around pinned items; safe-draw can"):
        ranker.rank(pinned=[0])


@pytest.mark.parametrize("policy", ["kl-ucb-br", "bubble-rank", "top-rank", "uni-rank"])
def test_other_policies_rank_around_pins_too(policy: str) -> None:
    ranker = Ranker(policy, original=range(4), candidates=range(4, 8), rule="paper:0.1", seed=2)
    for number in range(60):
        page = ranker.rank(pinned=[0, 2] if number % 3 else [])
        assert number % 3 == 0 or (page.items[0], page.items[2]) == (0, 2)
        ranker.feedback(page, [max(page.items)])
