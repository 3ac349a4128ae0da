"""The live state under ranker and service: replay equals life, production's ranking may change, bytes are exact."""

import random
from typing import Any

import numpy as np
import pytest

from saferank.live.learner import ContradictionError, Learner
from saferank.live.replay import ISSUED, LEARNT, Pages, new_pages
from saferank.policies import POLICIES
from saferank.randomness import stream
from saferank.verbs import Impression, Ints
from tests.live.frozen_pages import FrozenPage, frozen, thaw
from tests.reference.decision import paper_decides

REPLAYABLE = sorted(name for name, kind in POLICIES.items() if kind.rebuild is not None and kind.worst is None)
"""Policies whose state is the same whether pages were chosen on it or only counted; those with plans keep the plans."""
APPEAL = {"a": 0.15, "b": 0.3, "c": 0.2, "d": 0.5, "x": 0.6, "y": 0.05, "z": 0.7, "new": 0.8}


def a_learner(policy: str = "kl-ucb-br", rule: str = "paper:0.2") -> Learner:
    options: Any = {"rule": rule, "examination": (1.0, 0.8, 0.6)}
    return Learner(policy, original=["a", "b", "c"], candidates=["x", "y"], **options)


def clicks_on(page: FrozenPage, n_positions: int, chance: random.Random) -> Ints:
    return np.array([chance.random() < APPEAL[str(item)] for item in page.row[:n_positions]], np.int64)


def live(learner: Learner, pages: int, seed: int, outstanding: int = 3) -> list[tuple[int, FrozenPage, Ints]]:
    """Play with several pages out; returns the log of operations."""
    chance, rng = random.Random(seed), stream(seed, "coins")
    log: list[tuple[int, FrozenPage, Ints]] = []
    waiting: list[tuple[Impression, FrozenPage]] = []
    for _ in range(pages):
        impression = learner.issue(rng)
        page = frozen(learner, impression)
        log.append((ISSUED, page, np.zeros(learner.n_positions, np.int64)))
        waiting.append((impression, page))
        while len(waiting) > outstanding:
            impression, page = waiting.pop(chance.randrange(len(waiting)))
            clicks = clicks_on(page, learner.n_positions, chance)
            if clicks.any():
                learner.learn(impression, clicks)
                log.append((LEARNT, page, clicks))
    return log


def as_pages(learner: Learner, log: list[tuple[int, FrozenPage, Ints]]) -> Pages:
    pages = new_pages(len(log), learner.n_positions)
    for number, (operation, page, clicks) in enumerate(log):
        impression = thaw(learner, page)
        places = len(page.row)
        pages.operation[number], pages.places[number], pages.round[number] = operation, places, page.round
        pages.ranking[number, :places] = impression.ranking[:places]
        pages.start[number, :places] = impression.start[:places]
        pages.end[number, :places] = impression.end[:places]
        pages.challenger[number], pages.clicks[number] = impression.challenger[0], clicks
    return pages


@pytest.mark.parametrize("policy", REPLAYABLE)
@pytest.mark.parametrize("outstanding", [0, 3, 20])
def test_replay_equals_life(policy: str, outstanding: int) -> None:
    """One page at a time, and folded by the compiled loop: the same bytes, and the same pages from there on."""
    lived, slow, fast = (a_learner(policy) for _ in range(3))
    log = live(lived, 1500, outstanding, outstanding)
    for operation, page, clicks in log:
        if operation == ISSUED:
            slow.count_issued()
        else:
            slow.learn(thaw(slow, page), clicks)
    pages, done, stops = as_pages(fast, log), 0, []
    while done < len(log):
        done = fast.fold(pages, done)
        stops.append(fast.leader())
    assert slow.canonical() == lived.canonical() == fast.canonical()
    assert lived.leader() != ("a", "b", "c")
    assert len(stops) > 2
    for rng_seed in range(3):
        again = [frozen(learner, learner.issue(stream(rng_seed, "more"))) for learner in (lived, slow, fast)]
        assert again[0] == again[1] == again[2]


@pytest.mark.check  # compiles the kernels of large catalogues
@pytest.mark.parametrize("policy", REPLAYABLE)
def test_replay_of_a_large_catalogue(policy: str) -> None:
    """More than 256 items: duels in a hash table, which grows while the log is folded."""
    items = [f"i{number}" for number in range(700)]
    appeal = dict(zip(items, np.linspace(0.9, 0.1, 700), strict=True))
    learners = [Learner(policy, original=items[:5], candidates=items[5:], rule="paper:0.2") for _ in range(2)]
    chance, rng, log = random.Random(1), stream(1, "coins"), []
    for _ in range(6000):
        page = frozen(learners[0], learners[0].issue(rng))
        log.append((ISSUED, page, np.zeros(5, np.int64)))
        clicks = np.array([chance.random() < appeal[str(item)] for item in page.row[:5]], np.int64)
        learners[0].learn(thaw(learners[0], page), clicks)
        log.append((LEARNT, page, clicks))
    pages, done = as_pages(learners[1], log), 0
    while done < len(log):
        done = learners[1].fold(pages, done)
    assert learners[0].canonical() == learners[1].canonical()


