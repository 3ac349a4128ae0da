"""saferank simulate: what it writes and shows."""

import hashlib
import importlib.util
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from saferank import progress, simulate
from saferank._kernel import specialised
from saferank.simulation import experiment
from tests.cli.command_line import SMALL, call, environment, start

Capture = pytest.CaptureFixture[str]


def test_it_writes_results_and_a_figure_and_says_where(tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = call(capsys, "simulate", *SMALL, "--out", tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert code == 0
    assert out.splitlines()[-2:] == [str(folder / "results.json"), str(folder / "regret.png")]
    assert sorted(path.name for path in folder.iterdir()) == ["regret.png", "results.json", "runs.parquet"]


def test_the_table_has_a_row_for_every_policy_and_model(tmp_path: Path, capsys: Capture) -> None:
    policies = ("--policies", "original,bubble-rank", "--models", "pbm,cm", "--queries", 2)
    _, out, _ = call(capsys, "simulate", *SMALL, *policies, "--out", tmp_path)
    rows = [line.split()[:2] for line in out.splitlines()]
    for pair in (["pbm", "original"], ["pbm", "bubble-rank"], ["cm", "original"], ["cm", "bubble-rank"]):
        assert pair in rows
    assert "after 100 rounds" in out


def test_the_command_and_the_function_play_the_same_loop(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop for late feedback is much slower, and gives the same numbers: only this shows which one is played."""
    played: list[str] = []

    def noted(loop: Any, *kinds: type) -> Any:
        played.append(loop.__name__)
        return specialised(loop, *kinds)

    monkeypatch.setattr(experiment, "specialised", noted)
    options: Any = {"models": ["pbm"], "queries": 1, "rounds": 100, "repetitions": 2, "jobs": 1, "progress": False}
    simulate(policies=["original"], **options)
    by_function = played.copy()
    played.clear()
    assert call(capsys, "simulate", *SMALL, "--jobs", 1, "--out", tmp_path / "usual").code == 0
    assert played == by_function and set(played) == {"play"}
    played.clear()
    call(capsys, "simulate", *SMALL, "--jobs", 1, "--world", "delay=3", "--out", tmp_path / "late")
    assert set(played) == {"play_late"}


def test_the_same_seed_gives_the_same_file_apart_from_provenance(tmp_path: Path, capsys: Capture) -> None:
    for name, *options in (("a", "--jobs", 1), ("b", "--jobs", 2), ("c", "--seed", 1)):
        call(capsys, "simulate", *SMALL, "--policies", "bubble-rank", *options, "--out", tmp_path / name)
    a, b, c = (json.loads((tmp_path / name / "results.json").read_text()) for name in "abc")
    assert a["results"] == b["results"] != c["results"]
    assert a["provenance"]["command"].startswith("saferank simulate --models pbm")
    assert (a["provenance"]["seed"], c["provenance"]["seed"]) == (0, 1)


def test_hyper_parameters_are_set_and_swept(tmp_path: Path, capsys: Capture) -> None:
    options = ("--policies", "bubble-rank", "--set", "bubble-rank.hidden_duels=true, false")
    code, _, _ = call(capsys, "simulate", *SMALL, *options, "--out", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert code == 0
    assert [r["policy"] for r in results] == ["bubble-rank:hidden_duels=true", "bubble-rank:hidden_duels=false"]
    for text, sentence in {
        "bubble-rank.depth=1": "--set: bubble-rank has no hyper-parameter 'depth'; it has all_candidates, hidden_duels",
        "hidden_duels": "--set: found 'hidden_duels', expected POLICY.NAME=VALUES",
    }.items():
        code, _, err = call(capsys, "simulate", *SMALL, "--policies", "bubble-rank", "--set", text, "--out", tmp_path)
        assert code == 2
        assert sentence in " ".join(err.split())


def test_checkpoints_are_the_given_ones(tmp_path: Path, capsys: Capture) -> None:
    call(capsys, "simulate", *SMALL, "--checkpoints", "10, 100,3", "--out", tmp_path)
    (result,) = json.loads((tmp_path / "results.json").read_text())["results"]
    assert result["rounds"] == [3, 10, 100]


def test_queries_and_models_choose_from_a_file(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.json"
    call(capsys, "instances", "--queries", 4, "--models", "pbm,cm", "--out", file)
    call(capsys, "simulate", file, *SMALL, "--queries", 2, "--models", "cm", "--out", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [(r["instance"], r["model"]) for r in results] == [("optimal-original", "cm"), ("worst-original", "cm")]


def test_without_matplotlib_it_says_how_to_get_the_figure(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else find(name))
    code, out, err = call(capsys, "simulate", *SMALL, "--out", tmp_path)
    assert code == 0
    assert err.splitlines()[-1].endswith("pip install 'saferank[report]'")
    assert "regret.png" not in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json", "runs.parquet"]


def test_lines_tell_the_progress_where_there_is_no_terminal(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 1e-9)
    _, _, err = call(capsys, "simulate", *SMALL, "--jobs", 1, "--out", tmp_path)
    assert [line.partition(",")[0] for line in err.splitlines() if "left" in line] == ["200 of 200 rounds played"]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "STDERR", Console(file=screen, force_terminal=True, width=120))
    with progress.meter(1000) as meter:
        meter(400)
        meter(600)
    assert meter.done == 1000
    assert "1,000 of 1,000 rounds" in screen.getvalue()


def test_only_the_first_start_compiles_and_says_so(tmp_path: Path) -> None:
    first, second = (
        start("simulate", *SMALL, "--overwrite", "--out", tmp_path / "out", NUMBA_CACHE_DIR=str(tmp_path))
        for _ in range(2)
    )
    assert (first.code, second.code) == (0, 0)
    assert "compiling the kernels for this machine, once" in first.err
    assert second.err == ""
    assert first.out == second.out


INTERRUPTIBLE = """
import sys
from saferank.cli import main
from saferank import progress
progress.SECONDS_BETWEEN_LINES = 1e-9
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_before_anything_is_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    options = [*SMALL, "--rounds", "1000000000", "--out", str(tmp_path / "new" / "out")]
    command = [sys.executable, "-c", INTERRUPTIBLE, "simulate", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as running:
        assert running.stderr is not None
        while "left" not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    last = err.splitlines()[-1]
    assert running.returncode == 130
    assert last.startswith("saferank: interrupted after ")
    assert last.endswith(" of 2,000,000,000 rounds; nothing was written")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_results_are_not_overwritten_unasked_and_a_finished_run_is_shown_again(tmp_path: Path, capsys: Capture) -> None:
    first = call(capsys, "simulate", *SMALL, "--out", tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    code, _, err = call(capsys, "simulate", *SMALL, "--seed", 1, "--out", tmp_path)
    assert code == 2
    assert f"--out: {tmp_path} holds a finished run; continue it with --resume, start again with --overwrite, or" in err
    assert call(capsys, "simulate", *SMALL, "--resume", "--out", tmp_path).out == first.out
    assert (tmp_path / "results.json").read_bytes() == before
    assert call(capsys, "simulate", *SMALL, "--seed", 1, "--overwrite", "--out", tmp_path).code == 0
    assert json.loads((tmp_path / "results.json").read_text())["provenance"]["seed"] == 1


def test_the_instances_played_are_shown_with_their_digests(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.json"
    call(capsys, "instances", "--queries", 2, "--models", "pbm", "--out", file)
    _, out, _ = call(capsys, "simulate", file, *SMALL, "--out", tmp_path)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert f"1 instance of mine.json (sha256 {digest[:12]}), digest " in out
    facts = json.loads((tmp_path / "results.json").read_text())["provenance"]["instances"]
    assert (facts["name"], facts["sha256"], facts["played"]) == ("mine.json", digest, 1)


def test_a_sweep_in_another_world_has_a_row_for_every_combination(tmp_path: Path, capsys: Capture) -> None:
    sweep = ("--positions", "3,5", "--rule", "paper:0.1", "--rule", "paper:0.2", "--policies", "bubble-rank")
    world = ("--world", "delay=3", "--world", "lost-pages=0.1", "--world", "lost-clicks=0.1", "--world", "reward=dcg")
    code, out, _ = call(capsys, "simulate", *SMALL, *sweep, *world, "--out", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert code == 0
    assert [(r["positions"], r["rule"]) for r in results] == [
        (3, "paper:0.1"), (3, "paper:0.2"), (5, "paper:0.1"), (5, "paper:0.2"),
    ]  # fmt: skip
    assert {r["world"] for r in results} == {"delay:3,lost-pages:0.1,lost-clicks:0.1,reward:dcg"}
    assert out.count("rule=paper:0.2") == 2


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--world", "lost-pages=2", "--world: lost_pages: found 2.0, expected a probability from 0 to 1"),
        ("--world", "layout=1,2", "--world: layout: found 1,2, expected each of the positions 1 to 5 once"),
        ("--world", "examination=much", "--world: examination: found 'much', expected numbers"),
        ("--world", "delya=2", "--world: unknown part 'delya'; known ones: drift, delay, lost_pages, "),
        ("--world", "dcg", "--world: found 'dcg', expected NAME=VALUE, for example delay=10"),
        ("--lifetime", "none,soon", "--lifetime: 'soon' is not a whole number"),
        ("--positions", "3,3", "--positions: 3 is there twice; keep one"),
    ],
)
def test_worlds_and_sweeps_that_cannot_be_played_are_refused(
    option: str, value: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    code, _, err = call(capsys, "simulate", *SMALL, option, value, "--out", tmp_path / "new")
    assert (code, message in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
