"""Distinct rows of numbers with weights: a hash table that remembers the order in which rows were first seen.

Like Python's dict it has two parts: slots, found by linear probing, that hold the numbers of entries, and the entries
themselves, one behind the other. One table serves queries (a row is an id), items of a query (two ids), pages and
rankings. Kernels fill it; it grows in Python, before a batch that might need more room.

An entry takes 8 bytes of weight, the row, and 5.3 to 10.7 bytes of slots. Memory that was never used is never touched.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from saferank._kernel import kernel
from saferank.verbs import Ints

NOWHERE = -1
_FEWEST_SLOTS = 1024
_BLOCK = 1 << 18
_SHIFT = np.uint64(29)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class HashedRows(NamedTuple):
    """Rows by number of entry, and the slots that lead to them; at most three quarters of the slots are used."""

    slots: NDArray[np.int32]  # number of the entry plus one, or 0; a power of two of them
    rows: NDArray[Any]  # [capacity, width], unsigned
    weight: Ints  # [capacity]
    used: Ints  # [1] how many entries


def new_rows(width: int, kind: DTypeLike, n_slots: int = _FEWEST_SLOTS) -> HashedRows:
    """An empty table for rows of ``width`` unsigned numbers."""
    capacity = n_slots // 4 * 3
    return HashedRows(
        slots=np.zeros(n_slots, np.int32),
        rows=np.zeros((capacity, width), kind),
        weight=np.zeros(capacity, np.int64),
        used=np.zeros(1, np.int64),
    )


@kernel
def _hash(row: NDArray[Any]) -> np.uint64:
    mixed = np.uint64(0)
    for k in range(len(row)):
        mixed = (mixed ^ np.uint64(row[k])) * _MIX
        mixed ^= mixed >> _SHIFT
    return mixed


@kernel
def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    same = 0
    while same < len(one) and one[same] == other[same]:
        same += 1
    return same == len(one)


@kernel
def _slot_of(table: HashedRows, row: NDArray[Any]) -> int:
    """The slot that leads to the row, or the free one that will."""
    mask = len(table.slots) - 1
    slot = np.int64(_hash(row) & np.uint64(mask))
    while table.slots[slot] != 0 and not _equal(row, table.rows[table.slots[slot] - 1]):
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def entry_of(table: HashedRows, row: NDArray[Any]) -> int:
    """The number of the row's entry, or NOWHERE."""
    return int(table.slots[_slot_of(table, row)]) - 1


@kernel
def add_row(table: HashedRows, row: NDArray[Any], weight: int) -> int:
    """Add to the weight of a row, a new one if need be; returns the number of its entry. There must be room."""
    slot = _slot_of(table, row)
    if table.slots[slot] == 0:
        entry = table.used[0]
        for k in range(len(row)):
            table.rows[entry, k] = row[k]
        table.used[0] += 1
        table.slots[slot] = entry + 1
    found = table.slots[slot] - 1
    table.weight[found] += weight
    return int(found)


@kernel
def _find_slots(table: HashedRows) -> None:
    for entry in range(table.used[0]):
        table.slots[_slot_of(table, table.rows[entry])] = entry + 1


def with_room(table: HashedRows, n_new: int) -> HashedRows:
    """The same rows in a table in which ``n_new`` more fit."""
    used = int(table.used[0])
    if used + n_new <= len(table.rows):
        return table
    n_slots = len(table.slots)
    while n_slots // 4 * 3 < used + n_new:
        n_slots *= 2
    bigger = new_rows(table.rows.shape[1], table.rows.dtype, n_slots)
    bigger.rows[:used], bigger.weight[:used], bigger.used[0] = table.rows[:used], table.weight[:used], used
    _find_slots(bigger)
    return bigger


def heaviest(table: HashedRows, n: int) -> Ints:
    """The entries of the ``n`` largest weights in decreasing order; of equal ones the first seen comes first.

    Block by block, because the table of a large log leaves no room to sort it.
    """
    used, best = int(table.used[0]), np.zeros(0, np.int64)
    for start in range(0, used, _BLOCK):
        entries = np.concatenate((best, np.arange(start, min(start + _BLOCK, used))))
        best = entries[np.argsort(-table.weight[entries], kind="stable")][:n]
    return best
