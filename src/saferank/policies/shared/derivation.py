"""How a leader follows from a reference ranking and what is certain: by swaps, each of which removes a wrong pair.

A *pool* is a row of items of which the first K places are the leader. Neighbours of the leader, and its bottom item
and any item outside, are swapped while the lower one is surely better. Only when no such swap is left one pair further
apart is exchanged, and neighbours have their turn again.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.duels import surely_better
from saferank.verbs import Flags, Ints, Items

CONTRADICTION = -1
"""No leader follows, because what is certain contradicts itself."""


@kernel
def _swapped_if_sure(duels: Any, lead_needed: Ints, pool: Items, upper: int, lower: int) -> int:
    """Exchange two places of the pool if the lower item is surely better; returns how many swaps, 0 or 1."""
    if not surely_better(duels, lead_needed, pool[lower], pool[upper]):
        return 0
    pool[upper], pool[lower] = pool[lower], pool[upper]
    return 1


@kernel
def _swap_neighbours(duels: Any, lead_needed: Ints, pool: Items, n_positions: int, size: int) -> int:
    """One sweep from the top over the neighbours of the leader, then over the bottom item and all items outside."""
    swaps = 0
    for place in range(n_positions - 1):
        swaps += _swapped_if_sure(duels, lead_needed, pool, place, place + 1)
    for place in range(n_positions, size):
        swaps += _swapped_if_sure(duels, lead_needed, pool, n_positions - 1, place)
    return swaps


@kernel
def _swap_distant(duels: Any, lead_needed: Ints, pool: Items, n_positions: int, size: int) -> int:
    """Exchange the first place from the top with the first below it whose item is surely better; 1 if there is one."""
    for upper in range(n_positions):
        for lower in range(upper + 1, size):
            if _swapped_if_sure(duels, lead_needed, pool, upper, lower):
                return 1
    return 0


@kernel
def most_swaps(n_positions: int, size: int) -> int:
    """Each right swap removes a wrong pair of the pool, and there are no more than so many."""
    return n_positions * (n_positions - 1) // 2 + n_positions * (size - n_positions)


@kernel
def sort_pool(duels: Any, lead_needed: Ints, pool: Items, n_positions: int, size: int) -> int:
    """Sort the first ``size`` places of the pool as far as it is certain; returns how many swaps, or CONTRADICTION.

    After a contradiction the pool is in no particular order.
    """
    swaps = 0
    while swaps <= most_swaps(n_positions, size):
        made = _swap_neighbours(duels, lead_needed, pool, n_positions, size)
        if made == 0:
            made = _swap_distant(duels, lead_needed, pool, n_positions, size)
        if made == 0:
            return swaps
        swaps += made
    return CONTRADICTION


def close_ranks(leader: Ints | Items, present: Flags, order: Items | None = None) -> Items:
    """The leader without absent items, filled up from below with the others in candidate order.

    ``order`` has all items in candidate order; None: by their numbers.
    """
    staying = [int(item) for item in leader if present[item]]
    others = (int(item) for item in others_in_order(staying, present, order))
    return np.array([*staying, *itertools.islice(others, len(leader) - len(staying))], np.uint32)


def with_more_in_order(order: Items, n_items: int) -> Items:
    """The candidate order of all items when more have come: they are the last."""
    return np.append(order, np.arange(len(order), n_items, dtype=np.uint32))


def others_in_order(ranked: Sequence[int] | Items, present: Flags, order: Items | None = None) -> Ints:
    """The present items that are not ranked, in candidate order."""
    candidate = present.copy()
    candidate[ranked] = False
    if order is None:
        return np.flatnonzero(candidate)
    return order[candidate[order]].astype(np.int64)
