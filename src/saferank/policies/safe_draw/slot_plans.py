r"""Plans of pages for large catalogues: one slot for an item from outside R, the other places in Plackett-Luce order.

A plan has an *order*: R without the defender, or all of R when there is no slot, sorted by th as far as pages stay
safe. Its items are drawn one after the other with weights exp(-lambda), lambda growing down the order; the slot gets
the defender or a member of the race. A page must be safe whichever *occupant* the slot gets, so the two draws are
independent, and the odds of an exchange in one of them do not depend on the other.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.appeal import appeal_of
from saferank.policies.safe_draw.comparing import is_settled, largest_gap
from saferank.policies.safe_draw.prices import largest_price, price_of
from saferank.policies.safe_draw.races import RACERS, hold_race
from saferank.randomness import Words, uniform
from saferank.statistics.bets import evidence
from saferank.statistics.closure import surely
from saferank.verbs import NOBODY, Floats, Ints

PAGES_OF_A_PLAN = 16
"""A plan serves so many pages, unless a pair is certified before."""

POOR = 3
"""While m is below this, a plan has a slot with probability SLOT_SHARE; otherwise half of the plans are flat."""

SLOT_SHARE, FLAT_SHARE = 0.7, 0.5

GAP, FLAT_GAP, LARGEST_GAP = 0.5, 0.1, 12.0
"""Between neighbours of the order: the least, that of flat plans, the largest (so that no weight underflows)."""

TIGHT = 8.0
"""A plan is tight when a draw exchanges more pairs on average than its slack and this: then few draws are safe."""

FLOOR_STEP = 1.25
"""The least gap of a tight plan grows by this factor until the draw exchanges no more pairs than the slack allows."""

LEAD = 0.5
"""A member of the race that leads the defender has a weight of at most exp(LEAD)."""


class SlotPlan(NamedTuple):
    """What the next pages are drawn from."""

    order: Ints  # [K] the items of the Plackett-Luce places, best first
    weight: Floats  # [K] their weights
    size: Ints  # [1] how many: K, or K - 1 with a slot
    slot: Ints  # [1] place of the slot, or NOBODY
    occupant: Ints  # [1 + RACERS] whom the slot may get: the defender, then the race
    chance: Floats  # [1 + RACERS] their weights
    occupants: Ints  # [1] how many, 0 without a slot
    pages: Ints  # [1] how many more pages it serves
    price: Ints  # [1] of the newest page
    page: Ints  # scratch [K]
    others: Ints  # scratch [1 + RACERS]: whom the slot of another page may get
    seat: Ints  # scratch [K]: by place of R, where its item is on a page
    left: Floats  # scratch [K]
    drawn: Ints  # scratch [K]


def new_slot_plan(n_positions: int) -> SlotPlan:
    """A plan for no page."""
    order, page, seat, drawn = np.zeros((4, n_positions), np.int64)
    weight, left = np.zeros((2, n_positions))
    size, slot, occupants, pages, price = np.zeros((5, 1), np.int64)
    occupant, others = np.zeros((2, 1 + RACERS), np.int64)
    slot[0] = NOBODY
    return SlotPlan(
        order,
        weight,
        size,
        slot,
        occupant,
        np.zeros(1 + RACERS),
        occupants,
        pages,
        price,
        page,
        others,
        seat,
        left,
        drawn,
    )


@kernel
def least_slack(state: Any, page: Ints, slot: int, occupant: Ints, occupants: int) -> int:
    """By how much the dearest page is below the largest safe price, over all occupants of the slot, if there is one.

    The first negative number found is returned: then some page is not safe. The items from outside, which are dear,
    come first.
    """
    most, count = largest_price(state), max(occupants, 1)
    least = most
    for entry in range(1, count + 1):
        if slot != NOBODY:
            page[slot] = occupant[entry % count]
        least = min(least, most - price_of(state, page))
        if least < 0:
            break
    return least


@kernel
def _slack(state: Any, slot: int) -> int:
    """By how much the scratch page is below the largest safe price; negative if it is not safe."""
    plan = state.plan
    return least_slack(state, plan.page, slot, plan.occupant, plan.occupants[0])


@kernel
def is_safe(state: Any, slot: int) -> bool:
    """True when the scratch page is safe with each of the plan's occupants in the slot."""
    return _slack(state, slot) >= 0


@kernel
def place_of_seat(slot: int, seat: int) -> int:
    """The place of the order's item number ``seat``: the slot is left free."""
    return seat + int(slot != NOBODY and seat >= slot)


@kernel
def lay_out(plan: SlotPlan, slot: int) -> None:
    """Put the order on the scratch page, around the slot."""
    for seat in range(plan.size[0]):
        plan.page[place_of_seat(slot, seat)] = plan.order[seat]


@kernel
def _take_order(state: Any, without: int) -> None:
    """The order is that of R, one item left out."""
    plan, size = state.plan, 0
    for place in range(len(state.reference.row)):
        if state.reference.row[place] != without:
            plan.order[size] = state.reference.row[place]
            size += 1
    plan.size[0] = size


