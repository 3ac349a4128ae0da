"""The folder of a run that can be interrupted: what is in it, whether it can be resumed, what is removed by a restart.

``experiment.json`` says what is run, and is compared when a run is resumed. ``pieces/`` holds a file for each finished
cell until all are. ``results.json`` is written last: where it is and no pieces are, the run is finished.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from saferank._kernel import package_digest
from saferank._version import __version__
from saferank.errors import ArgumentError, UsageError
from saferank.files import JsonFileError, read_json, write_atomically
from saferank.reporting.runs import RUNS

RESULTS = "results.json"
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