@pytest.mark.parametrize("policy", REPLAYABLE)
def test_saved_and_loaded(policy: str) -> None:
    learner = a_learner(policy)
    live(learner, 300, 2)
    learner.rebase(["b", "d", "a", "x"], ["new"])
    live(learner, 300, 3)
    loaded = Learner.load(learner.save())
    assert loaded.canonical() == learner.canonical()
    assert loaded.base == learner.base
    assert live(learner, 300, 4)[-1][1] == live(loaded, 300, 4)[-1][1]
    assert loaded.canonical() == learner.canonical()


def convinced(learner: Learner, better: str, worse: str, wins: int = 40) -> None:
    """Let one item surely beat another."""
    others = [str(item) for item in learner.present_items() if item not in (better, worse)]
    row = (better, worse, *others)[: learner.n_positions]
    page = FrozenPage(row, (2, *range(3, learner.n_positions + 1)), None, 1)
    clicks = np.array([1] + [0] * (learner.n_positions - 1), np.int64)
    for _ in range(wins):
        learner.learn(thaw(learner, page), clicks)


def wrong_pairs(ranking: list[str], truth: list[str]) -> int:
    """V of docs/algorithms/safety.md for items all of which are in ``truth``, best first."""
    place = {item: ranking.index(item) if item in ranking else len(ranking) for item in truth}
    return sum(place[worse] < place[better] for number, better in enumerate(truth) for worse in truth[number + 1 :])


@pytest.mark.parametrize("policy", REPLAYABLE)
def test_another_base_ranking_is_improved_by_certified_swaps_only(policy: str) -> None:
    learner = a_learner(policy, rule="paper:0.01")
    convinced(learner, "b", "a")
    convinced(learner, "x", "c")
    learner.rebase(["b", "a", "c", "y"], ["x"])
    assert learner.leader() == ("b", "a", "x")
    learner.rebase(["a", "c", "b"], ["x", "y"])
    assert learner.leader() == ("b", "x", "a")  # b and a, x and c change places: with or without a lifetime
    learner.rebase(["c", "a", "b"], ["x", "y"])
    assert learner.leader() == ("x", "b", "a")


@pytest.mark.parametrize("policy", REPLAYABLE)
def test_the_leader_is_never_worse_than_the_base_it_was_given(policy: str) -> None:
    """Certificates that are all right, bases in any order: V(leader) <= V(base), and strictly after a swap."""
    chance, truth = random.Random(3), list("abcdxyz")
    learner = Learner(policy, original=truth[:3], candidates=truth[3:], rule="paper:0.01")
    moved = 0
    for _ in range(60):
        i, j = sorted(chance.sample(range(7), 2))
        convinced(learner, truth[i], truth[j], wins=25)
        order = chance.sample(truth, 7)
        learner.rebase(order[:5], order[5:])
        leader = [str(item) for item in learner.leader()]
        assert wrong_pairs(leader, truth) <= wrong_pairs(order[:3], truth) - (leader != order[:3])
        moved += leader != order[:3]
    assert moved > 20


@pytest.mark.parametrize("policy", REPLAYABLE)
def test_items_that_disappear_are_never_shown_and_keep_their_statistics(policy: str) -> None:
    learner = a_learner(policy)
    live(learner, 400, 1)
    known = learner.duel("a", "b")
    learner.rebase(["b", "c", "d"], ["new"])
    rng = stream(1, "pages")
    for _ in range(50):
        assert set(frozen(learner, learner.issue(rng)).row) <= {"b", "c", "d", "new"}
    learner.rebase(["a", "b", "c"], ["x", "y"])
    assert learner.duel("a", "b") == known
    assert set(learner.present_items()) == {"a", "b", "c", "x", "y"}


def test_a_candidate_more_does_not_disturb_the_leader() -> None:
    learner = a_learner()
    live(learner, 800, 1)
    leader = learner.leader()
    assert leader != ("a", "b", "c")
    learner.rebase(["a", "b", "c"], ["x", "y", "z"])
    assert learner.leader() == leader
    assert learner.issue(stream(1, "p")).challenger[0] == learner.index["z"]  # new ones have index 1


@pytest.mark.parametrize("policy", REPLAYABLE)
def test_a_leader_that_would_turn_for_ever_is_refused(policy: str) -> None:
    single = Learner(policy, original=["d"], candidates=["a", "b", "c"], rule="paper:0.01")
    for better, worse in ("ab", "bc", "ca", "ad"):
        page = FrozenPage((better, worse), (2,), worse, 1)
        for _ in range(40):
            single.learn(thaw(single, page), np.ones(1, np.int64))
    with pytest.raises(ContradictionError, match="contradict"):
        single.rebase(["b"], ["a", "c", "d"])
    assert set(single.present_items()) == set("abcd")


def test_certificates_and_decisions_agree_with_the_rule() -> None:
    learner = a_learner(rule="paper:0.01")
    convinced(learner, "b", "c", wins=30)
    s, n = learner.duel("b", "c")
    assert (s, n) == (30, 30)
    assert learner.decided("b", "c") == paper_decides(s, n, 0.01)
    assert [(c.better, c.worse) for c in learner.certificates()] == [("b", "c")]


@pytest.mark.parametrize("policy", sorted(name for name, kind in POLICIES.items() if kind.rebuild is None))
@pytest.mark.parametrize("call", [lambda x: x.rebase(["a"], []), lambda x: x.count_issued()])
def test_policies_that_cannot_be_replayed_say_so(policy: str, call: Any) -> None:
    with pytest.raises(ValueError, match="has no rebuild"):
        call(a_learner(policy))
