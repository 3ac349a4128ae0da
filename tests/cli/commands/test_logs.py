"""``saferank logs``."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from saferank import progress
from saferank.cli import main
from saferank.instances import load_instances
from tests.logs.log_writing import PERSONALIZED, page, written

Capture = pytest.CaptureFixture[str]


def call(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    code = main(["logs", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("command", ["summary", "synthesize"])
def test_help_says_what_how_and_what_comes_out(command: str, capsys: Capture) -> None:
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    for part in (f"Usage: saferank logs {command}", f"Example: saferank logs {command}", "What comes out:"):
        assert part in out


def test_synthesize_then_summary(tmp_path: Path, capsys: Capture) -> None:
    log, truth = tmp_path / "log.gz", tmp_path / "truth.json"
    code, out, _ = call(
        capsys, "synthesize", "--out", log, "--sessions", 500, "--queries", 3, "--model", "ubm", "--truth", truth
    )
    assert (code, out) == (0, f"500 sessions, {log.stat().st_size:,} bytes: {log}\n")
    assert [instance.id for instance in load_instances(truth)] == ["1001", "1002", "1003"]
    code, out, _ = call(capsys, "summary", log, "--format", PERSONALIZED, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["sessions"], found["queries"], found["bad_lines"]) == (500, 3, [])
    assert found["abandonment"] == found["pages_without_click"] / found["pages"]


def test_summary_prints_tables_and_bad_lines(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, page(1, 0, 5, "1 2"), "1 0 C 0 2", page(2, 0, 5, "1 2"), "x")
    code, out, _ = call(capsys, "summary", path, "--format", PERSONALIZED, "--max-bad", 0.5)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    for row in (["pages", "2"], ["pages", "without", "a", "click", "50.00%"], ["2", "2", "1", "0.5000"]):
        assert row in rows
    assert rows[-1] == ["bad", "lines:", "not", "a", "number:", "1", "(line", "4)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary", "LOG", "--format", "csv"], "--format: unknown format 'csv'; known ones: yandex-personalized, "),
        (["summary", "NONE", "--format", "sessions"], "NONE: cannot be read: No such file or directory"),
        (["summary", "LOG", "--format", "sessions"], "line 1: expected JSON objects"),
        (["summary", "LOG", "--format", "sessions", "--max-bad", "2"], "'--max-bad'"),
        (["summary", "LOG"], "'--format'"),
        (["synthesize", "--out", "LOG", "--model", "xyz"], "--model: no embedded instances for click model 'xyz'"),
        (["synthesize", "--out", "LOG", "--sessions", "0"], "--sessions: found 0, expected at least 1"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], message: str, tmp_path: Path, capsys: Capture) -> None:
    log = written(tmp_path, page(1, 0, 5, "1 2"))
    before = log.read_bytes()
    code, out, err = call(capsys, *(argument.replace("LOG", str(log)) for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("saferank: error: ") and err.count("\n") == 1
    assert message in err
    assert log.read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--truth"])
def test_a_place_that_cannot_be_written(option: str, tmp_path: Path, capsys: Capture) -> None:
    files = {"--out": tmp_path / "log", "--truth": tmp_path / "truth", option: tmp_path / "none" / "file"}
    code, _, err = call(capsys, "synthesize", "--sessions", 5, *(part for pair in files.items() for part in pair))
    assert code == 1
    assert err.startswith(f"saferank: error: {tmp_path}/none/file: cannot be written: No such file")


def test_lines_tell_the_progress_where_there_is_no_terminal(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 1e-9)
    monkeypatch.setattr(progress, "UNCOUNTED", dict.fromkeys(progress.UNCOUNTED, 0))
    log = tmp_path / "log"
    _, _, err = call(capsys, "synthesize", "--out", log, "--sessions", 10)
    assert err.splitlines()[-1].startswith("10 of 10 sessions written, ")
    _, _, err = call(capsys, "summary", log, "--format", PERSONALIZED)
    assert err.splitlines()[-1].endswith(" MB/s, 0 s left")


def test_the_time_of_compiling_is_not_taken_for_that_of_the_file(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1.0, 101.0, 102.0, 112.0])  # read, compiled, then two parts
    monkeypatch.setattr("saferank.progress.time.monotonic", lambda: next(clock))
    with progress.meter(100, progress.SESSIONS) as meter:
        for part in (1, 9, 1, 10):
            meter(part)
    assert capsys.readouterr().err == "21 of 100 sessions written, 1 sessions/s, 79 s left\n"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "STDERR", Console(file=screen, force_terminal=True, width=120))
    with progress.meter(5_000_000, progress.MEGABYTES) as meter:
        meter(2_000_000)
        meter(3_000_000)
    assert "5 of 5 MB read" in screen.getvalue()
