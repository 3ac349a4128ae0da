"""The rows of a Parquet file, a slice at a time. Needs polars, the optional extra ``logs``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saferank.datasets.byte_chunks import Progress
from saferank.datasets.errors import LogError
from saferank.json_files import on_one_line

COLUMNS = ("query", "items", "clicked")
_SLICE = 1 << 16


def parquet_rows(path: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """The pages of a file as dicts, or a ``LogError``."""
    source = on_one_line(path)
    polars = _polars(source)
    try:
        yield from _rows(polars.scan_parquet(path, glob=False), polars, path, progress)
    except polars.exceptions.PolarsError as problem:
        reason = str(problem).partition("\n")[0]
        raise LogError(f"{source}: cannot be read as Parquet: {reason}") from problem


def _polars(source: str) -> Any:
    try:
        import polars
    except ImportError:
        raise LogError(f"{source}: is Parquet, which needs polars; to get it: pip install 'saferank[logs]'") from None
    return polars


def _rows(frame: Any, polars: Any, path: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    _check_columns(frame, on_one_line(path))
    total, size, told = frame.select(polars.len()).collect().item(), path.stat().st_size, 0
    for start in range(0, total, _SLICE):
        yield from frame.select(COLUMNS).slice(start, _SLICE).collect().iter_rows(named=True)
        reached = size * min(total, start + _SLICE) // total
        progress(reached - told)
        told = reached


def _check_columns(frame: Any, source: str) -> None:
    there = frame.collect_schema().names()
    missing = [name for name in COLUMNS if name not in there]
    if missing:
        raise LogError(
            f"{source}: has no column {missing[0]!r}; expected {', '.join(COLUMNS)}, found {', '.join(there)}"
        )
