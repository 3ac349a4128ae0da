"""safe-draw for 13 to 256 items whose certificates have a lifetime: the slot form for worlds that change.

Pages are those of ``slots.py``. Evidence has epochs, two certifying streams, soft evidence and alarms as in the exact
form (``statistics/lifetime_bets.py``); R and its income are derived from production's ranking whenever a certificate is
given, replaced, withdrawn or ends. There are no renewing pages here: a pair is certified again when the order or the
race compares it. See docs/algorithms/drift.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.registry import Setup
from saferank.policies.safe_draw.appeal import Appeal, appeal_for, fade_appeal, new_appeal, note_page
from saferank.policies.safe_draw.lifetime_exact import CALMED_EXPOSURE, EXPOSURE, PLACE_PAGES, KnownInEpochs
from saferank.policies.safe_draw.races import RACERS, Race, new_race
from saferank.policies.safe_draw.references import Reference, derive_reference, new_reference, return_to_base
from saferank.policies.safe_draw.renewals import has_target, odds_with_target
from saferank.policies.safe_draw.slot_bets import note_exchanges
from saferank.policies.safe_draw.slot_plans import SlotPlan, new_slot_plan
from saferank.policies.safe_draw.slots import (
    base_of,
    leader_of,
    outlook,
    present_items,
    settled,
    slot_freeze,
    slot_page,
    worst_of_newest,
)
from saferank.policies.shared.draws import odds_of_exchange
from saferank.randomness import Words
from saferank.safety import whole_allowance
from saferank.statistics.closure import BITS, Closure, certify_over, forget_closure, new_closure, surely
from saferank.statistics.duels import crowded
from saferank.statistics.lifetime_bets import (
    LifetimeBets,
    begin_epoch,
    certify_winners,
    new_lifetime_bets,
    settle_pair,
    sound_alarms,
    still_counts,
    with_longer_list,
    with_more_pairs,
)
from saferank.statistics.rates import new_rates
from saferank.verbs import Flags, Impression, Ints, Items

__all__ = [
    "LifetimeSlotState", "arranged", "base_of", "begin_slot_epoch", "leader_of", "lifetime_slot_learn",
    "lifetime_slot_page", "lifetime_slots_have_room", "outlook", "present_items", "settled",
    "slot_freeze", "start", "with_room", "worst_of_newest",
]  # fmt: skip


class LifetimeSlotState(NamedTuple):
    """What is certain now, what clicks say, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    present: Flags  # by item
    limit: Ints  # [2] floor(L - K/2) and L, the number of present items
    reference: Reference
    closure: Closure
    appeal: Appeal
    race: Race
    plan: SlotPlan
    duels: LifetimeBets


def start(setup: Setup, lifetime: int) -> LifetimeSlotState:
    """No click yet: R is the original ranking."""
    bets = new_lifetime_bets(setup.n_items, lifetime)
    rates = new_rates(setup.n_items, setup.n_positions)
    known = KnownInEpochs(np.zeros(1, np.int64), np.zeros(1, np.int64), rates, bets)
    return arranged(known, np.arange(setup.n_positions, dtype=np.uint32), np.ones(setup.n_items, np.bool_))


def known_of(state: LifetimeSlotState) -> KnownInEpochs:
    """What the slot form knows, but for its guesses."""
    rates = new_rates(len(state.present), len(state.reference.row))
    return KnownInEpochs(state.round, state.learned, rates, state.duels)


