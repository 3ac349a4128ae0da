"""When the model is wrong: found where it is, told in sentences that the lines carry, drawn with rings."""

from pathlib import Path

import pytest

from saferank.policies import POLICIES
from saferank.reporting.figures.panels import FigureOptions
from saferank.reporting.figures.study import model_study_figure
from saferank.reporting.frames import means_of
from saferank.reporting.reading import Run, read_run
from saferank.reporting.report import report
from saferank.reporting.study import ModelStudy, findings, model_study_of, role_of
from saferank.simulation.results import Result
from saferank.table import MarkedCell
from tests.reporting.planted import curve, true_results, write

ENDS = {
    ("pbm-ucb", "pbm"): (50.0, 3.0), ("pbm-ucb", "cm"): (90.0, 40.0),
    ("top-rank", "pbm"): (70.0, 9.0), ("top-rank", "cm"): (60.0, 9.0),
    ("kl-ucb-br", "pbm"): (200.0, 0.0), ("kl-ucb-br", "cm"): (150.0, 0.0),
}  # fmt: skip


def study_results() -> list[Result]:
    return [
        curve(policy, model, query, regret=regret, violations=violations, rule="paper:1/T")
        for (policy, model), (regret, violations) in ENDS.items()
        for query in ("a", "b")
    ]


def the_study(folder: Path) -> ModelStudy:
    study = model_study_of(read_run(write(folder / "results.json", study_results())), None)
    assert isinstance(study, ModelStudy)
    return study


def test_it_is_told_in_sentences_that_the_lines_carry(tmp_path: Path) -> None:
    assert findings(the_study(tmp_path)) == [
        "Policies made for a click model violated safety in 2 of 2 cells of the table, most in that of PBM-UCB under "
        "CM: 40 pages a run.",
        "Safe policies violated safety in none of 2 cells of the table.",
        "PBM-UCB was made for PBM; away from it, its regret exceeds that of the best agnostic policy under CM.",
    ]


def test_the_table_has_both_errors_and_marks_the_own_model(tmp_path: Path) -> None:
    rows = the_study(tmp_path).table("regret").rows
    assert rows[0] == ["PBM-UCB", MarkedCell("50 (0.071, 0)", "best"), MarkedCell("90 (0.071, 0)")]


def test_the_file_that_is_named_comes_before_the_one_beside(tmp_path: Path) -> None:
    main = Run(tmp_path / "results.json", means_of(list(true_results().values())), {})
    assert "--model-study" in str(model_study_of(main, None))
    beside = write(tmp_path / "model-study.json", study_results())
    other = write(tmp_path / "other.json", study_results())
    found, named = model_study_of(main, None), model_study_of(main, other)
    assert isinstance(found, ModelStudy) and found.path == beside
    assert isinstance(named, ModelStudy) and named.path == other


def test_roles_are_what_policies_are_registered_as() -> None:
    """Also those of variants, and of plug-ins that are not loaded."""
    roles = {name: role_of(name, "cm") for name in POLICIES}
    assert {name for name, role in roles.items() if role == "safe"} == {"kl-ucb-br", "bubble-rank", "safe-draw"}
    assert roles["cascade-kl-ucb"] == "matching" and roles["pbm-ts"] == roles["pbm-ucb"] == "foreign"
    assert roles["top-rank"] == role_of("somebody-elses", "cm") == "agnostic"
    assert role_of("bubble-rank:shown-only", "cm") == "safe"


@pytest.mark.parametrize("columns", [None, 1, 2])
def test_the_figure_rings_what_matches(columns: int | None, tmp_path: Path) -> None:
    figure = model_study_figure(the_study(tmp_path), FigureOptions(columns=columns))
    for panel in figure.axes:
        assert sum(line.get_markersize() == 11 for line in panel.lines) == 1
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["PBM", "CM"]


@pytest.mark.usefixtures("blank_figure_files")
def test_the_page_shows_it(tmp_path: Path) -> None:
    main = write(tmp_path / "results.json", [curve("kl-ucb-br"), curve("original")])
    study = write(tmp_path / "study.json", study_results())
    text = report(main, tmp_path / "out", model_study=study).page.read_text(encoding="utf-8")
    assert "Safe policies violated safety in none of 2 cells" in text
    assert 'href="../study.json"' in text
    assert (tmp_path / "out" / "figures" / "model-study.svg").is_file()
