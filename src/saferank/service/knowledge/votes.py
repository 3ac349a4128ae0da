"""Which comparisons count: one vote per visitor and pair, a daily cap by source, and a watch over orders.

Of a visitor's comparisons of a pair only the first informative one of an epoch counts.

A visitor is the source of a page, or else its session. Two clicks of one visitor are not two coins: they prefer the
same item next week. So the fold remembers a *mark* of 32 bits for every visitor and pair that was decided: 12
bits of the visitor, and 20 that mix visitor and pair. Two different votes with equal marks (below 1 in 10,000, at any
time) cost the later one; who wins it plays no part in that.

Memory is bounded by ``MOST_MARKS``. When they are reached, half of the visitors, by a bit of their hash, count no more
until the epoch ends, and their marks go. So no visitor votes twice, what goes does not depend on what was clicked, and
learning continues with the others. Everything depends only on the pages in display order, not on how closings cut them.
"""

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.live.replay import Pages
from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.lessons import Lessons, NumberedPages
from saferank.store.page_record import SOURCE_SIZE
from saferank.verbs import Flags, Floats, Impression, Ints, new_impression

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
        if len(self.marks) > self._most:  # a 4096th of the visitors have too many: no visitor counts any more
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


def without_repeats(votes: Votes, numbered: NumberedPages, lessons: Lessons, items: Sequence[object]) -> NumberedPages:
    """The pages without comparisons by visitors who have decided the pair before in this epoch."""
    pages, numbers = numbered
    rows, visitors = _visits(pages, numbers, lessons)
    if not len(rows):
        return numbered
    hashes = np.array([item_hash(str(item)) for item in items], np.uint64)
    compared = _compared(pages, rows, visitors, hashes)
    repeated = votes.repeated(compared)
    return _masked(numbered, compared, repeated) if repeated.any() else numbered


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


def _masked(numbered: NumberedPages, compared: VisitorComparisons, repeated: Flags) -> NumberedPages:
    """A copy of the pages, without some comparisons."""
    pages, numbers = _chosen(numbered[0], list(range(len(numbered[1])))), numbered[1]
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


def _split(pages: Pages, numbers: list[int], split: dict[int, dict[int, list[int]]]) -> NumberedPages:
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


# --- a daily cap on the pages of one source that count in a day, in each context ---


DAY_MS = 86_400_000
MOST_SOURCES = 1 << 16
"""Sources of a context that are counted in a day; pages of further ones do not count until the next."""

_COUNT_BYTES = 4


class SourceCounts:
    """How many pages of each source have counted today, by the time of issue."""

    def __init__(self, most_pages: int, day: int = 0, packed: bytes = b"", most: int = MOST_SOURCES) -> None:
        self._most_pages, self._most, self.day = most_pages, most, day
        self._counts = _unpacked(packed)

    def limit(self, most_pages: int) -> None:
        """Let ``most_pages`` pages of a source count in a day from now on; 0: all."""
        self._most_pages = most_pages

    def admits(self, source: bytes, issued_at: int) -> bool:
        """Count a page; True when it may count."""
        if not source or not self._most_pages:
            return True
        if issued_at // DAY_MS > self.day:
            self.day, self._counts = issued_at // DAY_MS, {}
        count = self._counts.get(source, 0)
        if count >= self._most_pages or (count == 0 and len(self._counts) >= self._most):
            return False
        self._counts[source] = count + 1
        return True

    def packed(self) -> bytes:
        """The counts as bytes, in the order in which sources came."""
        counts = np.fromiter(self._counts.values(), np.uint32, len(self._counts))
        return b"".join(self._counts) + counts.tobytes()


def _unpacked(packed: bytes) -> dict[bytes, int]:
    size = len(packed) // (SOURCE_SIZE + _COUNT_BYTES)
    counts = np.frombuffer(packed, np.uint32, size, SOURCE_SIZE * size).tolist()
    return {packed[SOURCE_SIZE * n : SOURCE_SIZE * (n + 1)]: counts[n] for n in range(size)}


# --- the orders on pages that were clicked: an alarm when an item stands higher more often than it was drawn to ---
# A caller who asks twice and keeps the page they like, or reports clicks for some pages only, makes the pages that come
# back differ from those that were drawn. Clicks alone do that, too: a page with the better item on top is clicked more
# often. So the test looks below the *first click* of a page only. Users look from the top down (position-based, cascade
# and dependent click models), so a click does not depend on the order of two items further down. Given where the first
# click was, two items at two places below it (the second may be hidden) stand as they do with probability
#
#     p0 = Q(page) / (Q(page) + Q(page with the two exchanged)),
#
# the odds that the page carries. Each item bets on standing higher, or lower, than that: for a shift t of the log-odds
#
#     factor = e^t / (p e^t + 1 - p)  when it is the upper one,      1 / (p e^t + 1 - p)  when it is not,
#
# where p is its chance to be the upper one. The product of factors over pages is a martingale with mean 1, and so is
# the mean over the shifts. It exceeds ``MOST_ITEMS / ERROR`` for an item with probability ``ERROR / MOST_ITEMS`` at
# most, at any time. One pair of places of a page is looked at, chosen by the page's id, which knows nothing of its
# order.


MOST_ITEMS = 256
"""Items of a context that are watched, those that came first."""
ERROR = 1e-6
"""The chance that honest reports ever raise an alarm in a context."""

SHIFTS = (-1.6, -0.8, -0.3, 0.3, 0.8, 1.6)
_GAINS = tuple(math.exp(shift) for shift in SHIFTS)
_LIMIT = math.log(MOST_ITEMS / ERROR)
_CLEAR = 1e-3
"""Orders with a chance below this, or above 1 minus this, are not bet on: they say next to nothing."""


