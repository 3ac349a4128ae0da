"""What is read of a log: distinct pages with weights, counts of what was read, and what can be wrong with a line.

A log repeats itself: the same page with the same clicks comes again and again. So estimation works on distinct pages,
each with the number of times it was seen, and its cost depends on their number rather than on the size of the log.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.errors import ArgumentError, UsageError, whole_number
from saferank.randomness import stream
from saferank.verbs import Ints

LONGEST_PAGE = 100
"""Items on a page; click models cover as many positions."""
LONGEST_SESSION = 4096
"""Pages that can wait for their clicks: all of one session."""

GOOD, FIELDS, NUMBER, RECORD, ORPHAN, LONG_PAGE, LONG_SESSION, TWICE, NOT_JSON, SHAPE, FULL = range(11)
"""What became of a line. ``FULL`` is no fault of the line: it must be read again when the batch is emptied."""

KINDS = {
    FIELDS: "wrong number of fields",
    NUMBER: "not a number",
    RECORD: "unknown record type",
    ORPHAN: "click without its page",
    LONG_PAGE: f"page of more than {LONGEST_PAGE} items",
    LONG_SESSION: f"session of more than {LONGEST_SESSION} pages",
    TWICE: "item twice on its page",
    NOT_JSON: "not JSON",
    SHAPE: "not an object with query, items and clicked",
}
"""Bad lines by what is wrong with them, the first thing from the left."""


class LogError(UsageError):
    """Why a log cannot be used, in one line that begins with its name."""


def check_lengths(page_length: int | None, items: int | None) -> None:
    """An ``ArgumentError`` for lengths that no page and no instance can have."""
    if page_length is not None:
        whole_number(page_length, "page_length", at_most=LONGEST_PAGE)
    if items is not None:
        whole_number(items, "items")
        if page_length is not None and items < page_length:
            raise ArgumentError("items", f"found {items}, expected at least {page_length}, the page length")


@dataclass(frozen=True)
class BadLines:
    """Lines (rows of a Parquet file) that were left out for the same reason."""

    kind: str
    count: int
    first: tuple[int, ...]  # numbers of the first few, from 1
    text: str  # how the very first one begins

    def __str__(self) -> str:
        lines = ", ".join(map(str, self.first)) + (", ..." if self.count > len(self.first) else "")
        return f"{self.kind}: {self.count:,} (line {lines})"


@dataclass(frozen=True)
class LogSummary:
    """A whole log in numbers. Pages, queries and clicks are those of Q records; T records have counts of their own."""

    source: str
    format: str
    lines: int
    sessions: int | None  # None where a format does not tell
    pages: int
    test_pages: int
    queries: int
    clicks: int  # clicked items; several clicks on the same item of a page are one
    shown_by_position: tuple[int, ...]  # pages that are at least so long
    clicks_by_position: tuple[int, ...]
    pages_without_click: int
    stray_clicks: int  # on items that their page did not show
    test_clicks: int  # on pages of T records
    bad_lines: tuple[BadLines, ...]
    warnings: tuple[str, ...] = ()

    @property
    def abandonment(self) -> float:
        """The share of pages without a click."""
        return self.pages_without_click / self.pages

    @property
    def bad(self) -> int:
        """How many lines were left out."""
        return sum(bad.count for bad in self.bad_lines)


RANKING_LENGTH = 10
"""The paper's protocol: for each query its most frequent ranking of this length, where it has one."""


class DistinctPages(NamedTuple):
    """Distinct pages in the order in which they were first seen."""

    query: Ints  # [n] index into ClickLog.queries
    items: Ints  # [n, length] index into ClickLog.pairs; -1 beyond the end of a shorter page
    clicks: NDArray[np.uint8]  # [n, length] 0 or 1
    weight: Ints  # [n] how often exactly this page (query, items, clicks) was seen


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class ClickLog:
    """The pages of some queries of a log."""

    pages: DistinctPages
    queries: tuple[str, ...]  # ids, most frequent first (of equals the first seen)
    pairs: tuple[tuple[int, str], ...]  # (query index, item id) of every attraction, in order of first appearance
    rankings: tuple[tuple[str, ...] | None, ...]  # per query its most frequent ranking of the length asked for
    summary: LogSummary  # of the whole log


def split(log: ClickLog, held_out: float, seed: int = 0) -> tuple[ClickLog, ClickLog]:
    """Two logs, of which the second has each single page with probability ``held_out`` and the first has the others.

    Pages are drawn one by one, not by distinct page: a weight is split by a binomial draw. Queries, pairs, rankings and
    the summary stay those of the whole log, so that parameters of one part fit the pages of the other.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out}, expected a share between 0 and 1")
    random = np.random.Generator(np.random.PCG64(stream(seed, "split").tolist()))
    taken = random.binomial(log.pages.weight, held_out)
    return reweighted(log, log.pages.weight - taken), reweighted(log, taken)


def reweighted(log: ClickLog, weight: Ints) -> ClickLog:
    """The same log with other weights of its distinct pages; those of weight 0 are left out."""
    there = weight > 0
    query, items, clicks, _ = log.pages
    return replace(log, pages=DistinctPages(query[there], items[there], clicks[there], weight[there]))
