"""The folder of a reproduction: beside what every run keeps there are the log and the click models.

``experiment.json`` is written when the click models are there. Beside it are ``log.gz`` (the synthetic log, where no
other was given), ``instances.json`` (the click models), and in the end ``sensitivity.json`` and ``study.json``.
"""

import hashlib
from pathlib import Path
from typing import Any

from saferank.errors import ArgumentError
from saferank.experiments.run_folder import RESULTS, START_AGAIN, FolderError, RunFolder
from saferank.instances import Instance, load_instances, save_instances
from saferank.reporting.runs import RUNS
from saferank.reproduction.planted import LOG_NAME

__all__ = ["RESULTS", "SENSITIVITY", "STUDY", "Folder", "FolderError"]

SENSITIVITY, STUDY = "sensitivity.json", "study.json"


class Folder(RunFolder):
    """The folder of a reproduction."""

    command = "reproduce"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.instances = path / "instances.json"

    @property
    def files(self) -> list[Path]:
        """Every file that a run writes, the pieces and the report aside."""
        others = [self.path / name for name in (LOG_NAME, SENSITIVITY, STUDY, RUNS)]
        return [self.experiment, self.results, self.instances, *others]

    def check_use(self, resume: bool, overwrite: bool) -> None:
        """A folder with a run in it is neither resumed nor cleared unless that is asked for."""
        super().check_use(resume, overwrite)
        if resume and self.results.exists() and not self.experiment.exists():
            raise ArgumentError("out", f"{self.path} holds results of another command; {START_AGAIN}")

    def begin_with(self, asked: dict[str, Any], instances: list[Instance], about: str, log: dict[str, Any]) -> None:
        """Write what is run. The instances first: where experiment.json is, they are too, and no old pieces."""
        self.remove_pieces()
        save_instances(self.instances, instances, about)
        self.begin(asked, log=log, instances=_digest(self.instances))

    def resumed(self, asked: dict[str, Any]) -> tuple[list[Instance], dict[str, Any]]:
        """The instances and the log's facts of the run that was begun here, if it is the one that is asked for."""
        there = self.begun({"log": dict, "instances": str})
        self.check_same(there, asked)
        if not self.instances.exists() or _digest(self.instances) != there["instances"]:
            raise FolderError(f"{self.instances}: is not the file that the run began with; {START_AGAIN}")
        return load_instances(self.instances), there["log"]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
