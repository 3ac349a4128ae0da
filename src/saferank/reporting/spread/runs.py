"""Single runs for a report: the Parquet file beside the results, by query, click model and policy."""

import importlib.util
from typing import Any

import numpy as np

from saferank.files import on_one_line
from saferank.reporting.reading import ReportError, Run
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs

FILE = "runs.parquet"
_NAMES = ("instance", "model", "policy")
_KEYS = (*_NAMES, "rule", "positions", "lifetime")
"""What tells the runs of a sweep apart; older files have fewer of these columns."""
Key = tuple[str, str, str]


def runs_of(run: Run) -> dict[Key, Runs] | str:
    """The runs of all results, or why there are none."""
    path = run.path.with_name(FILE)
    if not path.is_file():
        return f"{FILE} is not beside {run.path.name}; saferank simulate and saferank reproduce write it."
    if importlib.util.find_spec("polars") is None:
        return f"{FILE} cannot be read without polars; to get it: pip install 'saferank[logs]'."
    import polars

    try:
        there = polars.read_parquet_schema(path)
        keys = [key for key in _KEYS if key in there or key in _NAMES]
        frame = polars.read_parquet(path, columns=[*keys, "repetition", "round", *MEASURES])
        parts = frame.partition_by(*keys, as_dict=True, maintain_order=True)
        return {
            _key(result): _runs(parts[tuple(getattr(result, key) for key in keys)], result) for result in run.results
        }
    except (polars.exceptions.PolarsError, OSError, KeyError, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        raise ReportError(f"{on_one_line(path)}: does not hold the runs of the results beside it: {reason}") from None


def _key(result: Result) -> Key:
    return result.instance, result.model, result.policy


def _runs(part: Any, result: Result) -> Runs:
    rounds = part["round"].to_numpy()[: len(part) // result.repetitions]
    columns = [part[measure].cast(float).fill_null(0.0).to_numpy() for measure in MEASURES]
    return Runs(rounds, np.stack(columns, axis=1).reshape(result.repetitions, len(rounds), len(MEASURES)))


def measure_of(runs: Runs, measure: str) -> Any:
    """One measure: [repetition, checkpoint]."""
    return runs.values[:, :, MEASURES.index(measure)]
