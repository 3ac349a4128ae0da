"""saferank report: from a results file to a page and a table on the screen, and every way to fail in a sentence."""

from pathlib import Path

import pytest

from saferank.cli.terminal.tables import show_report
from saferank.reporting.build import Report
from saferank.simulation.results import Result, write_results
from tests.cli.command_line import call

Capture = pytest.CaptureFixture[str]
ENDS = {"kl-ucb-br": 40.0, "bubble-rank": 60.0, "top-rank": 99.0, "original": 100.0}  # top-rank below kl-ucb-br: false


def result(policy: str, model: str, query: str, regret: float) -> Result:
    zeros, errors = [0.0, 0.0], [0.1, 0.1]
    return Result(query, model, policy, None, 5, 10, 4, [10, 100], [regret / 9, regret], errors, zeros, zeros, None)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made = [result(p, m, q, end) for m in ("pbm", "cm") for q in ("one", "two") for p, end in ENDS.items()]
    write_results(tmp_path / "results.json", made, {"seed": 1})
    return tmp_path / "results.json"


def test_it_writes_the_page_and_shows_the_claims(results: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "folder"
    code, shown, err = call(capsys, "report", results, "--out", out)
    assert (code, err) == (0, "")
    assert shown.splitlines()[-1] == str(out / "report.html")
    assert sorted(path.name for path in out.iterdir()) == ["figures", "report.html"]
    assert "do not hold" in shown.splitlines()[-2]
    assert "does not hold: Under PBM, on all queries, TopRank ends below KL-UCB-BR: 99.000 ± 0.071 against" in shown


@pytest.mark.usefixtures("blank_figure_files")
def test_the_table_has_a_verdict_for_each_model(results: Path, tmp_path: Path, capsys: Capture) -> None:
    _, shown, _ = call(capsys, "report", results, "--out", tmp_path)
    (row,) = [line for line in shown.splitlines() if "KL-UCB-BR never violates" in line]
    assert row.count("holds") == 2
    (row,) = [line for line in shown.splitlines() if line.count("does not hold (-590.0)") == 2]
    assert row.split()[:3] == ["TopRank", "ends", "below"]


def test_without_claims_it_says_so(capsys: Capture) -> None:
    show_report(Report(Path("report.html"), [], [], "a log"))
    assert capsys.readouterr().out == "None of the claims of the paper could be judged on a log.\nreport.html\n"


@pytest.mark.usefixtures("blank_figure_files")
def test_policies_can_be_left_out_and_queries_named(results: Path, tmp_path: Path, capsys: Capture) -> None:
    options = ("--without", "top-rank", "--optimal", "one", "--none-of-best", "two")
    code, shown, _ = call(capsys, "report", results, "--out", tmp_path, *options)
    assert code == 0
    assert "TopRank ends" not in shown
    assert "not run: 6 claims: there are no results of TopRank under CM" in shown
    assert "OriginalRank has no regret" in shown
    assert (tmp_path / "figures" / "optimal-original.pdf").is_file()
    assert (tmp_path / "figures" / "none-of-best.png").is_file()


@pytest.mark.usefixtures("blank_figure_files")
def test_figures_as_they_are_wanted(results: Path, tmp_path: Path, capsys: Capture) -> None:
    options = ("--axes", "linear", "--columns", 1, "--from", 20, "--names", "top-rank=Top of all, original=Production")
    code, _, err = call(capsys, "report", results, "--out", tmp_path, *options)
    assert (code, err) == (0, "")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Axes are linear" in text and "Top of all ends below" in text and "Production" in text
    assert "Production &" in (tmp_path / "figures" / "endings.tex").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--without", "safe-draw"), "no results of 'safe-draw' to leave out; there are kl-ucb-br"),
        (("--without", ","), "--without: found ',', expected names with commas between"),
        (("--optimal", "three"), "no results of instance 'three'; there are 'one', 'two'"),
        (("--axes", "cubic"), "--axes: found 'cubic', expected log or linear"),
        (("--columns", "3"), "--columns: found 3, expected 1 or 2"),
        (("--from", "100"), "--from: found 100, expected less than 100, the last round"),
        (("--names", "top-rank"), "--names: found 'top-rank', expected POLICY=NAME, for example kl-ucb-br=Ours"),
        (("--names", "best=Best"), "--names: no results of 'best'; there are kl-ucb-br"),
    ],
)
def test_wrong_options(options: tuple[str, ...], message: str, results: Path, tmp_path: Path, capsys: Capture) -> None:
    code, shown, err = call(capsys, "report", results, "--out", tmp_path / "out", *options)
    assert (code, shown) == (2, "")
    assert message in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("", "it is empty"),
        ('{"provenance": {}, "results": [{"instance": "q', "is not JSON"),
        ('{"provenance": {}, "results": []}', "results: is empty"),
        ('{"provenance": {}, "results": [{"regret_mean": NaN}]}', "found NaN, expected finite numbers"),
    ],
)
def test_files_without_results(text: str | None, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "results.json"
    if text is not None:
        path.write_text(text)
    code, _, err = call(capsys, "report", path, "--out", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"saferank: error: {path}: ") and message in err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to(results: Path, capsys: Capture) -> None:
    code, _, err = call(capsys, "report", results, "--out", results)
    assert code == 2
    assert "there is a file of that name; name a folder" in err


def test_figures_that_cannot_be_written(results: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "figures").write_text("in the way")
    code, _, err = call(capsys, "report", results, "--out", tmp_path)
    assert code == 1
    assert f"{tmp_path / 'figures'}: cannot be written: File exists" in err


def test_without_matplotlib_it_says_how_to_get_it(
    results: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = call(capsys, "report", results, "--out", tmp_path)
    assert code == 2
    assert err.endswith("pip install 'saferank[report]'\n")
