"""``simulate(out=...)``: nothing is overwritten unasked, and an interrupted run goes on to the same results."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from saferank import Results, RunInterrupted, embedded_instances, simulate
from saferank.errors import ArgumentError
from saferank.experiments import run_folder as pieces_module
from saferank.experiments.run_folder import FolderError, RunFolder
from saferank.simulation import engine
from tests.cli.command_line import environment

INSTANCES = embedded_instances(2, models=("pbm",))
ASKED: dict[str, Any] = {
    "policies": ["bubble-rank", "original"], "rounds": 300, "repetitions": 3, "jobs": 1, "progress": False,
}  # fmt: skip
KILLED = """
import os, signal
from saferank import embedded_instances, simulate
from saferank.experiments import run_folder as pieces
keep = pieces.Pieces.add
def add(self, played):
    keep(self, played)
    if len(self.results) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
pieces.Pieces.add = add
simulate(embedded_instances(2, models=("pbm",)), ["bubble-rank", "original"], rounds=300, repetitions=3, jobs=1,
         out="OUT", progress=False)
"""


@pytest.fixture(scope="module")
def whole() -> Results:
    return simulate(INSTANCES, **ASKED)


def same(one: Results, other: Results) -> bool:
    """Curves and single runs equal to the last digit."""
    return one.curves == other.curves and one.to_polars().equals(other.to_polars())


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that Ctrl-C ended in its fifth task, of three for a cell."""
    done: list[object] = []

    def play_four(*arguments: Any, **options: Any) -> Any:
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(arguments)
        return play_task(*arguments, **options)

    play_task = engine.play_task
    with monkeypatch.context() as patch:
        patch.setattr(engine, "play_task", play_four)
        patch.setattr(engine, "TASK_ROUNDS", 300)
        patch.setattr(engine.Threads, "task_rounds", 300)
        with pytest.raises(RunInterrupted, match="to continue, repeat the call with resume=True"):
            simulate(INSTANCES, **ASKED, out=tmp_path)
    return tmp_path


def test_what_was_interrupted_goes_on_to_the_same_results(interrupted: Path, whole: Results) -> None:
    assert len(RunFolder(interrupted).piece_files) == 1
    assert not RunFolder(interrupted).results.exists()
    with pytest.raises(ArgumentError, match="holds a run that was not finished; continue it with resume=True"):
        simulate(INSTANCES, **ASKED, out=interrupted)
    assert same(simulate(INSTANCES, **ASKED, out=interrupted, resume=True), whole)
    assert sorted(path.name for path in interrupted.iterdir()) == ["results.json", "runs.parquet"]
    assert same(Results.load(interrupted), whole)


def test_a_killed_process_loses_nothing_that_was_finished(
    tmp_path: Path, whole: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = KILLED.replace("OUT", str(tmp_path / "out"))
    killed = subprocess.run([sys.executable, "-c", script], env=environment(), check=False)
    assert killed.returncode == -9
    played: set[int] = set()
    add = pieces_module.Pieces.add

    def noting(self: pieces_module.Pieces, task: Any) -> None:
        played.add(task.task.cell)
        add(self, task)

    monkeypatch.setattr(pieces_module.Pieces, "add", noting)
    assert same(simulate(INSTANCES, **ASKED, out=tmp_path / "out", resume=True), whole)
    assert len(played) == 2  # of four


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "was begun with seed = 0, not 1; ask for the same, or start again with overwrite=True"),
        ({"rule": "paper:0.1"}, 'was begun with rule = "paper:1/T", not "paper:0.1"'),
        ({"policies": ["original"]}, r'was begun with policies = \["bubble-rank", "original"\], not \["original"\]'),
        ({"world": {"drift": "step:9:reversed"}}, "was begun with drift = nothing, not "),
        (
            {"instances": INSTANCES[:1]},
            "was begun with other instances: compare the instance file, models and queries; ask for",
        ),
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_other_settings_are_not_gone_on_with(
    finished: bool, changes: dict[str, Any], message: str, tmp_path: Path, whole: Results
) -> None:
    if finished:
        whole.save(tmp_path)
    else:
        RunFolder(tmp_path).begin(whole.provenance["asked"])
    before = sorted(path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(FolderError, match=message):
        simulate(**{"instances": INSTANCES, **ASKED, **changes}, out=tmp_path, resume=True)
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == before


def test_damaged_files_are_named(interrupted: Path, whole: Results) -> None:
    folder = RunFolder(interrupted)
    with folder.piece_files[0].open("ab") as file:
        file.write(b"torn")
    assert same(simulate(INSTANCES, **ASKED, out=interrupted, resume=True), whole)
    folder.clear()
    folder.experiment.write_text("{", encoding="utf-8")
    with pytest.raises(FolderError, match=r"experiment\.json: is not JSON.*start again with overwrite=True"):
        simulate(INSTANCES, **ASKED, out=interrupted, resume=True)
    folder.clear()
    folder.results.write_text(json.dumps({"results": []}), encoding="utf-8")
    with pytest.raises(FolderError, match="holds results that do not say how they were made"):
        simulate(INSTANCES, **ASKED, out=interrupted, resume=True)
    folder.clear()
    folder.begin(whole.provenance["asked"])
    folder.experiment.write_text(folder.experiment.read_text().replace('"simulate"', '"reproduce"'), encoding="utf-8")
    with pytest.raises(FolderError, match=r"experiment\.json: was written by saferank reproduce; start again"):
        simulate(INSTANCES, **ASKED, out=interrupted, resume=True)


def test_a_folder_is_needed_to_resume_and_resuming_is_not_overwriting(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="resume: is about a folder; give out= as well"):
        simulate(INSTANCES, **ASKED, resume=True)
    with pytest.raises(ArgumentError, match="resume: cannot be combined with overwrite"):
        simulate(INSTANCES, **ASKED, out=tmp_path, resume=True, overwrite=True)


def test_a_file_with_the_name_of_a_result_is_refused_and_removed_only_on_demand(tmp_path: Path) -> None:
    (tmp_path / "regret.png").write_text("mine")
    with pytest.raises(ArgumentError, match=r"holds regret\.png, which a run would overwrite"):
        simulate(INSTANCES, **ASKED, out=tmp_path)
    assert (tmp_path / "regret.png").read_text() == "mine"
    simulate(INSTANCES, **ASKED, out=tmp_path, overwrite=True)
    assert not (tmp_path / "regret.png").exists()


def test_provenance_has_digests_of_what_was_read(whole: Results, tmp_path: Path) -> None:
    facts = whole.provenance["instances"]
    assert (facts["name"], facts["sha256"], facts["played"]) == (None, None, 2)
    from saferank.instances import save_instances

    save_instances(tmp_path / "mine.json", INSTANCES)
    of_file = simulate(tmp_path / "mine.json", **ASKED).provenance["instances"]
    assert of_file["played_sha256"] == facts["played_sha256"]
    other = simulate(INSTANCES[:1], **ASKED).provenance["instances"]
    assert other["played_sha256"] != facts["played_sha256"]
