"""Comparisons of two policies: differences, standard errors, wins and losses, and a test, by hand on planted runs."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from saferank.errors import ArgumentError
from saferank.experiments.comparisons import compared
from saferank.experiments.results import Results
from saferank.simulation.results import Result
from saferank.simulation.runs import Runs


def cell(instance: str, policy: str, finals: list[float]) -> tuple[Result, Runs]:
    """A policy on a query whose runs end with these regrets."""
    curve = Result(instance, "pbm", policy, None, 5, 10, len(finals), [10], [0.0], [0.0], [0.0], [0.0], None)
    values = np.zeros((len(finals), 1, 3))
    values[:, 0, 0] = finals
    return curve, Runs(np.array([10]), values)


CELLS = [
    cell("q1", "a", [1.0, 2.0, 3.0]), cell("q1", "b", [11.0, 12.0, 14.0]),
    cell("q2", "a", [5.0, 5.0, 5.0]), cell("q2", "b", [5.0, 5.0, 5.0]),
    cell("q3", "a", [9.0, 8.0, 7.0]), cell("q3", "b", [1.0, 2.0, 3.0]),
    cell("q4", "a", [4.0, 1.0, 9.0]), cell("q4", "b", [5.0, 3.0, 4.0]),
]  # fmt: skip
CURVES, RUNS = [curve for curve, _ in CELLS], [runs for _, runs in CELLS]


def test_every_query_has_its_difference_and_its_error() -> None:
    found = compared(CURVES, RUNS, "a", "b", "regret").by_query
    assert [(each.instance, each.mean_a, each.outcome) for each in found] == [
        ("q1", 2.0, "win"), ("q2", 5.0, "tie"), ("q3", 8.0, "loss"), ("q4", pytest.approx(14 / 3), "tie"),
    ]  # fmt: skip
    assert found[0].difference == pytest.approx(-31 / 3)
    assert found[0].stderr == pytest.approx(np.std([-10, -10, -11], ddof=1) / np.sqrt(3))


def test_all_queries_have_errors_within_and_across() -> None:
    found = compared(CURVES, RUNS, "a", "b", "regret")
    (model,) = found.by_model
    differences = [each.difference for each in found.by_query]
    errors = [each.stderr or 0.0 for each in found.by_query]
    assert model.difference == pytest.approx(np.mean(differences))
    assert model.stderr_within == pytest.approx(np.sqrt(np.sum(np.square(errors))) / 4)
    assert model.stderr_across == pytest.approx(np.std(differences, ddof=1) / 2)
    assert (model.wins, model.ties, model.losses, model.queries) == (1, 2, 1, 4)
    assert model.p_value == wilcoxon(differences).pvalue
    assert "1 win, 2 ties, 1 loss on 4 queries, p = " in repr(found)


def test_equal_policies_do_not_differ() -> None:
    (model,) = compared(CURVES, RUNS, "a", "a", "regret").by_model
    assert (model.difference, model.stderr_within, model.p_value, model.ties) == (0.0, 0.0, 1.0, 4)


def test_single_runs_and_single_queries_have_no_errors() -> None:
    (a, runs_a), (b, runs_b) = cell("q", "a", [1.0]), cell("q", "b", [2.0])
    (model,) = compared([a, b], [runs_a, runs_b], "a", "b", "regret").by_model
    assert (model.stderr_within, model.stderr_across, model.p_value) == (None, None, None)


def test_a_single_query_is_tested_over_its_runs() -> None:
    (a, runs_a), (b, runs_b) = cell("q", "a", [1.0, 2.0, 1.5, 0.5]), cell("q", "b", [2.0, 2.5, 4.0, 1.0])
    (model,) = compared([a, b], [runs_a, runs_b], "a", "b", "regret").by_model
    assert model.p_value == wilcoxon([-1.0, -0.5, -2.5, -0.5]).pvalue


def test_where_more_is_better_a_higher_value_wins() -> None:
    cells = [cell("q", "a", []), cell("q", "b", [])]
    runs = [Runs(np.array([10]), np.full((6, 1, 5), value)) for value in (1.2, 0.9)]
    outcomes = {
        measure: compared([curve for curve, _ in cells], runs, "a", "b", measure).by_query[0].outcome
        for measure in ("regret", "clicks_relative", "worst_page")
    }
    assert outcomes == {"regret": "loss", "clicks_relative": "win", "worst_page": "win"}


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ArgumentError, match="measure: found 'luck', expected one of regret, violations"):
        compared(CURVES, RUNS, "a", "b", "luck")
    with pytest.raises(ArgumentError, match="no results of 'c'; there are a, b"):
        Results(CURVES, RUNS).compare("a", "c")


def test_rows_by_query_are_a_frame() -> None:
    frame = compared(CURVES, RUNS, "a", "b", "regret").to_polars()
    assert frame["outcome"].to_list() == ["win", "tie", "loss", "tie"]
