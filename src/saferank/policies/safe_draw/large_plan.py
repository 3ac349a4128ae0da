r"""Plans of safe-draw for large catalogues: one slot for an item from outside R, the other places drawn from R.

Who contends for the slot is decided by a *race*: the defender d, an item of R, against a few items outside R. These
choices are proposals. They rest on the appeal th of items (``appeal.py``) and on draws from its law.

A plan has an *order*: R without the defender, or all of R when there is no slot, sorted by th as far as pages stay
safe. Its items are drawn one after the other with weights exp(-lambda), lambda growing down the order; the slot gets
the defender or a member of the race. A page must be safe whichever *occupant* the slot gets, so the two draws are
independent, and the odds of an exchange in one of them do not depend on the other.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.appeal import appeal_of, lead_in_errors, sampled_appeal
from saferank.policies.safe_draw.constants import (
    CLEARLY,
    FLAT_GAP,
    FLAT_SHARE,
    FLOOR_STEP,
    GAP,
    LEAD,
    LOWER,
    PAGES_OF_A_PLAN,
    POOR,
    RACERS,
    SLOT_SHARE,
    TIGHT,
)
from saferank.policies.safe_draw.trust import faded, prior_of
from saferank.policies.shared.derivation import Reference
from saferank.randomness import Words, uniform
from saferank.statistics.bets import LARGEST_GAP, evidence, gap
from saferank.statistics.certificates import Closure, surely
from saferank.statistics.epochs import is_settled
from saferank.verbs import NOBODY, Floats, Ints

# --- the price of a page ---
# It is an upper bound of V(page) - V(R), in possibly wrong pairs. A shown item r stands above z when z is shown below
# it or not at all. Every pair of which the page has r above z costs 1, unless R has r above z too or r is certified
# over z. Counted by item of the page:
# * r of R: the items z above r in R that are not above r on the page, and over which r is not certified;
# * r outside R at place k (from 1): L - k - #{z: r certified over z} + #{z above r on the page: r certified over z}.


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


# --- the race for the slot ---


class Race(NamedTuple):
    """The contenders of the newest plan."""

    defender: Ints  # [1] d, or NOBODY before the first race
    member: Ints  # [RACERS]
    size: Ints  # [1] members in use
    next: Ints  # [1] all items before this one in candidate order were shown or are absent


def new_race() -> Race:
    """A race without members."""
    size, following = np.zeros((2, 1), np.int64)
    return Race(np.full(1, NOBODY, np.int64), np.zeros(RACERS, np.int64), size, following)


@kernel
def _can_be_hidden(state: Any, place: int) -> bool:
    """True when R, without the item of ``place`` and with any outside item at the last place, is safe."""
    row, price = state.reference.row, state.limit[1] - len(state.reference.row)
    for lower in range(place + 1, len(row)):
        price += int(not surely(state.duels.closure, row[lower], row[place]))
    return bool(price <= largest_price(state))


@kernel
def _weakest(state: Any) -> int:
    """The item of R with the lowest th of those that can be hidden; ties go to the lower place."""
    row, weakest, lowest = state.reference.row, NOBODY, math.inf
    for step in range(len(row)):
        place = len(row) - 1 - step
        th = appeal_of(state.appeal, row[place])
        if th < lowest and _can_be_hidden(state, place):
            weakest, lowest = int(row[place]), th
    return weakest


@kernel
def _choose_defender(state: Any) -> int:
    """The last defender, unless it cannot be hidden any more or the weakest item is clearly lower: then that one."""
    weakest, last = _weakest(state), int(state.race.defender[0])
    if last == NOBODY or state.reference.place[last] == len(state.reference.row):
        return weakest
    stays = _can_be_hidden(state, state.reference.place[last])
    return last if stays and lead_in_errors(state.appeal, last, weakest) <= LOWER else weakest


@kernel
def _may_race(state: Any, item: int, defender: int) -> bool:
    """True when an item is present, outside R and not settled below the defender."""
    if not state.present[item] or state.reference.place[item] < len(state.reference.row):
        return False
    return not is_settled(state.duels, defender, item)


@kernel
def _drop_members(state: Any, defender: int) -> None:
    """Keep the members that may race and that lead the defender clearly, in their order."""
    race, kept = state.race, 0
    for seat in range(race.size[0]):
        item = race.member[seat]
        if _may_race(state, item, defender) and lead_in_errors(state.appeal, item, defender) > CLEARLY:
            race.member[kept] = item
            kept += 1
    race.size[0] = kept


@kernel
def _is_member(race: Race, item: int) -> bool:
    for seat in range(race.size[0]):  # noqa: SIM110 (numba compiles loops, not generators)
        if race.member[seat] == item:
            return True
    return False


@kernel
def _next_untried(state: Any, defender: int) -> int:
    """The first item in candidate order that was never shown, may race and is no member; NOBODY if there is none."""
    race, exposure, n_items = state.race, state.appeal.exposure, len(state.order)
    leading, number = True, race.next[0]
    while number < n_items:
        item = state.order[number]
        if exposure[item] == 0.0 and state.present[item]:
            leading = False  # an item of R too, which may leave R before it is shown
            if _may_race(state, item, defender) and not _is_member(race, item):
                return int(item)
        number += 1
        if leading:
            race.next[0] = number
    return NOBODY


@kernel
def _recruit(state: Any, rng: Words, defender: int) -> int:
    """The item with the largest draw among the tried ones, in the order of their trial, and the next untried one."""
    appeal, best, largest = state.appeal, NOBODY, -1.0
    untried = _next_untried(state, defender)
    for entry in range(appeal.n_tried[0] + 1):
        item = untried if entry == appeal.n_tried[0] else int(appeal.tried[entry])
        if item != NOBODY and _may_race(state, item, defender) and not _is_member(state.race, item):
            draw = sampled_appeal(appeal, rng, item)
            if draw > largest:
                best, largest = item, draw
    return best


@kernel
def _fill_race(state: Any, rng: Words, defender: int) -> None:
    race = state.race
    while race.size[0] < RACERS:
        item = _recruit(state, rng, defender)
        if item == NOBODY:
            return
        race.member[race.size[0]] = item
        race.size[0] += 1


@kernel
def hold_race(state: Any, rng: Words) -> bool:
    """Choose the defender and the members. True when a fresh draw of some member exceeds the defender's th."""
    race, defender, hopeful = state.race, _choose_defender(state), False
    race.defender[0] = defender
    _drop_members(state, defender)
    _fill_race(state, rng, defender)
    for seat in range(race.size[0]):
        hopeful |= sampled_appeal(state.appeal, rng, race.member[seat]) > appeal_of(state.appeal, defender)
    return hopeful


