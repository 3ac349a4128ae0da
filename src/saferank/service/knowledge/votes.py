"""One vote per visitor, pair and epoch: of a visitor's comparisons of a pair only the first informative one counts.

A visitor is the source of a page, or else its session. Two clicks of one visitor are not two coins: whoever prefers an
item prefers it next week. So the fold remembers a *mark* of 32 bits for every visitor and pair that was decided: 12
bits of the visitor, and 20 that mix visitor and pair. Two different votes with equal marks (below 1 in 10,000, at any
time) cost the later one; who wins it plays no part in that.

Memory is bounded by ``MOST_MARKS``. When they are reached, half of the visitors, by a bit of their hash, count no more
until the epoch ends, and their marks go. So nobody ever votes twice, what goes does not depend on what was clicked, and
learning continues with the others. Everything depends only on the pages in display order, not on how closings cut them.
"""

import functools
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.live.replay import Pages
from saferank.service.knowledge.lessons import Laid, Lessons
from saferank.verbs import Flags, Ints

MOST_MARKS = 1 << 18
"""Marks of a context in an epoch: 1 MB."""

MARK_BITS, VISITOR_BITS = 32, 12
_MIX, _STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HALF, _PAIR_SHIFT = np.uint64(32), np.uint64(64 - MARK_BITS + VISITOR_BITS)

Words = NDArray[np.uint64]
Marks = NDArray[np.uint32]


class VisitorComparisons(NamedTuple):
    """Informative comparisons by known visitors, in display order."""

    row: Ints  # of the page among those that are laid out
    clicked: Ints  # place
    other: Ints  # place
    mark: Marks


def marks_of(visitors: Words, pairs: Words) -> Marks:
    """The marks of votes; ``pairs`` are sums of the hashes of two items."""
    mixed = visitors * _MIX + pairs
    mixed = (mixed ^ mixed >> _HALF) * _STIR
    whose = visitors >> np.uint64(64 - VISITOR_BITS) << np.uint64(MARK_BITS - VISITOR_BITS)
    return np.asarray((whose | mixed >> _PAIR_SHIFT).astype(np.uint32))


class Votes:
    """The votes of an epoch."""

    def __init__(self, epoch: int = 0, level: int = 0, marks: bytes = b"", most: int = MOST_MARKS) -> None:
        self.epoch, self.level, self._most = epoch, level, most
        self.marks: Marks = np.frombuffer(marks, np.uint32)  # sorted

    def turn_to(self, epoch: int) -> None:
        """Begin a later epoch: everybody may vote again."""
        if epoch > self.epoch:
            self.epoch, self.level, self.marks = epoch, 0, np.zeros(0, np.uint32)

    def carry_to(self, epoch: int, later: int) -> None:
        """Begin an epoch, and let a later one continue it: who has voted in it has voted in the later one."""
        self.turn_to(epoch)
        self.epoch = later

    def repeated(self, compared: VisitorComparisons) -> Flags:
        """Note votes in display order; True for each that does not count."""
        repeated, begin = np.ones(len(compared.mark), np.bool_), 0
        while begin < len(compared.mark):
            end, counted = self._take(compared.row[begin:], compared.mark[begin:])
            repeated[begin + counted] = False
            begin += end
            self._halve()
        return repeated

    def _take(self, rows: Ints, marks: Marks) -> tuple[int, Ints]:
        """Note votes until there are too many marks after a page; returns how many were seen, and which counted."""
        new, first = np.unique(marks, return_index=True)
        fresh = (new.astype(np.uint64) >> np.uint64(MARK_BITS - self.level) == 0) & ~self._noted(new)
        counted = np.sort(first[fresh])
        end, room = len(marks), self._most - len(self.marks)
        if len(counted) > room:  # the page that exceeds the bound is the last one that is taken whole
            end = int(np.searchsorted(rows, rows[counted[room]], side="right"))
            counted = counted[counted < end]
        if len(counted):
            self.marks = np.sort(np.concatenate([self.marks, marks[counted]]), kind="stable")
        return end, counted

    def _noted(self, marks: Marks) -> Flags:
        if not len(self.marks):
            return np.zeros(len(marks), np.bool_)
        at = np.searchsorted(self.marks, marks)
        return np.asarray((at < len(self.marks)) & (self.marks[np.minimum(at, len(self.marks) - 1)] == marks))

    def _halve(self) -> None:
        """Leave out half of the visitors as long as there are too many marks."""
        while len(self.marks) > self._most and self.level < VISITOR_BITS:
            self.level += 1
            self.marks = self.marks[: np.searchsorted(self.marks, np.uint32(1 << (MARK_BITS - self.level)))].copy()
        if len(self.marks) > self._most:  # a 4096th of the visitors have so many: nobody counts any more
            self.level, self.marks = MARK_BITS, np.zeros(0, np.uint32)


# --- pages without the comparisons that do not count, laid out for the compiled fold ---
# How a comparison is taken out depends on the law of its page:
#
# * a page that was drawn names by place the exchanges that are learnt: the bits of the two places go;
# * in groups a clicked item wins over every item of its group that was not clicked. An item of which no comparison is
#   left gets a group of its own, which settles groups of two. If some comparisons of a larger group go and others stay,
#   the page becomes one lesson for each clicked item, with those at the front that it still is compared with: within a
#   group learning does not look at the order.
#
# Which comparisons go depends on earlier pages of the visitor alone. To leave out a whole group would be wrong: whether
# it holds a comparison that is known depends on which of its items was clicked, and so on the sign of the others.


