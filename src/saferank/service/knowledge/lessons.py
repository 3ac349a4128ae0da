"""Closed pages in display order, and what they teach, range-checked and laid out for the compiled fold."""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.live.replay import ISSUED, LEARNT, Pages, new_pages
from saferank.service.knowledge.arms import takes_part
from saferank.store.contract import PageRow
from saferank.store.page_record import ID_SIZE, TIME_BYTES, PageRecord
from saferank.store.page_record import NOBODY as NO_CHALLENGER
from saferank.store.record_columns import FORM, POLICY, RecordColumns, Selection
from saferank.verbs import NOBODY, Flags, Ints

# --- closed pages in display order, with the facts of their records as columns ---


class NewestPage(NamedTuple):
    """Production's page and the items of the newest page of a size: what a leader is derived from."""

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


class Lesson(NamedTuple):
    """A closed page that counts; without clicks it is counted and teaches nothing else."""

    record: PageRecord | None  # None: no clicks
    clicks: int  # a bit for each shown place


class Lessons:
    """Closed pages that count, in display order. There are records of those with clicks only."""

    def __init__(self, size: int, numbers: Ints, records: RecordColumns, clicks: NDArray[np.uint64]) -> None:
        self.size = size
        self.numbers = numbers  # by record: which of the lessons it is
        self.records, self.clicks = records, clicks

    @classmethod
    def of(cls, lessons: Sequence[Lesson]) -> "Lessons":
        """Lessons that are not in a log."""
        taught = [(number, *lesson) for number, lesson in enumerate(lessons) if lesson.record is not None]
        records = RecordColumns([record.packed() for _, record, _ in taught if record is not None])
        numbers = np.array([one[0] for one in taught], np.int64)
        return cls(len(lessons), numbers, records, click_words([one[2] for one in taught]))

    @classmethod
    def of_pages(cls, pages: ClosedPages, policy: str) -> "Lessons":
        """The lessons of pages whose records were checked.

        Clicks of a page by another policy teach nothing: its server had not yet read of a reset that took this one.
        """
        clicked = np.flatnonzero(pages.clicks.any(axis=1))
        numbers = clicked[pages.records.select(clicked).has_text(POLICY, policy)]
        return cls(len(pages), numbers, pages.records.select(numbers), pages.clicks[numbers])

    def between(self, begin: int, end: int) -> "Lessons":
        """Some of the lessons."""
        if begin == 0 and end >= self.size:
            return self
        mine = slice(*np.searchsorted(self.numbers, [begin, end]).tolist())
        size = min(end, self.size) - begin
        return Lessons(size, self.numbers[mine] - begin, self.records.select(mine), self.clicks[mine])

    def record(self, number: int) -> PageRecord | None:
        """The record of a lesson; None: no clicks."""
        at = int(np.searchsorted(self.numbers, number))
        return self.records.record(at) if at < len(self.numbers) and self.numbers[at] == number else None

    def of_form(self, form: str) -> Flags:
        """By record: True when the page was made by this form of the policy."""
        return self.records.has_text(FORM, form)

    def rows(self, index: Mapping[str, int]) -> Ints:
        """By record and place: the number of an item, -1 if it has none; 0 behind the places of a page."""
        return self.records.rows(index, int(self.records.column("places").max(initial=0)))


Laid = tuple[Pages, list[int]]
"""Operations, and for every one the number of its lesson."""


def as_pages(lessons: Lessons, index: Mapping[str, int], k: int, form: str) -> Laid:
    """The operations of lessons, and for every operation the number of its lesson.

    A page that names an item that is not known any more, or that was drawn by another form of the policy, teaches
    nothing: its odds mean something else.
    """
    rows = lessons.rows(index)
    teaches = _teaching(lessons, rows, k, form)
    taught = np.flatnonzero(teaches)
    operations = np.ones(lessons.size, np.int64)  # by lesson: it is issued, and perhaps learnt
    operations[lessons.numbers[taught]] += 1
    places = int(lessons.records.column("places")[taught].max(initial=k))
    pages = new_pages(int(operations.sum()), k, max(places, k + 1))
    if len(taught):
        at = np.cumsum(operations)[lessons.numbers[taught]] - 1
        _lay_out(pages, at, lessons, taught, rows[:, :places])
    return pages, np.repeat(np.arange(lessons.size), operations).tolist()


def renumbered(pages: Pages, numbers: Sequence[int]) -> Pages:
    """The operations with other numbers of items; a page with an item that has none (-1) teaches nothing any more."""
    table = np.array(numbers, np.int64)
    used = np.arange(pages.ranking.shape[1]) < pages.places[:, None]
    ranking = np.where(used, table[pages.ranking], 0)
    challenger = np.where(pages.challenger == NOBODY, NOBODY, table[pages.challenger])
    whole = np.asarray((ranking >= 0).all(axis=1))
    return pages._replace(
        operation=np.where(whole, pages.operation, ISSUED),
        ranking=np.where(whole[:, None], ranking, 0).astype(np.uint32),
        challenger=np.where(whole, challenger, NOBODY),
    )


def _teaching(lessons: Lessons, rows: Ints, k: int, form: str) -> Flags:
    """By record: True when its clicks can be learnt."""
    records = lessons.records
    fits = (records.column("k") == k) & (records.column("places") > 0) & ~has_clicks_from(lessons.clicks, k)
    return np.asarray(fits & lessons.of_form(form) & (rows >= 0).all(axis=1))


def _lay_out(pages: Pages, at: Ints, lessons: Lessons, taught: Ints, rows: Ints) -> None:
    """Put the records to be learnt into their rows, all at once: a replay lays out a million."""
    records = lessons.records if len(taught) == len(lessons.records) else lessons.records.select(taught)
    width, k = rows.shape[1], pages.clicks.shape[1]
    laws, rows, challenger = records.laws(width), rows[taught], records.column("challenger")
    pages.operation[at] = LEARNT
    pages.round[at] = records.column("round")
    pages.places[at] = records.column("places")
    pages.ranking[at, :width] = rows
    pages.start[at, :width], pages.end[at, :width] = laws.start, laws.end
    pages.weight[at, :width], pages.exchanges[at, :width] = laws.weight, laws.exchanges.view(np.int64)
    pages.frozen[at] = records.drawn
    nobody = challenger == NO_CHALLENGER
    pages.challenger[at] = np.where(nobody, NOBODY, rows[np.arange(len(at)), np.where(nobody, 0, challenger)])
    pages.clicks[at] = np.unpackbits(lessons.clicks[taught].view(np.uint8), axis=1, count=k, bitorder="little")
