"""Finished pieces of a long run, kept as they come, so that a killed run loses little.

A file of lines, each a checksum and a JSON record: the result of a cell as soon as it is complete, and every
KEEP_SECONDS the single runs of cells that are not. What a killed process or a full disk leaves of the last line has no
right checksum: reading stops there, and what followed is played again. (A single run is the smallest piece: one that
lasts longer than a minute is lost as a whole.)
"""

import base64
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.errors import ClusterError, OutputError
from saferank.experiments.run_folder import GO_ON, START_AGAIN, FolderError
from saferank.simulation.engine import Gathered, Played
from saferank.simulation.experiment import Cell
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs, kept_checkpoints
from saferank.verbs import Floats

if TYPE_CHECKING:
    from saferank.progress import Reporter

KEEP_SECONDS = 20.0
"""How much work of unfinished cells may be lost."""

_CHECKSUM = 16


class PiecesError(RuntimeError):
    """Why pieces cannot be kept, in a few words."""


class Pieces(Gathered):
    """What has come of an experiment so far, kept in a file; what the file holds already is there from the start."""

    def __init__(self, cells: Sequence[Cell], path: Path, started: float | None = None) -> None:
        super().__init__(cells)
        self.seconds_before = 0.0  # of earlier processes
        self.dropped = 0  # bytes of records that were torn
        self._kept: set[tuple[int, int]] = set()  # single runs that are in the file
        self._kept_at = time.monotonic()
        self._started = self._kept_at if started is None else started
        with _blaming_the_system():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)  # what cannot be written is noticed here and now
            try:
                self._restore(path)
            except BaseException:
                self._file.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @property
    def elapsed(self) -> float:
        """Seconds since the experiment began, those of earlier processes included, as far as they were noted."""
        return self.seconds_before + time.monotonic() - self._started

    def add(self, played: Played) -> None:
        """Take in a task that was played, and keep what is worth it."""
        super().add(played)
        number = played.task.cell
        if number in self.results:
            single = packed(self.kept[number].values)
            self._append({"cell": number, "result": asdict(self.results[number]), "single_runs": single})
        if time.monotonic() - self._kept_at > KEEP_SECONDS:
            self.keep_runs()

    def keep_runs(self) -> None:
        """Keep the single runs of unfinished cells now."""
        for number, runs in self.runs.items():
            fresh = {repetition: rows for repetition, rows in runs.items() if (number, repetition) not in self._kept}
            if fresh:
                self._append({"cell": number, "runs": {str(key): rows.tolist() for key, rows in fresh.items()}})
                self._kept |= {(number, repetition) for repetition in fresh}
        with _blaming_the_system():
            os.fsync(self._file.fileno())
        self._kept_at = time.monotonic()

    def _append(self, record: dict[str, Any]) -> None:
        content = {
            **record,
            "of": self._names(record["cell"]),
            "seconds": self.seconds[record["cell"]],
            "elapsed": round(self.elapsed, 3),
        }
        body = json.dumps(content, allow_nan=False).encode()
        rest = memoryview(_checksum(body) + b" " + body + b"\n")
        with _blaming_the_system():
            while rest:
                rest = rest[self._file.write(rest) :]

    def _restore(self, path: Path) -> None:
        """Take in the records of the file, and cut off what follows the last good one."""
        good = 0
        with path.open("rb") as lines:
            for length, record in _records(lines):
                good += length
                if record.get("of") != self._names(record["cell"]):
                    raise FolderError(f"{path}: was kept by another experiment; {START_AGAIN}")
                self._take_in(record)
        self.dropped = path.stat().st_size - good
        self._file.truncate(good)

    def _unpacked(self, number: int, text: str) -> Runs:
        cell = self.cells[number]
        rounds = cell.checkpoints[kept_checkpoints(cell.checkpoints)]
        values = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8").astype(float)
        return Runs(rounds, values.reshape(cell.plan.repetitions, len(rounds), len(MEASURES)))

    def _names(self, number: int) -> list[str | int | None]:
        """What a cell plays: a number alone would be believed of any experiment."""
        if number >= len(self.cells):
            return []
        cell = self.cells[number]
        played = [cell.instance.id, cell.instance.model_name, cell.kind.name, cell.rule_name]
        return [*played, cell.setup.n_positions, cell.setup.lifetime, cell.plan.world]

    def _take_in(self, record: dict[str, Any]) -> None:
        number = record["cell"]
        self.seconds[number], self.seconds_before = record["seconds"], record["elapsed"]
        if "result" in record:
            self.results[number] = Result(**record["result"])
            self.kept[number] = self._unpacked(number, record["single_runs"])
            self.runs.pop(number, None)
            return
        runs = {int(key): np.array(rows) for key, rows in record["runs"].items()}
        self.runs.setdefault(number, {}).update(runs)
        self._kept |= {(number, repetition) for repetition in runs}


@contextmanager
def resumable(path: Path) -> Iterator[None]:
    """Say how to resume when something fails after pieces have been kept in the file ``path``."""
    kept = f"what was finished is kept; {GO_ON}"
    try:
        yield
    except PiecesError as problem:
        raise OutputError(f"{path}: cannot be written: {problem}; {kept} when there is room") from problem
    except ClusterError as problem:
        raise (ClusterError(f"{problem}; {kept}") if path.exists() else problem) from problem


@contextmanager
def opened_pieces(cells: Sequence[Cell], path: Path, started: float, shown: "Reporter") -> Iterator[Pieces]:
    """The pieces in the file ``path``; what is there already is noted, and an interrupt keeps what was finished."""
    pieces = Pieces(cells, path, started)
    try:
        _note_resumed(pieces, shown)
        yield pieces
    except KeyboardInterrupt:
        pieces.keep_runs()
        raise
    finally:
        pieces.close()


def _note_resumed(pieces: Pieces, shown: "Reporter") -> None:
    if not pieces.rounds_there and not pieces.dropped:
        return
    total = sum(cell.plan.repetitions * cell.plan.rounds for cell in pieces.cells)
    torn = f"; a torn record of {pieces.dropped:,} bytes is played again" if pieces.dropped else ""
    shown.note(f"{pieces.rounds_there:,} of {total:,} rounds are there already{torn}")


def packed(values: Floats) -> str:
    """Numbers as text, bit for bit, in little room."""
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes())).decode()


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECKSUM].encode()


@contextmanager
def _blaming_the_system() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise PiecesError(problem.strerror or str(problem)) from problem


def _records(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records up to the first that is torn, each with its length in bytes."""
    for line in lines:
        checksum, _, body = line.partition(b" ")
        if not line.endswith(b"\n") or _checksum(body[:-1]) != checksum:
            return
        yield len(line), json.loads(body)
