"""Whatever is wrong: one line on stderr that names it, an exit code, no traceback, nothing written."""

import errno
import json
import os
from pathlib import Path

import pytest
from command_line import SMALL, Outcome, call

Capture = pytest.CaptureFixture[str]


def one_line(outcome: Outcome, code: int) -> str:
    assert outcome.code == code
    (line,) = outcome.err.splitlines()
    assert line.startswith("saferank: error: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "best"], "--policies: unknown policy 'best'; known are bubble-rank, "),
        (["--policies", "original,original"], "--policies: original is there twice"),
        (["--policies", ","], "--policies: found ',', expected names"),
        (["--rule", "luck"], "--rule: unknown decision rule 'luck'; write paper:DELTA or anytime:ALPHA"),
        (["--rule", "paper:2"], "--rule: the level of decision rule 'paper:2' must lie between 0 and 1"),
        (["--rule", "paper:x"], "--rule: the level of decision rule 'paper:x' is not a number"),
        (["--models", "pbm,xyz"], "--models: unknown click model 'xyz'; known ones: pbm, cm, dcm, dbn, ubm, ccm"),
        (["--positions", "11"], "embedded: instance 'optimal-original' (pbm): items: found 10 for 11 positions"),
        (["--positions", "0"], "'--positions'"),
        (["--rounds", "0"], "'--rounds'"),
        (["--rounds", "ten"], "'--rounds'"),
        (["--rounds", "9" * 30], "'--rounds'"),
        (["--repetitions", "0"], "'--repetitions'"),
        (["--seed", "-1"], "'--seed'"),
        (["--jobs", "0"], "'--jobs'"),
        (["--jobs", "99999"], "'--jobs': 99999 is more than 1024"),
        (["--queries", "0"], "'--queries'"),
        (["--checkpoints", "0"], "--checkpoints: found '0', expected whole numbers from 1 to 100 (--rounds)"),
        (["--checkpoints", "10,101"], "--checkpoints: found '101'"),
        (["--checkpoints", "10,x"], "--checkpoints: found 'x'"),
        (["--checkpoints", "1.5"], "--checkpoints: found '1.5'"),
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
    assert f"--out {tmp_path / name}: there is a file of that name; name a folder" in line
    assert (tmp_path / "file").read_text() == "mine"


def test_out_that_cannot_be_written_to_is_refused_before_anything_is_played(capsys: Capture) -> None:
    line = one_line(call(capsys, "simulate", *SMALL, "--rounds", 10**12, "--out", "/proc/saferank"), 2)
    assert "--out /proc/saferank: cannot be written to (" in line


def no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_old_results(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results.json").write_text("old")
    monkeypatch.setattr(os, "fsync", no_space)
    line = one_line(call(capsys, "simulate", *SMALL, "--out", tmp_path), 1)
    assert line.endswith("results.json: cannot be written: No space left on device")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("results.json", "old")]


def test_too_little_memory_is_said_in_a_line(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr("saferank.cli.experiment.simulate", greedy)
    line = one_line(call(capsys, "simulate", *SMALL, "--out", tmp_path / "out"), 1)
    assert "not enough memory (Unable to allocate 1 TiB)" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["compute"], ["instances"], ["bench", "--models", "abc"]])
def test_other_commands_complain_in_one_line_too(arguments: list[str], capsys: Capture) -> None:
    one_line(call(capsys, *arguments), 2)


def test_an_instance_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: Capture) -> None:
    line = one_line(call(capsys, "instances", "--out", tmp_path / "missing" / "mine.json"), 1)
    assert f"--out {tmp_path / 'missing' / 'mine.json'}: cannot be written: No such file" in line
