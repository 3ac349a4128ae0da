"""Finished cells of a long run, a Parquet file each, so that a run that is interrupted or killed can be resumed.

A cell is one policy with one rule on one instance. Its file has a row per run and checkpoint, as ``runs.parquet`` has
for all cells, and takes its place when it is complete. Its name has a digest of its content: a file that was damaged is
named, and its cell is played again. What was played of a cell that was not finished is lost.
"""

import hashlib
import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saferank.errors import ClusterError, OutputError
from saferank.experiments.frames import polars_frame, run_columns
from saferank.experiments.run_folder import GO_ON, START_AGAIN, FolderError, piece_files
from saferank.files import replacing
from saferank.reporting.runs import KEYS, run_values
from saferank.simulation.engine import Gathered
from saferank.simulation.experiment import Cell, result_of
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

if TYPE_CHECKING:
    import polars

    from saferank.progress import Reporter

KEPT = f"what was finished is kept; {GO_ON}"
_DIGEST = 16


class Pieces(Gathered):
    """What has come of an experiment so far, kept in a folder; what the folder holds is there from the start."""

    def __init__(self, cells: Sequence[Cell], folder: Path, started: float | None = None) -> None:
        super().__init__(cells)
        self.folder = folder
        self.seconds_before = 0.0  # of earlier processes
        self.damaged: list[Path] = []  # files that were not taken in, and have been removed
        self._started = time.monotonic() if started is None else started
        for path in piece_files(folder):
            self._restore(path)

    @property
    def elapsed(self) -> float:
        """Seconds since the experiment began, those of earlier processes included, as far as they were noted."""
        return self.seconds_before + time.monotonic() - self._started

    def finish(self, number: int, rows: Floats) -> None:
        """Keep a cell that is complete in its file."""
        super().finish(number, rows)
        cell = self.cells[number]
        columns = run_columns([self.results[number]], [Runs(cell.checkpoints, rows)])
        frame = polars_frame({name: columns[name] for name in (*KEYS, "repetition", "round")})
        measured = {name: rows[:, :, place].ravel() for place, name in enumerate(MEASURES)}  # bit for bit, also NaN
        _write(self.folder, number, frame, measured, seconds=self.seconds[number], elapsed=self.elapsed)

    def _restore(self, path: Path) -> None:
        import polars

        number, _, digest = path.stem.partition("-")
        content = path.read_bytes()
        if _digest(content) != digest:
            self.damaged.append(path)
            path.unlink()
            return
        frame = polars.read_parquet(io.BytesIO(content))
        rows = None if int(number) >= len(self.cells) else _rows(self.cells[int(number)], frame)
        if rows is None:
            raise FolderError(f"{path}: was kept by another experiment; {START_AGAIN}")
        super().finish(int(number), rows)
        self.seconds[int(number)] = frame["seconds"][0]
        self.seconds_before = max(self.seconds_before, frame["elapsed"][0])


def _write(folder: Path, number: int, frame: "polars.DataFrame", measured: dict[str, Floats], **facts: float) -> None:
    import polars

    content = io.BytesIO()
    more = {name: polars.Series(values) for name, values in measured.items()}
    frame.with_columns(**more, **{name: polars.lit(value) for name, value in facts.items()}).write_parquet(content)
    path = folder / f"{number:06d}-{_digest(content.getvalue())}.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content.getbuffer())
    except OSError as problem:
        reason = problem.strerror or problem
        raise OutputError(f"{path}: cannot be written: {reason}; {KEPT} when there is room") from problem


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST]


def _rows(cell: Cell, frame: "polars.DataFrame") -> Floats | None:
    """The runs of a cell, in the order of their repetitions; None when the frame is of another cell."""
    shape = (cell.plan.repetitions, len(cell.checkpoints))
    if len(frame) != shape[0] * shape[1]:
        return None
    runs = run_values(frame, cell.plan.repetitions)
    result = result_of(cell, runs.values)
    names = {key: frame[key][0] for key in KEYS}
    same = names == {key: getattr(result, key) for key in KEYS} and np.array_equal(runs.rounds, cell.checkpoints)
    return runs.values if same else None


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Say how to resume when a cluster fails after pieces have been kept in the folder."""
    try:
        yield
    except ClusterError as problem:
        raise (ClusterError(f"{problem}; {KEPT}") if piece_files(folder) else problem) from problem


def opened_pieces(cells: Sequence[Cell], folder: Path, started: float, shown: "Reporter") -> Pieces:
    """The pieces in the folder; what is there already, and what is damaged, is noted."""
    pieces = Pieces(cells, folder, started)
    total = sum(cell.plan.repetitions * cell.plan.rounds for cell in cells)
    for path in pieces.damaged:
        shown.note(f"{path}: is damaged, and its cell is played again")
    if pieces.rounds_there:
        shown.note(f"{pieces.rounds_there:,} of {total:,} rounds are there already")
    return pieces
