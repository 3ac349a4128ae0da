"""Pieces: what is kept is there again to the last bit, what is damaged is named and played again."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from saferank.errors import OutputError
from saferank.experiments.run_folder import FolderError, Pieces, piece_files
from saferank.instances.embedded import embedded_instances
from saferank.simulation.engine import Gathered, Task, Threads, play_task, simulate
from saferank.simulation.experiment import Plan, cells_of

CELLS = cells_of(
    embedded_instances(2, models=("pbm",))[:1], Plan(("bubble-rank", "original"), 5, 500, 4, rule="paper:0.05")
)
WHOLE = Gathered(CELLS)
EXPECTED = simulate(CELLS, gathered=WHOLE)
TASKS = [Task(0, (0, 1)), Task(0, (2,)), Task(0, (3,)), Task(1, (0, 1, 2, 3))]


def filled(folder: Path, tasks: list[Task]) -> list[Path]:
    """The pieces after these tasks, left as a killed process would leave them."""
    pieces = Pieces(CELLS, folder)
    for task in tasks:
        pieces.add(play_task(CELLS[task.cell], task))
    return piece_files(folder)


def same_runs(one: Gathered, other: Gathered) -> bool:
    pairs = zip(one.runs_in_order(), other.runs_in_order(), strict=True)
    return all(a.rounds.tolist() == b.rounds.tolist() and a.values.tobytes() == b.values.tobytes() for a, b in pairs)


def test_a_finished_cell_is_there_again_and_not_played_again(tmp_path: Path) -> None:
    assert [path.name.partition("-")[0] for path in filled(tmp_path, TASKS[:3])] == ["000000"]
    pieces = Pieces(CELLS, tmp_path)
    assert pieces.results == {0: EXPECTED[0]}
    assert pieces.kept[0].values.tobytes() == WHOLE.kept[0].values.tobytes()
    assert {task.cell for task in pieces.tasks(1000)} == {1}
    assert pieces.rounds_there == 2000
    assert pieces.seconds[0] > 0


def test_a_cell_that_is_not_finished_leaves_no_file(tmp_path: Path) -> None:
    assert filled(tmp_path, TASKS[:2]) == []
    assert Pieces(CELLS, tmp_path).rounds_there == 0


@pytest.mark.parametrize("done", range(len(TASKS) + 1))
def test_resuming_gives_the_same_results_wherever_it_stopped(tmp_path: Path, done: int) -> None:
    filled(tmp_path, TASKS[:done])
    pieces = Pieces(CELLS, tmp_path)
    assert simulate(CELLS, engine=Threads(2), gathered=pieces) == EXPECTED
    assert same_runs(pieces, WHOLE)
    again = Pieces(CELLS, tmp_path)
    assert again.in_order() == EXPECTED and same_runs(again, WHOLE)


def test_numbers_that_are_none_are_kept_too(tmp_path: Path) -> None:
    rows = np.full((4, len(CELLS[0].checkpoints), 5), 0.1)
    rows[1, 2, 3] = np.nan
    pieces = Pieces(CELLS, tmp_path)
    pieces.seconds[0] = 1.0
    pieces.finish(0, rows)
    kept = Pieces(CELLS, tmp_path).kept[0]
    assert kept.values.tobytes() == pieces.kept[0].values.tobytes()
    assert np.isnan(kept.values).sum() == 1


@pytest.mark.parametrize("place", [0, 10, 700, -10, -1])
def test_a_damaged_piece_is_named_and_played_again(tmp_path: Path, place: int) -> None:
    damaged, sound = filled(tmp_path, TASKS)
    content = bytearray(damaged.read_bytes())
    content[place] ^= 1
    damaged.write_bytes(bytes(content))
    pieces = Pieces(CELLS, tmp_path)
    assert pieces.damaged == [damaged] and pieces.results == {1: EXPECTED[1]}
    assert simulate(CELLS, gathered=pieces) == EXPECTED
    assert Pieces(CELLS, tmp_path).in_order() == EXPECTED
    assert sound in piece_files(tmp_path)


def test_a_cut_off_piece_is_played_again(tmp_path: Path) -> None:
    first, _ = filled(tmp_path, TASKS)
    first.write_bytes(first.read_bytes()[:-7])
    assert Pieces(CELLS, tmp_path).results == {1: EXPECTED[1]}


def test_pieces_of_another_experiment_are_refused_and_stay(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in filled(tmp_path, TASKS)}
    longer = cells_of([CELLS[0].instance], Plan(("bubble-rank", "original"), 5, 600, 4, rule="paper:0.05"))
    for others in (CELLS[::-1], CELLS[:1], longer):
        with pytest.raises(FolderError, match=r"00000\d-\w+\.parquet: was kept by another experiment; start again"):
            Pieces(others, tmp_path)
    assert {path: path.read_bytes() for path in piece_files(tmp_path)} == before


def test_a_full_disk_is_said_and_leaves_no_half_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = filled(tmp_path, TASKS[3:])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("saferank.files.os.fsync", full)
    with pytest.raises(OutputError, match=r"No space left on device; what was finished is kept; .* when there is room"):
        filled(tmp_path, TASKS[:3])
    assert list(tmp_path.iterdir()) == first


def test_time_goes_on_from_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000, 100_000, 10))
    monkeypatch.setattr("saferank.experiments.run_folder.time.monotonic", lambda: float(next(clock)))
    filled(tmp_path, TASKS)
    pieces = Pieces(CELLS, tmp_path)
    assert pieces.seconds_before > 0
    assert pieces.elapsed > pieces.seconds_before
