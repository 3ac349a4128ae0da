r"""safe-draw for large catalogues: pages with one slot for an item from outside the reference R.

    price(page | R) - m <= floor(L - K/2)           makes a page safe

where R is what certified moves make of production's ranking, m what they have earned (``shared/derivation.py``) and
the price bounds V(page) - V(R) (``large_plan.py``). An uncertified outside item at place p costs
L - K + K - p and more, so one fits on a page: it gets the *slot*, somewhere in the lower half. The other places hold
the rest of R in Plackett-Luce order. The definition in full and the proof are in docs/policies/safe-draw.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, seldom
from saferank.policies.registry import Outlook
from saferank.policies.safe_draw.appeal import Estimates, Guesses, guess_by_order, new_guesses, pool_candidates
from saferank.policies.safe_draw.constants import MOST_DRAWS
from saferank.policies.safe_draw.draw import draw_one
from saferank.policies.safe_draw.large_plan import (
    NO_SLOT,
    NO_SLOT_FLAT,
    WITH_SLOT,
    SlotPlan,
    hold_race,
    largest_price,
    lay_out,
    make_plan,
    new_slot_plan,
    place_of_seat,
    price_of,
    slack_of,
)
from saferank.policies.safe_draw.learning import SafeDrawEvidence
from saferank.policies.safe_draw.plans import draw_from_plan, note_exchanges, take_call, work_out
from saferank.policies.safe_draw.trust import Trust
from saferank.policies.shared.derivation import Reference, derive_reference, new_reference, take_base
from saferank.randomness import Words, uniform
from saferank.safety import whole_allowance
from saferank.statistics.bets import Bets
from saferank.statistics.certificates import surely
from saferank.verbs import NO_ITEM, Call, Flags, Impression, Ints, Items


class LargePlan(NamedTuple):
    """What follows from the evidence for many items: R, and what pages are drawn from."""

    base: Items  # production's ranking
    candidates: Items
    known: Ints  # [3] the changes that it has followed, and the pages that were learnt when weights were worked out
    present: Flags  # by item
    limit: Ints  # [2] floor(L - K/2) and L, the number of items of the call
    reference: Reference
    guesses: Guesses
    draw: SlotPlan


class LargeBoard(NamedTuple):
    """Evidence and plan, as far as the slot needs them."""

    base: Items
    candidates: Items
    present: Flags
    limit: Ints
    reference: Reference
    appeal: Estimates
    tried: Ints
    n_tried: Ints
    plan: SlotPlan
    trust: Trust
    duels: Bets


@kernel
def _board(evidence: SafeDrawEvidence, plan: LargePlan) -> LargeBoard:
    appeal, guesses = evidence.appeal, plan.guesses
    estimates = Estimates(appeal.clicks, appeal.exposure, guesses.guess, guesses.pool)
    return LargeBoard(
        plan.base,
        plan.candidates,
        plan.present,
        plan.limit,
        plan.reference,
        estimates,
        appeal.tried,
        appeal.n_tried,
        plan.draw,
        evidence.trust,
        evidence.duels,
    )


def large_plan(evidence: SafeDrawEvidence, call: Call) -> LargePlan:
    """Room for a plan of this call."""
    n_items, n_positions = len(evidence.trust.came), len(call.base)
    here = n_positions + len(call.candidates)
    return LargePlan(
        base=call.base,
        candidates=call.candidates,
        known=np.zeros(3, np.int64),
        present=np.zeros(n_items, np.bool_),
        limit=np.array([whole_allowance(here, n_positions), here], np.int64),
        reference=new_reference(call.base, n_items),
        guesses=new_guesses(n_items),
        draw=new_slot_plan(n_positions),
    )


@implements(take_call, LargePlan)
@seldom
def _take_call(plan: LargePlan, evidence: SafeDrawEvidence) -> None:
    for item in range(len(plan.present)):
        plan.present[item] = False
    for place in range(len(plan.base)):
        plan.present[plan.base[place]] = True
    for place in range(len(plan.candidates)):
        plan.present[plan.candidates[place]] = True
    take_base(plan.reference, plan.base)
    guess_by_order(plan.guesses, plan.candidates)
    plan.draw.untried[0] = 0
    derive_reference(plan.reference, evidence.duels.closure, plan.present)


@implements(work_out, LargePlan)
@seldom
def _work_out(plan: LargePlan, policy: Any, evidence: SafeDrawEvidence) -> None:
    if evidence.changes[0] != plan.known[0] or evidence.changes[1] != plan.known[1]:
        derive_reference(plan.reference, evidence.duels.closure, plan.present)
    pool_candidates(plan.guesses, evidence.appeal)
    make_plan(policy, _board(evidence, plan))


@kernel
def _draw_order(plan: SlotPlan, variant: int, slot: int, size: int, rng: Words) -> None:
    """Put the order's items on the scratch page, drawn with their weights."""
    for seat in range(size):
        plan.left[seat] = plan.weight[variant, seat]
    for seat in range(size):
        number = draw_one(rng, plan.left, size)
        plan.left[number], plan.drawn[seat] = 0.0, number
        plan.page[place_of_seat(slot, seat)] = plan.order[variant, number]


