"""Finished pieces of a long run, kept as they come, so that a killed run loses little.

A file of lines, each a checksum and a JSON record: the result of a cell as soon as it is complete, and every
KEEP_SECONDS the single runs of cells that are not. What a killed process or a full disk leaves of the last line has no
right checksum: reading stops there, and what followed is played again. (A single run is the smallest piece: one that
lasts longer than a minute is lost as a whole.)
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from saferank.reproduction.folder import ANEW, FolderError
from saferank.simulation.engine import Gathered, Played
from saferank.simulation.experiment import Cell
from saferank.simulation.results import Result

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

    @property
    def rounds_there(self) -> int:
        """How many rounds need not be played any more."""
        complete = sum(self.cells[number].plan.repetitions * self.cells[number].plan.rounds for number in self.results)
        return complete + sum(len(runs) * self.cells[number].plan.rounds for number, runs in self.runs.items())

    def add(self, played: Played) -> None:
        """Hear of a task that was played, and keep what is worth it."""
        super().add(played)
        number = played.task.cell
        if number in self.results:
            self._append({"cell": number, "result": asdict(self.results[number])})
        if time.monotonic() - self._kept_at > KEEP_SECONDS:
            self._keep_runs()

    def _keep_runs(self) -> None:
        for number, runs in self.runs.items():
            fresh = {repetition: rows for repetition, rows in runs.items() if (number, repetition) not in self._kept}
            if fresh:
                self._append({"cell": number, "runs": {str(key): rows.tolist() for key, rows in fresh.items()}})
                self._kept |= {(number, repetition) for repetition in fresh}
        with _blaming_the_system():
            os.fsync(self._file.fileno())
        self._kept_at = time.monotonic()

    def _append(self, record: dict[str, Any]) -> None:
        said = {
            **record,
            "of": self._names(record["cell"]),
            "seconds": self.seconds[record["cell"]],
            "elapsed": round(self.elapsed, 3),
        }
        body = json.dumps(said, allow_nan=False).encode()
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
                    raise FolderError(f"{path}: was kept by another experiment; {ANEW}")
                self._take_in(record)
        self.dropped = path.stat().st_size - good
        self._file.truncate(good)

    def _names(self, number: int) -> list[str | None]:
        """What a cell plays: a number alone would be believed of any experiment."""
        if number >= len(self.cells):
            return []
        cell = self.cells[number]
        return [cell.instance.id, cell.instance.model_name, cell.kind.name, cell.rule_name]

    def _take_in(self, record: dict[str, Any]) -> None:
        number = record["cell"]
        self.seconds[number], self.seconds_before = record["seconds"], record["elapsed"]
        if "result" in record:
            self.results[number] = Result(**record["result"])
            self.runs.pop(number, None)
            return
        runs = {int(key): np.array(rows) for key, rows in record["runs"].items()}
        self.runs.setdefault(number, {}).update(runs)
        self._kept |= {(number, repetition) for repetition in runs}


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
