"""``saferank forecast``: a page, the numbers and a table, or one line about what is wrong."""

import json
from pathlib import Path

import pytest

from saferank.logs import write_synthetic_log
from saferank.logs.synthetic import planted_instances
from tests.cli.command_line import call

Capture = pytest.CaptureFixture[str]
FEW = (
    "--policies", "safe-draw", "--model", "pbm", "--positions", 5, "--replicates", 4, "--iterations", 10,
    "--most-pages", 1000,
)  # fmt: skip


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.gz"
    write_synthetic_log(path, planted_instances(3, "pbm"), 600, 1)
    return path


def test_help_says_what_how_and_what_comes_out(capsys: Capture) -> None:
    code, out, err = call(capsys, "forecast", "--help")
    assert (code, err) == (0, "")
    assert all(words in out for words in ("Usage: saferank forecast", "Example: saferank forecast", "What comes out:"))


@pytest.mark.usefixtures("blank_figure_files")
def test_it_writes_page_and_numbers_and_shows_a_table(log: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ("forecast", log, "--format", "yandex-personalized", "--pages-a-day", 100, "--out", tmp_path, *FEW)
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    assert out.splitlines()[-2:] == [str(tmp_path / "forecast.json"), str(tmp_path / "forecast.html")]
    assert "safe-draw" in out and "clicks a day after 91 days" in out
    assert json.loads((tmp_path / "forecast.json").read_text())["provenance"]["command"].startswith("saferank forecast")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pages-a-day", 0), "--pages-a-day: found 0, expected the pages that all queries of the site have in a day"),
        (("--pages-a-day", 10, "--policies", "nobody"), "--policies: unknown policy 'nobody'; known ones:"),
        (("--pages-a-day", 10, "--format", "csv"), "--format: unknown format 'csv'"),
    ],
)
def test_bad_options_get_one_line(
    log: Path, tmp_path: Path, capsys: Capture, options: tuple[object, ...], message: str
) -> None:
    code, out, err = call(
        capsys, "forecast", log, "--format", "yandex-personalized", "--out", tmp_path / "new", *options
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"saferank: error: {message}")


def test_an_empty_log_gets_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").write_text("")
    code, _, err = call(
        capsys, "forecast", tmp_path / "empty", "--format", "sessions", "--pages-a-day", 10, "--out", tmp_path / "new"
    )
    assert code == 2 and str(tmp_path / "empty") in err.splitlines()[-1] and "Traceback" not in err
