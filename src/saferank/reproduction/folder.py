"""The folder of a run: what is in it, whether it can be gone on with, and what goes when a run begins anew.

``experiment.json`` says what is run: it is written when the click models are there, and compared when a run is resumed.
Beside it are ``log.gz`` (the synthetic log, where no other was given), ``instances.json`` (the click models),
``pieces/`` (what is finished, until all is), and in the end ``results.json``, ``sensitivity.json``, ``study.json``.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from saferank._kernel import package_digest
from saferank._version import __version__
from saferank.instances import Instance, load_instances, save_instances
from saferank.json_files import JsonFileError, read_json, write_atomically
from saferank.reproduction.planted import LOG_NAME

RESULTS, SENSITIVITY, STUDY = "results.json", "sensitivity.json", "study.json"
LOCK = ".in-use"


class FolderError(ValueError):
    """Why a folder cannot be used, in a sentence that says what to do."""


class Folder:
    """The folder of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment = path / "experiment.json"
        self.instances = path / "instances.json"
        self.pieces = path / "pieces" / "finished.log"
        self.results = path / RESULTS

    @property
    def files(self) -> list[Path]:
        """Every file that a run writes, the report aside."""
        others = [self.path / name for name in (LOG_NAME, SENSITIVITY, STUDY)]
        return [self.experiment, self.results, self.pieces, self.instances, *others]

    @property
    def in_use(self) -> list[Path]:
        """Files that are there of a run, or of somebody who calls files as a run does."""
        return [file for file in self.files if file.exists()]

    @property
    def finished(self) -> bool:
        """True when a run has come to its end here."""
        return self.results.exists() and not self.pieces.exists()

    def clear(self) -> None:
        """Remove what a run leaves behind, and nothing else."""
        for file in self.files:
            file.unlink(missing_ok=True)
        self.remove_pieces()

    def remove_pieces(self) -> None:
        """Once all is written, pieces are of no more use."""
        self.pieces.unlink(missing_ok=True)
        with suppress(OSError):  # never made, or somebody else's files are there too
            self.pieces.parent.rmdir()

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

    def begin(self, asked: dict[str, Any], instances: list[Instance], about: str, log: dict[str, Any]) -> None:
        """Write down what is run. The instances first: who finds experiment.json finds them too, and no old pieces."""
        self.remove_pieces()
        save_instances(self.instances, instances, about)
        said = {**_ours(), "asked": asked, "log": log, "instances": _digest(self.instances)}
        write_atomically(self.experiment, json.dumps(said, indent=1) + "\n")

    def go_on(self, asked: dict[str, Any]) -> tuple[list[Instance], dict[str, Any]]:
        """The instances and the log's facts of the run that was begun here, if it is the one that is asked for."""
        there = self._experiment()
        for key, ours in _ours().items():
            if there[key] != ours:
                raise FolderError(f"{self.path}: was begun by saferank of {key} {there[key]}, this is {ours}; {ANEW}")
        for key in sorted({*there["asked"], *asked}):
            before, now = there["asked"].get(key), asked.get(key)
            if before != now:
                differs = f"was begun with {key} = {_told(before)}, not {_told(now)}"
                raise FolderError(f"{self.path}: {differs}; ask for the same, or {ANEW}")
        if not self.instances.exists() or _digest(self.instances) != there["instances"]:
            raise FolderError(f"{self.instances}: is not the file that the run began with; {ANEW}")
        return load_instances(self.instances), there["log"]

    def _experiment(self) -> dict[str, Any]:
        try:
            there = read_json(self.experiment)
        except JsonFileError as problem:
            raise FolderError(f"{problem}; {ANEW}") from problem
        if not isinstance(there, dict) or not {"version", "source", "asked", "log", "instances"} <= there.keys():
            raise FolderError(f"{self.experiment}: was not written by saferank reproduce; {ANEW}")
        return there


ANEW = "start anew with --overwrite, or name another folder"


def _locked(descriptor: int) -> bool:
    """True when this process has the lock, and nobody has removed its file meanwhile."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows: there two processes are not kept apart
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def _ours() -> dict[str, str]:
    return {"version": __version__, "source": package_digest()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _told(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)
