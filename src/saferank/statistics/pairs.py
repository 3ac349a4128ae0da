"""The table of pairs: a row for every pair of items that was compared, with how often each of the two won.

Duels and bets both keep their pairs in it, and have columns of their own beside it, by row. A row is found by hash, so
the table grows with what is compared and not with the catalogue. Small catalogues have a row for every pair from the
start; there it is found by its number, which is faster. A *side* of a row is one of its two items: 0 the one with the
smaller number, 1 the other.

Every kernel here takes a *store*: a NamedTuple whose field ``pairs`` is the table.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, seldom
from saferank.verbs import Ints

_NOWHERE = 0
"""The row of all pairs that were never compared; nothing is written there."""


class Pairs(NamedTuple):
    """Which pairs have a row, and their wins."""

    slots: Ints  # by hash: a row, or 0; empty when rows are found by number
    low: Ints  # by row, if it is found by hash: the item of side 0
    high: Ints  # the same: the item of side 1
    used: Ints  # [1] rows in use, that of no pair among them
    wins: Ints  # by 2 row + side: how often that item was clicked and the other, compared with it, was not


def new_pairs(n_items: int, n_pairs: int, direct_items: int) -> Pairs:
    """No pair was compared yet; room for ``n_pairs``, or for all pairs of at most ``direct_items`` items."""
    if n_items <= direct_items:
        return _with_all_rows(n_items)
    rows = 1 + n_pairs
    low, high = np.zeros((2, rows), np.int64)
    slots = np.zeros(1 << (2 * rows - 1).bit_length(), np.int64)
    return Pairs(slots, low, high, np.ones(1, np.int64), np.zeros(2 * rows, np.int64))


def _with_all_rows(n_items: int) -> Pairs:
    """An item and itself have a row as well, in which nothing is written: then no question needs a branch."""
    rows = n_items * (n_items + 1) // 2
    slots, low, high = np.zeros((3, 0), np.int64)
    return Pairs(slots, low, high, np.full(1, rows, np.int64), np.zeros(2 * rows, np.int64))


def n_rows(pairs: Pairs) -> int:
    """How many rows a table has, in use or not."""
    return len(pairs.wins) // 2


@kernel
def _slot_of(pairs: Pairs, low: Any, high: Any) -> int:
    """The slot that has the row of a pair, or the free one where it belongs."""
    mask = len(pairs.slots) - 1
    mixed = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(high) * np.uint64(0xC2B2AE3D27D4EB4F)
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while pairs.slots[slot] != _NOWHERE:
        row = pairs.slots[slot]
        if pairs.low[row] == low and pairs.high[row] == high:
            break
        slot = (slot + 1) & mask
    return int(slot)


@seldom
def _hashed_row(pairs: Pairs, low: Any, high: Any, claims: bool) -> int:
    """The row of a pair that is found by hash, which is the pair's from now on if it ``claims`` it."""
    slot = _slot_of(pairs, low, high)
    if claims and pairs.slots[slot] == _NOWHERE:
        row = pairs.used[0]
        pairs.slots[slot], pairs.low[row], pairs.high[row] = row, low, high
        pairs.used[0] += 1
    return int(pairs.slots[slot])


@kernel
def _row_of(pairs: Pairs, i: int, j: int, claims: bool) -> int:
    low, high = np.int64(min(i, j)), np.int64(max(i, j))
    if len(pairs.slots) == 0:
        return int((high * (high + 1) >> 1) + low)
    return _hashed_row(pairs, low, high, claims)


@kernel
def row_of(store: Any, i: int, j: int) -> int:
    """The row of a pair; one in which nothing is written for a pair that was never compared."""
    return _row_of(store.pairs, i, j, False)


@kernel
def claim_row(store: Any, i: int, j: int) -> int:
    """The row of a pair, which is the pair's from now on; there must be room for it."""
    return _row_of(store.pairs, i, j, True)


@kernel
def duel_of(store: Any, i: int, j: int) -> tuple[int, int]:
    """How often i won against j, and how often it lost."""
    row, side = row_of(store, i, j), int(i > j)
    return int(store.pairs.wins[2 * row + side]), int(store.pairs.wins[2 * row + 1 - side])


@kernel
def count_win(store: Any, i: int, j: int) -> int:
    """Add a win of i over j; returns the row of the pair."""
    row = claim_row(store, i, j)
    store.pairs.wins[2 * row + int(i > j)] += 1
    return row


@kernel
def forget_wins(store: Any) -> None:
    """Nothing was won yet."""
    for row in range(1, store.pairs.used[0]):
        store.pairs.wins[2 * row] = store.pairs.wins[2 * row + 1] = 0


@kernel
def pairs_full(store: Any, n_new: int) -> bool:
    """True when ``n_new`` more pairs might not fit."""
    pairs = store.pairs
    return bool(len(pairs.slots) > 0 and pairs.used[0] + n_new > len(pairs.low))


@kernel
def items_of(store: Any, row: int) -> tuple[int, int]:
    """The two items of a row, the smaller number first."""
    pairs = store.pairs
    if len(pairs.slots) == 0:
        high = int(math.sqrt(2.0 * row + 0.25) - 0.5)
        return row - (high * (high + 1) >> 1), high
    return int(pairs.low[row]), int(pairs.high[row])


def wins_by_row(store: Any) -> Ints:
    """[row, side] the wins."""
    by_row: Ints = store.pairs.wins.reshape(-1, 2)
    return by_row


def most_fought(store: Any) -> int:
    """The largest number of comparisons of any pair."""
    return int(wins_by_row(store).sum(axis=1).max(initial=0))


# --- the table grows ---


def items_of_rows(store: Any, rows: Ints) -> tuple[Ints, Ints]:
    """The items of rows: by row that of side 0, and that of side 1."""
    if len(store.pairs.slots):
        return store.pairs.low[rows], store.pairs.high[rows]
    high = (np.sqrt(2.0 * rows + 0.25) - 0.5).astype(np.int64)
    return rows - high * (high + 1) // 2, high


def all_rows(store: Any) -> Ints:
    """The rows that pairs have."""
    return np.arange(1, int(store.pairs.used[0]))


def moved(store: Any, rows: Ints, bigger: Pairs) -> Pairs:
    """Put these rows of a table into an empty one, as its first rows; returns that.

    A table with a row for every pair takes all rows of another such table: rows have the same numbers in both.
    """
    bigger.wins[2 : 2 + 2 * len(rows)] = wins_by_row(store)[rows].reshape(-1)
    if len(bigger.slots):
        bigger.used[0] = 1 + len(rows)
        bigger.low[1 : 1 + len(rows)], bigger.high[1 : 1 + len(rows)] = items_of_rows(store, rows)
        _fill_slots(bigger)
    return bigger


@kernel
def _fill_slots(pairs: Pairs) -> None:
    for row in range(1, pairs.used[0]):
        pairs.slots[_slot_of(pairs, pairs.low[row], pairs.high[row])] = row


def moved_column(column: NDArray[Any], before: Pairs, rows: Ints, after: Pairs) -> NDArray[Any]:
    """What a column has for these rows, in a column for the table to which they were moved."""
    width = len(column) // n_rows(before)
    new = np.zeros((n_rows(after) * width, *column.shape[1:]), column.dtype)
    by_row = (-1, width, *column.shape[1:])
    new.reshape(by_row)[1 : 1 + len(rows)] = column.reshape(by_row)[rows]
    return new
