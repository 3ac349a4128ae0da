r"""safe-draw for large catalogues: pages with one slot for an item from outside the reference R.

    price(page | R) - m <= floor(L - K/2)           makes a page safe

where R is what certified moves make of production's ranking, m what they have earned (``shared/derivation.py``) and
the price bounds V(page) - V(R) (``large_plan.py``). An uncertified outside item at place p costs
L - K + K - p and more, so one fits on a page: it gets the *slot*, somewhere in the lower half. The other places hold
the rest of R in Plackett-Luce order. The definition in full and the proof are in docs/policies/safe-draw.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import Outlook
from saferank.policies.safe_draw.appeal import Appeal, appeal_for, fade_appeal, most_places, new_appeal, note_page
from saferank.policies.safe_draw.constants import MOST_DRAWS, PLACE_PAGES, RACERS
from saferank.policies.safe_draw.draw import draw_one, has_target, odds_of_exchange
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
from saferank.policies.safe_draw.learning import (
    compares,
    count_learned,
    draw_from_plan,
    fade_guesses,
    follow_bets,
    follow_certificates,
    is_here,
    most_compared,
    note_exchanges,
    settle_bets,
)
from saferank.policies.safe_draw.trust import Trust, trust_with_more
from saferank.policies.shared.derivation import (
    Reference,
    derive_reference,
    new_reference,
    others_in_order,
    with_more_in_order,
)
from saferank.randomness import Words, uniform
from saferank.safety import whole_allowance
from saferank.statistics.bets import Bets, settle_bet, with_more_items
from saferank.statistics.bets import with_room as bets_with_room
from saferank.statistics.certificates import TAKEN, surely
from saferank.statistics.epochs import is_bet_on, still_counts
from saferank.statistics.pairs import claim_row
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items


class LargeState(NamedTuple):
    """What is known, what clicks say, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    present: Flags  # by item
    order: Items  # all items in candidate order: that of the newest call, then those that it did not have
    limit: Ints  # [2] floor(L - K/2) and L, the number of present items
    reference: Reference
    appeal: Appeal
    plan: SlotPlan
    trust: Trust
    duels: Bets


def arranged(state: Any, base: Items, present: Flags) -> LargeState:
    """The state for these items and this ranking of production's, with what another state knows.

    R is derived again, there is no plan. Appeal means nothing to a state for a small catalogue, and begins again after
    one.
    """
    n_items, n_positions, here = len(present), len(base), int(present.sum())
    order = with_more_in_order(state.order, n_items)
    duels = with_more_items(state.duels, n_items)
    appeal = state.appeal if isinstance(state, LargeState) else new_appeal(n_items, most_places(state, n_positions))
    mine = LargeState(
        round=state.round,
        learned=state.learned,
        present=present.copy(),
        order=order,
        limit=np.array([whole_allowance(here, n_positions), here], np.int64),
        reference=new_reference(base, n_items, len(duels.closure.item)),
        appeal=appeal_for(appeal, others_in_order(base, present, order), n_items),
        plan=new_slot_plan(n_positions),
        trust=trust_with_more(state.trust, n_items),
        duels=duels,
    )
    _follow_certificates(mine, TAKEN)
    return mine


@implements(follow_certificates, LargeState)
def _follow_certificates(state: LargeState, changed: int) -> None:
    derive_reference(state.reference, state.duels.closure, state.present)
    state.plan.stale[0] = 1


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
    """Draw orders until one is safe whoever gets the slot. False: none was, and the plan's order is taken."""
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
    for seat in range(len(plan.page) - int(slot != NOBODY)):
        place = place_of_seat(slot, seat)
        impression.ranking[place] = plan.page[place]
        impression.weight[place] = plan.weight[variant, plan.drawn[seat]] if drawn else 0.0
        impression.start[place] = int(slot == 0) if drawn else place
        impression.end[place] = place + 1


@kernel
def _fill_slot(plan: SlotPlan, rng: Words, impression: Impression, slot: int) -> int:
    """The slot shows a drawn occupant; the others are hidden. Returns how many places are in use."""
    places = len(plan.page)
    if slot == NOBODY:
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


