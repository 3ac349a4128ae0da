"""Comparisons of two policies: differences, standard errors, wins and losses, and a test, by hand on planted runs."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from saferank.errors import ArgumentError
from saferank.experiments.comparisons import Comparison, compared
from saferank.experiments.results import Results
from saferank.reporting.frames import runs_frame
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs


def cell(instance: str, policy: str, finals: list[float]) -> tuple[Result, Runs]:
    """A policy on a query whose runs end with these regrets."""
    curve = Result(instance, "pbm", policy, None, 5, 10, len(finals), [10], [0.0], [0.0], [0.0], [0.0], None)
    values = np.zeros((len(finals), 1, len(MEASURES)))
    values[:, 0, 0] = finals
    return curve, Runs(np.array([10]), values)


CELLS = [
    cell("q1", "a", [1.0, 2.0, 3.0]), cell("q1", "b", [11.0, 12.0, 14.0]),
    cell("q2", "a", [5.0, 5.0, 5.0]), cell("q2", "b", [5.0, 5.0, 5.0]),
    cell("q3", "a", [9.0, 8.0, 7.0]), cell("q3", "b", [1.0, 2.0, 3.0]),
    cell("q4", "a", [4.0, 1.0, 9.0]), cell("q4", "b", [5.0, 3.0, 4.0]),
]  # fmt: skip


def beside(cells: list[tuple[Result, Runs]], a: str = "a", b: str = "b", measure: str = "regret") -> Comparison:
    return compared(runs_frame(*zip(*cells, strict=True)), [(a, b)], measure)


def test_every_query_has_its_difference_and_its_error() -> None:
    found = beside(CELLS).by_query
    assert found.select("instance", "mean_a", "outcome").rows() == [
        ("q1", 2.0, "win"), ("q2", 5.0, "tie"), ("q3", 8.0, "loss"), ("q4", pytest.approx(14 / 3), "tie"),
    ]  # fmt: skip
    assert found["difference"][0] == pytest.approx(-31 / 3)
    assert found["stderr"][0] == pytest.approx(np.std([-10, -10, -11], ddof=1) / np.sqrt(3))


def test_all_queries_have_errors_within_and_across() -> None:
    found = beside(CELLS)
    (model,) = found.pairs.to_dicts()
    differences, errors = found.by_query["difference"].to_list(), found.by_query["stderr"].to_list()
    assert model["difference"] == pytest.approx(np.mean(differences))
    assert model["stderr_within"] == pytest.approx(np.sqrt(np.sum(np.square(errors))) / 4)
    assert model["stderr_across"] == pytest.approx(np.std(differences, ddof=1) / 2)
    assert [model[name] for name in ("wins", "ties", "losses", "queries")] == [1, 2, 1, 4]
    assert model["p_value"] == wilcoxon(differences).pvalue
    assert "1 win, 2 ties, 1 loss on 4 queries, p = " in repr(found)


def test_equal_policies_do_not_differ() -> None:
    (model,) = beside(CELLS, "a", "a").pairs.to_dicts()
    assert [model[name] for name in ("difference", "stderr_within", "p_value", "ties")] == [0.0, 0.0, 1.0, 4]


def test_single_runs_and_single_queries_have_no_errors() -> None:
    (model,) = beside([cell("q", "a", [1.0]), cell("q", "b", [2.0])]).pairs.to_dicts()
    assert [model[name] for name in ("stderr_within", "stderr_across", "p_value")] == [None, None, None]


def test_a_single_query_is_tested_over_its_runs() -> None:
    cells = [cell("q", "a", [1.0, 2.0, 1.5, 0.5]), cell("q", "b", [2.0, 2.5, 4.0, 1.0])]
    assert beside(cells).pairs["p_value"].to_list() == [wilcoxon([-1.0, -0.5, -2.5, -0.5]).pvalue]


def test_where_more_is_better_a_higher_value_wins() -> None:
    cells = [
        (cell("q", policy, [])[0], Runs(np.array([10]), np.full((6, 1, 5), value)))
        for policy, value in (("a", 1.2), ("b", 0.9))
    ]
    measures = ("regret", "clicks_relative", "worst_page")
    outcomes = [beside(cells, measure=measure).by_query["outcome"][0] for measure in measures]
    assert outcomes == ["loss", "win", "win"]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ArgumentError, match="measure: found 'luck', expected one of regret, violations"):
        beside(CELLS, measure="luck")
    with pytest.raises(ArgumentError, match="no results of 'c'; there are a, b"):
        Results.of([curve for curve, _ in CELLS], [runs for _, runs in CELLS]).compare("a", "c")


def test_pairs_are_a_frame_for_polars_and_pandas_and_a_table_for_a_paper() -> None:
    found = beside(CELLS)
    assert found.to_polars()["wins"].to_list() == found.to_pandas()["wins"].tolist() == [1]
    assert r"pbm & a & b & " in found.to_latex() and r" & 1 2 1 & " in found.to_latex()
