"""Closed pages in display order, and which of them count: a visitor's first in a window, whatever its arm."""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.service.knowledge.arms import (
    EXPLORE,
    HOLDOUT,
    LEARNING,
    PROVEN,
    REPEAT,
    UNCHANGED,
    CountedPages,
    empty_columns,
    takes_part,
)
from saferank.store.contract import PageRow
from saferank.store.page_record import BASE, LEADER, OVER, TIME_BYTES, VISITOR, PageRecord
from saferank.store.record_columns import (
    ARM,
    FLAGS,
    ISSUED_AT,
    PINNED_PLACES,
    SHARE,
    USED,
    VISITOR_KEY,
    WINDOW_MS,
    Columns,
    K,
    RecordColumns,
    Selection,
)
from saferank.verbs import Flags, Floats, Ints

Words = NDArray[np.uint64]

# --- closed pages in display order, with the facts of their records as columns ---


class NewestPage(NamedTuple):
    """Production's page and the items of the newest page: what a leader is derived from."""

    base: tuple[str, ...]
    items: tuple[str, ...]


def look_of(record: PageRecord) -> NewestPage:
    """What the leader of a page is derived from."""
    return NewestPage(record.production, record.row or record.production)


CLICK_WORDS = 2
"""Words of 64 bits for the clicks of a page."""


class ClosedPages:
    """Pages of one context in display order: all that were read together, or some of them (``at``)."""

    def __init__(self, rows: Sequence[PageRow]) -> None:
        self._rows, self.records = rows, RecordColumns([row.record for row in rows])
        self.words = click_words([row.clicks for row in rows])  # of all that were read together
        self.at: Ints = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self.at)

    def select(self, which: Selection) -> "ClosedPages":
        """Some of the pages."""
        some = copy.copy(self)
        some.records, some.at = self.records.select(which), self.at[which]
        return some

    def row(self, number: int) -> PageRow:
        """One of the pages."""
        return self._rows[int(self.at[number])]

    @property
    def issued_at(self) -> Ints:
        """When they were issued."""
        return self.records.column(ISSUED_AT)

    def clicked_beyond(self) -> list[int]:
        """The numbers of pages with clicks on places that they do not have."""
        return [number for number, k in enumerate(self.records.column(K).tolist()) if self.row(number).clicks >> k]


def click_words(clicks: Sequence[int]) -> Words:
    """By page: the bits of its clicks, in words."""
    size = 8 * CLICK_WORDS
    try:
        packed = b"".join([bits.to_bytes(size, "little") for bits in clicks])
    except OverflowError as problem:
        raise ValueError(f"a page has clicks beyond its {8 * size} places") from problem
    return np.frombuffer(packed, np.uint64).reshape(-1, CLICK_WORDS)


def issue_time(page: PageRow) -> int:
    """When a page was issued."""
    return int.from_bytes(page.impression[:TIME_BYTES], "big")


# --- which pages count ---


class _Seen(NamedTuple):
    """Who had a page in the newest window with a counted page, found by their hash."""

    facts: Ints  # [3] the window, which one of those that were looked at it is, and how many visitors it has
    keys: Words
    noted_in: Ints  # which of the windows a slot is of


class Visitors:
    """The visitors of the newest window."""

    def __init__(self, window: int = 0) -> None:
        self._seen = _Seen(np.array([window, 1, 0]), np.zeros(16, np.uint64), np.zeros(16, np.int64))

    def __len__(self) -> int:
        return int(self._seen.facts[2])

    @property
    def window(self) -> int:
        """The number of the window."""
        return int(self._seen.facts[0])

    @property
    def keys(self) -> set[int]:
        """Who had a page in it."""
        return set(self._seen.keys[self._seen.noted_in == self._seen.facts[1]].tolist())

    def firsts(self, pages: ClosedPages, after: int) -> Flags:
        """A visitor's first page in a window counts, in display order; none that was issued until ``after`` does."""
        first = np.zeros(len(pages), np.bool_)
        self._make_room(len(pages))
        _note_firsts(pages.records.columns.numbers, pages.at, after, self._seen, first)
        return first

    def _make_room(self, more: int) -> None:
        """For as many visitors more, at most half of the slots are taken."""
        facts, size = self._seen.facts, len(self._seen.keys)
        needed = 2 * (int(facts[2]) + more)
        if needed > size:
            size = 1 << needed.bit_length()
            larger = _Seen(facts, np.zeros(size, np.uint64), np.zeros(size, np.int64))
            known = self._seen.keys[self._seen.noted_in == facts[1]]
            facts[2] = 0
            _note_all(larger, known)
            self._seen = larger


