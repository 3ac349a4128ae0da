r"""Plans of safe-draw for large catalogues: one slot for an item from outside R, the other places drawn from R.

Who contends for the slot is decided by a *race*: the defender d, an item of R, against a few items outside R. These
choices are proposals. They rest on the appeal th of items (``appeal.py``) and on draws from its law. The plan has the
defender and a list of contenders, without coins; which of them are members is decided by the coins of every page.

A plan has up to three *orders*: R without the defender, all of R for pages without a slot, and that order flat. They
are sorted by th as far as pages stay safe. The items are drawn one after the other with weights exp(-lambda), lambda
growing down the order; the slot gets the defender or a member of the race. A page must be safe whichever item gets the
slot, so the two draws are independent, and the odds of an exchange in one of them do not depend on the other.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.appeal import Estimates, appeal_of, lead_in_errors, rate_of, shape_of
from saferank.policies.safe_draw.constants import (
    CLEARLY,
    CONTENDERS,
    FLAT_GAP,
    FLAT_SHARE,
    FLOOR_STEP,
    GAP,
    HOPE,
    LEAD,
    POOR,
    RACERS,
    SLOT_SHARE,
    TIGHT,
)
from saferank.policies.safe_draw.trust import faded, prior_of
from saferank.policies.shared.derivation import Reference
from saferank.randomness import Words, gamma
from saferank.statistics.bets import LARGEST_GAP, evidence, gap
from saferank.statistics.certificates import Closure, surely
from saferank.statistics.epochs import is_settled
from saferank.verbs import NO_ITEM, Flags, Floats, Ints

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
    price, item = n_present - place - 1, page[place]
    certified = 0 if closure.number[item] == NO_ITEM else reference.below[item]
    if certified == 0:
        return price
    for above in range(place):
        certified -= int(surely(closure, item, page[above]))
    return int(price - certified)


@kernel
def price_of(state: Any, page: Ints) -> int:
    """The price of a row of K items, given R and the certificates. NO_ITEM is an item from outside without any."""
    reference, closure, seat = state.reference, state.duels.closure, state.plan.seat
    n_positions, price = len(page), 0
    for place in range(n_positions):
        seat[place] = n_positions
    for place in range(n_positions):
        if page[place] != NO_ITEM and reference.place[page[place]] < n_positions:
            seat[reference.place[page[place]]] = place
    for place in range(n_positions):
        item = page[place]
        if item == NO_ITEM:
            price += state.limit[1] - place - 1
        elif reference.place[item] < n_positions:
            price += _price_of_ranked(reference, closure, seat, item, place)
        else:
            price += _price_of_outsider(reference, closure, page, place, state.limit[1])
    return price


@kernel
def largest_price(state: Any) -> int:
    """The largest price of a safe page: floor(L - K/2) + m."""
    return int(state.limit[0] + state.reference.income[0])


# --- the race for the slot ---


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
    row, weakest, lowest = state.reference.row, NO_ITEM, math.inf
    for step in range(len(row)):
        place = len(row) - 1 - step
        th = appeal_of(state.appeal, row[place])
        if th < lowest and _can_be_hidden(state, place):
            weakest, lowest = int(row[place]), th
    return weakest


@kernel
def _may_race(state: Any, item: int, defender: int) -> bool:
    """True when an item is present, outside R and not settled below the defender."""
    if not state.present[item] or state.reference.place[item] < len(state.reference.row):
        return False
    return not is_settled(state.duels, defender, item)


@kernel
def _add_contender(plan: Any, appeal: Estimates, item: int) -> None:
    """Put an item where its hope has it among the contenders; the last one is dropped when there is no room."""
    shape, rate = shape_of(appeal, item), rate_of(appeal, item)
    hope, place, size = (shape + HOPE * math.sqrt(shape)) / rate, plan.contenders[0], len(plan.contender)
    while place > 0 and hope > plan.hope[place - 1]:
        place -= 1
    if place == size:
        return
    plan.contenders[0] = min(size, plan.contenders[0] + 1)
    for step in range(plan.contenders[0] - 1 - place):
        entry = plan.contenders[0] - 1 - step
        plan.contender[entry], plan.hope[entry] = plan.contender[entry - 1], plan.hope[entry - 1]
    plan.contender[place], plan.hope[place] = item, hope


@kernel
def _add_untried(state: Any, defender: int) -> None:
    """Let the next items in the call's order contend that were never shown and may race: as many as a race has members.

    ``untried`` remembers from where on to look: all items before it were shown.
    """
    exposure, n_positions, leading, found = state.appeal.exposure, len(state.base), True, 0
    for number in range(state.plan.untried[0], state.limit[1]):
        item = state.base[number] if number < n_positions else state.candidates[number - n_positions]
        if exposure[item] == 0.0:
            leading = False  # an item of R too, which may leave R before it is shown
            if _may_race(state, item, defender):
                _add_contender(state.plan, state.appeal, item)
                found += 1
                if found == RACERS:
                    break
        elif leading:
            state.plan.untried[0] = number + 1


@kernel
def _list_contenders(state: Any) -> None:
    """The items that may race and have most hope: of those that were tried and the next ones that were not."""
    appeal, plan, defender = state.appeal, state.plan, state.plan.defender[0]
    for entry in range(state.n_tried[0]):
        if _may_race(state, state.tried[entry], defender):
            _add_contender(plan, appeal, state.tried[entry])
    _add_untried(state, defender)
    plan.threshold[0] = appeal_of(appeal, defender)
    for entry in range(plan.contenders[0]):
        item = plan.contender[entry]
        plan.shape[entry], plan.rate[entry] = shape_of(appeal, item), rate_of(appeal, item)
        plan.leads[entry] = lead_in_errors(appeal, item, defender) > CLEARLY
        lead = evidence(state.duels, item, defender) + _prior(state, item, defender)
        plan.chance[entry] = math.exp(min(LEAD, gap(lead)) - min(LARGEST_GAP, gap(-lead)))


@kernel
def _drawn_appeal(plan: Any, rng: Words, entry: int) -> float:
    """A draw from the law of a contender's th."""
    return float(gamma(rng, plan.shape[entry]) / plan.rate[entry])


