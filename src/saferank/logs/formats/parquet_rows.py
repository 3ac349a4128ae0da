"""The rows of a Parquet file, a slice at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saferank.files import on_one_line
from saferank.logs.errors import LogError
from saferank.logs.formats.byte_chunks import Progress

COLUMNS = ("query", "items", "clicked")
MARKED = ("query_id", "query_doc_ids", "clicks")
"""The other layout: for every document of a page 1 if it was clicked and else 0."""
_SLICE = 1 << 16


def parquet_rows(path: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """The pages of a file as dicts, or a ``LogError``."""
    source = on_one_line(path)
    import polars

    try:
        yield from _rows(polars.scan_parquet(path, glob=False), polars, path, progress)
    except polars.exceptions.PolarsError as problem:
        reason = str(problem).partition("\n")[0]
        raise LogError(f"{source}: cannot be read as Parquet: {reason}") from problem


def _rows(frame: Any, polars: Any, path: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    columns = _columns(frame, on_one_line(path))
    total, size, reported = frame.select(polars.len()).collect().item(), path.stat().st_size, 0
    for start in range(0, total, _SLICE):
        rows = frame.select(columns).slice(start, _SLICE).collect().iter_rows(named=True)
        yield from rows if columns == COLUMNS else map(_page_of_marks, rows)
        reached = size * min(total, start + _SLICE) // total
        progress(reached - reported)
        reported = reached


def _columns(frame: Any, source: str) -> tuple[str, ...]:
    """The layout of the file, by its columns."""
    there = frame.collect_schema().names()
    for layout in (COLUMNS, MARKED):
        if set(layout) <= set(there):
            return layout
    missing = next(name for name in COLUMNS if name not in there)
    raise LogError(
        f"{source}: has no column {missing!r}; expected {', '.join(COLUMNS)} or {', '.join(MARKED)}, "
        f"found {', '.join(there)}"
    )


def _page_of_marks(row: dict[str, Any]) -> dict[str, Any]:
    """The page of a row; without clicked items, which makes it a bad one, if the marks do not fit the documents."""
    items, marks = row["query_doc_ids"], row["clicks"]
    page = {"query": row["query_id"], "items": items}
    if not isinstance(items, list) or not isinstance(marks, list) or len(items) != len(marks) or set(marks) - {0, 1}:
        return page
    return {**page, "clicked": [item for item, mark in zip(items, marks, strict=True) if mark]}