def without_repeats(votes: Votes, laid: Laid, lessons: Lessons, items: Sequence[object]) -> Laid:
    """The pages without comparisons by visitors who have decided the pair before in this epoch."""
    pages, numbers = laid
    rows, visitors = _visits(pages, numbers, lessons)
    if not len(rows):
        return laid
    hashes = np.array([item_hash(str(item)) for item in items], np.uint64)
    compared = _compared(pages, rows, visitors, hashes)
    repeated = votes.repeated(compared)
    return _masked(laid, compared, repeated) if repeated.any() else laid


@functools.lru_cache(maxsize=1 << 16)
def item_hash(item: str) -> int:
    """What stands for an item in marks."""
    return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "little")


def _visits(pages: Pages, numbers: list[int], lessons: Lessons) -> tuple[Ints, Words]:
    """The clicked pages that have a known visitor, and who that is."""
    records = lessons.records
    known = records.has_source | records.has_visitor
    rows = np.flatnonzero(pages.clicks.any(axis=1))
    if not known.any():
        return rows[:0], records.visitor[:0]
    at = np.array(numbers, np.int64)[rows]
    keys = np.where(records.has_source, records.source, records.visitor)
    return rows[known[at]], keys[at][known[at]]


def _compared(pages: Pages, rows: Ints, visitors: Words, hashes: Words) -> VisitorComparisons:
    """The informative comparisons of pages."""
    most = int((pages.clicks[rows].sum(axis=1) * pages.places[rows]).sum())
    at, clicked, other = found = np.zeros((3, most), np.int64)
    at, clicked, other = found[:, : _note_compared(pages, rows, at, clicked, other)]
    row = rows[at]
    marks = marks_of(visitors[at], hashes[pages.ranking[row, clicked]] + hashes[pages.ranking[row, other]])
    return VisitorComparisons(row, clicked, other, marks)


@kernel
def _note_compared(pages: Pages, rows: Ints, at: Ints, clicked: Ints, other: Ints) -> int:
    """Note places that the page compares, of which the first was clicked and the second was not; how many."""
    found, n_positions = 0, pages.clicks.shape[1]
    for number in range(len(rows)):
        row = rows[number]
        for winner in range(n_positions):
            if pages.clicks[row, winner]:
                for loser in range(pages.places[row]):
                    compares = pages.start[row, winner] <= loser < pages.end[row, winner]
                    if pages.drawn[row]:
                        compares = loser < 62 and pages.exchanges[row, winner] >> loser & 1 == 1
                    if compares and not (loser < n_positions and pages.clicks[row, loser]):
                        at[found], clicked[found], other[found] = number, winner, loser
                        found += 1
    return found


def _masked(laid: Laid, compared: VisitorComparisons, repeated: Flags) -> Laid:
    """A copy of the pages, without some comparisons."""
    pages, numbers = _chosen(laid[0], list(range(len(laid[1])))), laid[1]
    split: dict[int, dict[int, list[int]]] = {}  # by row and clicked place: what it is still compared with
    for row in np.unique(compared.row[repeated]).tolist():
        mine = slice(*np.searchsorted(compared.row, [row, row + 1]))
        triples = zip(compared.clicked[mine].tolist(), compared.other[mine].tolist(), repeated[mine], strict=True)
        if pages.drawn[row]:
            for clicked, other in [(a, b) for a, b, gone in triples if gone]:
                pages.exchanges[row, clicked] &= ~(1 << other)
                pages.exchanges[row, other] &= ~(1 << clicked)
        else:
            _trim(pages, row, list(triples), split)
    return _split(pages, numbers, split) if split else (pages, numbers)


def _chosen(pages: Pages, rows: list[int]) -> Pages:
    """A copy of some pages."""
    arrays: list[Any] = [array[rows] for array in pages]
    return Pages(*arrays)


def _trim(pages: Pages, row: int, triples: list[tuple[int, int, bool]], split: dict[int, dict[int, list[int]]]) -> None:
    """Take clicked items that are compared with nothing any more out of their groups; note what is left of others."""
    left: dict[int, list[int]] = {clicked: [] for clicked, _, _ in triples}
    before = dict.fromkeys(left, 0)
    for clicked, other, gone in triples:
        before[clicked] += 1
        left[clicked] += [] if gone else [other]
    for clicked, others in left.items():
        if not others:
            pages.start[row, clicked], pages.end[row, clicked] = clicked, clicked + 1
        elif len(others) < before[clicked]:
            split[row] = {winner: rest for winner, rest in left.items() if rest}


def _split(pages: Pages, numbers: list[int], split: dict[int, dict[int, list[int]]]) -> Laid:
    """Lessons of which a part is left become one lesson for each clicked item."""
    take = [row for row in range(len(numbers)) for _ in range(len(split.get(row, (0,))))]
    pages = _chosen(pages, take)
    at = np.searchsorted(take, sorted(split)).tolist()
    for first, row in zip(at, sorted(split), strict=True):
        for step, (winner, others) in enumerate(split[row].items()):
            _win(pages, first + step, winner, others)
    return pages, [numbers[row] for row in take]


def _win(pages: Pages, row: int, winner: int, others: list[int]) -> None:
    """A page on which one item was clicked, with those right behind it that it is compared with."""
    begin, end = int(pages.start[row, winner]), int(pages.end[row, winner])
    rest = [place for place in range(begin, end) if place != winner and place not in others]
    pages.ranking[row, begin:end] = pages.ranking[row, [winner, *others, *rest]]
    pages.clicks[row] = 0
    pages.clicks[row, begin] = 1
    pages.start[row, begin], pages.end[row, begin] = begin, begin + 1 + len(others)
