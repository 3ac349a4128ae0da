"""Single runs in a file beside ``results.json``: Parquet in long form, one row per run and checkpoint."""

import importlib.util
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saferank.experiments.frames import KEYS, polars_frame, run_columns
from saferank.files import on_one_line, replacing
from saferank.simulation.results import Result, ResultsError
from saferank.simulation.runs import MEASURES, Runs

RUNS = "runs.parquet"


def write_runs(path: Path, curves: Sequence[Result], runs: Sequence[Runs]) -> list[Path]:
    """Write the file; returns it in a list, which is empty, after a warning, where there is no polars."""
    if importlib.util.find_spec("polars") is None:
        warnings.warn(f"{path.name} is not written: it needs polars, pip install 'saferank[logs]'", stacklevel=3)
        return []
    content = io.BytesIO()
    polars_frame(run_columns(curves, runs)).write_parquet(content, compression="zstd", statistics=False)
    with replacing(path) as file:
        file.write(content.getbuffer())
    return [path]


def read_runs(path: Path, curves: Sequence[Result]) -> list[Runs] | None:
    """The runs of these curves; None when there is no such file or no polars to read it."""
    if not path.is_file() or importlib.util.find_spec("polars") is None:
        return None
    import polars

    try:
        frame = polars.read_parquet(path)
        keys = [key for key in KEYS if key in frame.columns]  # an older file has fewer
        parts = frame.partition_by(*keys, as_dict=True, maintain_order=True)
        return [_runs(parts[tuple(getattr(curve, key) for key in keys)], curve) for curve in curves]
    except (polars.exceptions.PolarsError, OSError, KeyError, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        raise ResultsError(f"{on_one_line(path)}: does not hold the runs of the results beside it: {reason}") from None


def _runs(part: Any, curve: Result) -> Runs:
    rounds = part["round"].to_numpy()[: len(part) // curve.repetitions]
    columns = [part[measure].cast(float).fill_null(0.0).to_numpy() for measure in MEASURES]
    return Runs(rounds, np.stack(columns, axis=1).reshape(curve.repetitions, len(rounds), len(MEASURES)))
