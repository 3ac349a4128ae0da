"""Who counts: a visitor's first page in a window, their first vote on a pair, the pages of a source in a day.

Of a visitor's pages in a window only the first counts, whatever its arm. Of a visitor's comparisons of a pair only the
first informative one of an epoch counts. And the orders on clicked pages are watched: who picks pages is found out.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.arms import DAY_MS, takes_part
from saferank.store.page_record import SOURCE_SIZE, VISITOR
from saferank.store.record_columns import ARM, FLAGS, ISSUED_AT, SHARE, VISITOR_KEY, WINDOW_MS, ClosedPages
from saferank.verbs import Flags, Floats, Impression, Ints

Words = NDArray[np.uint64]

# --- a visitor's first page in a window ---


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
        _note_firsts(pages.columns.numbers, pages.at, after, self._seen, first)
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


# --- a visitor's first vote on a pair ---


MOST_MARKS = 1 << 18
"""Marks of a context in an epoch: 1 MB."""

MARK_BITS, VISITOR_BITS = 32, 12
_MIX, _STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HALF, _PAIR_SHIFT = np.uint64(32), np.uint64(64 - MARK_BITS + VISITOR_BITS)


class MarkTable(NamedTuple):
    """Marks, found by themselves: at most half of the slots are taken."""

    slots: NDArray[np.uint32]  # 0: free
    facts: Ints  # [3] how many marks there are, how often they were halved, how many there may be


@kernel
def mark_of(visitor: np.uint64, pair: np.uint64) -> np.uint64:
    """The mark of a vote; ``pair`` is the sum of the hashes of two items."""
    mixed = visitor * _MIX + pair
    mixed = (mixed ^ mixed >> _HALF) * _STIR
    whose = visitor >> np.uint64(64 - VISITOR_BITS) << np.uint64(MARK_BITS - VISITOR_BITS)
    return np.uint64(whose | mixed >> _PAIR_SHIFT)


@kernel
def vote(marks: MarkTable, mark: np.uint64) -> bool:
    """Note a vote; False when it does not count: it was noted before, or its visitor is left out."""
    if mark >> np.uint64(MARK_BITS - marks.facts[1]):
        return False
    noted, mask = max(mark, np.uint64(1)), np.uint64(len(marks.slots) - 1)
    slot = (noted ^ noted >> np.uint64(15)) & mask
    while marks.slots[slot]:
        if marks.slots[slot] == noted:
            return False
        slot = (slot + np.uint64(1)) & mask
    marks.slots[slot] = noted
    marks.facts[0] += 1
    return True


@kernel
def _vote_all(marks: MarkTable, noted: NDArray[np.uint32]) -> None:
    for number in range(len(noted)):
        vote(marks, np.uint64(noted[number]))


class Votes:
    """The votes of an epoch."""

    def __init__(self, epoch: int = 0, level: int = 0, marks: bytes = b"", most: int = MOST_MARKS) -> None:
        self.epoch, self._most = epoch, most
        self._take(level, np.frombuffer(marks, np.uint32))

    def _take(self, level: int, marks: NDArray[np.uint32], room: int = 0) -> None:
        slots = np.zeros(1 << (2 * (len(marks) + room)).bit_length(), np.uint32)
        self.table = MarkTable(slots, np.array([0, level, self._most]))
        _vote_all(self.table, marks)

    @property
    def level(self) -> int:
        """How often half of the visitors were left out."""
        return int(self.table.facts[1])

    @property
    def marks(self) -> NDArray[np.uint32]:
        """The marks, sorted."""
        return np.sort(self.table.slots[self.table.slots > 0])

    def turn_to(self, epoch: int) -> None:
        """Begin a later epoch: every visitor may vote again."""
        if epoch > self.epoch:
            self.epoch = epoch
            self._take(0, np.zeros(0, np.uint32))

    def carry_to(self, epoch: int, later: int) -> None:
        """Begin an epoch, and let a later one continue it: who has voted in it has voted in the later one."""
        self.turn_to(epoch)
        self.epoch = later

    def make_room(self, more: int) -> None:
        """For as many votes more."""
        if 2 * (int(self.table.facts[0]) + more) > len(self.table.slots):
            self._take(self.level, self.marks, more)

    def halve(self) -> None:
        """Leave out half of the visitors as long as there are too many marks."""
        level, marks = self.level, self.marks
        while len(marks) > self._most and level < VISITOR_BITS:
            level += 1
            marks = marks[: np.searchsorted(marks, np.uint32(1 << (MARK_BITS - level)))]
        if len(marks) > self._most:  # a 4096th of the visitors have too many: no visitor counts any more
            level, marks = MARK_BITS, marks[:0]
        self._take(level, marks)


@functools.lru_cache(maxsize=1 << 16)
def item_hash(item: str) -> int:
    """What stands for an item in marks."""
    return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "little")


# --- a daily cap on the pages of one source that count in a day, in each context ---


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


class OrderBets(NamedTuple):
    """The bets of the watched items."""

    logs: Floats  # [slot, shift] logarithms of what they have become
    items: Ints  # by slot: the number of its item
    facts: Ints  # [1] how many slots are taken


class OrderWatch:
    """The bets of every item, as logarithms."""

    def __init__(self, bets: Mapping[str, Sequence[float]] | None = None) -> None:
        self.names = list(bets or {})  # by slot
        self.table = OrderBets(
            np.zeros((MOST_ITEMS, len(SHIFTS))), np.zeros(MOST_ITEMS, np.int64), np.array([len(self.names)])
        )
        for slot, kept in enumerate((bets or {}).values()):
            self.table.logs[slot] = kept

    @property
    def bets(self) -> dict[str, list[float]]:
        """By item, those that came first first."""
        return {item: self.table.logs[slot].tolist() for slot, item in enumerate(self.names)}

    def name_new(self, items: Sequence[object]) -> None:
        """Items have got slots by their numbers: note their names."""
        for slot in range(len(self.names), int(self.table.facts[0])):
            self.names.append(str(items[self.table.items[slot]]))


@kernel
def _settle(bets: Floats, upper: bool, chance: float) -> bool:
    """Change the bets of the upper or the lower item of a pair that stands so with a chance; True when they have won.

    Then they begin again.
    """
    top = -np.inf
    for place in range(len(SHIFTS)):
        if upper:
            bets[place] += SHIFTS[place] - math.log(chance * _GAINS[place] + 1.0 - chance)
        else:
            bets[place] += -math.log((1.0 - chance) * _GAINS[place] + chance)
        top = max(top, bets[place])
    if top < _LIMIT:  # the mean is not above the largest
        return False
    total = 0.0
    for place in range(len(SHIFTS)):
        total += math.exp(bets[place] - top)
    has_won = top + math.log(total / len(SHIFTS)) >= _LIMIT
    for place in range(len(SHIFTS)):
        bets[place] = 0.0 if has_won else bets[place]
    return bool(has_won)


@kernel
def _slot_of(bets: OrderBets, slots: Ints, item: int) -> int:
    """The slot of an item, a new one if there is one; -1 without one."""
    if slots[item] < 0 and bets.facts[0] < MOST_ITEMS:
        slots[item] = bets.facts[0]
        bets.items[bets.facts[0]] = item
        bets.facts[0] += 1
    return int(slots[item])


@kernel
def places_below(draw: int, first: int, n_positions: int, places: int) -> tuple[int, int]:
    """Two places below the first click, the upper one shown, chosen by random bits; the upper one first."""
    one = first + 1 + draw % (n_positions - first - 1)
    other = first + 1 + (draw >> 8) % (places - first - 2)
    other += int(other >= one)
    return min(one, other), max(one, other)


@kernel
def watch(bets: OrderBets, slots: Ints, page: Impression, first: int, n_positions: int, draw: int, won: Ints) -> None:
    """Look at one pair of places of a drawn page with its first click at ``first``.

    ``slots`` are those of items by number. Notes the slots of the two items in ``won`` if their bets won, the upper's
    first.
    """
    won[0], won[1], places = -1, -1, page.places[0]
    if first + 1 < n_positions and first + 2 < places:
        upper, lower = places_below(draw, first, n_positions, places)
        if lower < 62 and page.exchanges[upper] >> lower & 1:
            chance = odds_of_exchange(page, n_positions, (upper, lower), has_target(page))
            if _CLEAR < chance < 1.0 - _CLEAR:
                high = _slot_of(bets, slots, page.ranking[upper])
                low = _slot_of(bets, slots, page.ranking[lower])
                if high >= 0 and _settle(bets.logs[high], True, chance):
                    won[0] = high
                if low >= 0 and _settle(bets.logs[low], False, chance):
                    won[1] = low