@kernel
def hold_race(plan: Any, rng: Words) -> bool:
    """Choose the members: contenders that lead clearly, then those with the largest draws.

    True when a fresh draw of some member exceeds the defender's th.
    """
    size, hopeful = 0, False
    for entry in range(plan.contenders[0]):
        if plan.leads[entry] and size < RACERS:
            plan.member[size], plan.draw[entry], size = entry, -1.0, size + 1
        else:
            plan.draw[entry] = _drawn_appeal(plan, rng, entry)
    plan.members[0] = min(RACERS, plan.contenders[0])
    for seat in range(size, plan.members[0]):
        best = 0
        for entry in range(plan.contenders[0]):
            if plan.draw[entry] > plan.draw[best]:
                best = entry
        plan.member[seat], plan.draw[best] = best, -1.0
    for seat in range(plan.members[0]):
        hopeful |= _drawn_appeal(plan, rng, plan.member[seat]) > plan.threshold[0]
    return hopeful


# --- the plan ---


NO_SLOT, NO_SLOT_FLAT, WITH_SLOT = 0, 1, 2
"""The variants of a plan."""


class SlotPlan(NamedTuple):
    """What the next pages are drawn from, and room to draw."""

    untried: Ints  # [1] all items before this one, in the order of the call, were shown
    order: Ints  # [3, K] by variant: the items of the Plackett-Luce places, best first
    weight: Floats  # [3, K] their weights
    share: Floats  # [3] of pages with a race; of flat ones among those without a slot; of slots that rise
    slot: Ints  # [1] the highest place that the slot may have
    defender: Ints  # [1] d, or NO_ITEM
    threshold: Floats  # [1] th(d)
    contenders: Ints  # [1] how many
    contender: Ints  # [CONTENDERS] those who may race, the most hopeful first
    hope: Floats  # [CONTENDERS]
    shape: Floats  # [CONTENDERS] of the law of th
    rate: Floats  # [CONTENDERS] of the law of th
    leads: Flags  # [CONTENDERS] it leads the defender clearly
    chance: Floats  # [CONTENDERS] the weight in the slot
    draw: Floats  # scratch [CONTENDERS]
    members: Ints  # [1] scratch: how many
    member: Ints  # scratch [RACERS]: numbers of contenders
    occupied: Floats  # scratch [1 + RACERS]: the weights of the defender and of the members
    page: Ints  # scratch [K]
    seat: Ints  # scratch [K]: by place of R, where its item is on a page
    left: Floats  # scratch [K]
    drawn: Ints  # scratch [K]
    prior: Floats  # [2] a trust and its prior: see ``trust.py``


