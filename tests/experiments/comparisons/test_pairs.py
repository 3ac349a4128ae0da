"""All pairs with Holm's correction, tails and the scatter by query, by hand on planted runs."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from saferank.errors import ArgumentError
from saferank.experiments.comparisons import holm
from saferank.experiments.results import Results
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs

QUERIES = [f"q{number}" for number in range(12)]
ENDS = {"good": 10.0, "same": 10.0, "bad": 14.0}


def planted(model: str, policy: str, instance: str) -> tuple[Result, Runs]:
    """Ten runs of a policy on a query; in every repetition the users are the same for all policies."""
    users = np.random.default_rng(QUERIES.index(instance)).normal(0, 5, 10)
    own = np.random.default_rng([len(policy), QUERIES.index(instance)]).normal(0, 0.1, 10)
    values = np.zeros((10, 1, len(MEASURES)))
    values[:, 0, 0] = ENDS[policy] + users + own
    values[:, 0, 3] = 1.0 - values[:, 0, 0] / 100
    mean = [float(values[:, 0, 0].mean())]
    curve = Result(instance, model, policy, None, 5, 10, 10, [10], mean, [0.1], [0.0], [0.0], None)
    return curve, Runs(np.array([10]), values)


CELLS = [planted(model, policy, query) for model in ("pbm", "cm") for policy in ENDS for query in QUERIES]
RESULTS = Results.of([curve for curve, _ in CELLS], [runs for _, runs in CELLS])


def test_holm_is_the_step_down_procedure() -> None:
    """Against the definition: p is rejected at alpha when all smaller ones are rejected at alpha / (m - rank)."""
    p_values = np.random.default_rng(1).uniform(0, 0.2, 7).tolist()
    adjusted = holm(p_values)
    ordered = sorted(p_values)
    for alpha in np.linspace(0.001, 1, 200):
        rejected = list(itertools.takewhile(lambda pair: pair[1] <= alpha / (7 - pair[0]), enumerate(ordered)))  # noqa: B023
        assert sum(p <= alpha for p in adjusted) == len(rejected)
    assert holm([]) == []
    assert holm([0.4, 0.9]) == [0.8, 0.9]


def test_every_pair_is_tested_under_every_model_and_adjusted_together() -> None:
    found = RESULTS.compare_all()
    named = found.pairs.select("a", "b").unique(maintain_order=True).rows()
    assert named == [("good", "same"), ("good", "bad"), ("same", "bad")]
    rows = found.pairs.to_dicts()
    assert len(rows) == 6
    assert [row["p_holm"] for row in rows] == holm([row["p_value"] for row in rows])
    for row in rows:
        differs = "bad" in (row["a"], row["b"])
        assert (row["p_holm"] < 0.05) == differs
        assert (row["wins"] == 12) == differs
    assert found.to_polars()["p_holm"].to_list() == [row["p_holm"] for row in rows]


def test_pairing_removes_what_the_users_share() -> None:
    """The users have a standard deviation of 5, the policies of 0.1 each."""
    found = RESULTS.compare("good", "bad").pairs.row(0, named=True)
    assert found["stderr_within"] < 0.1 * np.sqrt(2 / (10 * 12)) * 2
    assert found["difference"] == pytest.approx(-4, abs=0.1)
    assert found["p_holm"] == pytest.approx(2 * found["p_value"])  # two click models


def test_tails_are_quantiles_of_runs_and_name_the_worst() -> None:
    tail = RESULTS.compare_all().tails.filter(model="cm", policy="bad").row(0, named=True)
    values = np.array([runs.finals[:, 0] for curve, runs in CELLS if (curve.model, curve.policy) == ("cm", "bad")])
    ordered = np.sort(values.ravel())
    assert tail["runs"] == 120
    assert list(tail["quantiles"].values()) == pytest.approx([ordered[59], ordered[107], ordered[118], ordered[119]])
    assert tail["worst"] == ordered[-1] == values[QUERIES.index(tail["worst_instance"]), tail["worst_repetition"]]


def test_where_more_is_better_tails_are_counted_from_the_other_end() -> None:
    tail = RESULTS.compare("good", "bad", "clicks_relative").tails.row(0, named=True)
    values = np.sort(np.concatenate([runs.finals[:, 3] for _, runs in CELLS[:12]]))
    assert (tail["worst"], tail["quantiles"]["0.9"]) == pytest.approx((values[0], values[120 - 108]))


def test_the_json_is_complete_and_strict() -> None:
    data = json.loads(json.dumps(RESULTS.compare_all(["bad", "good"]).as_json(), allow_nan=False))
    assert [len(data[key]) for key in ("pairs", "by_query", "tails")] == [2, 24, 4]
    assert data["tails"][0]["quantiles"].keys() == {"0.5", "0.9", "0.99", "0.999"}
    assert {entry["outcome"] for entry in data["by_query"]} == {"loss"}


def test_the_scatter_has_a_panel_for_every_pair_and_model_and_a_point_for_every_query(tmp_path: Path) -> None:
    plot = RESULTS.compare_all(["good", "bad"]).plot()
    panels = plot.figure.axes
    assert [panel.get_title() for panel in panels] == [
        "PBM: 12 wins, 0 ties, 0 losses",
        "CM: 12 wins, 0 ties, 0 losses",
    ]
    points = [np.size(line.get_xdata()) for line in panels[0].get_lines() if line.get_marker() == "o"]
    assert sum(points) == 12
    assert plot.save(tmp_path / "by-query.svg").stat().st_size > 1000
    with pytest.raises(ArgumentError, match=r"expected a name that ends in \.png"):
        plot.save(tmp_path / "by-query.doc")


def test_many_policies_have_a_triangle_of_panels_for_each_model() -> None:
    six = [
        (Result(**{**curve.__dict__, "policy": f"{curve.policy} {n}"}), runs) for n in (1, 2) for curve, runs in CELLS
    ]
    figure = Results.of([curve for curve, _ in six], [runs for _, runs in six]).compare_all().plot().figure
    seen = [panel for panel in figure.axes if panel.get_visible()]
    assert len(figure.axes) == 2 * 5 * 5 and len(seen) == 2 * 15
    assert seen[0].get_title() == "PBM: + 0  = 12  - 0" and seen[0].get_xlabel() == "same 1"
    width, height = figure.get_size_inches()
    assert width < 15 and height < 30


def test_too_few_policies_are_refused() -> None:
    with pytest.raises(ArgumentError, match="policies: found good, expected two or more"):
        RESULTS.compare_all(["good"])
    with pytest.raises(ArgumentError, match="no results of 'best'; there are good, same, bad"):
        RESULTS.compare_all(["good", "best"])
