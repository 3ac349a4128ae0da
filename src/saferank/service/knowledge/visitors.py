"""Who looks at a page, by keyed hashes; its coins; how many pages of a source count; a watch over orders."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from os import urandom
from typing import NamedTuple, TypeVar

import numpy as np

from saferank._kernel import kernel
from saferank.live.replay import Pages
from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.lessons import Laid, Lessons
from saferank.store.page_record import COINS_SIZE, SOURCE_SIZE, VISITOR_SIZE
from saferank.verbs import Floats, Impression, Ints, new_impression

Time = TypeVar("Time", int, Ints)
"""One, or an array."""

_SHARES = 2.0**64


class Visitor(NamedTuple):
    """Whoever looks at a page."""

    key: bytes  # hash of the session, or else of the request; empty: unknown
    source: bytes  # hash of the account or address behind it; empty: unknown


class Draws(NamedTuple):
    """What chance decides about a page."""

    coins: bytes  # the policy's
    arm: float  # in [0, 1): below the holdout share the page is production's


def visitor(key: bytes, tenant: str, session_id: str | None, request_id: str | None, source: str | None) -> Visitor:
    """The visitor of a call."""
    origin = b"" if source is None else _hashed(key, SOURCE_SIZE, "source", tenant, source)
    if session_id is not None:
        return Visitor(_hashed(key, VISITOR_SIZE, "session", tenant, session_id), origin)
    if request_id is not None:
        return Visitor(_hashed(key, VISITOR_SIZE, "request", tenant, request_id), origin)
    return Visitor(b"", origin)


def draws_of(key: bytes, who: Visitor, tenant: str, context: str, window: int) -> Draws:
    """The draws of a page: the same for a known visitor throughout a window, so that a reload gets the same page.

    Every visitor, context and window has a coin of its own for the arm. The comparison of the arms needs that
    (docs/engineers/effect.md): one coin for everything that a session ever sees would make its pages one observation.
    """
    if who.key:
        drawn = _hashed(key, COINS_SIZE + 8, "page", tenant, context, who.key.hex(), str(window))
    else:
        drawn = urandom(COINS_SIZE + 8)
    return Draws(drawn[:COINS_SIZE], int.from_bytes(drawn[COINS_SIZE:], "big") / _SHARES)


def traffic_draw(key: bytes, who: Visitor, tenant: str) -> float:
    """In [0, 1): below the traffic share the policy may choose. The same for a known visitor for good."""
    drawn = _hashed(key, 8, "traffic", tenant, who.key.hex()) if who.key else urandom(8)
    return int.from_bytes(drawn, "big") / _SHARES


def window_number(issued_at: Time, window_ms: Time) -> Time:
    """Windows cut time; a visitor has one counted page in each."""
    return issued_at // window_ms


def _hashed(key: bytes, size: int, *texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode(), key=key, digest_size=size).digest()


# --- A daily cap: so many pages of one source count in a day, in each context ---


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
        """Let so many pages of a source count in a day from now on; 0: all."""
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


# Watch the orders on pages that were clicked: an alarm when an item stands higher more often than it was drawn to
# Whoever calls twice and keeps the page they like, or reports clicks for some pages only, makes the pages that come
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

    def look_at(self, laid: Laid, lessons: Lessons, items: Sequence[object]) -> list[tuple[int, str]]:
        """Take in pages in display order; returns lessons and items that do not stand where they were drawn to."""
        (pages, numbers), found, done = laid, [], 0
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
