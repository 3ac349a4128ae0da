"""Query by query: who is worse than OriginalRank where, and how bad the worst runs are."""

import math
from pathlib import Path

import pytest
from polars import DataFrame

from saferank.reporting.figures.by_query import by_query_figure
from saferank.reporting.frames import means_of, run_values, runs_frame
from saferank.reporting.numbers import Measured
from saferank.reporting.reading import Run
from saferank.reporting.spread import BETTER, EQUAL, WORSE, finding, share_of, spreads
from saferank.simulation.results import ResultsError
from tests.reporting.planted import curve, reproduction, runs, true_results, write


@pytest.mark.parametrize(
    ("own", "base", "outcome", "share"),
    [
        (50.0, 100.0, BETTER, 0.5),
        (150.0, 100.0, WORSE, 1.5),
        (102.05, 100.0, EQUAL, 1.0205),  # 2.05 standard errors of twenty runs; Student's t asks for 2.09
        (102.1, 100.0, WORSE, 1.021),
        (5.0, 0.0, WORSE, math.inf),
        (0.0, 0.0, EQUAL, 1.0),
    ],
)
def test_a_policy_beside_original_on_one_query(own: float, base: float, outcome: str, share: float) -> None:
    found = share_of("q", Measured(own, 1.0, 19), Measured(base, 0.0, 19))
    assert found.outcome == outcome
    assert found.share == pytest.approx(share)


def test_means_do_not_hide_the_queries_that_are_worse() -> None:
    results = [curve("original", "cm", f"q{n}", regret=100.0) for n in range(4)]
    results += [curve("kl-ucb-br", "cm", f"q{n}", regret=end) for n, end in enumerate((10.0, 20.0, 130.0, 30.0))]
    (spread,) = spreads(means_of(results))["cm"]
    assert spread.counts == "3 / 0 / 1"
    assert [each.instance for each in spread.shares] == ["q0", "q1", "q3", "q2"]
    assert (spread.median, spread.largest, spread.tail) == ("0.25", "1.30", "-")
    assert finding({"cm": [spread]}, ["kl-ucb-br"]) == [
        "KL-UCB-BR has more regret than OriginalRank on 1 of 4 under CM."
    ]


def test_the_worst_runs_are_those_of_the_runs() -> None:
    results = [r for r in true_results(("cm",)).values() if r.policy in ("kl-ucb-br", "original")]
    (spread,) = spreads(means_of(results), runs_frame(results, [runs(r) for r in results]))["cm"]
    assert spread.worst == pytest.approx(1.5 * 300) and spread.worst_on == "worst"
    assert spread.high == spread.worst  # a value of a run: of sixty runs 99 % is all of them
    assert spread.largest == "0.40"  # the optimal query, where OriginalRank has no regret, is left out of it


def test_without_original_there_is_nothing_to_compare_with() -> None:
    assert spreads(means_of([curve("kl-ucb-br")])) == {}


def test_the_figure_has_a_lane_for_every_policy_and_a_triangle_for_what_lies_beyond() -> None:
    found = spreads(means_of(list(true_results().values())))
    figure = by_query_figure(found)
    assert [panel.get_title() for panel in figure.axes] == ["PBM", "CM"]
    for panel in figure.axes:
        assert [label.get_text() for label in panel.get_yticklabels()][:2] == ["KL-UCB-BR", "BubbleRank"]
        beyond = [line for line in panel.lines if line.get_marker() == ">"]
        assert [len(line.get_xdata()) for line in beyond] == [1, 1, 1, 1]  # type: ignore[arg-type]
        assert "2 / 0 / 1" in [text.get_text() for text in panel.texts]


def test_runs_are_read_or_the_reason_is_told(tmp_path: Path) -> None:
    path = reproduction(tmp_path)
    results = list(true_results().values())
    read = Run(path, means_of(results), {}).runs()
    assert isinstance(read, DataFrame) and read.equals(runs_frame(results, [runs(result) for result in results]))
    one = read.filter(instance="worst", model="cm", policy="kl-ucb-br")
    assert (run_values(one, 20).values == runs(true_results()["worst", "cm", "kl-ucb-br"]).values).all()
    with pytest.raises(ResultsError, match=r"runs\.parquet: does not hold the runs of the results beside it"):
        Run(path, means_of([curve("kl-ucb-br", instance="another")]), {}).runs()
    alone = Run(write(tmp_path / "new.json", results).rename(tmp_path.parent / "results.json"), means_of(results), {})
    assert "runs.parquet is not beside results.json" in str(alone.runs())
