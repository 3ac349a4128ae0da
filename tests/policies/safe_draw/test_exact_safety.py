"""No page of safe-draw is unsafe under any order that its certificates leave possible, and mutants are caught."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saferank.checks.state import copied_impression
from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.safety import allowance
from saferank.statistics.decision import decision_rule
from saferank.verbs import Impression, new_impression
from tests.policies.at_work import AtWork
from tests.policies.worst_pages import certificates_of
from tests.reference.worst_case import worst_case

KIND = POLICIES["safe-draw"]
Mutant = Callable[[Any, Impression], None]


def honest(state: Any, page: Impression) -> None:
    """Nothing is changed."""


def one_pair_more(state: Any, page: Impression) -> None:
    """The allowance is larger by one."""
    state.possible.limit[0] = int(allowance(len(state.item), len(state.reference))) + 1


def no_check(state: Any, page: Impression) -> None:
    """Pages are not drawn again."""
    state.possible.limit[0] = 1000


def no_closure(state: Any, page: Impression) -> None:
    """What follows from two certificates is not noted: the order of such a pair is open."""
    closure = state.duels.closure
    closure.worse[:] = 0
    for winner, loser in certificates_of(state):
        closure.worse[closure.number[winner]] |= 1 << int(closure.number[loser])


def user(how: str, rng: np.random.Generator, appeal: Any, shown: Any, t: int) -> Any:
    """Random clicks, clicks against production's order, or tastes that change every 40 pages."""
    if how == "random":
        return (rng.random(len(shown)) < 0.4).astype(np.int64)
    if how == "adversarial":
        return (shown == shown.max()).astype(np.int64)
    wanted = appeal if (t // 40) % 2 == 0 else appeal[::-1]
    return (rng.random(len(shown)) < 0.8 ** (1 + wanted[shown])).astype(np.int64)


def excesses(size: tuple[int, int], how: str, seed: int, pages: int = 120, mutant: Mutant = honest) -> list[int]:
    """Of every page V(page) - V(original), at worst over all orders that agree with the certificates."""
    state = AtWork(KIND, Setup(*size, decision_rule("anytime:0.4"), trust=0.5))
    rng, users, page = stream(seed, "policy"), np.random.default_rng(seed), new_impression(size[1], size[0])
    appeal, found = users.permutation(size[0]), []
    for t in range(pages):
        mutant(state, page)
        state.choose(rng, page)
        worst = worst_case(size[0], certificates_of(state), list(range(size[1])), page.shown.tolist())
        assert worst is not None  # certificates of safe-draw never contradict each other
        found.append(worst)
        state.learn(page, user(how, users, appeal, page.shown, t))
    return found


@pytest.mark.parametrize("how", ["random", "adversarial", "changing"])
@pytest.mark.parametrize("size", [(1, 1), (3, 1), (4, 2), (4, 4), (5, 3), (5, 4), (5, 5), (6, 3)], ids=str)
def test_no_page_is_unsafe_in_any_order_that_the_certificates_allow(size: tuple[int, int], how: str) -> None:
    for seed in range(2):
        assert max(excesses(size, how, seed)) <= allowance(*size)


@pytest.mark.parametrize("size", [(5, 3), (5, 4), (4, 2)], ids=str)
def test_the_limit_is_reached_and_mutants_are_caught(size: tuple[int, int]) -> None:
    """So no more is forbidden than must be, and the test above could fail."""
    runs = [functools.partial(excesses, size, how, seed) for how in ("adversarial", "changing") for seed in range(3)]
    assert max(max(run()) for run in runs) == int(allowance(*size))
    assert max(max(run(mutant=one_pair_more)) for run in runs) > allowance(*size)
    assert max(max(run(mutant=no_check)) for run in runs) > allowance(*size)


def late_certificates(size: tuple[int, int], seed: int, mutant: Mutant = honest) -> set[tuple[int, int]]:
    """What is certified when the answers to 100 pages come after the last one, from users who contradict themselves.

    They prefer 2 to 1 until that is certified, then 1 to 0, then 0 to 2. The pages were drawn before anything was
    certain, so each of them still compares all three.
    """
    state = AtWork(KIND, Setup(*size, decision_rule("anytime:0.4"), trust=0.5))
    rng, page, issued = stream(seed, "policy"), new_impression(size[1], size[0]), []
    for _ in range(100):
        state.choose(rng, page)
        state.freeze(page)
        issued.append(copied_impression(page))
    for number, late in enumerate(issued):
        wanted = [pair for pair in ((2, 1), (1, 0), (0, 2)) if pair not in certificates_of(state)]
        if not wanted:
            break
        best, worst = wanted[0]
        only_the_best = number % 2 == 0 or len(wanted) < 3
        mutant(state, late)
        clicks = (late.shown == best if only_the_best else late.shown != worst).astype(np.int64)
        state.learn(late, clicks, frozen=True)
    return certificates_of(state)


@pytest.mark.parametrize("size", [(4, 3), (5, 4)], ids=str)
def test_late_answers_never_contradict_what_follows_from_certificates(size: tuple[int, int]) -> None:
    """2 over 1 and 1 over 0 settle 2 over 0. Where that is not noted, 0 over 2 is certified too: no order is left."""
    original = list(range(size[1]))
    for seed in range(3):
        found, mutated = late_certificates(size, seed), late_certificates(size, seed, no_closure)
        assert {(2, 1), (1, 0)} <= found
        assert worst_case(size[0], found, original, original) == 0
        assert worst_case(size[0], mutated, original, original) is None


def certified_share(odds_ignore_the_redraw: bool, runs: int = 60, pages: int = 300) -> float:
    """How many of the ordered pairs of equal items are certified at alpha = 0.05, users clicking without preference.

    All weights are equal, so that most pages are unsafe and drawn again.
    """
    setup, given = Setup(5, 3, decision_rule("anytime:0.05")), 0
    page = new_impression(3, 5)
    for seed in range(runs):
        state = AtWork(KIND, setup)
        rng, users = stream(seed, "equal"), np.random.default_rng(seed)
        for _ in range(pages):
            state.draw.weight[:], state.draw.total[:], state.draw.level[-1] = 1.0, 5.0, 1.0
            state.choose(rng, page)
            if odds_ignore_the_redraw:  # as if every exchanged page could have been drawn
                page.exchanges[:] = [((1 << 5) - 1) ^ (1 << place) for place in range(5)]
            state.learn(page, (users.random(3) < 0.5).astype(np.int64), frozen=odds_ignore_the_redraw)
        given += int(state.duels.certificates.given[0])
    return given / (runs * 20)


def test_equal_items_are_hardly_certified_and_odds_that_ignore_the_redraw_are_caught() -> None:
    """60 runs of 20 ordered pairs: at most 0.05 each by the proof; about a third of it is seen. The seeds are fixed."""
    assert certified_share(odds_ignore_the_redraw=False) <= 0.05
    assert certified_share(odds_ignore_the_redraw=True) > 0.2
