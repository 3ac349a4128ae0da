"""From a log file to its summary, and to the pages of its most frequent queries.

Two passes over the file: the first counts how often every query was asked, the second collects the pages of the N most
frequent ones. Neither keeps more than tables of what is different, so the size of the file does not matter.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from saferank.files import on_one_line
from saferank.logs.formats.byte_chunks import CHUNK, Damaged, Progress
from saferank.logs.formats.event_tables import GA4, SEGMENT, TableReader
from saferank.logs.formats.fields import Ids
from saferank.logs.formats.sessions import SessionsReader
from saferank.logs.formats.sniffing import EXPECTED, check_format
from saferank.logs.formats.ubi import UbiReader
from saferank.logs.formats.yandex import YandexReader, personalized, relevance
from saferank.logs.records import RANKING_LENGTH, ClickLog, LogError, LogSummary
from saferank.logs.tables.batch import PageBatch, ReaderCounts, bad_lines
from saferank.logs.tables.hashed_rows import heaviest
from saferank.logs.tables.passes import (
    Collection,
    Counts,
    collected,
    counted,
    distinct_pages,
    frequent_rankings,
    new_collection,
    new_counts,
)
from saferank.verbs import Ints

MAX_BAD = 0.01
"""More bad lines than this share of all stop a reader."""


class LogReader(Protocol):
    """What a format has to offer."""

    has_sessions: bool
    tally: ReaderCounts  # of the latest pass

    def batches(self, progress: Progress) -> Iterator[PageBatch]:
        """All pages in their order; the complete ones of each batch are gone when the next is asked for."""

    def select(self, queries: Ids) -> None:
        """Be ready to name these queries and their items after the next pass."""

    def name(self, number: np.uint64) -> str:
        """The id, as it stands in the log, of a query or item."""


FORMATS: dict[str, Callable[[Path, int], LogReader]] = {
    "yandex-personalized": lambda path, chunk: YandexReader(personalized(), path, chunk),
    "yandex-relevance": lambda path, chunk: YandexReader(relevance(), path, chunk),
    "sessions": SessionsReader,
    "ubi": UbiReader,
    "ga4": lambda path, chunk: TableReader(GA4, path, chunk),
    "segment": lambda path, chunk: TableReader(SEGMENT, path, chunk),
}


def _no_progress(n_bytes: int) -> None:
    pass


def summarize_log(
    path: str | os.PathLike[str],
    format: str,
    *,
    max_bad: float = MAX_BAD,
    progress: Progress = _no_progress,
    chunk: int = CHUNK,
) -> LogSummary:
    """What is in a log, in one pass. ``progress`` is called with the number of bytes that were read since."""
    reader = _reader(Path(path), format, chunk)
    return _summary(reader, _counts(reader, path, progress), on_one_line(path), format, max_bad)


def source_of(given: Any) -> Path | list[Any]:
    """A log's file; or its pages, given as a list of dicts or as a frame (polars, pandas) like the format sessions.

    >>> source_of([{"query": "q", "items": ["a"], "clicked": []}])
    [{'query': 'q', 'items': ['a'], 'clicked': []}]
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    if hasattr(given, "to_dicts"):
        return list(given.to_dicts())
    rows = given.to_dict("records") if hasattr(given, "to_dict") else given
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise LogError(f"found {type(given).__name__}, expected a log file, a frame or a list of pages")
    return list(rows)


def read_log(
    path: str | os.PathLike[str] | list[Any],
    format: str,
    *,
    queries: int = 100,
    page_length: int | None = RANKING_LENGTH,
    max_bad: float = MAX_BAD,
    progress: Progress = _no_progress,
    chunk: int = CHUNK,
) -> ClickLog:
    """The pages of the ``queries`` most frequent queries of a log, a file or a list of sessions, in two passes.

    All pages are taken, whatever their length. ``page_length`` is that of the rankings that are noted; None stands for
    ten where a query has such a page, and else for the most frequent length of its pages.
    """
    if queries < 1:
        raise ValueError(f"queries is {queries}, expected at least 1")
    listed = isinstance(path, list)
    reader = SessionsReader(path, chunk) if isinstance(path, list) else _reader(Path(path), format, chunk)
    source = f"{len(path)} sessions" if isinstance(path, list) else on_one_line(path)
    counts = _counts(reader, source, progress)
    summary = _summary(reader, counts, source, "sessions" if listed else format, max_bad)
    selected = counts.queries.rows[heaviest(counts.queries, queries), 0].copy()
    del counts  # with many queries the table is large, and the second pass needs room for its own
    reader.select(selected)
    collection = new_collection(selected, len(summary.shown_by_position))
    for batch in _passing(reader, source, progress):
        collection = collected(collection, batch)
    return _click_log(reader, collection, _with_warning(summary, queries), page_length)


