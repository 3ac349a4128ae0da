"""The slot form of safe-draw equals its transcription: pages, random words, certificates, reference, evidence, appeal.

All is equal to the last digit.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.statistics.pairs import row_of
from saferank.verbs import Impression
from tests.policies.at_work import AtWork
from tests.policies.safe_draw.slot_pages import empty_page, started
from tests.policies.test_every_policy import USERS, User, browses, ties
from tests.reference.safe_draw import slow_safe_draw

LEVELS = [0.3, 0.05, 1e-3]


class Pair(NamedTuple):
    """The policy and its transcription, side by side, with the same random words."""

    state: AtWork
    rng: Any
    slow: Any


def pair_of(size: tuple[int, int], alpha: float, seed: int, trust: float = 0.5) -> Pair:
    state = started(*size, f"anytime:{alpha}", trust)
    rng = stream(seed, "policy")
    return Pair(state, rng, slow_safe_draw(size, alpha, rng.tolist(), trust=trust, most_exact=0))


def assert_same_page(impression: Impression, page: Any) -> None:
    places = int(impression.places[0])
    assert impression.ranking[:places].tolist() == page.row
    assert impression.weight[:places].tolist() == page.weights
    if page.slot is None:
        assert places == page.K
    else:
        assert impression.start[page.K] == page.slot


def issued(pair: Pair) -> tuple[Impression, Any]:
    """A page of both, which must be the same one, with the same numbers drawn for it."""
    impression = empty_page(pair.slow.K)
    pair.state.choose(pair.rng, impression)
    page = pair.slow.rank()
    assert_same_page(impression, page)
    assert pair.rng.tolist() == pair.slow.coins.words
    return impression, page


def learnt(pair: Pair, impression: Impression, page: Any, clicks: list[int], *, frozen: bool = False) -> None:
    pair.state.learn(impression, np.array(clicks), frozen=frozen)
    pair.slow.learn(page, clicks)
    assert_same_reference(pair.state, pair.slow)


def assert_same_reference(state: Any, slow: Any) -> None:
    kept = state.duels.certificates
    size = int(kept.given[0])
    pairs = list(zip(kept.better[:size].tolist(), kept.worse[:size].tolist(), strict=True))
    assert pairs == [(better, worse) for better, worse, _ in slow.certificates]
    assert state.reference.row.tolist() == slow.plan.R
    assert state.reference.income[0] == slow.plan.m


def assert_same_knowledge(state: Any, slow: Any) -> None:
    """All that is known of pairs, items and the race."""
    bets = state.duels
    items = range(len(state.appeal.clicks))
    for i, j in itertools.permutations(items, 2):
        row, side = row_of(state.duels, i, j), int(i > j)
        assert bets.capital[2 * row + side].tolist() == slow.soft[i, j]
        assert bets.pairs.wins[2 * row + side] == slow.wins[i, j]
        assert bets.lead[row] == slow.S[min(i, j), max(i, j)]
        assert bets.information[row] == slow.I[min(i, j), max(i, j)]
    assert state.appeal.clicks.tolist() == [slow.C[item] for item in items]
    assert state.appeal.exposure.tolist() == [slow.M[item] for item in items]
    assert state.appeal.tried[: state.appeal.n_tried[0]].tolist() == slow.tried


def play(size: tuple[int, int], alpha: float, seed: int, user: User, pages: int, trust: float = 0.5) -> Pair:
    pair, users, attraction = pair_of(size, alpha, seed, trust), np.random.default_rng(seed), ties(size[0], seed)
    for _ in range(pages):
        impression, page = issued(pair)
        learnt(pair, impression, page, user(users, attraction, page.shown))
    assert_same_knowledge(pair.state, pair.slow)
    return pair


@pytest.mark.parametrize("size", [(13, 1), (20, 1), (13, 3), (17, 3), (14, 5), (20, 5)], ids=str)
def test_it_equals_its_transcription_whatever_the_user(size: tuple[int, int]) -> None:
    for seed, user in enumerate(USERS):
        play(size, LEVELS[seed % 3], seed, user, 100, [0.977, 0.5][seed % 2])


@pytest.mark.parametrize("size", [(13, 13, 40), (16, 16, 40), (19, 14, 34), (20, 20, 34)], ids=str)
def test_it_equals_its_transcription_on_long_pages(size: tuple[int, int, int]) -> None:
    """K = L has no slot. Plans are tight: without a larger gap nearly no order that is drawn would be safe."""
    n_items, n_positions, pages = size
    tight = []
    for seed, user in enumerate(USERS[:2]):
        pair = play((n_items, n_positions), LEVELS[seed % 3], seed, user, pages)
        tight.append(any(is_tight for _, _, is_tight in pair.slow.plan.without_slot))
    assert any(tight)


@pytest.mark.parametrize("size", [(15, 5), (18, 3)], ids=str)
def test_it_equals_its_transcription_for_longer(size: tuple[int, int]) -> None:
    pair = play(size, 0.05, 7, browses, 1400)
    assert pair.slow.plan.m > 3
    assert set(pair.slow.plan.R) - set(range(size[1]))


@pytest.mark.parametrize("size", [(14, 4), (16, 5)], ids=str)
def test_late_feedback_equals_the_transcription(size: tuple[int, int]) -> None:
    """Eight pages out at a time, answered in another order, some never."""
    pair, users, attraction = pair_of(size, 0.3, 3), np.random.default_rng(3), ties(size[0], 3)
    for answered in itertools.islice(itertools.cycle([8, 5, 7]), 30):
        out = [issued(pair) for _ in range(8)]
        for impression, _ in out:
            pair.state.freeze(impression)
        for impression, page in (out[place] for place in users.permutation(8)[:answered]):
            learnt(pair, impression, page, browses(users, attraction, page.shown), frozen=True)
    assert_same_knowledge(pair.state, pair.slow)
    assert len(pair.slow.certificates) > 1


class Visitors:
    """Show pages of both to the same users, who like some items better, whatever their place."""

    def __init__(self, state: AtWork, rng: Any, slow: Any) -> None:
        self.state, self.rng, self.slow, self.users = state, rng, slow, np.random.default_rng(5)
        self.out: list[tuple[Impression, Any]] = []

    def come(self, pages: int) -> None:
        """Each sees the newest page; the twelve before it get their clicks later."""
        for _ in range(pages):
            self.out.append((self.state.issue(self.rng), self.slow.rank()))
            assert_same_page(*self.out[-1])
            assert self.rng.tolist() == self.slow.coins.words
            if len(self.out) > 12:
                self.click(*self.out.pop(0))

    def click(self, impression: Impression, page: Any) -> None:
        clicks = [int(self.users.random() < 0.9 * (item * 7 % 20) / 20) for item in page.shown]
        self.state.learn(impression, np.array(clicks), frozen=True)
        self.slow.learn(page, clicks)
        assert_same_reference(self.state, self.slow)


def of_both(size: tuple[int, int], alpha: float, seed: int, trust: float) -> Visitors:
    state = AtWork(POLICIES["safe-draw"], Setup(*size, decision_rule(f"anytime:{alpha}"), trust=trust))
    rng = stream(seed, "policy")
    return Visitors(state, rng, slow_safe_draw(size, alpha, rng.tolist(), trust=trust))


def test_items_come_and_go_and_production_changes_as_in_the_transcription() -> None:
    """Twelve pages are out each time."""
    visitors = of_both((16, 4), 0.3, 5, 0.5)
    visitors.come(200)
    before = len(visitors.slow.certificates)
    assert before > 3
    calls = [
        ([0, 2, 3, 4], [5, 6, 7, 8, *range(10, 16)]),  # 1 leaves production's ranking, 4 closes up
        ([0, 2, 3, 4], [1, 5, 6, 7, 8, *range(10, 17)]),  # back as a candidate, and a new one
        ([8, 2, 15, 0], [item for item in range(16) if item not in (8, 2, 15, 0, 9)]),
    ]
    for call in calls:
        visitors.state.call(*call)
        visitors.slow.call(*call)
        visitors.come(100)
    assert_same_knowledge(visitors.state, visitors.slow)
    assert len(visitors.slow.certificates) > before


@pytest.mark.parametrize("seed", range(3))
def test_calls_with_candidate_orders_of_their_own_are_as_in_the_transcription(seed: int) -> None:
    """Every thirty pages production gives the same items in another order, now and then with another ranking."""
    random, visitors, base = np.random.default_rng(seed), of_both((40, 4), 0.05, seed, 0.9), list(range(4))
    for number in range(8):
        if number % 3 == 2:
            base = random.permutation(40)[:4].tolist()
        others = [int(item) for item in random.permutation(40) if item not in base]
        visitors.state.call(base, others)
        visitors.slow.call(base, others)
        visitors.come(30)
    assert_same_knowledge(visitors.state, visitors.slow)
