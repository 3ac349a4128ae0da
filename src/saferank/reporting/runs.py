"""Single runs in ``runs.parquet`` beside ``results.json``: in long form, one row per run and checkpoint."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saferank.files import on_one_line
from saferank.reporting.reading import Run
from saferank.simulation.results import Result, ResultsError
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

if TYPE_CHECKING:
    import polars

RUNS = "runs.parquet"
NAMES = ("instance", "model", "policy", "rule", "world")
KEYS = (*NAMES, "positions", "lifetime")
"""What tells the curves of an experiment apart."""

Key = tuple[str, str, str]


def read_runs(path: Path, curves: Sequence[Result]) -> list[Runs] | None:
    """The runs of these curves; None when there is no such file."""
    if not path.is_file():
        return None
    import polars

    try:
        frame = polars.read_parquet(path)
        keys = [key for key in KEYS if key in frame.columns]  # an older file has fewer
        parts = frame.partition_by(*keys, as_dict=True, maintain_order=True)
        return [run_values(parts[tuple(getattr(curve, key) for key in keys)], curve.repetitions) for curve in curves]
    except (polars.exceptions.PolarsError, OSError, KeyError, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        raise ResultsError(f"{on_one_line(path)}: does not hold the runs of the results beside it: {reason}") from None


def run_values(part: "polars.DataFrame", repetitions: int) -> Runs:
    """The runs of one curve."""
    rounds = part["round"].to_numpy()[: len(part) // repetitions]
    columns = [part[measure].cast(float).fill_null(0.0).to_numpy() for measure in MEASURES]
    return Runs(rounds, np.stack(columns, axis=1).reshape(repetitions, len(rounds), len(MEASURES)))


def runs_of(run: Run) -> dict[Key, Runs] | str:
    """The runs of the results of a report, by query, click model and policy, or why there are none."""
    there = read_runs(run.path.with_name(RUNS), run.results)
    if there is None:
        return f"{RUNS} is not beside {run.path.name}; saferank simulate and saferank reproduce write it."
    return {(each.instance, each.model, each.policy): runs for each, runs in zip(run.results, there, strict=True)}


def measure_of(runs: Runs, measure: str) -> Floats:
    """One measure: [repetition, checkpoint]."""
    values: Floats = runs.values[:, :, MEASURES.index(measure)]
    return values
