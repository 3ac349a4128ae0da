"""The slot form of safe-draw equals its transcription: pages, random words, certificates, reference, evidence, appeal.

All is equal to the last digit.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.live.learner import Learner
from saferank.policies import freeze
from saferank.randomness import stream
from saferank.statistics.pairs import row_of
from saferank.verbs import Impression, choose, learn
from tests.policies.safe_draw.slot_pages import empty_page, started, with_room
from tests.policies.test_every_policy import USERS, User, browses, ties
from tests.reference.safe_draw import slow_safe_draw

LEVELS = [0.3, 0.05, 1e-3]


class Pair(NamedTuple):
    """The policy and its transcription, side by side, with the same random words."""

    policy: Any
    state: Any
    rng: Any
    slow: Any


def pair_of(size: tuple[int, int], alpha: float, seed: int, trust: float = 0.5) -> Pair:
    policy, state = started(*size, f"anytime:{alpha}", trust)
    rng = stream(seed, "policy")
    return Pair(policy, state, rng, slow_safe_draw(size, alpha, rng.tolist(), trust=trust, most_exact=0))


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
    choose(pair.policy, pair.state, pair.rng, impression)
    page = pair.slow.rank()
    assert_same_page(impression, page)
    assert pair.rng.tolist() == pair.slow.coins.words
    return impression, page


def learnt(pair: Pair, impression: Impression, page: Any, clicks: list[int]) -> Pair:
    learn(pair.policy, pair.state, impression, np.array(clicks))
    pair.slow.learn(page, clicks)
    assert_same_reference(pair.state, pair.slow)
    return pair._replace(state=with_room(pair.policy, pair.state))


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
    for i, j in itertools.permutations(range(len(state.present)), 2):
        row, side = row_of(state.duels, i, j), int(i > j)
        assert bets.capital[2 * row + side].tolist() == slow.soft[i, j]
        assert bets.pairs.wins[2 * row + side] == slow.wins[i, j]
        assert bets.lead[row] == slow.S[min(i, j), max(i, j)]
        assert bets.information[row] == slow.I[min(i, j), max(i, j)]
    items = range(len(state.present))
    assert state.appeal.clicks.tolist() == [slow.plan.C[item] for item in items]
    assert state.appeal.exposure.tolist() == [slow.plan.M[item] for item in items]
    assert state.appeal.tried[: state.appeal.n_tried[0]].tolist() == slow.plan.tried


def play(size: tuple[int, int], alpha: float, seed: int, user: User, pages: int, trust: float = 0.5) -> Pair:
    pair, users, attraction = pair_of(size, alpha, seed, trust), np.random.default_rng(seed), ties(size[0], seed)
    for _ in range(pages):
        impression, page = issued(pair)
        pair = learnt(pair, impression, page, user(users, attraction, page.shown))
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
            freeze(pair.policy, pair.state, impression)
        for impression, page in (out[place] for place in users.permutation(8)[:answered]):
            pair = learnt(pair, impression, page, browses(users, attraction, page.shown))
    assert_same_knowledge(pair.state, pair.slow)
    assert len(pair.slow.certificates) > 1


class Visitors:
    """Show pages of both to the same users, who like some items better, whatever their place."""

    def __init__(self, learner: Learner, rng: Any, slow: Any) -> None:
        self.learner, self.rng, self.slow, self.users = learner, rng, slow, np.random.default_rng(5)
        self.out: list[tuple[Impression, Any]] = []

    def come(self, pages: int) -> None:
        """Each sees the newest page; the twelve before it get their clicks later."""
        for _ in range(pages):
            self.out.append((self.learner.issue(self.rng), self.slow.rank()))
            assert_same_page(*self.out[-1])
            assert self.rng.tolist() == self.slow.coins.words
            if len(self.out) > 12:
                self.click(*self.out.pop(0))

    def click(self, impression: Impression, page: Any) -> None:
        clicks = [int(self.users.random() < 0.9 * (item * 7 % 20) / 20) for item in page.shown]
        self.learner.learn(impression, np.array(clicks))
        self.slow.learn(page, clicks)
        assert_same_reference(self.learner.state, self.slow)


def test_items_come_and_go_and_production_changes_as_in_the_transcription() -> None:
    """Twelve pages are out each time; pairs of which an item has left are not bet on."""
    items = [f"item {number}" for number in range(16)]
    learner = Learner("safe-draw", original=items[:4], candidates=items[4:], rule="anytime:0.3", trust=0.5)
    rng = stream(5, "policy")
    slow = slow_safe_draw((16, 4), 0.3, rng.tolist())
    visitors = Visitors(learner, rng, slow)
    visitors.come(200)
    before = len(slow.certificates)
    assert before > 3
    present = np.ones(16, np.bool_)
    present[[1, 9]] = False  # 1 leaves production's ranking, 4 closes up
    learner.regroup(present)
    slow.call([0, 2, 3, 4], [5, 6, 7, 8, *range(10, 16)])
    visitors.come(100)
    present[1] = True  # back as a candidate
    learner.regroup(np.append(present, True), ["item 16"])
    slow.call([0, 2, 3, 4], [1, 5, 6, 7, 8, *range(10, 17)])
    visitors.come(100)
    learner.rebase([items[item] for item in (8, 2, 15, 0)], [name for name in items if name != items[9]])
    slow.call([8, 2, 15, 0], [item for item in range(16) if item not in (8, 2, 15, 0, 9)])
    visitors.come(100)
    assert_same_knowledge(learner.state, slow)
    assert len(slow.certificates) > before


@pytest.mark.parametrize("seed", range(3))
def test_calls_with_candidate_orders_of_their_own_are_as_in_the_transcription(seed: int) -> None:
    """Every thirty pages production gives the same items in another order, now and then with another ranking."""
    items, random = [f"item {number}" for number in range(40)], np.random.default_rng(seed)
    learner = Learner("safe-draw", original=items[:4], candidates=items[4:], rule="anytime:0.05", trust=0.9)
    rng = stream(seed, "policy")
    slow = slow_safe_draw((40, 4), 0.05, rng.tolist(), trust=0.9)
    visitors = Visitors(learner, rng, slow)
    base = list(range(4))
    for number in range(8):
        if number % 3 == 2:
            base = random.permutation(40)[:4].tolist()
        others = [int(item) for item in random.permutation(40) if item not in base]
        learner.rebase([items[item] for item in base], [items[item] for item in others])
        slow.call(base, others)
        assert learner.candidates() == tuple(items[item] for item in others)
        visitors.come(30)
    assert_same_knowledge(learner.state, slow)