@implements(draw_from_plan, LargeState)
def _page(state: LargeState, policy: Any, rng: Words, impression: Impression) -> None:
    plan, last = state.plan, len(state.plan.page) - 1
    state.round[0] += 1
    if plan.stale[0]:
        make_plan(policy, state)
    variant, slot, size = _variant(plan, rng), NOBODY, last + 1
    if variant == WITH_SLOT:
        slot, size = last, last
        if plan.slot[0] < last and (plan.share[2] == 1.0 or uniform(rng) < plan.share[2]):
            slot = int(plan.slot[0])
    _fill_order(plan, impression, variant, slot, _draw_page(state, variant, slot, size, rng))
    impression.places[0] = _fill_slot(plan, rng, impression, slot)
    impression.round[0], impression.challenger[0], impression.frozen[0] = state.round[0], NOBODY, 0
    for place in range(last + 1):
        plan.page[place] = impression.ranking[place]
    plan.price[0] = price_of(state, plan.page)


@kernel
def _slot_of(impression: Impression, n_positions: int) -> int:
    """The place of a page's slot, or NOBODY."""
    return int(impression.start[n_positions]) if impression.places[0] > n_positions else NOBODY


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
    if slot != NOBODY:
        page[slot] = NOBODY
    slack = slack_with = largest_price(state) - price_of(state, page)
    if slot != NOBODY:
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


@implements(note_exchanges, LargeState)
def _freeze(state: LargeState, policy: Any, impression: Impression) -> None:
    for place in range(impression.places[0]):
        _note_exchanges_of(state, impression, place)
    impression.frozen[0] = 1


@implements(is_here, LargeState)
def _is_here(state: LargeState, item: int) -> bool:
    return bool(state.present[item])


@kernel
def _settle_bets(policy: Any, state: LargeState, impression: Impression, clicks: Ints, a: int) -> bool:
    """Settle the bets of a clicked place. True when something may follow."""
    moved, renewing = False, impression.frozen[0] != 0 and has_target(impression)  # if there were fewer items
    for b in range(impression.places[0]):
        i, j = impression.ranking[a], impression.ranking[b]
        if compares(state, impression, clicks, a, b) and is_bet_on(state.duels, i, j):
            p0 = odds_of_exchange(impression, len(clicks), (a, b), renewing)
            row = claim_row(state.duels, i, j)
            moved |= settle_bet(policy.table, state.duels, row, int(i > j), p0, impression.round[0])
    return moved


@implements(settle_bets, LargeState)
def _learn(state: LargeState, policy: Any, impression: Impression, clicks: Ints) -> None:
    moved, clicked = False, False
    count_learned(state)
    if not still_counts(state.duels, impression.round[0]):
        return
    note_page(state.appeal, impression, clicks)
    for a in range(len(clicks)):
        if clicks[a]:
            clicked = True
            if not impression.frozen[0]:
                _note_exchanges_of(state, impression, a)
            moved |= _settle_bets(policy, state, impression, clicks, a)
    state.trust.clicked[0] += int(clicked)
    if moved:
        follow_bets(policy, state, impression, clicks)


@implements(fade_guesses, LargeState)
def _fade(state: LargeState, exposure: float) -> None:
    fade_appeal(state.appeal, exposure, int(PLACE_PAGES))


@implements(most_compared, LargeState)
def _most_compared(state: LargeState) -> int:
    return len(state.appeal.place_clicks) + RACERS


def with_room(state: LargeState) -> LargeState:
    """The same state with room for more pairs and more certified items."""
    duels = bets_with_room(state.duels, most_compared(state))
    below = np.append(state.reference.below, np.zeros(len(duels.closure.item) - len(state.reference.below), np.int64))
    return state._replace(duels=duels, reference=state.reference._replace(below=below))


def present_items(state: LargeState) -> Flags:
    """By item: it is here."""
    return state.present


def base_of(state: LargeState) -> Items:
    """Production's ranking."""
    return state.reference.base


def leader_of(state: LargeState) -> Ints:
    """R."""
    leader: Ints = state.reference.row.astype(np.int64)
    return leader


def worst_of_newest(state: LargeState) -> int:
    """The bound of W of the newest page: its price against R, less what certified moves have earned."""
    return int(state.plan.price[0] - state.reference.income[0])


def outlook(state: LargeState) -> Outlook:
    """What the plan does, in words; the challenger is the contender with most hope."""
    plan, n_positions = state.plan, len(state.reference.row)
    if plan.stale[0]:
        return Outlook("makes a new plan for the next page")
    if plan.share[0] == 0.0:
        return Outlook(f"draws the order of the {n_positions} items of the leader; no item from outside is shown")
    place = int(plan.slot[0]) + 1
    note = f"draws the order of the items of the leader; one position, {place} at the highest, is contested by an item"
    note += " of the leader and up to three from outside, whose draws are the highest"
    return Outlook(note, int(plan.contender[0]), against=int(plan.defender[0]))
