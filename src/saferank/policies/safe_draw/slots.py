r"""safe-draw for large catalogues: pages with one slot for an item from outside the reference R.

    price(page | R) - m <= floor(L - K/2)           makes a page safe

where R is what certified moves make of production's ranking, m what they have earned (``safe_draw/references.py``) and
the price bounds V(page) - V(R) (``safe_draw/prices.py``). An uncertified outside item at place p costs
L - K + K - p and more, so one fits on a page: it gets the *slot*, somewhere in the lower half. The other places hold
the rest of R in Plackett-Luce order. The definition in full and the proof are in docs/policies/safe-draw.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.registry import Outlook, Setup
from saferank.policies.safe_draw.appeal import Appeal, appeal_for, new_appeal, note_page
from saferank.policies.safe_draw.prices import price_of
from saferank.policies.safe_draw.races import RACERS, Race, new_race
from saferank.policies.safe_draw.references import Reference, derive_reference, new_reference, return_to_base
from saferank.policies.safe_draw.slot_bets import certify_winners, note_exchanges, settle_bets
from saferank.policies.safe_draw.slot_plans import SlotPlan, is_safe, lay_out, make_plan, new_slot_plan, place_of_seat
from saferank.policies.shared.draws import draw_one
from saferank.randomness import Words
from saferank.safety import whole_allowance
from saferank.statistics.bets import HashedBets, as_hashed, new_hashed_bets, with_more_rows
from saferank.statistics.closure import (
    BITS,
    Closure,
    certify_over,
    closure_full,
    new_closure,
    recount,
    surely,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.statistics.duels import crowded
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items

MOST_DRAWS = 64
"""So many orders are drawn for a page at most; if none is safe the plan's own order is shown."""


class SlotState(NamedTuple):
    """What is certain, what clicks say, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    present: Flags  # by item
    limit: Ints  # [2] floor(L - K/2) and L, the number of present items
    reference: Reference
    closure: Closure
    appeal: Appeal
    race: Race
    plan: SlotPlan
    duels: HashedBets


@kernel
def _draw_order(state: Any, rng: Words) -> None:
    """Put the order's items on the scratch page, drawn with their weights."""
    plan = state.plan
    for seat in range(plan.size[0]):
        plan.left[seat] = plan.weight[seat]
    for seat in range(plan.size[0]):
        number = draw_one(rng, plan.left, plan.size[0])
        plan.left[number], plan.drawn[seat] = 0.0, number
        plan.page[place_of_seat(plan.slot[0], seat)] = plan.order[number]


@kernel
def _draw_page(state: Any, rng: Words) -> bool:
    """Draw orders until one is safe with every occupant of the slot. False: none was, and the plan's order is taken."""
    for _ in range(MOST_DRAWS):
        _draw_order(state, rng)
        if is_safe(state, state.plan.slot[0]):
            return True
    lay_out(state.plan, state.plan.slot[0])
    return False


@kernel
def _fill_order(state: Any, impression: Impression, drawn: bool) -> None:
    """The places of the order: one group, or each by itself when the page was not drawn."""
    plan, slot = state.plan, state.plan.slot[0]
    for seat in range(plan.size[0]):
        place = place_of_seat(slot, seat)
        impression.ranking[place] = plan.page[place]
        impression.weight[place] = plan.weight[plan.drawn[seat]] if drawn else 0.0
        impression.start[place] = int(slot == 0) if drawn else place
        impression.end[place] = place + 1


@kernel
def _fill_slot(state: Any, rng: Words, impression: Impression) -> int:
    """The slot shows a drawn occupant; the others are hidden. Returns how many places are in use."""
    plan, slot, places = state.plan, state.plan.slot[0], len(state.plan.order)
    if slot == NOBODY:
        return places
    shown = draw_one(rng, plan.chance, plan.occupants[0])
    for entry in range(plan.occupants[0]):
        place = slot if entry == shown else places
        places += int(entry != shown)
        impression.ranking[place], impression.weight[place] = plan.occupant[entry], plan.chance[entry]
        impression.start[place], impression.end[place] = slot, place + 1
    return places


