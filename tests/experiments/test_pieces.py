"""Pieces: what is kept is there again to the last bit, what is torn is not believed."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from saferank.experiments import pieces as module
from saferank.experiments.pieces import Pieces, PiecesError
from saferank.experiments.run_folder import FolderError
from saferank.instances.embedded import embedded_instances
from saferank.simulation.engine import Task, Threads, play_task, simulate
from saferank.simulation.experiment import Plan, cells_of

CELLS = cells_of(
    embedded_instances(2, models=("pbm",))[:1], Plan(("bubble-rank", "original"), 5, 500, 4, rule="paper:0.05")
)
EXPECTED = simulate(CELLS)
TASKS = [Task(0, (0, 1)), Task(0, (2,)), Task(0, (3,)), Task(1, (0, 1, 2, 3))]


def file_of(folder: Path) -> Path:
    return folder / "pieces" / "finished.log"


def filled(folder: Path, tasks: list[Task]) -> Path:
    """A file of pieces after these tasks, left as a killed process would leave it."""
    pieces = Pieces(CELLS, file_of(folder))
    for task in tasks:
        pieces.add(play_task(CELLS[task.cell], task))
    pieces.close()
    return file_of(folder)


def again(folder: Path) -> Pieces:
    pieces = Pieces(CELLS, file_of(folder))
    pieces.close()
    return pieces


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single runs are kept at once."""
    monkeypatch.setattr(module, "KEEP_SECONDS", -1.0)


def test_a_finished_cell_is_there_again_and_not_played_again(tmp_path: Path) -> None:
    filled(tmp_path, TASKS[:3])
    pieces = again(tmp_path)
    assert pieces.results == {0: EXPECTED[0]}
    assert {task.cell for task in pieces.tasks(1000)} == {1}
    assert pieces.rounds_there == 2000
    assert pieces.seconds[0] > 0


def test_runs_of_an_unfinished_cell_are_kept_only_after_a_while(tmp_path: Path) -> None:
    filled(tmp_path, TASKS[:1])
    assert again(tmp_path).runs == {}


@pytest.mark.usefixtures("often")
def test_runs_of_an_unfinished_cell_are_there_again_after_a_while(tmp_path: Path) -> None:
    filled(tmp_path, TASKS[:2])
    pieces = again(tmp_path)
    assert sorted(pieces.runs[0]) == [0, 1, 2]
    assert pieces.tasks(500)[0] == Task(0, (3,))
    assert pieces.rounds_there == 1500


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("done", range(len(TASKS) + 1))
def test_going_on_gives_the_same_results_wherever_it_stopped(tmp_path: Path, done: int) -> None:
    filled(tmp_path, TASKS[:done])
    pieces = Pieces(CELLS, file_of(tmp_path))
    assert simulate(CELLS, engine=Threads(2), gathered=pieces) == EXPECTED
    pieces.close()
    assert again(tmp_path).in_order() == EXPECTED


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("lost", [1, 2, 30, 1000])
def test_a_torn_last_record_is_noticed_cut_off_and_played_again(tmp_path: Path, lost: int) -> None:
    path = filled(tmp_path, TASKS[:3])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines)[:-lost])
    pieces = Pieces(CELLS, path)
    assert pieces.dropped == len(lines[-1]) - lost
    assert path.read_bytes() == b"".join(lines[:-1])
    assert pieces.results == {}
    assert simulate(CELLS, gathered=pieces) == EXPECTED
    pieces.close()


@pytest.mark.usefixtures("often")
def test_a_record_whose_bytes_changed_is_not_believed_nor_what_follows(tmp_path: Path) -> None:
    path = filled(tmp_path, TASKS)
    lines = path.read_bytes().splitlines(keepends=True)
    wrong = lines[1].replace(b'"cell": 0', b'"cell": 1')
    path.write_bytes(b"".join([lines[0], wrong, *lines[2:]]))
    pieces = again(tmp_path)
    assert sorted(pieces.runs[0]) == [0, 1]
    assert pieces.results == {}


def test_pieces_of_another_experiment_are_not_taken(tmp_path: Path) -> None:
    path = filled(tmp_path, TASKS)
    before = path.read_bytes()
    for others in (CELLS[::-1], CELLS[:1]):
        with pytest.raises(FolderError, match=r"finished\.log: was kept by another experiment; start again"):
            Pieces(others, path)
    assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    pieces = Pieces(CELLS, file_of(tmp_path))
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, pieces._file.fileno())
    os.close(full)
    with pytest.raises(PiecesError, match=os.strerror(errno.ENOSPC)):
        pieces.add(play_task(CELLS[1], TASKS[3]))
    pieces.close()


def test_a_disk_that_fills_in_the_middle_of_a_record_loses_that_record_only(tmp_path: Path) -> None:
    class Filling:
        """A file that takes 100 bytes more."""

        def __init__(self, file: Any) -> None:
            self.file, self.left = file, 100

        def write(self, data: Any) -> int:
            if self.left == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            some = bytes(data[: self.left])
            self.left -= len(some)
            return int(self.file.write(some))

        def close(self) -> None:
            self.file.close()

    pieces: Any = Pieces(CELLS, file_of(tmp_path))
    pieces.add(play_task(CELLS[1], TASKS[3]))
    pieces._file = Filling(pieces._file)
    with pytest.raises(PiecesError, match="No space left"):
        for task in TASKS[:3]:
            pieces.add(play_task(CELLS[0], task))
    pieces.close()
    after = again(tmp_path)
    assert after.dropped == 100
    assert after.results == {1: EXPECTED[1]}


def test_time_goes_on_from_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000, 100_000, 10))
    monkeypatch.setattr("saferank.experiments.pieces.time.monotonic", lambda: float(next(clock)))
    filled(tmp_path, TASKS)
    pieces = again(tmp_path)
    assert pieces.seconds_before > 0
    assert pieces.elapsed > pieces.seconds_before