# --- the plan ---


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
    prior: Floats  # [2] a trust and its prior: see ``trust.py``


def new_slot_plan(n_positions: int) -> SlotPlan:
    """A plan for no page."""
    order, page, seat, drawn = np.zeros((4, n_positions), np.int64)
    weight, left = np.zeros((2, n_positions))
    size, occupants, pages, price = np.zeros((4, 1), np.int64)
    occupant, others = np.zeros((2, 1 + RACERS), np.int64)
    slot, chance, prior = np.full(1, NOBODY, np.int64), np.zeros(1 + RACERS), np.array([0.5, 0.0])
    return SlotPlan(
        order, weight, size, slot, occupant, chance, occupants, pages, price, page, others, seat, left, drawn, prior
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
def _prior(state: Any, upper: int, lower: int) -> float:
    """What is left of the prior that production has two items right; negative if it has them the other way round."""
    above, below = state.reference.base_place[upper], state.reference.base_place[lower]
    if above == below:  # both outside
        return 0.0
    left = faded(state.plan.prior[1], state.trust, upper, lower)
    return left if above < below else -left


@kernel
def _looks_better(state: Any, lower: int, upper: int) -> bool:
    """True when the lower one of two neighbours has the larger th, by more than the prior for their order says."""
    prior = _prior(state, upper, lower)
    if prior == 0.0:
        return appeal_of(state.appeal, lower) > appeal_of(state.appeal, upper)
    lead = lead_in_errors(state.appeal, lower, upper)
    return lead * abs(lead) > 2.0 * prior


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
            if _looks_better(state, lower, upper) and not surely(state.duels.closure, upper, lower):
                order[seat], order[seat + 1] = lower, upper
                lay_out(plan, slot)
                if _slack(state, slot) >= reserve:
                    changed = True
                else:
                    order[seat], order[seat + 1] = upper, lower
        if not changed:
            break


@kernel
def _rises(state: Any, rng: Words) -> bool:
    """True when the slot goes up from the last place, for more clicks: seldom while production is likely right.

    Random numbers: one while some of the prior is left for the defender and the first member of the race.
    """
    prior = _prior(state, state.plan.occupant[0], state.plan.occupant[1])
    return prior <= 0.0 or uniform(rng) < 2.0 / (1.0 + math.exp(gap(prior)))


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
def _gap_below(state: Any, upper: int, lower: int, flat: bool) -> float:
    """By how much lambda grows from an item of the order to the next.

    Clicks widen the gap only where R has the two in this order; elsewhere the pair is still to be compared both ways.
    """
    largest, prior = state.duels.levels[2], _prior(state, upper, lower)
    if is_settled(state.duels, upper, lower):
        return float(largest)
    if flat:
        return max(FLAT_GAP, gap(prior))
    if state.reference.place[upper] > state.reference.place[lower]:
        return GAP
    return float(max(GAP, min(largest, gap(evidence(state.duels, upper, lower) + prior))))


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
        lead += _prior(state, race.member[seat], race.defender[0])
        plan.chance[1 + seat] = math.exp(min(LEAD, gap(lead)) - min(LARGEST_GAP, gap(-lead)))


@kernel
def _wants_slot(state: Any, rng: Words, poor: bool) -> bool:
    """True when the plan is to have a slot, for which there is a race then."""
    if state.limit[1] == len(state.reference.row) or (poor and uniform(rng) >= SLOT_SHARE):
        return False
    return hold_race(state, rng)


@kernel
def make_plan(policy: Any, state: Any, rng: Words) -> None:
    """Plan the next pages."""
    plan, poor, flat = state.plan, state.reference.income[0] < POOR, False
    prior_of(policy.trust, plan.prior)
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
    elif slot != NOBODY and _rises(state, rng):
        slot = _highest_slot(state)
    plan.slot[0], plan.pages[0] = slot, PAGES_OF_A_PLAN
