"""The paper's two characteristic queries, on the embedded set: an optimal original, and one with none of the best five.

Each comparison asks for a difference of at least 4.5 standard errors, with fixed seeds: under normality an ordering
that does not hold would pass with probability below 1e-5.
"""

import math
from functools import cache

import pytest

from saferank.instances.embedded import OPTIMAL, WORST, embedded_instances
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Plan, cells_of
from saferank.simulation.results import Result

POLICIES = ("kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")


@cache
def results() -> dict[tuple[str, str, str], Result]:
    plan = Plan(policies=POLICIES, n_positions=5, rounds=100_000, repetitions=80, seed=5, checkpoints=(100_000,))
    cells = cells_of(embedded_instances(queries=2, models=("pbm", "cm")), plan)
    return {(result.instance, result.model, result.policy): result for result in simulate(cells, jobs=2)}


def ends_below(query: str, model: str, better: str, worse: str) -> bool:
    low, high = results()[query, model, better], results()[query, model, worse]
    errors = [float(result.regret_stderr[-1] or 0.0) for result in (low, high)]
    return high.regret_mean[-1] - low.regret_mean[-1] > 4.5 * math.hypot(*errors)


@pytest.mark.parametrize("model", ["pbm", "cm"])
def test_an_optimal_original_favours_the_safe_algorithms(model: str) -> None:
    assert abs(results()[OPTIMAL, model, "original"].regret_mean[-1]) < 1e-6
    for safe in ("kl-ucb-br", "bubble-rank"):
        assert ends_below(OPTIMAL, model, safe, "top-rank")
    assert ends_below(OPTIMAL, model, "kl-ucb-br", "uni-rank")  # UniRank's regret has a heavy tail: 80 repetitions
    assert ends_below(OPTIMAL, model, "kl-ucb-br", "bubble-rank")


@pytest.mark.parametrize("model", ["pbm", "cm"])
def test_an_original_with_none_of_the_best_favours_the_unsafe_ones(model: str) -> None:
    for unsafe in ("top-rank", "uni-rank"):
        assert ends_below(WORST, model, unsafe, "kl-ucb-br")
    assert ends_below(WORST, model, "kl-ucb-br", "bubble-rank")
    assert ends_below(WORST, model, "bubble-rank", "original")


def test_safe_policies_violate_on_neither() -> None:
    assert [key for key, result in results().items() if result.violations_mean[-1] and key[2] in POLICIES[:2]] == []
