"""Results: columns by checkpoint, means and standard errors over repetitions, and where they came from."""

import json
import os
import platform
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saferank._version import COMMAND_LINE, __version__
from saferank.errors import UsageError
from saferank.files import JsonFileError, read_json, write_atomically
from saferank.verbs import Floats

Column = list[float]


@dataclass(frozen=True)
class Result:
    """What came of one policy on one instance; the columns are parallel to ``rounds``."""

    instance: str
    model: str
    policy: str
    rule: str | None
    positions: int
    items: int
    repetitions: int
    rounds: list[int]
    regret_mean: Column
    regret_stderr: Column | list[None]  # None where a single repetition has no standard error
    violations_mean: Column
    violations_stderr: Column | list[None]
    wrong_certificates_mean: Column | None  # None for policies without certificates
    lifetime: int | None = None  # of certificates; None: they never end
    clicks_relative_mean: Column | None = None  # expected clicks of all pages relative to the original ranking's
    worst_page_min: Column | None = None  # the smallest such ratio of a single page, in any repetition
    world: str | None = None  # what is not as in the paper, like ``delay:10``; None: nothing


def mean_and_stderr(runs: Floats) -> tuple[Column, Column | list[None]]:
    """Mean and standard error (ddof 1) over the first axis.

    >>> mean_and_stderr(np.array([[1.0, 2.0], [3.0, 2.0]]))
    ([2.0, 2.0], [1.0, 0.0])
    """
    mean = runs.mean(axis=0).tolist()
    if len(runs) < 2:
        return mean, [None] * len(mean)
    return mean, (runs.std(axis=0, ddof=1) / np.sqrt(len(runs))).tolist()


def provenance(caller: str, seed: int, seconds: float) -> dict[str, Any]:
    """Where results come from: version, command line or the function that was called, seed, seconds, machine."""
    return {
        "version": __version__,
        "command": shlex.join(COMMAND_LINE.get()) or caller,
        "seed": seed,
        "seconds": round(seconds, 3),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": sys.modules["numba"].__version__ if "numba" in sys.modules else None,
        },
    }


def write_results(path: Path, results: list[Result], source: dict[str, Any]) -> None:
    """Write ``results.json`` at once, one result a line."""
    lines = ",\n".join(json.dumps(asdict(result), allow_nan=False) for result in results)
    head = json.dumps(source, allow_nan=False)
    write_atomically(path, f'{{"provenance": {head},\n"results": [\n{lines}\n]}}\n')


class ResultsError(UsageError):
    """What is wrong with a results file, in one line."""


def read_results(path: Path) -> tuple[list[Result], dict[str, Any]]:
    """The results of a file and their provenance."""
    try:
        data = read_json(path)
    except JsonFileError as problem:
        raise ResultsError(f"{problem}; expected a results file") from problem
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise ResultsError(f"{path}: results: is missing; expected a file written by saferank simulate")
    return [_result(entry, path, number) for number, entry in enumerate(data["results"])], data.get("provenance", {})


def _result(entry: object, path: Path, number: int) -> Result:
    if not isinstance(entry, dict):
        raise ResultsError(f"{path}: results[{number}]: expected an object")
    try:
        return Result(**entry)
    except TypeError as problem:
        fields = str(problem).partition("__init__() ")[2]
        raise ResultsError(f"{path}: results[{number}]: {fields}") from problem
