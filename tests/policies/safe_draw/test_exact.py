"""safe-draw: equal to its transcription to the last digit, and what is its own as a live policy."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank import Ranker
from saferank.live.explanation import decided
from saferank.live.learner import Learner
from saferank.live.ranker import RankerError
from saferank.policies import POLICIES, Setup, WrongRuleError
from saferank.policies.safe_draw.small import SmallPlan
from saferank.randomness import stream
from saferank.statistics.bets import SOFT, entry_of
from saferank.statistics.certificates import ENDLESS, give
from saferank.statistics.decision import decision_rule
from saferank.statistics.pairs import row_of
from saferank.verbs import Impression, new_impression
from tests.policies.at_work import AtWork
from tests.policies.test_every_policy import USERS, User, browses, takes_the_first, ties
from tests.reference.safe_draw import slow_safe_draw

KIND = POLICIES["safe-draw"]
SIZES = [(1, 1), (2, 1), (5, 1), (2, 2), (4, 4), (4, 2), (6, 3), (7, 4)]


class Pair(NamedTuple):
    """The policy and its transcription, side by side, with the same random words."""

    state: AtWork
    rng: Any
    slow: Any
    variants: set[int]  # from which a page could have been drawn


def started(size: tuple[int, int], alpha: float, seed: int, trust: float = 0.5) -> Pair:
    state = AtWork(KIND, Setup(*size, decision_rule(f"anytime:{alpha}"), trust=trust))
    rng = stream(seed, "policy")
    return Pair(state, rng, slow_safe_draw(size, alpha, rng.tolist(), trust=trust), set())


def issued(pair: Pair, size: tuple[int, int]) -> tuple[Impression, Any]:
    """A page of both, which must be the same one, with the same weights and the same numbers drawn for it."""
    impression = new_impression(size[1], size[0])
    pair.state.choose(pair.rng, impression)
    page = pair.slow.rank()
    pair.variants.update(number for number, chance in enumerate(pair.slow.plan.chances) if chance > 0)
    assert impression.shown.tolist() == page.shown
    assert impression.ranking.tolist() == page.row
    assert impression.weight.tolist() == page.weights
    assert pair.rng.tolist() == pair.slow.coins.words
    return impression, page


def assert_same_knowledge(pair: Pair) -> None:
    state, slow = pair.state, pair.slow
    bets, items = state.duels, state.item.tolist()
    for i, j in itertools.permutations(items, 2):
        row, side = row_of(bets, i, j), int(i > j)
        assert bets.capital[entry_of(bets, row, SOFT, side)].tolist() == slow.soft[i, j]
        assert bets.pairs.wins[2 * row + side] == slow.wins[i, j]
        assert bets.lead[row] == slow.S[min(i, j), max(i, j)]
        assert bets.information[row] == slow.I[min(i, j), max(i, j)]
    assert given(state) == [(better, worse) for better, worse, _ in slow.certificates]
    assert [items[seat] for seat in state.reference] == slow.plan.R
    assert state.worst[0] == slow.plan.W(slow.plan.R)
    assert state.appeal.exposure[items].tolist() == [slow.M[item] for item in items]


def given(state: Any) -> list[tuple[int, int]]:
    """The pairs of the certificates, in the order in which they were given."""
    kept = state.duels.certificates
    size = int(kept.given[0])
    return list(zip(kept.better[:size].tolist(), kept.worse[:size].tolist(), strict=True))


def play(size: tuple[int, int], alpha: float, seed: int, user: User, pages: int, trust: float = 0.5) -> Pair:
    pair, users, attraction = started(size, alpha, seed, trust), np.random.default_rng(seed), ties(size[0], seed)
    for _ in range(pages):
        impression, page = issued(pair, size)
        clicks = user(users, attraction, page.shown)
        pair.state.learn(impression, np.array(clicks))
        pair.slow.learn(page, clicks)
    assert_same_knowledge(pair)
    return pair


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_it_equals_its_transcription_whatever_the_user(size: tuple[int, int]) -> None:
    for seed, user in enumerate(USERS):
        play(size, [0.3, 0.05, 1e-3][seed % 3], seed, user, 120, [0.5, 0.977][seed % 2])


@pytest.mark.parametrize("user", [browses, takes_the_first])
def test_it_equals_its_transcription_for_longer(user: User) -> None:
    pair = play((5, 3), 0.05, 7, user, 1500, 0.977)
    assert pair.slow.certificates


def test_it_equals_its_transcription_on_the_size_of_the_paper() -> None:
    """Hindered, flat and reserved pages all occur."""
    pair = play((10, 5), 0.3, 2, browses, 90)
    assert pair.slow.learnt == 90 and pair.variants == {0, 1, 2, 3}


def late(order: Iterator[int], size: tuple[int, int], seed: int) -> Pair:
    """Eight pages out at a time, answered in another order, some never."""
    pair, users, attraction = started(size, 0.2, seed), np.random.default_rng(seed), ties(size[0], seed)
    for _ in range(40):
        out = [issued(pair, size) for _ in range(8)]
        for impression, _ in out:
            pair.state.freeze(impression)
        for impression, page in (out[place] for place in users.permutation(8)[: next(order)]):
            clicks = browses(users, attraction, page.shown)
            pair.state.learn(impression, np.array(clicks), frozen=True)
            pair.slow.learn(page, clicks)
    return pair


@pytest.mark.parametrize("size", [(5, 3), (6, 2), (4, 4)], ids=str)
def test_late_feedback_equals_the_transcription(size: tuple[int, int]) -> None:
    pair = late(itertools.cycle([8, 5, 7]), size, 3)
    assert_same_knowledge(pair)
    assert len(pair.slow.certificates) > 1


def test_a_frozen_page_teaches_the_same_as_one_that_is_answered_at_once() -> None:
    size, users, attraction = (7, 4), np.random.default_rng(1), ties(7, 1)
    one, other = (AtWork(KIND, Setup(*size, decision_rule("anytime:0.2"))) for _ in range(2))
    rng, twin, page = stream(4, "x"), stream(4, "x"), new_impression(4, 7)
    for _ in range(600):
        one.choose(rng, page)
        clicks = np.array(browses(users, attraction, page.shown.tolist()))
        one.learn(page, clicks)
        other.choose(twin, page)
        other.freeze(page)
        other.learn(page, clicks, frozen=True)
        assert one.duels.capital.tobytes() == other.duels.capital.tobytes()
    assert one.duels.certificates.given[0] > 3


def test_items_come_and_go_as_in_the_transcription() -> None:
    state = AtWork(KIND, Setup(6, 3, decision_rule("anytime:0.2"), trust=0.9))
    rng, users, names = stream(5, "policy"), np.random.default_rng(5), "abcxyzw"
    slow = slow_safe_draw((6, 3), 0.2, rng.tolist(), trust=0.9)
    appeal = {item: place for place, item in enumerate("bxazcyw")}

    def visit(times: int) -> None:
        for _ in range(times):
            impression, page = state.issue(rng), slow.rank()
            assert impression.ranking[: len(page.row)].tolist() == page.row
            clicks = [int(users.random() < 0.7 ** (1 + appeal[names[item]])) for item in page.shown]
            state.learn(impression, np.array(clicks), frozen=True)
            slow.learn(page, clicks)

    visit(200)
    before = given(state)
    assert before
    for call in (([1, 2, 3], [4, 5]), ([1, 2, 3], [4, 5, 6])):  # a leaves, x closes up; then w comes
        state.call(*call)
        slow.call(*call)
        visit(100)
    assert given(state)[: len(before)] == before
    assert 0 not in state.leader()


def test_calls_with_candidate_orders_of_their_own_are_as_in_the_transcription() -> None:
    """Seats are given in the order of the call: what is equal otherwise is tried, drawn and numbered in that order."""
    state = AtWork(KIND, Setup(9, 3, decision_rule("anytime:0.2"), trust=0.9))
    rng, users = stream(6, "policy"), np.random.default_rng(6)
    slow = slow_safe_draw((9, 3), 0.2, rng.tolist(), trust=0.9)
    for number in range(10):
        base = [0, 1, 2] if number % 3 else users.permutation(9)[:3].tolist()
        others = [int(item) for item in users.permutation(9) if item not in base]
        state.call(base, others)
        slow.call(base, others)
        for _ in range(30):
            impression, page = state.issue(rng), slow.rank()
            assert impression.ranking[: len(page.row)].tolist() == page.row
            clicks = [int(users.random() < (item * 4 % 9) / 9) for item in page.shown]
            state.learn(impression, np.array(clicks), frozen=True)
            slow.learn(page, clicks)
    assert given(state)


def test_what_follows_by_way_of_an_item_that_left_still_holds() -> None:
    learner = Learner("safe-draw", original=["a", "b", "c"], rule="anytime:0.2")
    bets = learner.evidence.duels
    for pair in ((2, 1), (1, 0)):  # c over b over a
        give(bets.certificates, bets.closure, pair, ENDLESS, 1)
    learner.know(["d"])
    plan = learner.plan(learner.call(["a", "c", "d"], []), 0)
    assert decided(learner, plan, 2, 0) and not decided(learner, plan, 0, 2)
    assert learner.names(KIND.leader(learner.evidence, plan)) == ("c", "a", "d")


def test_interpreted_kernels_give_the_same_pages() -> None:
    """Without the compiler, in another process: the same digest of pages and capital."""
    code = (
        "import hashlib, numpy as np\n"
        "from saferank.policies import POLICIES, Setup\n"
        "from saferank.randomness import stream\n"
        "from saferank.statistics.decision import decision_rule\n"
        "from saferank.verbs import new_impression\n"
        "from tests.policies.at_work import AtWork\n"
        "state = AtWork(POLICIES['safe-draw'], Setup(6, 3, decision_rule('anytime:0.2')))\n"
        "rng, page, seen = stream(1, 'x'), new_impression(3, 6), hashlib.sha256()\n"
        "for t in range(150):\n"
        "    state.choose(rng, page)\n"
        "    state.learn(page, np.array([int(item % 3 == t % 2) for item in page.shown]))\n"
        "    seen.update(page.ranking.tobytes() + page.weight.tobytes())\n"
        "print(seen.hexdigest(), state.duels.certificates.given[0], state.duels.capital.sum())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for flag in ("0", "1")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("rule", ["paper:1e-5", "paper:0.1"])
def test_another_rule_is_refused_with_a_sentence(rule: str) -> None:
    with pytest.raises(WrongRuleError, match="safe-draw takes the rule anytime:ALPHA or budget:ALPHA, not paper"):
        Ranker("safe-draw", original=["a", "b"], rule=rule)


def test_without_a_rule_it_takes_its_own() -> None:
    assert "anytime:1e-5" in str(Ranker("safe-draw", original=["a", "b"]).explain())


def rich() -> Ranker:
    """A ranker that has certified something."""
    ranker = Ranker("safe-draw", original=list("abc"), candidates=list("xyz"), rule="anytime:0.1", seed=4)
    for _ in range(300):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if item in ("x", "c")])
    return ranker


def test_it_finds_the_better_items_and_explains_itself() -> None:
    ranker = rich()
    assert set(ranker.leader[:2]) == {"x", "c"}
    page = ranker.rank()
    text = str(ranker.explain(page))
    assert "decided" in text and "wrong pairs more than production's ranking" in text
    assert page.risk is not None and page.risk.allowance == 4 and page.risk.worst is not None
    assert page.risk.worst <= 4
    assert "chance" in text
    ranker.feedback(page, [])


def test_a_saved_ranker_goes_on_exactly() -> None:
    ranker = rich()
    out = ranker.rank()
    twin = Ranker.load(ranker.save())
    assert twin.explain() == ranker.explain()
    for _ in range(60):
        page, same = ranker.rank(), twin.rank()
        assert page.items == same.items
        ranker.feedback(page, page.items[:1])
        twin.feedback(same, same.items[:1])
    ranker.feedback(out, [])


def test_late_feedback_of_an_item_that_left_is_a_bet_at_the_odds_of_its_page() -> None:
    ranker = Ranker("safe-draw", original=list("abc"), candidates=list("xy"), rule="anytime:0.1", seed=4)
    pages = [ranker.rank() for _ in range(60)]
    ranker.remove("a")
    for page in pages:
        ranker.feedback(page, ["a"] if "a" in page.items else [])
    assert ranker.duels("a", "b")[1] > 0
    assert "a" not in ranker.leader


def test_a_second_feedback_changes_nothing() -> None:
    ranker = rich()
    page = ranker.rank()
    ranker.feedback(page, [page.items[0]])
    before = ranker.duels(page.items[0], page.items[1])
    with pytest.raises(RankerError, match="has had its feedback"):
        ranker.feedback(page, [page.items[0]])
    assert ranker.duels(page.items[0], page.items[1]) == before


def test_twelve_items_are_exact() -> None:
    assert isinstance(AtWork(KIND, Setup(12, 5, decision_rule("anytime:0.1"))).plan, SmallPlan)