def arranged(known: Any, base: Items, present: Flags) -> LifetimeSlotState:
    """The state for these items and this ranking of production's: R derived again, no plan, clicks and bets kept."""
    n_items, n_positions = len(present), len(base)
    here = int(present.sum())
    appeal = known.appeal if isinstance(known, LifetimeSlotState) else new_appeal(n_items, n_positions)
    state = LifetimeSlotState(
        round=known.round,
        learned=known.learned,
        present=present.copy(),
        limit=np.array([whole_allowance(here, n_positions), here], np.int64),
        reference=new_reference(base, n_items),
        closure=new_closure(n_items, BITS * -(-n_items // BITS)),
        appeal=appeal_for(appeal, base, present),
        race=new_race(),
        plan=new_slot_plan(n_positions),
        duels=with_more_pairs(known.duels, n_items),
    )
    follow_certificates(state)
    return state


@seldom
def follow_certificates(state: LifetimeSlotState) -> None:
    """Note what follows from the certificates that hold, derive R from production's ranking, end the plan."""
    closure, expires = state.closure, state.duels.table.expires
    forget_closure(closure)
    for i in range(len(state.present)):
        for j in range(len(state.present)):
            if expires[i, j] > 0 and not surely(closure, i, j):
                certify_over(closure, state.present, i, j)
    return_to_base(state.reference)
    derive_reference(state.reference, closure, state.present)
    state.plan.pages[0] = 0


@seldom
def begin_slot_epoch(state: LifetimeSlotState) -> None:
    """Before a page is issued: begin the epoch to which it belongs."""
    if begin_epoch(state.duels, state.round[0]):
        fade_appeal(state.appeal, EXPOSURE, int(PLACE_PAGES))
        follow_certificates(state)


@seldom
def lifetime_slot_page(state: LifetimeSlotState, policy: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page."""
    slot_page(state, policy, rng, impression)


@kernel
def _is_bet_on(present: Flags, impression: Impression, a: int, b: int) -> bool:
    """True when the page tells the items of two places apart: both are here, and the draw could have exchanged them."""
    if impression.start[a] != impression.start[b] or not impression.exchanges[a] >> b & 1:
        return False
    return bool(present[impression.ranking[a]] and present[impression.ranking[b]])


@kernel
def _odds(impression: Impression, n_positions: int, a: int, b: int) -> float:
    """The odds of an exchange; a page that was issued when there were fewer items may have a target."""
    if has_target(impression):
        return odds_with_target(impression, n_positions, a, b)
    return odds_of_exchange(impression, n_positions, a, b)


@kernel
def _settle_bets(policy: Any, state: LifetimeSlotState, impression: Impression, clicks: Ints, a: int) -> None:
    """Settle the bets of a clicked place, whatever is certified."""
    now = impression.round[0]
    for b in range(impression.places[0]):
        if (b >= len(clicks) or not clicks[b]) and _is_bet_on(state.present, impression, a, b):
            p0 = _odds(impression, len(clicks), a, b)
            settle_pair(policy.table, state.duels, impression.ranking[a], impression.ranking[b], p0, now)


@seldom
def lifetime_slot_learn(state: LifetimeSlotState, policy: Any, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page, then do what follows. A page that is older than the epoch before says nothing."""
    bets, now = state.duels, impression.round[0]
    state.learned[0] += 1
    if not still_counts(bets, now):
        return
    note_page(state.appeal, impression, clicks)
    bets.n_settled[0] = 0
    for a in range(len(clicks)):
        if clicks[a]:
            if not impression.frozen[0]:
                note_exchanges(state, impression, a)
            _settle_bets(policy, state, impression, clicks, a)
    alarmed = sound_alarms(bets)
    if alarmed:
        fade_appeal(state.appeal, CALMED_EXPOSURE, int(PLACE_PAGES))
    if certify_winners(policy.table, bets, now) or alarmed:
        follow_certificates(state)


@kernel
def lifetime_slots_have_room(state: LifetimeSlotState) -> bool:
    """True when the certificates of one more page fit into the list."""
    places = len(state.reference.row) + RACERS
    return not crowded(state.duels, places * (places - 1) // 2)


def with_room(state: LifetimeSlotState) -> LifetimeSlotState:
    """The same state with room for the certificates of one more page."""
    while not lifetime_slots_have_room(state):
        state = state._replace(duels=with_longer_list(state.duels))
    return state
