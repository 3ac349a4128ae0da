"""The folder of a reproduction: beside what every run keeps, the log and the click models; in the end the results.

``experiment.json`` is written when the click models are there. Beside it are ``log.gz`` (the synthetic log, where no
other was given), ``instances.json`` (the click models), and in the end ``sensitivity.json`` and ``study.json``.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saferank.errors import ArgumentError
from saferank.experiments.run_folder import START_AGAIN, FolderError, RunFolder
from saferank.files import sha256_of
from saferank.instances import Instance, load_instances, save_instances
from saferank.reporting.frames import RESULTS, RUNS, runs_frame, write_runs
from saferank.reproduction.log import LOG_NAME
from saferank.reproduction.parts import Parts, Special
from saferank.reproduction.protocol import Protocol
from saferank.simulation.engine import Gathered
from saferank.simulation.results import write_results

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
        self.begin(asked, log=log, instances=sha256_of(self.instances))

    def resumed(self, asked: dict[str, Any]) -> tuple[list[Instance], dict[str, Any]]:
        """The instances and the log's facts of the run that was begun here, if it is the one that is asked for."""
        there = self.begun({"log": dict, "instances": str})
        self.check_same(there, asked)
        if not self.instances.exists() or sha256_of(self.instances) != there["instances"]:
            raise FolderError(f"{self.instances}: is not the file that the run began with; {START_AGAIN}")
        return load_instances(self.instances), there["log"]


def reproduction_facts(
    protocol: Protocol,
    log: dict[str, Any],
    instances: Sequence[Instance],
    special: Special,
    sets: Mapping[str, Sequence[Instance]],
) -> dict[str, Any]:
    """What was run, for the provenance of results."""
    parts = protocol.parts
    return {
        "profile": protocol.profile,
        "log": {key: value for key, value in log.items() if key != "fit"},
        "fit": log.get("fit", {}),
        "queries": len({instance.id for instance in instances}),
        "special": special.facts(),
        "rule": protocol.rule,
        "rounds": protocol.rounds,
        "repetitions": protocol.sizes.repetitions,
        "positions": protocol.positions,
        "items": protocol.items,
        "models": list(protocol.models),
        "iterations": protocol.iterations,
        "sensitivity": SENSITIVITY if "sensitivity" in parts else None,
        "study": STUDY if "study" in parts else None,
        "study_sets": {name: list(dict.fromkeys(each.id for each in some)) for name, some in sets.items()},
    }


def measured(parts: Parts, gathered: Gathered) -> dict[str, Any]:
    """The seconds of threads that each policy took in the paper's experiment, and the most memory of this process."""
    seconds: dict[str, float] = {}
    for number, cell in enumerate(parts.paper):
        seconds[cell.kind.name] = seconds.get(cell.kind.name, 0.0) + gathered.seconds.get(number, 0.0)
    return {
        "seconds_by_policy": {policy: round(each, 3) for policy, each in seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float | None:
    """The most memory that this process has had; None where the system does not tell."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)


def write_outcome(folder: Path, parts: Parts, gathered: Gathered, source: dict[str, Any]) -> None:
    """Write the files; results.json last: where it is, the others are complete."""
    results = gathered.in_order()
    first = len(parts.paper)
    second = first + len(parts.sensitivity)
    if parts.sensitivity:
        write_results(folder / SENSITIVITY, results[first:second], source)
    if parts.study:
        write_results(folder / STUDY, results[second:], source)
    write_runs(folder / RUNS, runs_frame(results[:first], gathered.runs_in_order()[:first]))
    write_results(folder / RESULTS, results[:first], source)
