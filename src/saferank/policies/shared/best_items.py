"""The K items with the largest values, for the policies that rank by an index of each item on its own."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.verbs import Call, Flags, Floats, Impression, Ints, Items

T = TypeVar("T", bound=np.generic)


@kernel
def best_items(value: Floats, present: Flags, row: Items) -> None:
    """Fill ``row`` with the present items of the largest values, the largest first, ties in item order."""
    filled = 0
    for item in range(len(present)):
        if not present[item] or (filled == len(row) and value[item] <= value[row[filled - 1]]):
            continue
        seat = min(filled, len(row) - 1)
        while seat > 0 and value[row[seat - 1]] < value[item]:
            row[seat] = row[seat - 1]
            seat -= 1
        row[seat] = item
        filled = min(filled + 1, len(row))


@kernel
def show_items(impression: Impression, row: Items, places: Ints) -> None:
    """Make the page: the item ``row[rank]`` at ``places[rank]``, every place on its own."""
    impression.places[0] = len(row)
    for rank in range(len(row)):
        impression.ranking[places[rank]] = row[rank]
        impression.start[rank], impression.end[rank] = rank, rank + 1


def items_of(call: Call, n_items: int) -> Flags:
    """By item: it is in a call."""
    present = np.zeros(n_items, np.bool_)
    present[call.base] = present[call.candidates] = True
    return present


def ranked(value: Floats, present: Flags, places: Ints) -> Ints:
    """The ranking with the largest values, ties in item order, the largest at ``places[0]``."""
    items = np.flatnonzero(present)
    best = items[np.argsort(-value[items], kind="stable")][: len(places)]
    row = np.zeros(len(places), np.int64)
    row[places] = best
    return row


def enlarged(by_item: NDArray[T], n_items: int) -> NDArray[T]:
    """Statistics by item (first axis) with zeros for the items that are new."""
    larger = np.zeros((n_items, *by_item.shape[1:]), by_item.dtype)
    larger[: len(by_item)] = by_item
    return larger
