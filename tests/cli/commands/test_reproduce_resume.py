"""A long run that ends before its time: killed, interrupted; it goes on and gives the same results."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from saferank.reproduction.folder import Folder
from tests.cli.command_line import call, environment

SECONDS = 120
"""After so long a test gives up waiting."""

OPTIONS = (
    "--queries", "3", "--rounds", "20000", "--repetitions", "40", "--sessions", "4000", "--iterations", "5",
    "--models", "pbm", "--without", "study", "--jobs", "2", "--policies", "bubble-rank,original",
)  # fmt: skip
UNHURRIED = """
import sys, time
from saferank.cli import main
from saferank.experiments import run_folder as pieces
keep = pieces.Pieces.add
def slowly(self, played):
    keep(self, played)
    time.sleep(0.05)
pieces.Pieces.add = slowly
sys.exit(main(sys.argv[1:]))
"""
"""The command, with time to be killed in."""


def started(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", UNHURRIED, "reproduce", *OPTIONS, "--out", str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())


def wait_for_pieces(running: "subprocess.Popen[str]", folder: Path, number: int) -> None:
    """Until this number of cells is there."""
    end = time.monotonic() + SECONDS
    while len(Folder(folder).piece_files) < number:
        assert running.poll() is None, running.stderr and running.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def files_of(folder: Path) -> list[str]:
    """What stands in the files, provenance aside."""
    texts = [(folder / name).read_text() for name in ("results.json", "sensitivity.json")]
    return [text.partition('"results": [')[2] for text in texts]


@pytest.fixture(autouse=True)
def _without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take seconds, and have tests of their own."""
    monkeypatch.setattr("saferank.reproduction.reproduce._reported", lambda folder, shown: None)


def test_killed_twice_it_gives_the_same_files_as_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with started(killed) as running:
        wait_for_pieces(running, killed, 3)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    assert not (killed / "results.json").exists()
    Folder(killed).piece_files[1].write_bytes(b"damaged")
    (Folder(killed).pieces / ".000009-0.parquet.0.tmp").write_bytes(b"half a file")  # what a second kill might leave
    code, _, err = call(capsys, "reproduce", *OPTIONS, "--out", killed)
    assert (code, "holds a run that was not finished; continue it with --resume, start again" in err) == (2, True)
    code, _, err = call(capsys, "reproduce", *OPTIONS, "--jobs", "1", "--resume", "--out", killed)
    assert code == 0
    assert "rounds are there already" in err
    assert "is damaged, and its cell is played again" in err
    assert call(capsys, "reproduce", *OPTIONS, "--out", whole).code == 0
    assert files_of(killed) == files_of(whole)
    assert not Folder(killed).pieces.exists()


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with started(tmp_path) as running:
        wait_for_pieces(running, tmp_path, 1)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=SECONDS)
    assert running.returncode == 130
    assert err.splitlines()[-1].startswith("saferank: interrupted after ")
    assert err.splitlines()[-1].endswith("; to continue, repeat the command with --resume")
    assert "Traceback" not in err
    assert call(capsys, "reproduce", *OPTIONS, "--resume", "--out", tmp_path).code == 0
    assert (tmp_path / "results.json").exists()