def _reader(path: Path, format: str, chunk: int) -> LogReader:
    if format not in FORMATS:
        raise LogError(f"{on_one_line(path)}: unknown format {format!r}; known ones: {', '.join(FORMATS)}")
    check_format(path, format)
    return FORMATS[format](path, chunk)


def _passing(reader: LogReader, path: str | os.PathLike[str], progress: Progress) -> Iterator[PageBatch]:
    try:
        yield from reader.batches(progress)
    except Damaged as problem:
        raise LogError(f"{on_one_line(path)}: line {reader.tally.lines[0] + 1}: {problem}") from problem


def _counts(reader: LogReader, path: str | os.PathLike[str], progress: Progress) -> Counts:
    counts = new_counts()
    for batch in _passing(reader, path, progress):
        counts = counted(counts, batch)
    return counts


def _summary(reader: LogReader, counts: Counts, source: str, format: str, max_bad: float) -> LogSummary:
    tally, longest = reader.tally, int(np.count_nonzero(counts.shown))
    summary = LogSummary(
        source=source,
        format=format,
        lines=int(tally.lines[0]),
        sessions=int(tally.sessions[0]) if reader.has_sessions else None,
        pages=int(counts.pages[0]),
        test_pages=int(counts.test_pages[0]),
        queries=int(counts.queries.used[0]),
        clicks=int(counts.clicked.sum()),
        shown_by_position=tuple(counts.shown[:longest].tolist()),
        clicks_by_position=tuple(counts.clicked[:longest].tolist()),
        pages_without_click=int(counts.without_click[0]),
        stray_clicks=int(tally.stray_clicks[0]),
        test_clicks=int(tally.test_clicks[0]),
        bad_lines=bad_lines(tally),
    )
    _refuse_useless(summary, max_bad)
    return summary


def _refuse_useless(summary: LogSummary, max_bad: float) -> None:
    where, expected = summary.source, EXPECTED[summary.format]
    if summary.bad > max_bad * summary.lines:
        first = summary.bad_lines[0]
        share = f"{summary.bad:,} of {summary.lines:,} lines are bad, more than max_bad={max_bad:.3g}"
        raise LogError(
            f"{where}: line {first.first[0]}: {first.kind}: found {first.text!r}, expected {expected}; {share}"
        )
    if summary.pages == 0:
        raise LogError(f"{where}: found no page in {summary.lines:,} lines, expected {expected}")


def _with_warning(summary: LogSummary, queries: int) -> LogSummary:
    if summary.queries >= queries:
        return summary
    return replace(summary, warnings=(f"found {summary.queries} queries, fewer than the {queries} asked for",))


def _click_log(reader: LogReader, collection: Collection, summary: LogSummary, page_length: int | None) -> ClickLog:
    pages = distinct_pages(collection)
    rows = collection.pairs.rows[: collection.pairs.used[0]]
    pairs = tuple((int(query), reader.name(item)) for query, item in rows)
    queries = tuple(map(reader.name, collection.queries.rows[: collection.queries.used[0], 0]))
    found = frequent_rankings(pages, page_length)
    rankings = tuple(_named(found[q], pairs) if q in found else None for q in range(len(queries)))
    return ClickLog(pages, queries, pairs, rankings, summary)


def _named(ranking: Ints, pairs: tuple[tuple[int, str], ...]) -> tuple[str, ...]:
    return tuple(pairs[pair][1] for pair in ranking)
