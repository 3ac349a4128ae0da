r"""The reference R of a large catalogue: what certified moves make of production's ranking, and what they have earned.

Each move puts a certified-better item in the place of a worse one. It lowers V, the number of wrong pairs, under every
order of the items that the certificates leave possible. So with m counted from the moves

    V(R) <= V(production's ranking) - m.

Moves: two neighbours of which the lower one is certified over the upper one change places (m + 1). When there are none,
the lowest place that has a certified-better item below it or outside R is exchanged with the best such item b; then a
being the item that was there,

    m + 1 + 2 #{z of R between the two places, b over z over a}
          + #{z outside R, b over z over a}                          (only if b was outside)

The proof is in docs/policies/safe-draw.md, "Large catalogues".
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.closure import Closure, surely
from saferank.verbs import NOBODY, Flags, Ints, Items


class Reference(NamedTuple):
    """Production's ranking and what was derived from it."""

    base: Items  # by place: production's ranking, absent items included
    row: Items  # by place: R
    place: Ints  # by item: its place in R, K for all others
    income: Ints  # [1] m


def new_reference(base: Items, n_items: int) -> Reference:
    """R is production's ranking."""
    place = np.full(n_items, len(base), np.int64)
    place[base] = np.arange(len(base))
    return Reference(base.copy(), base.copy(), place, np.zeros(1, np.int64))


@kernel
def _rise(reference: Reference, closure: Closure) -> int:
    """One pass from the top: neighbours change places where the lower one is certified over the upper one."""
    row, moves = reference.row, 0
    for place in range(len(row) - 1):
        upper, lower = row[place], row[place + 1]
        if surely(closure, lower, upper):
            row[place], row[place + 1] = lower, upper
            reference.place[lower], reference.place[upper] = place, place + 1
            moves += 1
    return moves


@kernel
def _best_over(reference: Reference, closure: Closure, present: Flags, place: int) -> int:
    """The item certified over that of ``place``, below it or outside R, with the most items certified below it.

    Ties go to the item that was numbered first. NOBODY if there is none.
    """
    best, most, item = NOBODY, 0, reference.row[place]
    for number in range(closure.size[0]):
        other = closure.item[number]
        candidate = present[other] and reference.place[other] > place and closure.below[number] > most
        if candidate and surely(closure, other, item):
            best, most = other, closure.below[number]
    return int(best)


@kernel
def _is_between(closure: Closure, better: int, item: int, worse: int) -> bool:
    return surely(closure, better, item) and surely(closure, item, worse)


@kernel
def _gain(reference: Reference, closure: Closure, present: Flags, place: int, best: int) -> int:
    """By how many wrong pairs the exchange of the item of ``place`` with ``best`` lowers V at least."""
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
        if best != NOBODY:
            gain = _gain(reference, closure, present, place, best)
            item, other_place = row[place], reference.place[best]
            row[place], reference.place[best], reference.place[item] = best, place, other_place
            if other_place < n_positions:
                row[other_place] = item
            return gain
    return 0


@kernel
def derive_reference(reference: Reference, closure: Closure, present: Flags) -> None:
    """Make certified moves from the present row, which is production's closed-up ranking, and count m from 0."""
    reference.income[0] = 0
    while True:
        gain = _rise(reference, closure)
        if gain == 0:
            gain = _exchange(reference, closure, present)
        if gain == 0:
            return
        reference.income[0] += gain


@kernel
def return_to_base(reference: Reference) -> None:
    """R is production's ranking again, all of whose items are present."""
    for place in range(len(reference.row)):
        reference.place[reference.row[place]] = len(reference.row)
    for place in range(len(reference.row)):
        reference.row[place] = reference.base[place]
        reference.place[reference.row[place]] = place
