"""Evidence under ranker and service: a fold of pages, plans for any call, exact bytes."""

import random
from typing import Any

import numpy as np
import pytest

from saferank.live.explanation import decided
from saferank.live.learner import Learner
from saferank.live.replay import new_pages, new_workspace, put_in
from saferank.policies import POLICIES
from saferank.randomness import stream
from saferank.verbs import Impression, Ints, choose, freeze, new_impression
from tests.reference.decision import paper_decides

SERVABLE = sorted(name for name, kind in POLICIES.items() if not kind.missing_to_be_served())
BUBBLES = ["bubble-rank", "kl-ucb-br"]
APPEAL = {"a": 0.15, "b": 0.3, "c": 0.2, "d": 0.5, "x": 0.6, "y": 0.05, "z": 0.7, "new": 0.8}

Page = tuple[Impression, Ints]


def a_learner(policy: str = "kl-ucb-br", rule: str = "0.2", candidates: str = "xy") -> Learner:
    named = f"{POLICIES[policy].rules[0]}:{rule}"
    return Learner(policy, original=["a", "b", "c"], candidates=list(candidates), rule=named)


def page_of(learner: Learner, base: str, others: str, number: int, rng: Any) -> Impression:
    """A page of a plan that is made for it."""
    call = learner.call(base, others)
    plan, page = learner.plan(call, number - 1), new_impression(len(base), learner.places(call))
    page.round[0] = number
    choose(learner.policy, learner.evidence, plan, rng, page)
    freeze(learner.policy, learner.evidence, plan, page, np.ones(len(base), np.int64))
    return page


def live(learner: Learner, pages: int, seed: int, base: str = "abc", others: str = "xy") -> list[Page]:
    """Visitors who click by appeal; returns what was learnt."""
    chance, rng, log = random.Random(seed), stream(seed, "coins"), []
    for number in range(1, pages + 1):
        page = page_of(learner, base, others, number, rng)
        clicks = np.array([chance.random() < APPEAL[str(item)] for item in learner.names(page.shown)], np.int64)
        learner.learn(page, clicks)
        log.append((page, clicks))
    return log


def leader(learner: Learner, base: str, others: str) -> str:
    plan = learner.plan(learner.call(base, others), 0)
    return "".join(map(str, learner.names(learner.kind.leader(learner.evidence, plan)[: len(base)])))


@pytest.mark.parametrize("policy", SERVABLE)
def test_evidence_is_a_fold_of_pages(policy: str) -> None:
    """One page at a time, and all in one compiled call that stops after certificates: the same bytes."""
    lived, folded = a_learner(policy), a_learner(policy)
    log = live(lived, 400, 1)
    places, stops, done = len(log[0][0].ranking), 0, 0
    pages, one = new_pages(len(log), 3, places), new_pages(1, 3, places)
    for number, (page, clicks) in enumerate(log):
        put_in(one, page, clicks)
        for name in one._fields:
            getattr(pages, name)[number] = getattr(one, name)[0]
    workspace = new_workspace(3, places)
    while done < len(log):
        done = folded.fold(pages, workspace, done)
        stops += 1
    assert folded.save() == lived.save()
    assert stops > 2 and len(lived.certificates()) >= stops - 1
    assert leader(lived, "abc", "xy") != "abc"


@pytest.mark.parametrize("policy", SERVABLE)
def test_saved_and_loaded(policy: str) -> None:
    learner = a_learner(policy)
    live(learner, 150, 2)
    learner.know(["new", "d"])
    live(learner, 150, 3, "bda", "x")
    loaded = Learner.load(learner.save())
    assert loaded.save() == learner.save()
    assert [page.shown.tolist() for page, _ in live(learner, 100, 4)] == [
        page.shown.tolist() for page, _ in live(loaded, 100, 4)
    ]
    assert loaded.save() == learner.save()


def convinced(learner: Learner, better: str, worse: str, wins: int = 40) -> None:
    """Let one item surely beat another."""
    page = new_impression(3, 4)
    third = next(item for item in learner.items if item not in (better, worse))
    page.round[0], page.places[0] = 1, 3
    page.ranking[:3] = [learner.index[item] for item in (better, worse, third)]
    page.start[:3], page.end[:3] = (0, 0, 2), (2, 2, 3)
    for _ in range(wins):
        learner.learn(page, np.array([1, 0, 0]))


def wrong_pairs(ranking: str, truth: str) -> int:
    """V of docs/algorithms/safety.md for items all of which are in ``truth``, best first."""
    place = {item: ranking.index(item) if item in ranking else len(ranking) for item in truth}
    return sum(place[worse] < place[better] for number, better in enumerate(truth) for worse in truth[number + 1 :])


@pytest.mark.parametrize("policy", BUBBLES)
def test_another_base_ranking_is_improved_by_certified_swaps_only(policy: str) -> None:
    learner = a_learner(policy, "0.01")
    convinced(learner, "b", "a")
    convinced(learner, "x", "c")
    assert leader(learner, "bac", "yx") == "bax"
    assert leader(learner, "acb", "xy") == "bxa"  # b and a, x and c change places
    assert leader(learner, "cab", "xy") == "xba"
    assert leader(learner, "ac", "xyb") == "bx"  # pages of two are made from the same evidence


@pytest.mark.parametrize("policy", BUBBLES)
def test_the_leader_is_never_worse_than_the_base_it_was_given(policy: str) -> None:
    """Certificates that are all right, bases in any order: V(leader) <= V(base), and strictly after a swap."""
    chance, truth, moved = random.Random(3), "abcdxyz", 0
    learner = Learner(policy, original=list("abc"), candidates=list("dxyz"), rule="paper:0.01")
    for _ in range(60):
        i, j = sorted(chance.sample(range(7), 2))
        convinced(learner, truth[i], truth[j], wins=25)
        order = "".join(chance.sample(truth, 7))
        found = leader(learner, order[:3], order[3:])
        assert wrong_pairs(found, truth) <= wrong_pairs(order[:3], truth) - (found != order[:3])
        moved += found != order[:3]
    assert moved > 20


@pytest.mark.parametrize("policy", SERVABLE)
def test_items_that_are_not_in_the_call_are_never_shown_and_keep_their_statistics(policy: str) -> None:
    learner = a_learner(policy)
    live(learner, 300, 1)
    known = learner.duel("a", "b")
    assert known[1] > 0
    learner.know(["d", "new"])
    rng = stream(1, "pages")
    for number in range(301, 340):
        page = page_of(learner, "bcd", ["new"], number, rng)  # type: ignore[arg-type]
        assert set(learner.names(page.ranking[: page.places[0]])) <= {"b", "c", "d", "new"}
    assert learner.duel("a", "b") == known


@pytest.mark.parametrize("policy", BUBBLES)
def test_decisions_that_contradict_each_other_leave_the_base_ranking(policy: str) -> None:
    learner = a_learner(policy, "0.01")
    for better, worse in ("ab", "bc", "ca"):
        convinced(learner, better, worse)
    assert leader(learner, "cab", "xy") == "cab"


def test_certificates_and_decisions_agree_with_the_rule() -> None:
    learner = a_learner(rule="0.01")
    convinced(learner, "b", "c", wins=30)
    s, n = learner.duel("b", "c")
    assert (s, n) == (30, 30)
    plan = learner.plan(learner.call("abc", "xy"), 0)
    assert decided(learner, plan, learner.index["b"], learner.index["c"]) == paper_decides(s, n, 0.01)
    assert [(c.better, c.worse) for c in learner.certificates()] == [("b", "c")]