@kernel
def _bet(bets: Floats, slots: Ints, changes: Floats, begin: int) -> int:
    """Add changes to the bets of their items, in order, from ``begin``; the number of the first that may have won."""
    for number in range(begin, len(slots)):
        slot = slots[number]
        if slot >= 0:
            top = bets[slot, 0] + changes[number, 0]
            for place in range(changes.shape[1]):
                bets[slot, place] += changes[number, place]
                top = max(top, bets[slot, place])
            if top >= _LIMIT:  # the mean is not above the largest
                return number
    return len(slots)


class OrderWatch:
    """The bets of every item, as logarithms."""

    def __init__(self, bets: Mapping[str, Sequence[float]] | None = None) -> None:
        self._slots = {item: slot for slot, item in enumerate(bets or {})}
        self._bets = np.zeros((MOST_ITEMS, len(SHIFTS)))
        for slot, kept in enumerate((bets or {}).values()):
            self._bets[slot] = kept

    @property
    def bets(self) -> dict[str, list[float]]:
        """By item, those that came first first."""
        return {item: self._bets[slot].tolist() for item, slot in self._slots.items()}

    def look_at(self, numbered: NumberedPages, lessons: Lessons, items: Sequence[object]) -> list[tuple[int, str]]:
        """Take in pages in display order; returns lessons and items that do not stand where they were drawn to."""
        (pages, numbers), found, done = numbered, [], 0
        rows, upper, lower = chosen_pairs(pages, numbers, lessons)
        chances = chances_of_orders(pages, rows, upper, lower)
        clear = (chances > _CLEAR) & (chances < 1.0 - _CLEAR)
        rows, both = rows[clear], np.stack([upper[clear], lower[clear]], axis=1)
        slots = self._slots_of(pages.ranking[rows[:, None], both].ravel().astype(np.int64), items)
        changes = np.stack(settled_bets(chances[clear]), axis=1).reshape(-1, len(SHIFTS))
        while (number := _bet(self._bets, slots, changes, done)) < len(slots):
            bets, done = self._bets[slots[number]], number + 1
            if _have_won(bets.tolist()):
                bets[:] = 0.0
                found.append((numbers[rows[number // 2]], list(self._slots)[slots[number]]))
        return found

    def _slots_of(self, numbers: Ints, items: Sequence[object]) -> Ints:
        """By number of an item its place among the bets, -1 without one."""
        different, first, which = np.unique(numbers, return_index=True, return_inverse=True)
        for number in different[np.argsort(first)].tolist():
            if len(self._slots) < MOST_ITEMS:
                self._slots.setdefault(str(items[number]), len(self._slots))
        return np.array([self._slots.get(str(items[number]), -1) for number in different.tolist()], np.int64)[which]


def _have_won(bets: list[float]) -> bool:
    """True when the mean of the bets of an item has reached the limit."""
    top = max(bets)
    return top + math.log(sum(math.exp(bet - top) for bet in bets) / len(bets)) >= _LIMIT


def settled_bets(chances: Floats) -> tuple[Floats, Floats]:
    """What the bets of the upper and of the lower item change by, as logarithms, on pages with these probabilities.

    Logarithms are those of ``math``, one by one: knowledge must not depend on how many are taken at once.
    """
    chance, gain = chances[:, None], np.array(_GAINS)
    won, lost = chance * gain + 1.0 - chance, (1.0 - chance) * gain + chance
    logs = [np.array(list(map(math.log, part.ravel().tolist()))).reshape(part.shape) for part in (won, lost)]
    return np.array(SHIFTS) - logs[0], -logs[1]


def chosen_pairs(pages: Pages, numbers: list[int], lessons: Lessons) -> tuple[Ints, Ints, Ints]:
    """Rows of drawn pages, and two places below the first click that the draw could have exchanged, upper one first."""
    rows = np.flatnonzero((pages.drawn == 1) & pages.clicks.any(axis=1))
    first, size, places = pages.clicks[rows].argmax(axis=1), pages.positions[rows], pages.places[rows]
    enough = (first + 1 < size) & (first + 2 < places)
    rows, first, size, places = rows[enough], first[enough], size[enough], places[enough]
    draw = lessons.records.last_of_ids[np.array(numbers, np.int64)[rows]]
    one = first + 1 + draw % (size - first - 1)
    other = first + 1 + (draw >> 8) % (places - first - 2)
    other += other >= one
    upper, lower = np.minimum(one, other), np.maximum(one, other)
    exchanged = (lower < 62) & (pages.exchanges[rows, upper] >> np.minimum(lower, 61) & 1 == 1)
    return rows[exchanged], upper[exchanged], lower[exchanged]


def chances_of_orders(pages: Pages, rows: Ints, upper: Ints, lower: Ints) -> Floats:
    """The probability of each page, given it or the page with the items of two places exchanged."""
    found, page = np.zeros(len(rows)), new_impression(pages.clicks.shape[1], pages.ranking.shape[1])
    _fill_chances(pages, rows, upper, lower, page, found)
    return found


@kernel
def _fill_chances(pages: Pages, rows: Ints, upper: Ints, lower: Ints, page: Impression, found: Floats) -> None:
    for number in range(len(rows)):
        row, n_positions = rows[number], pages.positions[rows[number]]
        page.places[0] = pages.places[row]
        for place in range(pages.places[row]):
            page.weight[place], page.exchanges[place] = pages.weight[row, place], pages.exchanges[row, place]
            page.start[place], page.end[place] = pages.start[row, place], pages.end[row, place]
        found[number] = odds_of_exchange(page, n_positions, (upper[number], lower[number]), has_target(page))
