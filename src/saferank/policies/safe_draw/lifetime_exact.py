"""safe-draw for at most 12 items whose certificates have a lifetime: the exact form for worlds that change.

A state of its own, so that the form without a lifetime runs the code that it would run without this file. Pages are
drawn and checked as there (``exact.py``); evidence is that of ``statistics/lifetime_bets.py``, plans and renewals are
those of ``renewals.py``. What is played, the theorem and the decisions behind it are in docs/algorithms/drift.md.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.registry import Outlook, Setup
from saferank.policies.safe_draw.exact import (
    ABSENT,
    STALE,
    base_of,
    code_of,
    exact_freeze,
    exchange_odds,
    fill_in,
    leader_of,
    present_items,
    settled,
    worst_of_newest,
)
from saferank.policies.safe_draw.exact import outlook as exact_outlook
from saferank.policies.safe_draw.exact_plans import DrawPlan, board_of, improve_reference, new_plan
from saferank.policies.safe_draw.renewals import (
    Renewal,
    draw_with_target,
    has_target,
    make_renewing_plan,
    mark_target,
    new_renewal,
    odds_with_target,
)
from saferank.policies.shared.draws import fill_tails
from saferank.randomness import Words
from saferank.safety import whole_allowance
from saferank.safety.exchanges import exchange_is_safe
from saferank.safety.worst_case import Possible, forget_certainty, new_possible
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
from saferank.statistics.rates import Rates, fade_rates, new_rates, note_rates, with_more_rates
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items

__all__ = [
    "KnownInEpochs", "LifetimeExactState", "arranged", "base_of", "begin_exact_epoch", "exact_freeze",
    "leader_of", "lifetime_has_room", "lifetime_learn", "lifetime_page", "outlook", "present_items",
    "settled", "start", "with_room", "worst_of_newest",
]  # fmt: skip

EXPOSURE, CALMED_EXPOSURE = 32.0, 4.0
"""What the rates of an item count for at most, in expected clicks: when an epoch begins, and after an alarm."""

PLACE_PAGES = 1000.0
"""What the rates of places count for at most then, in pages."""


class LifetimeExactState(NamedTuple):
    """What is certain now, what is known, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    base: Items  # production's ranking
    item: Ints  # by seat
    seat: Ints  # by item, or ABSENT
    reference: Ints  # by place, in seats: R, derived from production's ranking and what is certain now
    worst: Ints  # [1] W(R)
    possible: Possible
    plan: DrawPlan
    renewal: Renewal
    rates: Rates
    duels: LifetimeBets


class KnownInEpochs(NamedTuple):
    """What is known of items, whichever of them are here."""

    round: Ints
    learned: Ints
    rates: Rates
    duels: LifetimeBets


def start(setup: Setup, lifetime: int) -> LifetimeExactState:
    """Nothing is known; the first items are production's ranking."""
    rates, bets = new_rates(setup.n_items, setup.n_positions), new_lifetime_bets(setup.n_items, lifetime)
    known = KnownInEpochs(np.zeros(1, np.int64), np.zeros(1, np.int64), rates, bets)
    return arranged(known, np.arange(setup.n_positions, dtype=np.uint32), np.ones(setup.n_items, np.bool_))


def arranged(known: LifetimeExactState | KnownInEpochs, base: Items, present: Flags) -> LifetimeExactState:
    """The state for these items and this ranking of production's, with what is known and certified of them."""
    n_items, ranked = len(present), set(base.tolist())
    others = np.array([item for item in np.flatnonzero(present).tolist() if item not in ranked], np.int64)
    item = np.concatenate([base.astype(np.int64), others])
    size, limit = (len(item), len(base)), whole_allowance(len(item), len(base))
    seat = np.full(n_items, ABSENT, np.int64)
    seat[item] = np.arange(len(item))
    state = LifetimeExactState(
        round=known.round,
        learned=known.learned,
        base=base.copy(),
        item=item,
        seat=seat,
        reference=np.arange(len(base)),
        worst=np.zeros(1, np.int64),
        possible=new_possible(*size, limit),
        plan=new_plan(*size),
        renewal=new_renewal(len(item)),
        rates=with_more_rates(known.rates, n_items),
        duels=with_more_pairs(known.duels, n_items),
    )
    follow_certificates(state)
    return state


