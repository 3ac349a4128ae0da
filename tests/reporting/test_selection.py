"""A report is about one combination of a sweep: which one is chosen, or the reader is told how to choose."""

from dataclasses import replace
from pathlib import Path

import pytest
from polars import col

from saferank.errors import ArgumentError
from saferank.reporting.frames import ends_of, means_of, results_of, runs_frame, write_runs
from saferank.reporting.reading import Selection, read_run
from saferank.reporting.report import report
from saferank.simulation.results import Result
from tests.reporting.planted import curve, runs, write

KL = curve("kl-ucb-br", rule="paper:1e-5")
ORIGINAL = curve("original")
SWEEP = [
    replace(each, positions=k, rule=None if each is ORIGINAL else rule)
    for k in (3, 5)
    for rule in ("paper:1e-5", "anytime:1e-5")
    for each in ((KL, ORIGINAL) if rule == "paper:1e-5" else (KL,))
]


def _of(selection: Selection, results: list[Result]) -> list[Result]:
    return results_of(selection.of(means_of(results)))


def _found(results: list[Result]) -> list[tuple[str, str | None, int]]:
    return [(result.policy, result.rule, result.positions) for result in results]


def test_one_combination_with_the_policies_that_take_no_rule() -> None:
    chosen = _of(Selection(rule="anytime:1e-5", positions=3), SWEEP)
    assert sorted(_found(chosen)) == [("kl-ucb-br", "anytime:1e-5", 3), ("original", None, 3)]


def test_a_rule_may_be_written_in_another_way() -> None:
    assert _found(_of(Selection("paper:0.00001", 5), SWEEP)) == _found(_of(Selection("paper:1e-5", 5), SWEEP))


def test_an_ambiguous_choice_names_everything_that_is_to_be_chosen() -> None:
    with pytest.raises(ArgumentError, match=r"^rule: .* sweep over rule \(paper:1e-5, anytime:1e-5\) and positions"):
        _of(Selection(), SWEEP)
    with pytest.raises(ArgumentError, match=r"^positions: the results are a sweep over positions \(3, 5\)"):
        _of(Selection(rule="paper:1e-5"), SWEEP)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(rule="paper:0.1"), "rule: no results with rule paper:0.1; there are paper:1e-5, anytime:1e-5"),
        (Selection(positions=4), "positions: no results with positions 4; there are 3, 5"),
        (Selection(lifetime=10), "lifetime: no results with lifetime 10; there are none"),
    ],
)
def test_a_combination_that_is_not_there(selection: Selection, message: str) -> None:
    with pytest.raises(ArgumentError) as problem:
        _of(selection, SWEEP)
    assert str(problem.value) == message


def test_lifetimes() -> None:
    results = [replace(KL, lifetime=lifetime) for lifetime in (None, 1000)] + [ORIGINAL]
    assert [r.lifetime for r in _of(Selection(lifetime="none"), results)] == [None, None]
    assert [r.lifetime for r in _of(Selection(lifetime="1000"), results)] == [1000, None]


def test_policies_with_rules_of_their_own_are_no_sweep() -> None:
    results = [KL, curve("safe-draw", rule="anytime:1/T")]
    assert _of(Selection(), results) == results


def test_the_single_runs_are_those_of_the_combination(tmp_path: Path) -> None:
    results = [replace(each, regret_mean=[float(place)] * 5) for place, each in enumerate(SWEEP)]
    path = write(tmp_path / "results.json", results)
    write_runs(tmp_path / "runs.parquet", runs_frame(results, [runs(result) for result in results]))
    for positions in (3, 5):
        run = read_run(path, selection=Selection("paper:1e-5", positions))
        found = run.runs()
        assert not isinstance(found, str)
        means = dict(ends_of(found).group_by("policy").agg(col("regret").mean()).rows())
        assert means == pytest.approx(dict(ends_of(run.means).select("policy", "regret_mean").rows()))


def test_a_report_of_a_sweep(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", SWEEP)
    with pytest.raises(ArgumentError, match="choose one of each"):
        report(path, tmp_path / "page")
    made = report(path, tmp_path / "page", rule="paper:1e-5", positions=3)
    assert "3 of 10 items shown" in made.page.read_text()


def test_something_that_is_no_results(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="results: found dict, expected Results, a results file or its folder"):
        report({}, tmp_path)  # type: ignore[arg-type]
