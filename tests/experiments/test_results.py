"""Results as tables, figures and files."""

import sys
from pathlib import Path

import numpy as np
import polars
import pytest

from saferank import Results, embedded_instances, report, simulate
from saferank.errors import ArgumentError, OutputError
from saferank.simulation.results import ResultsError


@pytest.fixture(scope="module")
def results() -> Results:
    """Two queries, two click models, two policies, three runs."""
    instances = embedded_instances(2, models=("pbm", "cm"))
    return simulate(instances, ["bubble-rank", "original"], rounds=2000, repetitions=3, seed=3, jobs=1, progress=False)


def test_the_long_form_has_a_row_for_every_run_and_checkpoint(results: Results) -> None:
    frame = results.to_polars()
    assert frame.columns == [
        "instance", "model", "policy", "rule", "world", "positions", "lifetime", "repetition", "round", "regret",
        "violations", "wrong_certificates", "clicks_relative", "worst_page",
    ]  # fmt: skip
    keys = ["instance", "model", "policy", "repetition", "round"]
    assert len(frame) == len(frame.unique(keys)) == 2 * 2 * 2 * 3 * len(frame["round"].unique())
    assert 20 <= len(frame["round"].unique()) <= 30
    assert frame.filter(policy="original")["rule"].null_count() == len(frame) // 2
    assert frame.filter(policy="original")["wrong_certificates"].null_count() == len(frame) // 2


def test_the_means_of_the_runs_are_the_curves(results: Results) -> None:
    frame, means = results.to_polars(), results.to_polars(mean=True)
    curve = results.curves[0]
    of_curve = {"instance": curve.instance, "model": curve.model, "policy": curve.policy}
    last = frame.filter(**of_curve, round=2000)["regret"]
    assert last.mean() == pytest.approx(curve.regret_mean[-1], rel=1e-12)
    assert last.std() / np.sqrt(3) == pytest.approx(curve.regret_stderr[-1], rel=1e-12)
    assert means.filter(**of_curve)["regret_mean"].to_list() == curve.regret_mean
    assert len(means) == sum(len(curve.rounds) for curve in results.curves)
    runs, end = frame.filter(**of_curve, round=2000), means.filter(**of_curve, round=2000)
    assert runs["clicks_relative"].mean() == pytest.approx(end["clicks_relative_mean"][0])
    assert runs["worst_page"].min() == end["worst_page_min"][0]


def test_saving_and_loading_changes_nothing(results: Results, tmp_path: Path) -> None:
    files = results.save(tmp_path / "new")
    assert [file.name for file in files] == ["results.json", "runs.parquet"]
    for source in (tmp_path / "new", files[0]):
        loaded = Results.load(source)
        assert loaded.curves == results.curves
        assert loaded.provenance == results.provenance
        assert loaded.to_polars().equals(results.to_polars())


