"""saferank compare: tables, JSON, the figure, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import SMALL, call

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from saferank.cli import main

    folder = tmp_path_factory.mktemp("played")
    options = (*SMALL, "--queries", "3", "--repetitions", "3", "--policies", "bubble-rank,original")
    assert main(["simulate", *options, "--out", str(folder)]) == 0
    return folder


def test_it_shows_differences_and_tails_and_draws_the_queries(played: Path, tmp_path: Path, capsys: Capture) -> None:
    figure = tmp_path / "by-query.png"
    code, out, _ = call(capsys, "compare", played, "--plot", figure)
    assert code == 0
    assert ["pbm", "bubble-rank", "original"] in [line.split()[:3] for line in out.splitlines()]
    assert "99.9 %" in out and "Holm" in out
    assert "3 instances of embedded, digest " in out
    assert out.splitlines()[-1] == str(figure)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_json_has_pairs_queries_and_tails(played: Path, capsys: Capture) -> None:
    code, out, _ = call(capsys, "compare", played / "results.json", "--json", "--measure", "violations")
    data = json.loads(out)
    assert code == 0
    assert (data["measure"], len(data["pairs"]), len(data["by_query"]), len(data["tails"])) == ("violations", 1, 3, 2)
    assert data["pairs"][0]["p_holm"] is not None
    assert data["instances"]["played"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policies", "original"), "--policies: found original, expected two or more to compare"),
        (("--policies", "original,best"), "--policies: no results of 'best'; there are bubble-rank, original"),
        (("--measure", "luck"), "--measure: found 'luck', expected one of regret, violations"),
        (("--plot", "figure.doc"), "--plot: found 'figure.doc', expected a name that ends in .png, .svg, .pdf"),
    ],
)
def test_what_cannot_be_used_is_one_line(played: Path, options: tuple[str, ...], message: str, capsys: Capture) -> None:
    code, _, err = call(capsys, "compare", played, *options)
    assert (code, message in err) == (2, True)


def test_results_without_runs_say_what_is_missing(played: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "results.json").write_bytes((played / "results.json").read_bytes())
    code, _, err = call(capsys, "compare", tmp_path)
    assert (code, "hold means only: there was no runs.parquet" in err) == (2, True)
