"""Results as columns in long form, for polars, pandas and Parquet."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.files import replacing
from saferank.reporting.runs import NAMES
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs

if TYPE_CHECKING:
    import pandas
    import polars


MEANS = (
    "regret_mean", "regret_stderr", "violations_mean", "violations_stderr", "wrong_certificates_mean",
    "clicks_relative_mean", "worst_page_min",
)  # fmt: skip


def run_columns(curves: Sequence[Result], runs: Sequence[Runs]) -> dict[str, Any]:
    """One row per run and kept checkpoint."""
    sizes = [each.values.shape[0] * each.values.shape[1] for each in runs]
    columns: dict[str, Any] = {name: _repeated([getattr(curve, name) for curve in curves], sizes) for name in NAMES}
    columns["positions"] = np.repeat([curve.positions for curve in curves], sizes)
    columns["lifetime"] = _repeated([curve.lifetime for curve in curves], sizes)
    columns["repetition"] = _stacked([np.repeat(np.arange(len(r.values)), len(r.rounds)) for r in runs])
    columns["round"] = _stacked([np.tile(r.rounds, len(r.values)) for r in runs])
    for place, measure in enumerate(MEASURES):
        columns[measure] = _stacked([r.values[:, :, place].ravel() for r in runs])
    columns["violations"] = columns["violations"].astype(np.int64)
    certified = np.repeat([curve.wrong_certificates_mean is not None for curve in curves], sizes)
    columns["wrong_certificates"] = np.where(certified, columns["wrong_certificates"], np.nan)
    return columns


def mean_columns(curves: Sequence[Result]) -> dict[str, Any]:
    """One row per checkpoint, with means and standard errors over repetitions."""
    sizes = [len(curve.rounds) for curve in curves]
    columns: dict[str, Any] = {name: _repeated([getattr(curve, name) for curve in curves], sizes) for name in NAMES}
    columns["lifetime"] = _repeated([curve.lifetime for curve in curves], sizes)
    for name in ("positions", "items", "repetitions"):
        columns[name] = np.repeat([getattr(curve, name) for curve in curves], sizes)
    columns["round"] = _stacked([np.array(curve.rounds) for curve in curves])
    for name in MEANS:
        columns[name] = _stacked([_floats(getattr(curve, name), len(curve.rounds)) for curve in curves])
    return columns


def _repeated(names: list[Any], sizes: Sequence[int]) -> list[Any]:
    return [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]


def _stacked(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0)


def _floats(column: Sequence[float | None] | None, length: int) -> Any:
    """A column of numbers; NaN where there is none."""
    return np.array([None] * length if column is None else column, float)


def polars_frame(columns: dict[str, Any]) -> "polars.DataFrame":
    """The columns as a frame of polars, NaN as null."""
    import polars

    kinds: dict[str, Any] = {name: polars.String for name in columns if name in NAMES}  # also where all are None
    kinds |= {name: polars.Int64 for name in columns if name == "lifetime"}
    return polars.DataFrame(columns, schema_overrides=kinds, nan_to_null=True)


def pandas_frame(columns: dict[str, Any]) -> "pandas.DataFrame":
    """The columns as a frame of pandas."""
    try:
        import pandas
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install 'saferank[pandas]'") from problem
    return pandas.DataFrame(columns)


def write_runs(path: Path, curves: Sequence[Result], runs: Sequence[Runs]) -> None:
    """Write single runs as Parquet, one row per run and checkpoint."""
    content = io.BytesIO()
    polars_frame(run_columns(curves, runs)).write_parquet(content, compression="zstd", statistics=False)
    with replacing(path) as file:
        file.write(content.getbuffer())
