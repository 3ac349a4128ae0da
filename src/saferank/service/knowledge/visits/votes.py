"""One vote per visitor, pair and epoch: of a visitor's comparisons of a pair only the first informative one counts.

A visitor is the source of a page, or else its session. Two clicks of one visitor are not two coins: whoever prefers an
item prefers it next week. So the fold remembers a *mark* of 32 bits for every visitor and pair that was decided: 12
bits of the visitor, and 20 that mix visitor and pair. Two different votes with equal marks (below 1 in 10,000, at any
time) cost the later one; who wins it plays no part in that.

Memory is bounded by ``MOST_MARKS``. When they are reached, half of the visitors, by a bit of their hash, count no more
until the epoch ends, and their marks go. So nobody ever votes twice, what goes does not depend on what was clicked, and
learning continues with the others. Everything depends only on the pages in display order, not on how closings cut them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
