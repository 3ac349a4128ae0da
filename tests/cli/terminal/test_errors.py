"""Whatever is wrong: one line on stderr that names it, an exit code, no traceback, nothing written."""

import errno
import json
import os
from pathlib import Path

import pytest

from saferank.experiments.results import Results
from tests.cli.command_line import SMALL, Outcome, call

Capture = pytest.CaptureFixture[str]


def one_line(outcome: Outcome, code: int) -> str:
    assert outcome.code == code
    (line,) = outcome.err.splitlines()
    assert line.startswith("saferank: error: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "best"], "--policies: unknown policy 'best'; known ones: batch-rank, bubble-rank, "),
        (["--policies", "original,original"], "--policies: original is there twice"),
        (["--policies", ","], "--policies: found ',', expected names"),
        (["--rule", "luck"], "--rule: unknown decision rule 'luck'; write paper:DELTA, anytime:ALPHA or budget:ALPHA"),
        (["--rule", "paper:2"], "--rule: the level of decision rule 'paper:2' must lie between 0 and 1"),
        (["--rule", "paper:x"], "--rule: the level of decision rule 'paper:x' is not a number"),
        (["--models", "pbm,xyz"], "--models: unknown click model 'xyz'; known ones: pbm, cm, dcm, dbn, ubm, ccm"),
        (["--positions", "11"], "embedded: instance 'optimal-original' (pbm): items: found 10 for 11 positions"),
        (["--positions", "0"], "--positions: found 0, expected at least 1"),
        (["--rounds", "0"], "--rounds: found 0, expected at least 1"),
        (["--rounds", "ten"], "'--rounds': 'ten' is not a whole number, for example 100000 or 1e5"),
        (["--rounds", "1.5"], "'--rounds': '1.5' is not a whole number"),
        (["--rounds", "9" * 30], "--rounds: found 999"),
        (["--repetitions", "0"], "--repetitions: found 0, expected at least 1"),
        (["--repetitions", "1e9"], "--repetitions: found 1000000000, expected at most 1000000"),
        (["--seed", "-1"], "--seed: found -1, expected at least 0"),
        (["--jobs", "0"], "--jobs: found 0, expected at least 1"),
        (["--jobs", "99999"], "--jobs: found 99999, expected at most 1024"),
        (["--queries", "0"], "--queries: found 0, expected at least 1"),
        (["--checkpoints", "0"], "--checkpoints: found 0, expected whole numbers from 1 to 100, the rounds"),
        (["--checkpoints", "10,101"], "--checkpoints: found 101"),
        (["--checkpoints", "10,x"], "--checkpoints: 'x' is not a whole number"),
        (["--checkpoints", "1.5"], "--checkpoints: '1.5' is not a whole number"),
        (["--colour", "red"], "No such option: --colour"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert message in one_line(call(capsys, "simulate", *SMALL, "--out", out, *arguments), 2)
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "is not JSON"),
        ("{}", "instances: is missing"),
        (
            '{"instances": [{"id": "q", "model": "cm", "items": ["a"], "attraction": [2]}]}',
            "instances[0] (id 'q'): attraction: entry 0: found 2",
        ),
        (
            '{"instances": [{"id": "q", "model": "cm", "items": ["a"], "attraction": [0.5], "x": 1}]}',
            "instances[0] (id 'q'): x: unknown key",
        ),
        ('{"instances": [{"id": "q", "model": "cm", "items": ["a"], "attraction": [0.5]}]}', "--models: "),
    ],
)
def test_an_instance_file_that_cannot_be_used_is_named(
    text: str | None, message: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "mine.json"
    if text is not None:
        file.write_text(text)
    line = one_line(call(capsys, "simulate", file, *SMALL, "--out", tmp_path / "out"), 2)
    assert str(file) in line
    assert message in line


def test_a_catalogue_that_is_too_large_for_a_policy_is_named(tmp_path: Path, capsys: Capture) -> None:
    items = [f"item-{i}" for i in range(5000)]
    entry = {"id": "q", "model": "cm", "items": items, "attraction": [0.1] * len(items)}
    (tmp_path / "large.json").write_text(json.dumps({"instances": [entry]}))
    options = ("--models", "cm", "--policies", "top-rank", "--out", tmp_path / "out")
    line = one_line(call(capsys, "simulate", tmp_path / "large.json", *SMALL, *options), 2)
    assert "large.json: instance 'q' has 5000 items; top-rank" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_out_that_is_a_file_is_refused_before_anything_is_played(name: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("mine")
    line = one_line(call(capsys, "simulate", *SMALL, "--rounds", 10**12, "--out", tmp_path / name), 2)
    assert f"--out: {tmp_path / name}: there is a file of that name; name a folder" in line
    assert (tmp_path / "file").read_text() == "mine"


def test_out_that_cannot_be_written_to_is_refused_before_anything_is_played(capsys: Capture) -> None:
    line = one_line(call(capsys, "simulate", *SMALL, "--rounds", 10**12, "--out", "/proc/saferank"), 2)
    assert "--out: /proc/saferank: cannot be written to (" in line


def no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_at_the_end_leaves_a_run_that_can_be_resumed(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Results.save

    def fill_and_save(self: Results, folder: Path, overwrite: bool = False) -> list[Path]:
        patch.setattr(os, "fsync", no_space)
        return save(self, folder, overwrite=overwrite)

    with monkeypatch.context() as patch:
        patch.setattr(Results, "save", fill_and_save)
        code, _, err = call(capsys, "simulate", *SMALL, "--out", tmp_path)
    assert code == 1
    assert err.endswith("runs.parquet: cannot be written: No space left on device\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["experiment.json", "pieces"]
    assert call(capsys, "simulate", *SMALL, "--resume", "--out", tmp_path).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["regret.png", "results.json", "runs.parquet"]


def test_a_full_disk_at_the_start_leaves_nothing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", no_space)
    line = one_line(call(capsys, "simulate", *SMALL, "--out", tmp_path / "new"), 1)
    assert line.endswith("cannot be written: No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_said_in_a_line(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr("saferank.simulation.engine.simulate", greedy)
    line = one_line(call(capsys, "simulate", *SMALL, "--out", tmp_path / "out"), 1)
    assert "not enough memory (Unable to allocate 1 TiB)" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["compute"], ["instances"], ["bench", "--models", "abc"]])
def test_other_commands_complain_in_one_line_too(arguments: list[str], capsys: Capture) -> None:
    one_line(call(capsys, *arguments), 2)


def test_an_instance_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: Capture) -> None:
    line = one_line(call(capsys, "instances", "--out", tmp_path / "missing" / "mine.json"), 1)
    assert f"--out {tmp_path / 'missing' / 'mine.json'}: cannot be written: No such file" in line