@kernel
def _draw_page(state: Any, variant: int, slot: int, size: int, rng: Words) -> bool:
    """Draw orders until one is safe whichever item gets the slot. False: none was, and the plan's order is taken."""
    plan = state.plan
    for _ in range(MOST_DRAWS):
        _draw_order(plan, variant, slot, size, rng)
        if slack_of(state, plan.page, slot, plan.defender[0]) >= 0:
            return True
    lay_out(plan.page, plan.order[variant, :size], slot)
    return False


@kernel
def _fill_order(plan: SlotPlan, impression: Impression, variant: int, slot: int, drawn: bool) -> None:
    """The places of the order: one group, or each by itself when the page was not drawn."""
    for seat in range(len(plan.page) - int(slot != NO_ITEM)):
        place = place_of_seat(slot, seat)
        impression.ranking[place] = plan.page[place]
        impression.weight[place] = plan.weight[variant, plan.drawn[seat]] if drawn else 0.0
        impression.start[place] = int(slot == 0) if drawn else place
        impression.end[place] = place + 1


@kernel
def _fill_slot(plan: SlotPlan, rng: Words, impression: Impression, slot: int) -> int:
    """The slot shows a drawn occupant; the others are hidden. Returns how many places are in use."""
    places = len(plan.page)
    if slot == NO_ITEM:
        return places
    plan.occupied[0] = 1.0
    for seat in range(plan.members[0]):
        plan.occupied[1 + seat] = plan.chance[plan.member[seat]]
    shown = draw_one(rng, plan.occupied, 1 + plan.members[0])
    for entry in range(1 + plan.members[0]):
        place = slot if entry == shown else places
        places += int(entry != shown)
        impression.ranking[place] = plan.contender[plan.member[entry - 1]] if entry > 0 else plan.defender[0]
        impression.weight[place] = plan.occupied[entry]
        impression.start[place], impression.end[place] = slot, place + 1
    return places


@kernel
def _variant(plan: SlotPlan, rng: Words) -> int:
    """Which variant a page is drawn from."""
    if plan.share[0] > 0.0 and (plan.share[0] == 1.0 or uniform(rng) < plan.share[0]) and hold_race(plan, rng):
        return WITH_SLOT
    return NO_SLOT_FLAT if plan.share[1] > 0.0 and uniform(rng) < plan.share[1] else NO_SLOT


@implements(draw_from_plan, LargePlan)
def _page(plan: LargePlan, policy: Any, evidence: SafeDrawEvidence, rng: Words, impression: Impression) -> None:
    draw, last = plan.draw, len(plan.draw.page) - 1
    variant, slot, size = _variant(draw, rng), NO_ITEM, last + 1
    if variant == WITH_SLOT:
        slot, size = last, last
        if draw.slot[0] < last and (draw.share[2] == 1.0 or uniform(rng) < draw.share[2]):
            slot = int(draw.slot[0])
    drawn = _draw_page(_board(evidence, plan), variant, slot, size, rng)
    _fill_order(draw, impression, variant, slot, drawn)
    impression.places[0] = _fill_slot(draw, rng, impression, slot)
    impression.challenger[0] = NO_ITEM


