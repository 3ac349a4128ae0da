"""Closed pages in display order, and what they teach, range-checked and laid out for the compiled fold."""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.live.replay import Pages, new_pages
from saferank.service.knowledge.arms import takes_part
from saferank.store.contract import PageRow
from saferank.store.page_record import ID_SIZE, TIME_BYTES, PageRecord
from saferank.store.page_record import NOBODY as NO_CHALLENGER
from saferank.store.record_columns import RecordColumns, Selection
from saferank.verbs import NOBODY, Flags, Ints

# --- closed pages in display order, with the facts of their records as columns ---


class NewestPage(NamedTuple):
    """Production's page and the items of the newest page: what a leader is derived from."""

    base: tuple[str, ...]
    items: tuple[str, ...]


CLICK_WORDS = 2
"""Words of 64 bits for the clicks of a page."""


class ClosedPages:
    """Pages of one context in display order: all that were read together, or some of them."""

    def __init__(self, rows: Sequence[PageRow]) -> None:
        impressions, _, _, records, clicks = zip(*rows, strict=True) if rows else [()] * len(PageRow._fields)
        self._rows, self.records = rows, RecordColumns(records)
        self.impressions = np.frombuffer(b"".join(impressions), f"V{ID_SIZE}")
        self.issued_at, self.clicks = issue_times(self.impressions), click_words(clicks)
        self._at: Ints = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self._at)

    def select(self, which: Selection) -> "ClosedPages":
        """Some of the pages."""
        some = copy.copy(self)
        some.records, some._at = self.records.select(which), self._at[which]
        some.impressions, some.issued_at, some.clicks = (
            self.impressions[which],
            self.issued_at[which],
            self.clicks[which],
        )
        return some

    def row(self, number: int) -> PageRow:
        """One of the pages."""
        return self._rows[int(self._at[number])]

    @property
    def n_clicks(self) -> Ints:
        """How many places were clicked."""
        return np.asarray(np.bitwise_count(self.clicks).sum(axis=1, dtype=np.int64))

    def cut_where(self, values: Ints) -> "Iterator[ClosedPages]":
        """Runs of pages with the same value."""
        cuts = [0, *(1 + np.flatnonzero(np.diff(values))).tolist(), len(self)]
        for begin, end in itertools.pairwise(cuts):
            if begin < end:
                yield self if end - begin == len(self) else self.select(slice(begin, end))

    @property
    def takes_part(self) -> Flags:
        """Pages of which a visitor's first in a window counts."""
        return np.asarray(takes_part(self.records.field("arm"), self.records.field("share")))


def issue_times(impressions: NDArray[np.void]) -> Ints:
    """When pages were issued, by their ids."""
    times = np.zeros((len(impressions), 8), np.uint8)
    times[:, 8 - TIME_BYTES :] = impressions.view(np.uint8).reshape(-1, ID_SIZE)[:, :TIME_BYTES]
    return times.view(">i8")[:, 0].astype(np.int64)


def click_words(clicks: Sequence[int]) -> NDArray[np.uint64]:
    """By page: the bits of its clicks, in words."""
    size = 8 * CLICK_WORDS
    try:
        packed = b"".join([bits.to_bytes(size, "little") for bits in clicks])
    except OverflowError as problem:
        raise ValueError(f"a page has clicks beyond its {8 * size} places") from problem
    return np.frombuffer(packed, np.uint64).reshape(-1, CLICK_WORDS)


def has_clicks_from(clicks: NDArray[np.uint64], k: Ints | int) -> Flags:
    """By page: True when a place from the k-th on, counted from 0, was clicked."""
    first, second, k = clicks[:, 0], clicks[:, 1], np.asarray(k, np.uint64)
    beyond = np.where(k < 64, first >> np.minimum(k, 63) | second, second >> (np.maximum(k, 64) - np.uint64(64)))
    return np.asarray(beyond != 0)


def issue_time(page: PageRow) -> int:
    """When a page was issued."""
    return int.from_bytes(page.impression[:TIME_BYTES], "big")


def look_of(record: PageRecord) -> NewestPage:
    """What the leader of a page is derived from."""
    return NewestPage(record.production, record.row or record.production)


# --- records of closed pages, range-checked and laid out for the compiled fold ---


class Lessons:
    """Closed pages that count, in display order."""

    def __init__(self, records: RecordColumns, clicks: NDArray[np.uint64]) -> None:
        self.records, self.clicks = records, clicks

    @property
    def size(self) -> int:
        """How many pages."""
        return len(self.clicks)

    @classmethod
    def of(cls, records: Sequence[PageRecord], clicks: Sequence[int]) -> "Lessons":
        """Lessons that are not in a log; by page a bit for each clicked place."""
        return cls(RecordColumns([record.packed() for record in records]), click_words(clicks))

    def between(self, begin: int, end: int) -> "Lessons":
        """Some of the lessons."""
        if begin == 0 and end >= self.size:
            return self
        return Lessons(self.records.select(slice(begin, end)), self.clicks[begin:end])

    def rows(self, index: Mapping[str, int]) -> Ints:
        """By record and place: the number of an item, -1 if it has none; 0 behind the places of a page."""
        return self.records.rows(index, int(self.records.column("places").max(initial=0)))


NumberedPages = tuple[Pages, list[int]]
"""Pages to be learnt, and for every one the number of its lesson."""


def as_pages(lessons: Lessons, index: Mapping[str, int]) -> NumberedPages:
    """The pages of lessons that can be learnt, range-checked, laid out all at once: a replay lays out a million."""
    records, rows = lessons.records, lessons.rows(index)
    taught = np.flatnonzero(_teaching(lessons, rows))
    chosen, rows = records.select(taught), rows[taught]
    positions, places = chosen.positions, chosen.column("places")
    width, k = int(places.max(initial=1)), int(positions.max(initial=1))
    pages = new_pages(len(taught), k, width)
    laws, challenger, at = chosen.laws(width), chosen.column("challenger"), np.arange(len(taught))
    pages.round[:], pages.places[:], pages.positions[:] = chosen.column("round"), places, positions
    pages.ranking[:] = rows[:, :width]
    pages.start[:], pages.end[:] = laws.start, laws.end
    pages.weight[:], pages.exchanges[:] = laws.weight, laws.exchanges.view(np.int64)
    pages.drawn[:] = chosen.drawn
    alone = challenger == NO_CHALLENGER
    pages.challenger[:] = np.where(alone, NOBODY, pages.ranking[at, np.where(alone, 0, challenger)])
    pages.clicks[:] = _free_clicks(lessons.clicks[taught], chosen, int(chosen.column("k").max(initial=1)))[:, :k]
    return pages, taught.tolist()


def _free_clicks(clicks: NDArray[np.uint64], records: RecordColumns, width: int) -> NDArray[np.uint8]:
    """By page: the clicks on positions that are not pinned, one after the other."""
    bits = np.unpackbits(clicks.view(np.uint8), axis=1, count=width, bitorder="little")
    is_pinned = records.is_pinned(width)
    if is_pinned is None:
        return bits
    bits[is_pinned] = 0
    return np.take_along_axis(bits, np.argsort(is_pinned, axis=1, kind="stable"), axis=1)


def _teaching(lessons: Lessons, rows: Ints) -> Flags:
    """By record: True when it can be learnt."""
    records = lessons.records
    beyond = has_clicks_from(lessons.clicks, records.column("k"))
    return np.asarray((records.column("places") > 0) & ~beyond & (rows >= 0).all(axis=1))