@kernel
def slot_page(state: Any, policy: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page."""
    state.round[0] += 1
    if state.plan.pages[0] == 0:
        make_plan(state, rng)
    state.plan.pages[0] -= 1
    _fill_order(state, impression, _draw_page(state, rng))
    impression.places[0] = _fill_slot(state, rng, impression)
    impression.round[0], impression.challenger[0], impression.frozen[0] = state.round[0], NOBODY, 0
    for place in range(len(state.plan.page)):
        state.plan.page[place] = impression.ranking[place]
    state.plan.price[0] = price_of(state, state.plan.page)


@kernel
def slot_freeze(state: Any, policy: Any, impression: Impression) -> None:
    """Note on a page which exchanges are possible now, for clicks that come after something else was learnt."""
    for place in range(impression.places[0]):
        note_exchanges(state, impression, place)
    impression.frozen[0] = 1


@kernel
def slot_learn(state: SlotState, policy: Any, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page; when pairs are certified, derive R again and make a new plan for the next page."""
    state.learned[0] += 1
    note_page(state.appeal, impression, clicks)
    if settle_bets(policy, state, impression, clicks) and certify_winners(policy, state, impression, clicks):
        return_to_base(state.reference)
        derive_reference(state.reference, state.closure, state.present)
        state.plan.pages[0] = 0


@kernel
def slots_have_room(state: SlotState) -> bool:
    """True when one more page can be learnt without anything growing."""
    places = len(state.reference.row) + RACERS
    return not (crowded(state.duels, places * (places - 1) // 2) or closure_full(state.closure, places))


def with_room(state: SlotState) -> SlotState:
    """The same state with room for more pairs and more certified items."""
    places = len(state.reference.row) + RACERS
    while crowded(state.duels, places * (places - 1) // 2):
        state = state._replace(duels=with_more_rows(state.duels))
    while closure_full(state.closure, places):
        state = state._replace(closure=with_more_numbers(state.closure))
    return state


def start_slots(setup: Setup) -> SlotState:
    """No click yet: R is the original ranking."""
    n_items, places = setup.n_items, setup.n_positions + RACERS
    base, present = np.arange(setup.n_positions, dtype=np.uint32), np.ones(n_items, np.bool_)
    return SlotState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        present=present,
        limit=np.array([whole_allowance(n_items, setup.n_positions), n_items], np.int64),
        reference=new_reference(base, n_items),
        closure=new_closure(n_items, BITS * -(-4 * places // BITS)),
        appeal=appeal_for(new_appeal(n_items, setup.n_positions), base, present),
        race=new_race(),
        plan=new_slot_plan(setup.n_positions),
        duels=new_hashed_bets(1 << (2 * places * places).bit_length()),
    )


def from_exact(state: Any) -> SlotState:
    """The state of the slot form with what the exact form knows, but for its guesses; to be arranged."""
    setup = Setup(len(state.seat), len(state.base))
    bets, fresh = as_hashed(state.duels), start_slots(setup)
    fresh = with_room(fresh._replace(round=state.round, learned=state.learned, duels=bets))
    certificates, closure = bets.certificates, fresh.closure
    for entry in range(int(certificates.given[0])):
        while closure_full(closure, 2):
            closure = with_more_numbers(closure)
        certify_over(closure, fresh.present, certificates.better[entry], certificates.worse[entry])
    return fresh._replace(closure=closure)


def arranged_slots(state: SlotState, base: Items, present: Flags) -> SlotState:
    """The state for these items and this ranking of production's: R derived again, no plan, clicks and bets kept."""
    n_items, n_positions = int(present.sum()), len(base)
    state = state._replace(
        present=present.copy(),
        limit=np.array([whole_allowance(n_items, n_positions), n_items], np.int64),
        reference=new_reference(base, len(present)),
        closure=with_more_unnumbered(state.closure, len(present)),
        appeal=appeal_for(state.appeal, base, present),
        race=new_race(),
        plan=new_slot_plan(n_positions),
    )
    recount(state.closure, state.present)
    derive_reference(state.reference, state.closure, state.present)
    return state


def present_items(state: Any) -> Flags:
    """By item: it is here."""
    present: Flags = state.present
    return present


def base_of(state: Any) -> Items:
    """Production's ranking."""
    base: Items = state.reference.base
    return base


def leader_of(state: Any) -> Ints:
    """R."""
    leader: Ints = state.reference.row.astype(np.int64)
    return leader


def settled(state: Any, i: int, j: int) -> bool:
    """True when i is certified over j, through others or not."""
    return bool(surely(state.closure, i, j))


def worst_of_newest(state: Any) -> int:
    """The bound of W of the newest page: its price against R, less what certified moves have earned."""
    return int(state.plan.price[0] - state.reference.income[0])


def outlook(state: Any) -> Outlook:
    """What the plan does, in words; the challenger is the first member of the race."""
    plan, n_positions = state.plan, len(state.reference.row)
    if plan.pages[0] == 0:
        return Outlook("makes a new plan for the next page")
    if plan.slot[0] == NOBODY:
        return Outlook(f"draws the order of the {n_positions} items of the leader; no item from outside is shown")
    rivals, place = int(plan.occupants[0]) - 1, int(plan.slot[0]) + 1
    note = (
        f"at position {place} one of {rivals} items from outside, or the item that defends its place; the others drawn"
    )
    return Outlook(note, int(plan.occupant[1]), against=int(plan.occupant[0]))
