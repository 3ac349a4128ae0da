"""What a reproduction writes: results, sensitivity and study, each with where it came from."""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saferank.experiments.frames import write_runs
from saferank.instances import Instance
from saferank.logs import LogSummary
from saferank.reporting.runs import RUNS
from saferank.reproduction.folder import RESULTS, SENSITIVITY, STUDY
from saferank.reproduction.parts import Parts
from saferank.reproduction.protocol import Protocol
from saferank.reproduction.special import Special
from saferank.simulation.engine import Gathered
from saferank.simulation.results import write_results


def log_facts(summary: LogSummary, name: str, synthetic: bool) -> dict[str, Any]:
    """A log by name, and what was in it."""
    return {
        "name": name,
        "format": summary.format,
        "synthetic": synthetic,
        "sessions": summary.sessions,
        "pages": summary.pages,
        "queries": summary.queries,
        "clicks": summary.clicks,
        "pages_without_click": summary.pages_without_click,
        "bad_lines": summary.bad,
    }


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        "log": log,
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
    write_runs(folder / RUNS, results[:first], gathered.runs_in_order()[:first])
    write_results(folder / RESULTS, results[:first], source)