def new_slot_plan(n_positions: int) -> SlotPlan:
    """A plan for no page."""
    slot, contenders, members = np.zeros((3, 1), np.int64)
    page, seat, drawn = np.zeros((3, n_positions), np.int64)
    hope, shape, rate, chance, draw = np.zeros((5, CONTENDERS))
    return SlotPlan(
        untried=np.zeros(1, np.int64),
        order=np.zeros((3, n_positions), np.int64),
        weight=np.zeros((3, n_positions)),
        share=np.zeros(3),
        slot=slot,
        defender=np.full(1, NO_ITEM, np.int64),
        threshold=np.zeros(1),
        contenders=contenders,
        contender=np.zeros(CONTENDERS, np.int64),
        hope=hope,
        shape=shape,
        rate=rate,
        leads=np.zeros(CONTENDERS, np.bool_),
        chance=chance,
        draw=draw,
        members=members,
        member=np.zeros(RACERS, np.int64),
        occupied=np.zeros(1 + RACERS),
        page=page,
        seat=seat,
        left=np.zeros(n_positions),
        drawn=drawn,
        prior=np.array([0.5, 0.0]),
    )


@kernel
def slack_of(state: Any, page: Ints, slot: int, defender: int) -> int:
    """By how much a page is below the largest safe price, whichever item gets the slot, if it has one.

    That is the defender or an item from outside. Of these one that is certified over nothing has the highest price.
    """
    most = largest_price(state)
    if slot == NO_ITEM:
        return most - price_of(state, page)
    page[slot] = NO_ITEM
    slack = most - price_of(state, page)
    page[slot] = defender
    return min(slack, most - price_of(state, page)) if slack >= 0 else slack


@kernel
def place_of_seat(slot: int, seat: int) -> int:
    """The place of the order's item number ``seat``: the slot is left free."""
    return seat + int(slot != NO_ITEM and seat >= slot)


@kernel
def lay_out(page: Ints, order: Ints, slot: int) -> None:
    """Put an order on a page, around the slot."""
    for seat in range(len(order)):
        page[place_of_seat(slot, seat)] = order[seat]


@kernel
def _slack(state: Any, order: Ints, slot: int) -> int:
    """The slack of the page with an order around the slot."""
    lay_out(state.plan.page, order, slot)
    return slack_of(state, state.plan.page, slot, state.plan.defender[0])


@kernel
def _take_order(state: Any, order: Ints, slot: int) -> None:
    """The order is that of R, without the defender if there is a slot."""
    size = 0
    for place in range(len(state.reference.row)):
        if slot == NO_ITEM or state.reference.row[place] != state.plan.defender[0]:
            order[size] = state.reference.row[place]
            size += 1


@kernel
def _prior(state: Any, upper: int, lower: int) -> float:
    """What is left of the prior that production has two items right; negative if it has them the other way round."""
    above, below = state.reference.base_place[upper], state.reference.base_place[lower]
    if above == below:  # both outside
        return 0.0
    left = faded(state.plan.prior[1], state.trust, upper, lower)
    return left if above < below else -left


@kernel
def _prior_of_defender(state: Any) -> float:
    """What is left of the prior that production has the defender above an item from outside."""
    d = state.plan.defender[0]
    if state.reference.base_place[d] == len(state.reference.row):
        return 0.0
    return faded(state.plan.prior[1], state.trust, d, d)