@seldom
def follow_certificates(state: LifetimeExactState) -> None:
    """Note what follows from the certificates that hold for the items that are here, derive R, end the plan."""
    possible, above = state.possible, state.duels.table.above
    forget_certainty(possible)
    for x in range(len(state.item)):
        for z in range(len(state.item)):
            if above[state.item[x], state.item[z]]:
                possible.worse[x] |= 1 << z
                possible.better[z] |= 1 << x
    for place in range(len(state.reference)):
        state.reference[place] = place
    improve_reference(board_of(state))
    state.plan.pages[0] = STALE


@seldom
def begin_exact_epoch(state: LifetimeExactState) -> None:
    """Before a page is issued: begin the epoch to which it belongs."""
    if begin_epoch(state.duels, state.round[0]):
        fade_rates(state.rates, EXPOSURE, PLACE_PAGES)
        follow_certificates(state)


@seldom
def lifetime_page(state: LifetimeExactState, policy: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page, from a new plan if the last one has served its pages."""
    plan, renewal = state.plan, state.renewal
    state.round[0] += 1
    if plan.pages[0] == STALE:
        make_renewing_plan(state, rng)
    draw_with_target(plan, state.possible, renewal.target, rng)
    impression.round[0] = state.round[0]
    fill_in(plan, impression)
    if renewal.target[0] != NOBODY:
        mark_target(impression, state.item[renewal.target[0]], state.item[renewal.target[1]])


@kernel
def _is_bet_on(possible: Possible, seat: Ints, impression: Impression, code: int, pair: tuple[int, int]) -> bool:
    """True when the page tells the items of two places apart, of which the first was clicked and the second was not.

    Both must be here, and the page must be safe with the two exchanged.
    """
    a, b = pair
    x, z = seat[impression.ranking[a]], seat[impression.ranking[b]]
    if ABSENT in (x, z):
        return False
    if impression.frozen[0]:
        return bool(impression.exchanges[a] >> b & 1)
    return code >= 0 and exchange_is_safe(possible, code, x, z, pair)


@seldom
def lifetime_learn(state: LifetimeExactState, policy: Any, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page, then do what follows. A page that is older than the epoch before says nothing."""
    bets, tails, now, renewing = state.duels, state.plan.tails, impression.round[0], has_target(impression)
    state.learned[0] += 1
    if not still_counts(bets, now) or not note_rates(state.rates, impression, clicks):
        return
    fill_tails(impression.weight, tails, impression.places[0])
    code, bets.n_settled[0] = code_of(state.seat, len(clicks), impression), 0
    for a in range(len(clicks)):
        for b in range(impression.places[0] if clicks[a] else 0):
            unclicked = b >= len(clicks) or not clicks[b]
            if unclicked and _is_bet_on(state.possible, state.seat, impression, code, (a, b)):
                if renewing:
                    p0 = odds_with_target(impression, len(clicks), a, b)
                else:
                    p0 = exchange_odds(tails, impression, a, b)
                settle_pair(policy.table, bets, impression.ranking[a], impression.ranking[b], p0, now)
    alarmed = sound_alarms(bets)
    if alarmed:
        fade_rates(state.rates, CALMED_EXPOSURE, PLACE_PAGES)
    if certify_winners(policy.table, bets, now) or alarmed:
        follow_certificates(state)


@kernel
def lifetime_has_room(state: LifetimeExactState) -> bool:
    """True when the certificates of one more page fit into the list."""
    n_items = len(state.item)
    return not crowded(state.duels, n_items * (n_items - 1) // 2)


def with_room(state: LifetimeExactState) -> LifetimeExactState:
    """The same state with room for the certificates of one more page."""
    while not lifetime_has_room(state):
        state = state._replace(duels=with_longer_list(state.duels))
    return state


def outlook(state: LifetimeExactState) -> Outlook:
    """What the plan does, in words."""
    usual = exact_outlook(state)
    if state.renewal.target[0] == NOBODY:
        return usual
    better, worse = state.item[state.renewal.target].tolist()
    return Outlook(
        f"{usual.note}; exchanges two items now and then, whose certificate is to be earned again",
        worse,
        against=better,
    )