@kernel
def _slot_of(impression: Impression, n_positions: int) -> int:
    """The place of a page's slot, or NO_ITEM."""
    return int(impression.start[n_positions]) if impression.places[0] > n_positions else NO_ITEM


@kernel
def _costs(state: Any, upper: int, lower: int) -> int:
    """What it costs that a page has an item of R above another one: 1 if R has not, and it is not certified."""
    place = state.reference.place
    return int(place[lower] < place[upper] and not surely(state.duels.closure, upper, lower))


@kernel
def _price_of_exchange(state: Any, impression: Impression, places: tuple[int, int], slot: int) -> tuple[int, int]:
    """By how much a page gets dearer when two places of its order are exchanged, the upper one first.

    Twice: with an item from outside in the slot, which is related to no item of R, and with the defender.
    """
    x, y = impression.ranking[places[0]], impression.ranking[places[1]]
    price, in_slot = _costs(state, y, x) - _costs(state, x, y), 0
    for place in range(places[0] + 1, places[1]):
        z = state.plan.defender[0] if place == slot else impression.ranking[place]
        more = _costs(state, y, z) - _costs(state, x, z) + _costs(state, z, x) - _costs(state, z, y)
        if place == slot:
            in_slot = more
        else:
            price += more
    return price, price + in_slot


@kernel
def _note_exchanges_of(state: Any, impression: Impression, a: int) -> None:
    """Fill in ``exchanges`` of a place.

    The exchange of two places of the order changes the relation of at most 2 |a - b| - 1 pairs, each of which costs at
    most 1, so most exchanges are safe without being priced.
    """
    page, slot, bits = state.plan.page, _slot_of(impression, len(state.plan.page)), 0
    in_slot = a == slot or a >= len(page)
    for place in range(len(page)):
        page[place] = impression.ranking[place]
    if slot != NO_ITEM:
        page[slot] = NO_ITEM
    slack = slack_with = largest_price(state) - price_of(state, page)
    if slot != NO_ITEM:
        page[slot] = state.plan.defender[0]
        slack_with = largest_price(state) - price_of(state, page)
    for b in range(impression.places[0]):
        if b == a or impression.start[a] != impression.start[b]:
            continue
        safe = in_slot or min(slack, slack_with) >= 2 * abs(a - b) - 1
        if not safe:
            price, price_with = _price_of_exchange(state, impression, (min(a, b), max(a, b)), slot)
            safe = price <= slack and price_with <= slack_with
        bits |= int(safe) << b
    impression.exchanges[a] = bits


@implements(note_exchanges, LargePlan)
def _freeze(plan: LargePlan, evidence: SafeDrawEvidence, impression: Impression, places: Ints) -> None:
    for place in range(len(places)):
        if places[place]:
            _note_exchanges_of(_board(evidence, plan), impression, place)


def leader_of(plan: LargePlan) -> Ints:
    """R."""
    leader: Ints = plan.reference.row.astype(np.int64)
    return leader


def worst_of(plan: LargePlan, evidence: SafeDrawEvidence, shown: Items) -> int:
    """The bound of W of a page: its price against R, less what certified moves have earned."""
    return int(price_of(_board(evidence, plan), shown.astype(np.int64)) - plan.reference.income[0])


def outlook_of(plan: LargePlan) -> Outlook:
    """What the plan does, in words; the challenger is the contender with most hope."""
    draw, n_positions = plan.draw, len(plan.reference.row)
    working = tuple(draw.order[NO_SLOT].tolist())
    if draw.share[0] == 0.0:
        note = f"draws the order of the {n_positions} items of the leader; no item from outside is shown"
        return Outlook(note, working=working)
    place = int(draw.slot[0]) + 1
    note = f"draws the order of the items of the leader; one position, {place} at the highest, is contested by an item"
    note += " of the leader and up to three from outside, whose draws are the highest"
    return Outlook(note, int(draw.contender[0]), against=int(draw.defender[0]), working=working)
