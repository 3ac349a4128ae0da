"""``budget:ALPHA``: the errors of all pairs sum to alpha, as the transcription spends it, and runs keep it."""

import itertools

import numpy as np
import pytest
from equal_draws import Terms, World, play, runs_with_a_false_one
from scipy import stats

from saferank import Ranker, simulate
from saferank.instances import embedded_instances
from saferank.policies import POLICIES, Setup, WrongRuleError
from saferank.randomness import stream
from saferank.service.settings import Settings
from saferank.statistics.bets import bet_table, budget, needed_for
from saferank.statistics.decision import decision_rule
from tests.policies.at_work import AtWork
from tests.policies.test_every_policy import browses, ties
from tests.reference.safe_draw import error_of as slow_error_of
from tests.reference.safe_draw import slow_safe_draw
from tests.reference.safety import violates
from tests.reference.worst_case import exceeds

LOOP = getattr(play, "py_func", play)
SIZES = [(1, 1), (1, 2), (2, 2), (3, 7), (5, 10), (4, 24)]


def error_of(alpha: float, size: tuple[int, int], i: int, j: int) -> float:
    return 8.0 / float(np.exp(needed_for(bet_table(budget(alpha, *size)), i, j)))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_pair_has_its_share_in_either_direction(size: tuple[int, int]) -> None:
    for i, j in itertools.permutations(range(size[1] + 3), 2):
        assert error_of(0.05, size, i, j) == pytest.approx(slow_error_of(0.05, *size)(i, j), rel=1e-12)


@pytest.mark.parametrize("size", SIZES[1:], ids=str)
def test_the_errors_of_all_pairs_sum_to_alpha_however_many_items_come(size: tuple[int, int]) -> None:
    """Of the n pairs of a late item each has the same error; the rest of the series is a tenth of alpha times L / n."""
    n, many = size[1], 1000
    begun = sum(error_of(0.05, size, i, j) for i, j in itertools.combinations(range(n), 2))
    later = sum(number * error_of(0.05, size, 0, number) for number in range(n, many))
    assert begun == pytest.approx(0.9 * 0.05)
    assert later + 0.1 * 0.05 * n / many == pytest.approx(0.1 * 0.05)


def test_what_lets_an_item_in_gets_the_most() -> None:
    levels = budget(0.05, 5, 10)
    assert levels.last > levels.upper > levels.ranked > levels.outside
    large = budget(0.05, 10, 2000)
    assert large.outside * 1990 * 1989 / 2 < 0.05 / 2 and large.upper > 100 * large.outside


@pytest.mark.parametrize(("size", "pages"), [((7, 4), 400), ((14, 5), 300)], ids=str)
def test_it_equals_the_transcription(size: tuple[int, int], pages: int) -> None:
    setup, kind, rng = (
        Setup(*size, decision_rule("budget:0.9"), trust=0.977),
        POLICIES["safe-draw"],
        stream(4, "policy"),
    )
    state = AtWork(kind, setup)
    slow = slow_safe_draw(size, 0.9, rng.tolist(), trust=0.977, began=(size[1], size[0]))
    users, attraction, page = np.random.default_rng(4), ties(size[0], 4), state.blank()
    for _ in range(pages):
        state.choose(rng, page)
        drawn = slow.rank()
        assert page.shown.tolist() == drawn.shown
        clicks = browses(users, attraction, drawn.shown)
        state.learn(page, np.array(clicks))
        slow.learn(drawn, clicks)
    kept = state.duels.certificates
    given = list(zip(kept.better[: kept.given[0]].tolist(), kept.worse[: kept.given[0]].tolist(), strict=True))
    assert given and given == [(better, worse) for better, worse, _ in slow.certificates]


def test_a_certificate_between_equal_items_is_not_harmless() -> None:
    """Why such pairs count twice: 2 over 0, which are equal, allows a page that the truth forbids."""
    original, page, attraction = [0, 1], [3, 1], [2.0, 1.0, 2.0, 0.0]
    assert exceeds(4, set(), original, page) and not exceeds(4, {(2, 0)}, original, page)
    assert violates(page, original, attraction)


EQUAL = World("equal", 3, (0.5,) * 6, 700)
LARGE = World("equal, beyond 12", 4, (0.5,) * 14, 500)
CASES = {
    "usual": (EQUAL, Terms("budget:0.5")),
    "no trust": (EQUAL, Terms("budget:0.5", trust=0.5)),
    "lifetime": (EQUAL, Terms("budget:0.5", lifetime=700)),
    "arrivals": (EQUAL, Terms("budget:0.5", late=2)),
    "large": (LARGE, Terms("budget:0.5")),
    "large, no trust, lifetime": (LARGE, Terms("budget:0.5", trust=0.5, lifetime=500)),
    "crosses 12": (LARGE, Terms("budget:0.5", late=3)),
    "crosses 12, no trust": (LARGE, Terms("budget:0.5", trust=0.5, late=3)),
}


@pytest.mark.check  # 240 runs, half a minute
@pytest.mark.parametrize("case", CASES)
def test_runs_with_equal_items_keep_the_budget(case: str) -> None:
    """Of 30 runs at most as many have a false certificate as a run of coins of bias 1/2 has but once in a thousand.

    The seeds are fixed, so the verdict never changes. With a lifetime the budget is that of an epoch; there is one.
    """
    world, terms = CASES[case]
    assert runs_with_a_false_one(world, "pbm", terms, 30, LOOP) <= stats.binom.ppf(1 - 1e-3, 30, 0.5)


def test_even_odds_for_uneven_draws_break_it() -> None:
    terms = Terms("budget:0.5", even=True, trust=0.5)
    assert runs_with_a_false_one(EQUAL, "pbm", terms, 30, LOOP) > stats.binom.ppf(1 - 1e-3, 30, 0.5)


def test_it_is_taken_by_simulator_ranker_and_service() -> None:
    ranker = Ranker("safe-draw", original=["a", "b"], candidates=["x"], rule="budget:0.05", seed=1)
    for _ in range(300):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if item == "x"])
    assert "x" in ranker.leader and "rule='budget:0.05'" in repr(ranker)
    assert Settings(rule="budget:0.05").rule == "budget:0.05"
    results = simulate(
        embedded_instances()[:1], policies=["safe-draw", "kl-ucb-br"], rounds=50, repetitions=1, rule="budget:0.05",
        progress=False,
    )  # fmt: skip
    assert [result.rule for result in results.curves] == ["budget:0.05"] * 2


def test_a_policy_that_keeps_nothing_for_later_items_is_not_served_by_it() -> None:
    with pytest.raises(WrongRuleError, match="has none left for items that come later"):
        Ranker("kl-ucb-br", original=["a"], rule="budget:0.05")
    with pytest.raises(ValueError, match="has none left"):
        Settings(policy="kl-ucb-br", rule="budget:0.05")
