"""A live ranker over a large catalogue: saved and loaded, items that come and go, the order of calls, explanations."""

from typing import Any

import numpy as np
import pytest

from saferank import Page, Ranker, RankerError
from saferank.live.page import Item


def ranker_after(pages: int) -> Ranker:
    ranker = Ranker("safe-draw", original=range(6), candidates=range(6, 80), rule="anytime:0.3", seed=5)
    return play(ranker, pages, np.random.default_rng(1))


def play(ranker: Ranker, pages: int, random: np.random.Generator) -> Ranker:
    for _ in range(pages):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if random.random() < 0.3])
    return ranker


def test_a_loaded_ranker_goes_on_as_the_saved_one_would() -> None:
    ranker = ranker_after(2500)
    twin = Ranker.load(ranker.save())
    for one in (ranker, twin):
        play(one, 200, np.random.default_rng(2))
    assert ranker.leader == twin.leader
    assert ranker.rank().items == twin.rank().items


def test_items_come_and_go_and_it_can_explain_itself() -> None:
    ranker = ranker_after(300)
    gone = ranker.leader[0]
    ranker.remove(gone)
    ranker.add("new", gone)
    play(ranker, 100, np.random.default_rng(3))
    assert gone in ranker.items
    assert "new" in ranker.items
    page = ranker.rank()
    assert len(page.items) == 6
    assert str(ranker.explain(page))


def outside(page: Page) -> list[Item]:
    """Items beyond production's six that a page compares."""
    return [item for group in page.groups for item in group if int(item) >= 6]


def first_tried(ranker: Ranker, pages: int, order: list[Item]) -> list[Item]:
    """Items from outside production's ranking, by the page that first has them; those of one page in this order."""
    found: dict[Item, None] = {}
    for _ in range(pages):
        page = ranker.rank()
        ranker.feedback(page)
        found |= dict.fromkeys(sorted(outside(page), key=order.index))
    return list(found)


def test_a_call_decides_in_which_order_candidates_are_tried() -> None:
    """The ranker has seen them the other way round; a plan is at work when a call gives another order.

    The next three contend at a time, so two of them may wait.
    """
    ranker = Ranker("safe-draw", original=range(6), candidates=range(6, 80), seed=5)
    tried = first_tried(ranker, 40, list(range(6, 80)))
    assert len(tried) > 2 and set(tried) <= set(range(6, 8 + len(tried)))
    old: list[Item] = sorted(tried)
    backwards: list[Item] = [item for item in range(79, 5, -1) if item not in tried]
    assert ranker.rank(candidates=backwards).candidates == tuple(backwards)
    assert ranker.items == (*range(6), *backwards, *old), "what is not named comes after, in its old order"
    new = [item for item in first_tried(ranker, 400, [*backwards, *old]) if item not in tried]
    assert len(new) > 4 and set(new) <= set(backwards[: len(new) + 2])


def test_calls_with_their_orders_are_replayed_exactly() -> None:
    """A page says with which order it was planned: with that, its clicks and the seed every page comes again."""
    random = np.random.default_rng(3)
    ranker = Ranker("safe-draw", original=range(6), candidates=range(6, 40), rule="anytime:0.3", seed=5)
    log = []
    for number in range(300):
        order = random.permutation(np.arange(6, 40)).tolist() if number % 20 == 0 else None
        page = ranker.rank(candidates=order)
        log.append((page, [item for item in page.items if random.random() < 0.3]))
        ranker.feedback(*log[-1])
        if number == 150:
            middle = Ranker.load(ranker.save())
    again = Ranker("safe-draw", original=range(6), candidates=range(6, 40), rule="anytime:0.3", seed=5)
    for number, (page, clicked) in enumerate(log):
        for other in (again, middle) if number > 150 else (again,):
            twin = other.rank(candidates=page.candidates)
            assert (twin.items, twin.groups, twin.leader) == (page.items, page.groups, page.leader)
            other.feedback(twin, clicked)
        if number == 150:
            again.save()  # saving makes the plan anew, here as there
    assert again.leader == middle.leader == ranker.leader


@pytest.mark.parametrize(
    ("candidates", "why"),
    [
        ([7, 3], "candidates holds 3, which is in production's ranking"),
        ([9], "candidates holds 9, which was removed"),
        ([7, 7], "item 7 is given twice"),
        (["?"], r"unknown item '\?'"),
        ("78", "candidates must be a list of items in order"),
    ],
)
def test_an_order_that_cannot_be_is_refused_and_changes_nothing(candidates: Any, why: str) -> None:
    ranker = Ranker("safe-draw", original=range(6), candidates=range(6, 40), seed=5)
    ranker.remove(9)
    before = ranker.save()
    with pytest.raises(RankerError, match=why):
        ranker.rank(candidates=candidates)
    assert ranker.save() == before


def test_a_policy_without_an_order_of_trials_says_so() -> None:
    ranker = Ranker("top-rank", original=range(6), candidates=range(6, 12))
    with pytest.raises(RankerError, match="top-rank tries candidates in the order in which it first saw them"):
        ranker.rank(candidates=[7, 6])