@kernel
def _looks_better(state: Any, lower: int, upper: int) -> bool:
    """True when the lower one of two neighbours has the larger th, by more than the prior for their order says."""
    prior = _prior(state, upper, lower)
    if prior == 0.0:
        return appeal_of(state.appeal, lower) > appeal_of(state.appeal, upper)
    lead = lead_in_errors(state.appeal, lower, upper)
    return lead * abs(lead) > 2.0 * prior


@kernel
def _sort_order(state: Any, order: Ints, slot: int, reserve: int) -> None:
    """Neighbours change places where the lower one has the larger th and is not certified worse.

    Only while the slack of pages is at least ``reserve``; at most K sweeps from the top.
    """
    for _ in range(len(order)):
        changed = False
        for seat in range(len(order) - 1):
            upper, lower = order[seat], order[seat + 1]
            if _looks_better(state, lower, upper) and not surely(state.duels.closure, upper, lower):
                order[seat], order[seat + 1] = lower, upper
                if _slack(state, order, slot) >= reserve:
                    changed = True
                else:
                    order[seat], order[seat + 1] = upper, lower
        if not changed:
            break


@kernel
def _highest_slot(state: Any, order: Ints) -> int:
    """The highest affordable place in the lower half of the page. The last one is affordable: the order was sorted so.

    The lower half begins at place ceil(K/2), counted from 1.
    """
    last = len(order)
    for place in range((last + 2) // 2 - 1, last):
        if _slack(state, order, place) >= 0:
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
def _weigh_order(state: Any, order: Ints, weight: Floats, flat: bool, floor: float) -> float:
    """Fill in the weights; returns how many pairs of the order a draw has the other way round, on average."""
    fall, exchanged = 0.0, 0.0
    for seat in range(len(order)):
        if seat > 0:
            fall += max(floor, _gap_below(state, order[seat - 1], order[seat], flat))
        weight[seat] = math.exp(-fall)
    for upper in range(len(order)):
        for lower in range(upper + 1, len(order)):
            exchanged += weight[lower] / (weight[upper] + weight[lower])
    return exchanged


@kernel
def _plan_order(state: Any, variant: int) -> bool:
    """Work out the order of a variant and its weights. True when it is tight.

    Then draws would nearly all be unsafe: half of R's slack sorts the order, the rest is drawn.
    """
    last, flat, floor = len(state.reference.row) - 1, variant == NO_SLOT_FLAT, FLAT_GAP
    slot, size = (last, last) if variant == WITH_SLOT else (NO_ITEM, last + 1)
    order, weight = state.plan.order[variant, :size], state.plan.weight[variant, :size]
    _take_order(state, order, slot)
    _sort_order(state, order, slot, 0)
    if _weigh_order(state, order, weight, flat, 0.0) <= _slack(state, order, slot) + TIGHT:
        return False
    _take_order(state, order, slot)
    slack = _slack(state, order, slot)
    _sort_order(state, order, slot, slack - slack // 2)
    slack = _slack(state, order, slot)
    while _weigh_order(state, order, weight, flat, floor) > slack and floor < LARGEST_GAP:
        floor *= FLOOR_STEP
    return True


@kernel
def make_plan(policy: Any, state: Any) -> None:
    """Plan the next pages."""
    plan, poor, last = state.plan, state.reference.income[0] < POOR, len(state.reference.row) - 1
    prior_of(policy.trust, plan.prior)
    plan.contenders[0] = 0
    if state.limit[1] > last + 1:
        plan.defender[0] = _weakest(state)
        _list_contenders(state)
    plan.share[0] = 0.0 if plan.contenders[0] == 0 else SLOT_SHARE if poor else 1.0
    plan.share[1] = FLAT_SHARE if poor else 0.0
    _plan_order(state, NO_SLOT)
    if poor:
        _plan_order(state, NO_SLOT_FLAT)
    if plan.contenders[0] > 0:
        tight, plan.slot[0] = _plan_order(state, WITH_SLOT), last
        if not tight:
            plan.slot[0] = _highest_slot(state, plan.order[WITH_SLOT, :last])
        plan.share[2] = 2.0 / (1.0 + math.exp(gap(_prior_of_defender(state))))
