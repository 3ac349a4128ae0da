"""sessions: pages as newline-delimited JSON or as Parquet, with ``query``, ``items`` and ``clicked``.

    {"query": "running shoes", "items": ["a", "b", "c"], "clicked": ["b"]}

Names are strings or whole numbers; other keys are ignored. Inside, a name is a 64-bit hash of it, so that counting
queries takes as little memory as for numbers (two of 20 million names are equal with probability 10^-5); the names of
the selected queries and of their items are kept in the second pass.
"""

import functools
import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from saferank.files import on_one_line
from saferank.logs.formats.byte_chunks import CHUNK, Progress, chunks
from saferank.logs.formats.fields import Ids
from saferank.logs.formats.sniffing import is_parquet
from saferank.logs.records import GOOD, LONG_PAGE, LONGEST_PAGE, NOT_JSON, SHAPE, TWICE, LogError
from saferank.logs.tables.batch import (
    PageBatch,
    ReaderCounts,
    close_session,
    forget_closed,
    new_batch,
    new_reader_counts,
    note_bad,
)

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


NO_JSON = object()
BLANK = object()


class SessionsReader:
    """A log of named queries and items, as a stream of batches."""

    has_sessions = False

    def __init__(self, path: Path | list[Any], chunk: int = CHUNK) -> None:
        self._path = path  # or the pages themselves
        self._chunk = chunk
        self._selected: frozenset[int] = frozenset()
        self._names: dict[int, str] = {}
        self.tally: ReaderCounts = new_reader_counts()

    def batches(self, progress: Progress) -> Iterator[PageBatch]:
        """All pages in their order; the complete ones of each batch are gone when the next is asked for."""
        batch = new_batch()
        self.tally = batch.tally
        for text, record in self.pages(batch.tally, progress):
            note_line(batch.tally, self.take_page(batch, record), text, record)
            if batch.pages[0] == len(batch.query):
                close_session(batch)
                yield batch
                forget_closed(batch)
        close_session(batch)
        yield batch

    def select(self, queries: Ids) -> None:
        """Remember the names of these queries and of their items from now on."""
        self._selected = frozenset(queries.tolist())

    def name(self, number: np.uint64) -> str:
        """The name of a selected query, or of an item of one."""
        return self._names[int(number)]

    def pages(self, tally: ReaderCounts, progress: Progress) -> Iterator[tuple[bytes, object]]:
        """The lines that are JSON (rows of a Parquet file have no text) and their values; all lines are counted."""
        for text, record in self._records(progress):
            tally.lines[0] += 1
            if record is NO_JSON:
                note_line(tally, NOT_JSON, text)
            elif record is not BLANK:
                yield text, record

    def _records(self, progress: Progress) -> Iterator[tuple[bytes, object]]:
        if isinstance(self._path, list):
            yield from ((b"", row) for row in self._path)
            return
        if is_parquet(self._path):
            for row in parquet_rows(self._path, progress):
                yield b"", row
            return
        for data, stop in chunks(self._path, self._chunk, progress):
            for line in data[:stop].tobytes().split(b"\n")[:-1]:
                yield line, decoded(line)

    def take_page(self, batch: PageBatch, record: object) -> int:
        """Add a page to a batch that has room; returns what is wrong with it."""
        page = _page(record)
        if page is None:
            return SHAPE
        query, items, clicked = page
        if len(items) > LONGEST_PAGE:
            return LONG_PAGE
        if len(set(items)) < len(items):
            return TWICE
        self._put(batch, query, items, clicked)
        batch.tally.stray_clicks[0] += sum(item not in items for item in clicked)
        return GOOD

    def _put(self, batch: PageBatch, query: str, items: list[str], clicked: list[str]) -> None:
        page, length = batch.pages[0], len(items)
        number, numbers = _number(query), [_number(item) for item in items]
        batch.query[page], batch.length[page] = number, length
        batch.items[page, :length] = numbers
        batch.clicks[page, :length] = [item in clicked for item in items]
        batch.pages[0] += 1
        if number in self._selected:
            self._names.update(zip((number, *numbers), (query, *items), strict=True))


def note_line(tally: ReaderCounts, bad: int, text: bytes, record: object = "") -> None:
    """Count the line that was counted last as a bad one, unless it is good; without a text its ``record`` is shown."""
    if bad != GOOD:
        shown = text or str(record).encode()
        note_bad(tally, bad, np.frombuffer(shown, np.uint8).copy(), 0, len(shown))


def decoded(line: bytes) -> object:
    """The JSON value of a line; BLANK or NO_JSON."""
    try:
        text = line.decode("utf-8").strip()
        return json.loads(text) if text else BLANK
    except (ValueError, RecursionError):
        return NO_JSON


def _page(record: object) -> tuple[str, list[str], list[str]] | None:
    """Query, items and clicked items, or None if the record is not made of them."""
    if not isinstance(record, dict):
        return None
    query, items, clicked = name_of(record.get("query")), _names(record.get("items")), _names(record.get("clicked"))
    if query is None or not items or clicked is None:
        return None
    return query, items, clicked


def name_of(value: object) -> str | None:
    """A name as text: a string that is not empty, or a whole number; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _names(value: Any) -> list[str] | None:
    names = [name_of(entry) for entry in value] if isinstance(value, list) else [None]
    known = [name for name in names if name is not None]
    return known if len(known) == len(names) else None


@functools.lru_cache(maxsize=1 << 16)  # frequent queries come again, and so do their items
def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
