"""Closed pages in display order, and what they teach, range-checked and laid out for the compiled fold."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

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


class ClosedPages:
    """Pages of one context, in display order."""

    def __init__(self, rows: Sequence[PageRow], records: RecordColumns | None = None) -> None:
        self.rows = rows
        self.records = RecordColumns([row.record for row in rows]) if records is None else records
        self.clicks = [row.clicks for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, which: Selection) -> "ClosedPages":
        """Some of the pages."""
        numbers = np.arange(len(self))[which]
        if len(numbers) == len(self):
            return self
        return ClosedPages([self.rows[number] for number in numbers.tolist()], self.records.select(numbers))

    @functools.cached_property
    def n_clicks(self) -> Ints:
        """How many places were clicked."""
        return np.fromiter(map(int.bit_count, self.clicks), np.int64, len(self))

    def cut_where(self, values: Ints) -> "Iterator[ClosedPages]":
        """Runs of pages with the same value."""
        cuts = [0, *(1 + np.flatnonzero(np.diff(values))).tolist(), len(self)]
        for begin, end in itertools.pairwise(cuts):
            if begin < end:
                yield self if end - begin == len(self) else self.select(slice(begin, end))

    # --- columns ---

    @functools.cached_property
    def issued_at(self) -> Ints:
        """When they were issued."""
        return issue_times([row.impression for row in self.rows])

    @property
    def takes_part(self) -> Flags:
        """Pages of which a visitor's first in a window counts."""
        return np.asarray(takes_part(self.records.field("arm"), self.records.field("share")))


def issue_times(impressions: Sequence[bytes]) -> Ints:
    """When pages were issued, by their ids."""
    ids = np.frombuffer(b"".join(impressions), np.uint8).reshape(-1, ID_SIZE)
    times = np.zeros((len(ids), 8), np.uint8)
    times[:, 8 - TIME_BYTES :] = ids[:, :TIME_BYTES]
    return times.view(">i8")[:, 0].astype(np.int64)


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

    def __init__(self, size: int, numbers: Ints, records: RecordColumns, clicks: Sequence[int]) -> None:
        self.size = size
        self.numbers = numbers  # by record: which of the lessons it is
        self.records, self.clicks = records, clicks

    @classmethod
    def of(cls, lessons: Sequence[Lesson]) -> "Lessons":
        """Lessons that are not in a log."""
        taught = [(number, *lesson) for number, lesson in enumerate(lessons) if lesson.record is not None]
        records = RecordColumns([record.packed() for _, record, _ in taught if record is not None])
        return cls(len(lessons), np.array([one[0] for one in taught], np.int64), records, [one[2] for one in taught])

    @classmethod
    def of_pages(cls, records: RecordColumns, clicks: Sequence[int], policy: str) -> "Lessons":
        """The lessons of pages whose records were checked.

        Clicks of a page by another policy teach nothing: its server had not yet read of a reset that took this one.
        """
        numbers = np.flatnonzero([bits > 0 for bits in clicks])
        clicked = records.select(numbers)
        own = clicked.has_text(POLICY, policy)
        if not own.all():
            numbers, clicked = numbers[own], clicked.select(own)
        return cls(len(records), numbers, clicked, [clicks[number] for number in numbers.tolist()])

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
    within = np.array([bits >> k == 0 for bits in lessons.clicks], np.bool_)
    fits = (records.column("k") == k) & (records.column("places") > 0) & within
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
    pages.clicks[at] = _bits([lessons.clicks[number] for number in taught.tolist()], k)


def _bits(clicks: Sequence[int], k: int) -> Ints:
    """By page and position: 1 for a click."""
    size = (k + 7) // 8
    packed = np.frombuffer(b"".join([bits.to_bytes(size, "little") for bits in clicks]), np.uint8)
    return np.unpackbits(packed.reshape(-1, size), axis=1, count=k, bitorder="little").astype(np.int64)
