"""How a leader follows from production's ranking and the certified order: by swaps, each of which removes a wrong pair.

A swap puts an item in the place of one over which it is certified. It lowers V, the number of wrong pairs, by one at
least, under every order of the items that the certificates leave possible. So with m counted from the swaps

    V(leader) <= V(production's ranking) - m.

Neighbours come first, wherever the lower one is certified over the upper one. When none are left, an exchange of two
items further apart is made, and neighbours have their turn again. Which one, is where the two derivations differ:

* ``sort_pool``: the first place from the top with the first below it. The leader of a new plan of BubbleRank and
  KL-UCB-BR, and the one that the service shows.
* ``derive_reference``: the lowest place with the best item for it, so that m is large. The reference of safe-draw's
  slot plan.

Policies follow these, and the service checks their pages with the same two, from the certificates alone. Two more rules
move a leader, and are not derivations from a ranking and certificates: the pass of BubbleRank and KL-UCB-BR is the
paper's, a single step from the leader of the page before (``bubble.py``). And the exact plan of safe-draw lowers the
worst case itself (``improve_reference``).
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.statistics.certificates import Closure, count_below, surely
from saferank.statistics.duels import is_sure
from saferank.verbs import NO_ITEM, Flags, Ints, Items

CONTRADICTION = -1
"""No leader follows, because the certified order contradicts itself."""


@kernel
def _swapped_if_sure(certain: Any, row: Items, upper: int, lower: int) -> int:
    """Exchange two places of a row if the lower item is surely better; returns how many swaps, 0 or 1."""
    if not is_sure(certain, row[lower], row[upper]):
        return 0
    row[upper], row[lower] = row[lower], row[upper]
    return 1


@kernel
def _swap_neighbours(certain: Any, row: Items, n_positions: int) -> int:
    """One sweep from the top over the neighbours among the first ``n_positions`` places; returns how many swaps."""
    swaps = 0
    for place in range(n_positions - 1):
        swaps += _swapped_if_sure(certain, row, place, place + 1)
    return swaps


# --- neighbours, then from the top ---


@kernel
def _swap_distant(certain: Any, pool: Items, n_positions: int, size: int) -> int:
    """Exchange the first place from the top with the first below it whose item is surely better; 1 if there is one."""
    for upper in range(n_positions):
        for lower in range(upper + 1, size):
            if _swapped_if_sure(certain, pool, upper, lower):
                return 1
    return 0


@seldom
def sort_pool(certain: Any, pool: Items, n_positions: int, size: int) -> int:
    """Sort the first ``size`` places of a pool, of which the first K are the leader, as far as it is certain.

    ``certain`` is what ``is_sure`` is asked of. The bottom item of the leader and any item outside count as neighbours.
    Returns how many swaps were made, or CONTRADICTION: then the pool is in no particular order. Each right swap removes
    a wrong pair, so there is an end.
    """
    swaps, most = 0, n_positions * (n_positions - 1) // 2 + n_positions * (size - n_positions)
    while swaps <= most:
        made = _swap_neighbours(certain, pool, n_positions)
        for place in range(n_positions, size):
            made += _swapped_if_sure(certain, pool, n_positions - 1, place)
        if made == 0:
            made = _swap_distant(certain, pool, n_positions, size)
        if made == 0:
            return swaps
        swaps += made
    return CONTRADICTION


# --- neighbours, then from the bottom, with all that an exchange puts right ---


class Reference(NamedTuple):
    """Production's ranking and what was derived from it."""

    base: Items  # by place: production's ranking
    base_place: Ints  # by item: its place there, K for all others
    row: Items  # by place: R
    place: Ints  # by item: its place in R, K for all others
    income: Ints  # [1] m
    below: Ints  # by item that has a number in the closure: how many present items are certified to be worse


def new_reference(base: Items, n_items: int) -> Reference:
    """R is production's ranking."""
    place, base_place, below = np.zeros((3, n_items), np.int64)
    reference = Reference(base.copy(), base_place, base.copy(), place, np.zeros(1, np.int64), below)
    take_base(reference, base)
    return reference


@kernel
def take_base(reference: Reference, base: Items) -> None:
    """Let this be production's ranking, and R."""
    for item in range(len(reference.place)):
        reference.place[item] = reference.base_place[item] = len(base)
    for place in range(len(base)):
        reference.base[place] = reference.row[place] = base[place]
        reference.place[base[place]] = reference.base_place[base[place]] = place


@kernel
def _best_over(reference: Reference, closure: Closure, present: Flags, place: int) -> int:
    """The item certified over that of ``place``, below it or outside R, with the most items certified below it.

    Ties go to the item that was numbered first. NO_ITEM if there is none.
    """
    best, most, item = NO_ITEM, 0, reference.row[place]
    for number in range(closure.size[0]):
        other = closure.item[number]
        candidate = present[other] and reference.place[other] > place and reference.below[other] > most
        if candidate and surely(closure, other, item):
            best, most = other, reference.below[other]
    return int(best)


@kernel
def _is_between(closure: Closure, better: int, item: int, worse: int) -> bool:
    return surely(closure, better, item) and surely(closure, item, worse)


@kernel
def _gain(reference: Reference, closure: Closure, present: Flags, place: int, best: int) -> int:
    """By how many wrong pairs the exchange of the item of ``place`` with ``best`` lowers V at least.

    With a the item and b the best one: 1, and 2 for every z of R between the two places with b over z over a; if b was
    outside, 1 more for every such z outside.
    """
    item, gain, n_positions = reference.row[place], 1, len(reference.row)
    for lower in range(place + 1, min(reference.place[best], n_positions)):
        gain += 2 * int(_is_between(closure, best, reference.row[lower], item))
    if reference.place[best] == n_positions:
        for number in range(closure.size[0]):
            other = closure.item[number]
            if present[other] and reference.place[other] == n_positions:
                gain += int(_is_between(closure, best, other, item))
    return gain


@kernel
def _exchange(reference: Reference, closure: Closure, present: Flags) -> int:
    """Exchange the lowest place that has a better item below it or outside R with the best such item."""
    row, n_positions = reference.row, len(reference.row)
    for step in range(n_positions):
        place = n_positions - 1 - step
        best = _best_over(reference, closure, present, place)
        if best != NO_ITEM:
            gain = _gain(reference, closure, present, place, best)
            item, other_place = row[place], reference.place[best]
            row[place], reference.place[best], reference.place[item] = best, place, other_place
            if other_place < n_positions:
                row[other_place] = item
            return gain
    return 0


@seldom
def derive_reference(reference: Reference, closure: Closure, present: Flags) -> None:
    """Make certified moves from production's ranking, all of whose items are present, and count m.

    The certified order must not contradict itself.
    """
    row, n_positions = reference.row, len(reference.row)
    count_below(closure, present, reference.below)
    for place in range(n_positions):
        reference.place[row[place]] = n_positions
    for place in range(n_positions):
        row[place] = reference.base[place]
    reference.income[0] = 0
    while True:
        gain = _swap_neighbours(closure, row, n_positions)
        if gain == 0:
            for place in range(n_positions):
                reference.place[row[place]] = place
            gain = _exchange(reference, closure, present)
        if gain == 0:
            return
        reference.income[0] += gain
