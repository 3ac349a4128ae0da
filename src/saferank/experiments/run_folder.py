"""The folder of a run that can be interrupted: its files, whether it can be resumed, what a restart removes.

``experiment.json`` says what is run, and is compared when a run is resumed. ``pieces/`` holds a file for each finished
cell until all are. ``results.json`` is written last: where it is and no pieces are, the run is finished.
"""

import hashlib
import io
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank._kernel import package_digest
from saferank._version import __version__
from saferank.errors import ArgumentError, ClusterError, OutputError, UsageError
from saferank.files import JsonFileError, read_json, replacing, write_atomically
from saferank.reporting.frames import KEYS, RESULTS, RUNS, run_values, runs_frame
from saferank.simulation.engine import Gathered
from saferank.simulation.experiment import Cell, result_of
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

if TYPE_CHECKING:
    import polars

    from saferank.progress import Reporter


LOCK = ".in-use"

START_AGAIN = "start again with overwrite=True, or name another folder"
GO_ON = "to continue, repeat the call with resume=True"
"""What to do, as arguments of the library's functions; the command line writes --overwrite and --resume instead."""


_DIGESTS = {
    "instances": "other instances: compare the instance file, models and queries",
    "plugins": "other plug-ins, or their source code has changed",
    "study_instances": "other study_instances, or the file has changed",
}
"""What is compared by a digest, which a reader cannot compare."""


def piece_files(folder: Path) -> list[Path]:
    """The files of finished cells in a folder, which may not exist."""
    return sorted(folder.glob("[0-9]*-*.parquet"))


class FolderError(UsageError):
    """Why a folder cannot be used, in a sentence that says what to do."""


class RunFolder:
    """The folder of a run."""

    command = "simulate"  # the command that writes here

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment = path / "experiment.json"
        self.pieces = path / "pieces"
        self.results = path / RESULTS

    @property
    def files(self) -> list[Path]:
        """Every file that a run writes, the pieces aside."""
        return [self.experiment, self.results, self.path / RUNS, self.path / "regret.png"]

    @property
    def in_use(self) -> list[Path]:
        """Files that are there of a run, or files of other programs with the same names."""
        return [file for file in (*self.files, *self.piece_files) if file.exists()]

    @property
    def piece_files(self) -> list[Path]:
        """The files of finished cells of a run that is not finished."""
        return piece_files(self.pieces)

    @property
    def finished(self) -> bool:
        """True when a run was finished here."""
        return self.results.exists() and not self.piece_files

    def check_use(self, resume: bool, overwrite: bool) -> None:
        """A folder with a run in it is neither resumed nor cleared unless that is asked for."""
        if resume and overwrite:
            raise ArgumentError("resume", "cannot be combined with overwrite: choose one, to resume or to start again")
        if self.in_use and not resume and not overwrite:
            choice = f"continue it with resume=True, {START_AGAIN}"
            raise ArgumentError("out", f"{self.path} holds {self._state()}; {choice}")

    def _state(self) -> str:
        if self.finished:
            return "a finished run"
        if not self.experiment.exists() and not self.piece_files:
            return f"{self.in_use[0].name}, which a run would overwrite"
        return "a run that was not finished"

    def clear(self) -> None:
        """Remove what a run leaves behind, and nothing else."""
        for file in self.files:
            file.unlink(missing_ok=True)
        self.remove_pieces()

    def remove_pieces(self) -> None:
        """Once all is written, pieces are of no more use."""
        for file in (*self.piece_files, *self.pieces.glob(".[0-9]*.tmp")):  # a killed process leaves half a file
            file.unlink()
        with suppress(OSError):  # never made, or other files are there too
            self.pieces.rmdir()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep other processes out; the system lets go when this one ends, however it ends."""
        path = self.path / LOCK
        with path.open("ab") as lock:
            if not _locked(lock.fileno()):
                raise FolderError(f"{self.path}: another process is at work there; wait for it, or name another folder")
            try:
                yield
            finally:
                with suppress(OSError):  # where an open file cannot be removed it stays, empty
                    path.unlink()

    def begin(self, asked: dict[str, Any], **more: Any) -> None:
        """Write what is run; pieces of an earlier run are removed before."""
        self.remove_pieces()
        content = {"command": self.command, **ours(), "asked": asked, **more}
        write_atomically(self.experiment, json.dumps(content, indent=1) + "\n")

    def begun(self, kinds: dict[str, type]) -> dict[str, Any]:
        """What ``begin`` wrote, with at least these keys; a ``FolderError`` when the file is damaged or another's."""
        try:
            there = read_json(self.experiment)
        except JsonFileError as problem:
            raise FolderError(f"{problem}; {START_AGAIN}") from problem
        wanted = {"version": str, "source": str, "asked": dict, **kinds}
        if not isinstance(there, dict) or not all(isinstance(there.get(key), kind) for key, kind in wanted.items()):
            raise FolderError(f"{self.experiment}: was not written by saferank {self.command}; {START_AGAIN}")
        if there.get("command", self.command) != self.command:
            raise FolderError(f"{self.experiment}: was written by saferank {there['command']}; {START_AGAIN}")
        return there

    def check_same(self, there: dict[str, Any], asked: dict[str, Any]) -> None:
        """A ``FolderError`` unless the run that is there is the one that is asked for, played by the same code."""
        if not isinstance(there.get("asked"), dict) or not ours().keys() <= there.keys():
            raise FolderError(f"{self.path}: holds results that do not say how they were made; {START_AGAIN}")
        for key, now in ours().items():
            if there[key] != now:
                other = f"saferank {there[key]}, this is {now}" if key == "version" else "other source code of saferank"
                raise FolderError(f"{self.path}: was begun by {other}; {START_AGAIN}")
        asked = json.loads(json.dumps(asked))  # tuples have become lists in the file
        for key in sorted({*there["asked"], *asked}):
            before, wanted = there["asked"].get(key), asked.get(key)
            if before != wanted:
                differs = _DIGESTS.get(key, f"{key} = {_shown(before)}, not {_shown(wanted)}")
                raise FolderError(f"{self.path}: was begun with {differs}; ask for the same, or {START_AGAIN}")


def ours() -> dict[str, str]:
    """The version of the package that runs and the digest of its source."""
    return {"version": __version__, "source": package_digest()}


def _locked(descriptor: int) -> bool:
    """True when this process has the lock, and its file has not been removed meanwhile."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows: there two processes are not kept apart
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def _shown(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)


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
        runs = runs_frame([self.results[number]], [Runs(cell.checkpoints, rows)])
        frame = runs.select(*KEYS, "repetition", "round")
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
