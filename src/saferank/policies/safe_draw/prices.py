r"""The reference R of a large catalogue, and the price of a page against it.

R is what certified moves make of production's ranking. Each move puts a certified-better item in the place of a worse
one. It lowers V, the number of wrong pairs, under every order of the items that the certificates leave possible. So
with m counted from the moves

    V(R) <= V(production's ranking) - m.

Moves: two neighbours of which the lower one is certified over the upper one change places (m + 1). When there are none,
the lowest place that has a certified-better item below it or outside R is exchanged with the best such item b; then a
being the item that was there,

    m + 1 + 2 #{z of R between the two places, b over z over a}
          + #{z outside R, b over z over a}                          (only if b was outside)

The price of a page is an upper bound of V(page) - V(R), in possibly wrong pairs. A shown item r stands above z when z
is shown below it or not at all. Every pair of which the page has r above z costs 1, unless R has r above z too or r is
certified over z. Counted by item of the page:

* r of R: the items z above r in R that are not above r on the page, and over which r is not certified;
* r outside R at place k (from 1): L - k - #{z: r certified over z} + #{z above r on the page: r certified over z}.

A page is safe when its price is at most floor(L - K/2) + m. The proof is in docs/policies/safe-draw.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.statistics.certificates import Closure, count_below, surely
from saferank.verbs import NOBODY, Flags, Ints, Items


class Reference(NamedTuple):
    """Production's ranking and what was derived from it."""

    base: Items  # by place: production's ranking
    base_place: Ints  # by item: its place there, K for all others
    row: Items  # by place: R
    place: Ints  # by item: its place in R, K for all others
    income: Ints  # [1] m
    below: Ints  # by number of the closure: how many present items are certified to be worse


def new_reference(base: Items, n_items: int, capacity: int) -> Reference:
    """R is production's ranking; ``capacity`` is that of the closure."""
    place = np.full(n_items, len(base), np.int64)
    place[base] = np.arange(len(base))
    return Reference(base.copy(), place.copy(), base.copy(), place, np.zeros(1, np.int64), np.zeros(capacity, np.int64))


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
        candidate = present[other] and reference.place[other] > place and reference.below[number] > most
        if candidate and surely(closure, other, item):
            best, most = other, reference.below[number]
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


@seldom
def derive_reference(reference: Reference, closure: Closure, present: Flags) -> None:
    """Make certified moves from production's ranking, all of whose items are present, and count m."""
    row, n_positions = reference.row, len(reference.row)
    count_below(closure, present, reference.below)
    for place in range(n_positions):
        reference.place[row[place]] = n_positions
    for place in range(n_positions):
        row[place] = reference.base[place]
        reference.place[row[place]] = place
    reference.income[0] = 0
    while True:
        gain = _rise(reference, closure)
        if gain == 0:
            gain = _exchange(reference, closure, present)
        if gain == 0:
            return
        reference.income[0] += gain


@kernel
def _price_of_ranked(reference: Reference, closure: Closure, seat: Ints, item: int, place: int) -> int:
    """``seat`` says for every place of R where its item is on the page, K if it is hidden."""
    price = 0
    for above in range(reference.place[item]):
        if seat[above] > place and not surely(closure, item, reference.row[above]):
            price += 1
    return price


@kernel
def _price_of_outsider(reference: Reference, closure: Closure, page: Ints, place: int, n_present: int) -> int:
    price, number = n_present - place - 1, closure.number[page[place]]
    certified = 0 if number == NOBODY else reference.below[number]
    if certified == 0:
        return price
    for above in range(place):
        certified -= int(surely(closure, page[place], page[above]))
    return int(price - certified)


@kernel
def price_of(state: Any, page: Ints) -> int:
    """The price of a row of K items, given R and the certificates."""
    reference, closure, seat = state.reference, state.duels.closure, state.plan.seat
    n_positions, price = len(page), 0
    for place in range(n_positions):
        seat[place] = n_positions
    for place in range(n_positions):
        if reference.place[page[place]] < n_positions:
            seat[reference.place[page[place]]] = place
    for place in range(n_positions):
        item = page[place]
        if reference.place[item] < n_positions:
            price += _price_of_ranked(reference, closure, seat, item, place)
        else:
            price += _price_of_outsider(reference, closure, page, place, state.limit[1])
    return price


@kernel
def largest_price(state: Any) -> int:
    """The largest price of a safe page: floor(L - K/2) + m."""
    return int(state.limit[0] + state.reference.income[0])