@kernel
def _is_new(seen: _Seen, key: np.uint64) -> bool:
    """Note a visitor; False when they were noted before."""
    mask = np.uint64(len(seen.keys) - 1)
    slot = (key ^ key >> np.uint64(29)) & mask
    while seen.noted_in[slot] == seen.facts[1]:
        if seen.keys[slot] == key:
            return False
        slot = (slot + np.uint64(1)) & mask
    seen.keys[slot], seen.noted_in[slot] = key, seen.facts[1]
    seen.facts[2] += 1
    return True


@kernel
def _note_all(seen: _Seen, keys: Words) -> None:
    for number in range(len(keys)):
        _is_new(seen, keys[number])


@kernel
def _note_firsts(numbers: Ints, at: Ints, after: int, seen: _Seen, first: Flags) -> None:
    for place in range(len(at)):
        row = numbers[at[place]]
        counts = takes_part(row[ARM], row[SHARE]) and row[ISSUED_AT] > after
        if counts and row[FLAGS] & VISITOR:
            window = row[ISSUED_AT] // max(1, row[WINDOW_MS])
            if window != seen.facts[0]:
                seen.facts[0], seen.facts[1], seen.facts[2] = window, seen.facts[1] + 1, 0
            counts = _is_new(seen, np.uint64(row[VISITOR_KEY]))
        first[place] = counts


# --- sums over closed pages ---


class Sums(NamedTuple):
    """Sums that a fold keeps."""

    tallies: Ints  # [arm, which] closed pages, those with clicks, clicks
    facts: Ints  # [4] the worst page, checked pages, illegal ones, pages with clicks of these pages


def counted_pages(pages: ClosedPages, counted: Flags, sums: Sums) -> CountedPages:
    """Add pages to the sums; those that count, as columns."""
    columns, found = pages.records.columns, empty_columns(int(counted.sum()))
    share = columns.numbers[:, SHARE].view(np.float64)
    _count(columns, pages.words, share, pages.at, counted, sums, found)
    return found


@kernel
def _bits_in(words: Words) -> int:
    found = 0
    for number in range(len(words)):
        word = words[number]
        while word:
            word &= word - np.uint64(1)
            found += 1
    return found


@kernel
def _differs_from_base(columns: Columns, at: int) -> bool:
    """True for a page that names production's page and chose another."""
    row, chosen, differs = columns.numbers[at], 0, False
    if row[FLAGS] & BASE:
        for place in range(row[K]):
            if row[PINNED_PLACES] == 0 or columns.pins[at, place >> 3] >> (place & 7) & 1 == 0:
                differs |= columns.base[at, place] != chosen
                chosen += 1
    return differs


@kernel
def _count(
    columns: Columns, words: Words, share: Floats, at: Ints, counted: Flags, sums: Sums, out: CountedPages
) -> None:
    size = 0
    for place in range(len(at)):
        number = at[place]
        row, clicks = columns.numbers[number], _bits_in(words[number])
        arm = row[ARM]
        tally = sums.tallies[arm if counted[place] or not takes_part(arm, row[SHARE]) else REPEAT]
        tally[0] += 1
        tally[1] += int(clicks > 0)
        tally[2] += clicks
        if arm == EXPLORE:
            sums.facts[0] = max(sums.facts[0], row[USED])
            sums.facts[1] += 1
        sums.facts[2] += int(row[USED] == OVER)
        sums.facts[3] += int(clicks > 0)
        if counted[place]:
            out.issued_at[size], out.share[size], out.clicks[size] = row[ISSUED_AT], share[number], clicks
            out.served[size], out.chosen[size], out.change[size] = arm != HOLDOUT, arm == EXPLORE, UNCHANGED
            if _differs_from_base(columns, number):
                out.change[size] = PROVEN if row[FLAGS] & LEADER else LEARNING
            size += 1