@kernel
def _sort_order(state: Any, slot: int, reserve: int) -> None:
    """Neighbours change places where the lower one has the larger th and is not certified worse.

    Only while the slack of pages is at least ``reserve``; at most K sweeps from the top.
    """
    plan, order = state.plan, state.plan.order
    for _ in range(len(order)):
        changed = False
        for seat in range(plan.size[0] - 1):
            upper, lower = order[seat], order[seat + 1]
            if appeal_of(state.appeal, lower) > appeal_of(state.appeal, upper) and not surely(
                state.closure, upper, lower
            ):
                order[seat], order[seat + 1] = lower, upper
                lay_out(plan, slot)
                if _slack(state, slot) >= reserve:
                    changed = True
                else:
                    order[seat], order[seat + 1] = upper, lower
        if not changed:
            break


@kernel
def _highest_slot(state: Any) -> int:
    """The highest affordable place in the lower half of the page. The last one is affordable: the order was sorted so.

    The lower half begins at place ceil(K/2), counted from 1.
    """
    last = len(state.plan.order) - 1
    for place in range((last + 2) // 2 - 1, last):
        lay_out(state.plan, place)
        if is_safe(state, place):
            return place
    return last


@kernel
def gap(e: float) -> float:
    """The logarithm of the odds that the better-looking item is better: log(Phi(z) / Phi(-z)), z = sqrt(2 e)."""
    if e <= 0.0:
        return 0.0
    tail = math.erfc(math.sqrt(e))
    return min(LARGEST_GAP, math.log((2.0 - tail) / tail)) if tail > 0.0 else LARGEST_GAP


@kernel
def _gap_below(state: Any, upper: int, lower: int, flat: bool) -> float:
    """By how much lambda grows from an item of the order to the next.

    Clicks widen the gap only where R has the two in this order; elsewhere the pair is still to be compared both ways.
    """
    if is_settled(state.duels, state.closure, upper, lower):
        return largest_gap(state.duels)
    if flat:
        return FLAT_GAP
    if state.reference.place[upper] > state.reference.place[lower]:
        return GAP
    return max(GAP, min(largest_gap(state.duels), gap(evidence(state.duels, upper, lower))))


@kernel
def _weigh_order(state: Any, flat: bool, floor: float) -> None:
    plan, fall = state.plan, 0.0
    for seat in range(plan.size[0]):
        if seat > 0:
            fall += max(floor, _gap_below(state, plan.order[seat - 1], plan.order[seat], flat))
        plan.weight[seat] = math.exp(-fall)


@kernel
def _exchanged_pairs(plan: SlotPlan) -> float:
    """How many pairs of the order a draw has the other way round, on average."""
    total = 0.0
    for upper in range(plan.size[0]):
        for lower in range(upper + 1, plan.size[0]):
            total += plan.weight[lower] / (plan.weight[upper] + plan.weight[lower])
    return total


@kernel
def _tighten(state: Any, slot: int, without: int, flat: bool, slack: int) -> None:
    """Plan a page whose draws would nearly all be unsafe: half of R's slack sorts the order, the rest is drawn."""
    plan, floor = state.plan, FLAT_GAP
    _take_order(state, without)
    _sort_order(state, slot, slack - slack // 2)
    lay_out(plan, slot)
    rest = float(_slack(state, slot))
    _weigh_order(state, flat, floor)
    while floor < LARGEST_GAP and _exchanged_pairs(plan) > rest:
        floor *= FLOOR_STEP
        _weigh_order(state, flat, floor)


@kernel
def _seat_occupants(state: Any) -> None:
    """The defender with weight 1; members of the race by the evidence between them and the defender."""
    plan, race = state.plan, state.race
    plan.occupant[0], plan.chance[0], plan.occupants[0] = race.defender[0], 1.0, 1 + race.size[0]
    for seat in range(race.size[0]):
        plan.occupant[1 + seat] = race.member[seat]
        lead = evidence(state.duels, race.member[seat], race.defender[0])
        plan.chance[1 + seat] = math.exp(min(LEAD, gap(lead)) - gap(-lead))


@kernel
def _wants_slot(state: Any, rng: Words, poor: bool) -> bool:
    """True when the plan is to have a slot, for which there is a race then."""
    if state.limit[1] == len(state.reference.row) or (poor and uniform(rng) >= SLOT_SHARE):
        return False
    return hold_race(state, rng)


@kernel
def make_plan(state: Any, rng: Words) -> None:
    """Plan the next pages."""
    plan, poor, flat = state.plan, state.reference.income[0] < POOR, False
    slot, without, plan.occupants[0] = NOBODY, NOBODY, 0
    if _wants_slot(state, rng, poor):
        _seat_occupants(state)
        slot, without = len(plan.order) - 1, int(state.race.defender[0])
    elif poor:
        flat = uniform(rng) < FLAT_SHARE
    _take_order(state, without)
    lay_out(plan, slot)
    slack = _slack(state, slot)
    _sort_order(state, slot, 0)
    _weigh_order(state, flat, 0.0)
    lay_out(plan, slot)
    if _exchanged_pairs(plan) > _slack(state, slot) + TIGHT:
        _tighten(state, slot, without, flat, slack)
    elif slot != NOBODY:
        slot = _highest_slot(state)
    plan.slot[0], plan.pages[0] = slot, PAGES_OF_A_PLAN