def test_a_folder_with_results_is_not_overwritten_unless_that_is_asked(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = Results.of(results.curves[:1])
    with pytest.raises(
        ArgumentError, match=r"folder: .* holds results\.json and runs\.parquet; save them with overwrite"
    ):
        other.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other.save(tmp_path, overwrite=True)
    loaded = Results.load(tmp_path)
    assert loaded.curves == other.curves
    assert loaded.runs is None


@pytest.mark.parametrize("mean", [False, True])
def test_pandas_has_the_rows_of_polars(results: Results, mean: bool) -> None:
    frame, rows = results.to_pandas(mean=mean), results.to_polars(mean=mean)
    assert list(frame.columns) == rows.columns
    assert len(frame) == len(rows) > 0
    for name in rows.columns:
        found = [None if value != value or value is None else value for value in frame[name].tolist()]  # noqa: PLR0124
        assert found == rows[name].to_list()


def test_files_without_runs_are_read_and_say_what_is_missing(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path)
    (tmp_path / "runs.parquet").unlink()
    loaded = Results.load(tmp_path)
    assert loaded.to_polars(mean=True).equals(results.to_polars(mean=True))
    with pytest.raises(ResultsError, match=r"hold means only: there was no runs\.parquet beside results\.json"):
        loaded.to_polars()


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_runs_of_other_results_are_refused(results: Results, tmp_path: Path, damage: str) -> None:
    results.save(tmp_path)
    if damage == "cut":
        (tmp_path / "runs.parquet").write_bytes(b"PAR1")
    else:
        alone = {"instance": results.instances[0], "model": "pbm", "policy": "original"}
        other = Results(results.means.filter(**alone), results.to_polars().filter(**alone))
        other.save(tmp_path / "other")
        (tmp_path / "other" / "runs.parquet").rename(tmp_path / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs\.parquet: does not hold the runs of the results beside it"):
        Results.load(tmp_path)


def test_a_missing_library_is_named_with_its_extra(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas: pip install 'saferank\[pandas\]'"):
        results.to_pandas()


def test_the_figure_is_drawn_and_saved(results: Results, tmp_path: Path) -> None:
    plot = results.plot()
    assert plot._repr_png_().startswith(b"\x89PNG")
    assert plot.save(tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "regret and violations under pbm, cm" in repr(plot)
    with pytest.raises(ArgumentError, match=r"expected a name that ends in \.png, \.svg, \.pdf"):
        plot.save(tmp_path / "figure.doc")


def test_tables_write_numbers_alike(results: Results) -> None:
    text, html, latex = repr(results), results._repr_html_(), results.to_latex()
    assert text.startswith("Results: 2 queries, 2 click models, 2 policies, 3 repetitions of 2,000 rounds\n")
    assert len(text.splitlines()) == 2 + 4
    assert html.count("<tr>") == 1 + 4
    assert latex.count(r"\\") == 2 + 2
    assert "e+" not in text + html + latex
    assert "BubbleRank" in latex and r"\toprule" in latex


def test_a_report_is_made_of_results_that_are_in_no_file(
    results: Results, tmp_path: Path, blank_figure_files: None
) -> None:
    made = report(results, tmp_path)
    assert made.page == tmp_path / "report.html"
    assert (tmp_path / "results.json").is_file()
    assert "claims of the paper" in repr(made)
    with pytest.raises(ArgumentError, match="out: is needed"):
        report(results)


def test_a_folder_that_cannot_be_written_is_an_output_error(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="cannot be written"):
        results.save(tmp_path / "file" / "below")


def test_results_can_be_joined_once(results: Results) -> None:
    parts = [Results(results.means.filter(model=m), results.to_polars().filter(model=m)) for m in results.models]
    both = Results.concat(parts)
    order = ["model", "instance", "policy", "repetition", "round"]
    assert both.to_polars().sort(order).equals(results.to_polars().sort(order))
    assert both.labels == results.labels and repr(both.compare_all()) == repr(results.compare_all())
    assert Results.concat([parts[0], Results(parts[1].means)]).runs is None
    with pytest.raises(ArgumentError, match=r"parts: .* on instance '.*' \(pbm\) is there twice; keep one"):
        Results.concat([results, parts[0]])
    with pytest.raises(ArgumentError, match="parts: found none"):
        Results.concat([])


def test_whatever_reads_arrow_takes_results(results: Results) -> None:
    assert polars.DataFrame(results).equals(results.to_polars())
    assert polars.DataFrame(Results(results.means)).equals(results.to_polars(mean=True))


def test_figures_and_tables_of_a_part(results: Results) -> None:
    plot = results.plot(
        ["bubble-rank"], ["cm"], axes="linear", columns=1, first_round=10, names={"bubble-rank": "Ours"}
    )
    assert [panel.get_title() for panel in plot.figure.axes] == ["CM", ""]
    assert "Ours" in [text.get_text() for text in plot.figure.axes[0].texts]
    latex = results.to_latex(["original"], ["pbm"], names={"original": "Production"})
    assert "Production & " in latex and "Bubble" not in latex and "CM" not in latex
    assert latex.startswith(
        "% after 2,000 rounds, mean over 2 queries, 3 runs each, seed 3; ± one standard error within queries. Bold:"
    )
    with pytest.raises(ArgumentError, match="models: unknown click model 'pmb'; known ones: pbm, cm; did you mean"):
        results.plot(models=["pmb"])
    with pytest.raises(ArgumentError, match="axes: found 'round', expected log or linear"):
        results.plot(axes="round")
