"""The other commands, help and version."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from saferank._version import __version__
from saferank.click_models import CLICK_MODELS
from saferank.instances import load_instances
from saferank.policies import POLICIES
from tests.cli.command_line import call, start

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", ["simulate", "compare", "bench", "instances", "policies"])
def test_help_says_what_how_and_what_comes_out(command: str, capsys: Capture) -> None:
    code, out, err = call(capsys, command, "--help")
    assert (code, err) == (0, "")
    assert f"Usage: saferank {command}" in out
    assert f"Example: saferank {command}" in out
    assert "What comes out:" in out


def test_help_lists_the_commands(capsys: Capture) -> None:
    code, out, _ = call(capsys, "--help")
    assert code == 0
    assert all(command in out for command in ("simulate", "bench", "instances", "policies"))


def test_version(capsys: Capture) -> None:
    assert call(capsys, "--version") == (0, f"saferank {__version__}\n", "")


def test_the_module_is_the_command(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["saferank", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("saferank.cli", run_name="__main__")
    assert ended.value.code == 0


def test_bench_prints_json_and_nothing_else(capsys: Capture) -> None:
    code, out, _ = call(
        capsys, "bench", "--json", "--rounds", 500, "--policies", "original,bubble-rank", "--models", "pbm"
    )
    data = json.loads(out)
    assert code == 0
    assert list(data) == ["version", "positions", "rounds", "timings", "speed_up"]
    assert [(entry["policy"], entry["model"]) for entry in data["timings"]] == [
        ("original", "pbm"),
        ("bubble-rank", "pbm"),
    ]
    for entry in data["timings"]:
        assert entry["multiple"] == pytest.approx(entry["nanoseconds"] / entry["bare_nanoseconds"])
    assert list(data["speed_up"]) == ["jobs", "seconds_alone", "seconds_together", "factor"]


def test_bench_prints_tables_and_the_speed_up(capsys: Capture) -> None:
    code, out, _ = call(capsys, "bench", "--rounds", 500, "--policies", "original", "--models", "pbm,cm")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line.split()].count("original") == 2
    assert "2 jobs are " in out.splitlines()[-1]


def test_one_instance_is_counted_as_one(tmp_path: Path, capsys: Capture) -> None:
    _, out, _ = call(capsys, "instances", "--queries", 1, "--models", "pbm", "--out", tmp_path / "mine.json")
    assert out.startswith("1 instance: ")


def test_instances_into_a_pipe_and_nothing_else() -> None:
    done = start("instances", "--queries", 1, "--models", "pbm", "--out", "/dev/stdout")
    assert (done.code, len(json.loads(done.out)["instances"])) == (0, 1)


@pytest.mark.parametrize("queries", [1, 3])
def test_instances_writes_the_embedded_set(queries: int, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.json"
    code, out, _ = call(capsys, "instances", "--queries", queries, "--models", "pbm,ubm", "--out", file)
    assert (code, out) == (0, f"{2 * queries} instances: {file}\n")
    assert [instance.model_name for instance in load_instances(file)] == ["pbm", "ubm"] * queries


def test_another_seed_makes_other_instances(tmp_path: Path, capsys: Capture) -> None:
    for seed in (1, 2):
        call(capsys, "instances", "--models", "cm", "--seed", seed, "--out", tmp_path / f"{seed}.json")
    assert (tmp_path / "1.json").read_text() != (tmp_path / "2.json").read_text()


def test_policies_lists_everything_with_a_line_about_it(capsys: Capture) -> None:
    code, out, _ = call(capsys, "policies")
    assert code == 0
    described = {line.split()[0] for line in out.splitlines() if len(line.split()) > 3}
    assert {*POLICIES, *CLICK_MODELS, "paper:LEVEL", "anytime:LEVEL"} <= described
