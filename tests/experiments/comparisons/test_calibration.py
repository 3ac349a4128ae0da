"""A/A: the same policy under two names differs on 5 % of the queries, whatever the number of repetitions."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from saferank import embedded_instances, simulate
from saferank.experiments.comparisons import compared
from saferank.policies import POLICIES
from saferank.reporting.claims import ALL, CHANCE_OF_VERDICT, UNDECIDED, Place, ends_below
from saferank.reporting.frames import KEYS, means_of, run_values, runs_frame
from saferank.reporting.numbers import Measured
from saferank.reporting.pooling import pooled
from saferank.reporting.spread import EQUAL, share_of
from saferank.simulation.results import Result, mean_and_stderr
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

TRIALS = 1000
"""Queries of each test."""
SIGMA = np.sqrt(0.05 * 0.95 / TRIALS)
"""The standard deviation of a share of them that is truly 5 %."""
REPETITIONS = (2, 3, 5, 10, 30)


def planted(policy: str, query: int, finals: Floats) -> tuple[Result, Runs]:
    values = np.zeros((len(finals), 1, len(MEASURES)))
    values[:, 0, 0] = finals
    mean, stderr = mean_and_stderr(values[:, :, 0])
    zeros = [0.0]
    curve = Result(
        f"q{query}", "pbm", policy, None, 5, 10, len(finals), [10], mean, stderr, zeros, zeros, None
    )  # fmt: skip
    return curve, Runs(np.array([10]), values)


def a_and_a(
    repetitions: int, draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
) -> list[tuple[Result, Runs]]:
    """Two policies that do not differ: shared users, own coins."""
    rng = np.random.default_rng(repetitions)
    users = rng.normal(0, 3, (TRIALS, repetitions))
    ends = {policy: 100 + users + draw(rng, (TRIALS, repetitions)) for policy in ("a", "b")}
    return [planted(policy, query, of[query]) for policy, of in ends.items() for query in range(TRIALS)]


def share_of_verdicts(cells: list[tuple[Result, Runs]], a: str = "a", b: str = "b") -> float:
    found = compared(runs_frame(*zip(*cells, strict=True)), [(a, b)], "regret")
    pairs = found.pairs
    assert (pairs["wins"] + pairs["ties"] + pairs["losses"]).sum() == len(found.by_query)
    return float((pairs["wins"] + pairs["losses"]).sum()) / len(found.by_query)


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_one_query_in_twenty_is_won_or_lost_by_chance(repetitions: int) -> None:
    """Within four standard deviations. With 1.96 standard errors it was 30 % for 2 and 12 % for 5 repetitions."""
    normal = share_of_verdicts(a_and_a(repetitions, lambda rng, shape: rng.normal(0, 1, shape)))
    assert abs(normal - 0.05) < 4 * SIGMA
    heavy = share_of_verdicts(a_and_a(repetitions, lambda rng, shape: rng.pareto(2.0, shape)))
    assert heavy < 0.05 + 4 * SIGMA


@pytest.mark.parametrize("repetitions", [2, 3])
def test_equal_differences_of_counts_are_no_proof(repetitions: int) -> None:
    """Both runs may differ by the same whole number: without noise in sight chance would win 12 % of the queries."""
    rng = np.random.default_rng(1)
    cells = [planted(p, q, rng.integers(0, 2, repetitions).astype(float)) for p in ("a", "b") for q in range(TRIALS)]
    assert share_of_verdicts(cells) == 0


def test_a_single_repetition_gives_no_verdict() -> None:
    cells = a_and_a(1, lambda rng, shape: rng.normal(0, 1, shape))[:: TRIALS // 2]
    found = compared(runs_frame(*zip(*cells, strict=True)), [("a", "b")], "regret")
    assert found.by_query["outcome"].to_list() == [None, None]
    assert "no verdict from single runs on 2 queries" in repr(found)
    assert share_of("q", Measured(3.0, None, 0), Measured(9.0, None, 0)).outcome is None


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_the_report_judges_single_queries_by_the_same_measure(repetitions: int) -> None:
    """Not paired there: the users add to the noise of both."""
    rng = np.random.default_rng(repetitions)
    draws = rng.normal(0, 1, (2 * TRIALS, repetitions))
    errors = draws.std(axis=1, ddof=1) / np.sqrt(repetitions)
    ends = [Measured(*each, repetitions - 1) for each in zip(draws.mean(axis=1), errors, strict=True)]
    worse = [share_of("q", one, other).outcome != EQUAL for one, other in zip(ends[::2], ends[1::2], strict=True)]
    assert 0.01 < np.mean(worse) < 0.05 + 4 * SIGMA  # Welch's degrees of freedom are on the safe side for two runs


@pytest.mark.parametrize(("repetitions", "queries"), [(2, 1), (5, 1), (10, 1), (2, 5)])
def test_a_claim_about_equal_means_is_left_undecided(repetitions: int, queries: int) -> None:
    rng = np.random.default_rng([repetitions, queries])
    decided = 0
    for _ in range(TRIALS):
        ends = [[planted(p, q, rng.normal(0, 1, repetitions))[0] for q in range(queries)] for p in ("a", "b")]
        one, other = (Place(ALL, pooled(means_of(curves))).curves[0] for curves in ends)
        decided += ends_below(one.regret.end, other.regret.end).verdict != UNDECIDED
    sigma = np.sqrt(CHANCE_OF_VERDICT / TRIALS)
    assert decided / TRIALS < CHANCE_OF_VERDICT + 4 * sigma  # three standard errors of two runs: 10 %


@pytest.mark.check  # compiles BubbleRank under two names and plays 12 million rounds
def test_the_simulator_gives_the_same_policy_under_two_names_five_percent() -> None:
    known = POLICIES["bubble-rank"]
    twin = replace(known, name="twin")
    instances = embedded_instances(10, models=("pbm", "cm"))
    results = simulate(
        instances, [known, twin], rounds=1000, repetitions=300, seed=3, checkpoints=[1000], progress=False
    )
    assert results.runs is not None
    played = [run_values(part, 300) for part in results.runs.partition_by(KEYS, maintain_order=True)]
    for repetitions in REPETITIONS:
        cells = [
            (curve, Runs(runs.rounds, runs.values[first : first + repetitions]))
            for first in range(0, 300, repetitions)
            for curve, runs in (
                (Result(**{**curve.__dict__, "instance": f"{curve.instance} {first}"}), runs)
                for curve, runs in zip(results.curves, played, strict=True)
            )
        ]
        share = share_of_verdicts(cells, "bubble-rank", "twin")
        assert share < 0.05 + 4 * np.sqrt(0.05 * 0.95 / (len(cells) / 2)), (repetitions, share)
