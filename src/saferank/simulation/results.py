"""Results: columns by checkpoint, means and standard errors over repetitions, and where they came from."""

import itertools
import json
import math
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
from saferank.files import JsonFileError, on_one_line, read_json, write_atomically
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
        result = Result(**entry)
    except TypeError as problem:
        fields = str(problem).partition("__init__() ")[2]
        raise ResultsError(f"{path}: results[{number}]: {fields}") from problem
    _check(result, f"{on_one_line(path)}: results[{number}]")
    return result


def _check(result: Result, where: str) -> None:
    for field in ("instance", "model", "policy"):
        _expect(isinstance(getattr(result, field), str), where, field, "a string")
    _expect(result.rule is None or isinstance(result.rule, str), where, "rule", "a string or null")
    for field in ("positions", "items", "repetitions"):
        _expect(_is_count(getattr(result, field)), where, field, "a whole number of at least 1")
    rounds = result.rounds
    counts = isinstance(rounds, list) and len(rounds) > 0 and all(map(_is_count, rounds))
    rising = counts and all(a < b for a, b in itertools.pairwise(rounds))
    _expect(rising, where, "rounds", "checkpoints, whole numbers in ascending order")
    for field in ("regret_mean", "violations_mean", "regret_stderr", "violations_stderr", "wrong_certificates_mean"):
        _check_column(getattr(result, field), len(rounds), where, field)


def _check_column(column: object, length: int, where: str, field: str) -> None:
    if column is None and field == "wrong_certificates_mean":
        return
    numbers = isinstance(column, list) and len(column) == length
    single = numbers and field.endswith("_stderr") and set(column) == {None}  # type: ignore[call-overload]
    finite = numbers and (single or all(map(_is_finite, column)))  # type: ignore[call-overload]
    _expect(finite, where, field, f"{length} finite numbers, one for each checkpoint")


def _expect(good: object, where: str, field: str, expected: str) -> None:
    if not good:
        raise ResultsError(f"{where}: {field}: expected {expected}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
