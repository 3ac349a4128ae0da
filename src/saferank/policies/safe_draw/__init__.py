r"""safe-draw: draw pages item by item, bet on every pair at the odds of the draw, show what the worst case allows.

Three principles. *Any randomisation can certify*: a page drawn from a known law Q tests every pair of a clicked and an
unclicked item at the odds

    p0 = Q(page) / (Q(page) + Q(page with the two exchanged))

(statistics/bets.py). *The exact worst case*: a page may be shown exactly when

    W(page) = max of V(page) - V(original) over all orders that agree with the certificates  <=  floor(L - K/2)

(safety/worst_case.py); beyond 12 items a bound of W. *Chances instead of levels*: an order that is not certain is tried
about as often as it is likely, so nothing is settled for good before it is certified. Ours, beyond the paper; proofs
and figures are in docs/policies/safe-draw.md.

>>> from saferank import Ranker
>>> ranker = Ranker("safe-draw", original=["a", "b"], candidates=["x"], rule="anytime:1e-2", seed=1)
>>> for _ in range(300):
...     page = ranker.rank()
...     ranker.feedback(page, [item for item in page.items if item == "x"])
>>> ranker.leader[0]
'x'
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, verb
from saferank.policies.registry import OURS, Look, Outlook, Presentation, Setup, given_rule, register, register_variant
from saferank.policies.safe_draw import exact, lifetime_exact, lifetime_slots, slots
from saferank.policies.safe_draw.exact import ExactState
from saferank.policies.safe_draw.lifetime_exact import LifetimeExactState
from saferank.policies.safe_draw.lifetime_slots import LifetimeSlotState
from saferank.policies.safe_draw.races import RACERS
from saferank.policies.safe_draw.slots import SlotState
from saferank.policies.shared.derivation import close_ranks
from saferank.policies.shared.epochs import advance
from saferank.policies.shared.issuing import freeze
from saferank.policies.shared.room import has_room
from saferank.randomness import Words
from saferank.safety.worst_case import MOST_SEATS
from saferank.statistics.bets import SLOT_WEIGHTS, BetTable, bet_table
from saferank.verbs import Flags, Impression, Ints, Items, choose, learn

State = ExactState | SlotState | LifetimeExactState | LifetimeSlotState
"""The forms of the policy: up to 12 items, and beyond; with certificates that last, or that have a lifetime."""

_FORMS = {ExactState: exact, SlotState: slots, LifetimeExactState: lifetime_exact, LifetimeSlotState: lifetime_slots}


MOST_POSITIONS = 63 - RACERS
"""Which exchanges a page allows is one bit of a word for each place, the hidden ones of a race among them."""


class SafeDraw(NamedTuple):
    """Hyper-parameters: the table of the bets, which knows alpha."""

    table: BetTable


@verb
def _page(state: Any, policy: SafeDraw, rng: Words, impression: Impression) -> None:
    """Issue a page, by the form of the state."""


@verb
def _take_clicks(state: Any, policy: SafeDraw, impression: Impression, clicks: Ints) -> None:
    """Learn from a page, by the form of the state."""


@verb
def _note_exchanges(state: Any, policy: SafeDraw, impression: Impression) -> None:
    """Note which exchanges are safe, by the form of the state."""


@verb
def _fits(state: Any) -> bool:
    """True when one more page can be learnt without anything growing, by the form of the state."""
    raise NotImplementedError


@functools.partial(verb, default=True)
def _begin_epoch(state: Any) -> None:
    """Begin the epoch of the next page. Nothing to do for a form without a lifetime."""


implements(_page, ExactState)(exact.exact_page)
implements(_take_clicks, ExactState)(exact.exact_learn)
implements(_note_exchanges, ExactState)(exact.exact_freeze)
implements(_fits, ExactState)(exact.exact_has_room)
implements(_page, SlotState)(slots.slot_page)
implements(_take_clicks, SlotState)(slots.slot_learn)
implements(_note_exchanges, SlotState)(slots.slot_freeze)
implements(_fits, SlotState)(slots.slots_have_room)
implements(_page, LifetimeExactState)(lifetime_exact.lifetime_page)
implements(_take_clicks, LifetimeExactState)(lifetime_exact.lifetime_learn)
implements(_note_exchanges, LifetimeExactState)(lifetime_exact.exact_freeze)
implements(_fits, LifetimeExactState)(lifetime_exact.lifetime_has_room)
implements(_begin_epoch, LifetimeExactState)(lifetime_exact.begin_exact_epoch)
implements(_page, LifetimeSlotState)(lifetime_slots.lifetime_slot_page)
implements(_take_clicks, LifetimeSlotState)(lifetime_slots.lifetime_slot_learn)
implements(_note_exchanges, LifetimeSlotState)(lifetime_slots.slot_freeze)
implements(_fits, LifetimeSlotState)(lifetime_slots.lifetime_slots_have_room)
implements(_begin_epoch, LifetimeSlotState)(lifetime_slots.begin_slot_epoch)


@implements(choose, SafeDraw)
def _choose(policy: SafeDraw, state: Any, rng: Words, impression: Impression) -> None:
    _page(state, policy, rng, impression)


@implements(learn, SafeDraw)
def _learn(policy: SafeDraw, state: Any, impression: Impression, clicks: Ints) -> None:
    _take_clicks(state, policy, impression, clicks)


@implements(freeze, SafeDraw)
def _freeze(policy: SafeDraw, state: Any, impression: Impression) -> None:
    _note_exchanges(state, policy, impression)


@implements(advance, SafeDraw)
def _advance(policy: SafeDraw, state: Any) -> None:
    _begin_epoch(state)


@implements(has_room, SafeDraw)
def _has_room(policy: SafeDraw, state: Any) -> bool:
    return _fits(state)


def _start(setup: Setup) -> tuple[SafeDraw, State]:
    if setup.n_items > MOST_SEATS:
        return _start_slots(setup)
    policy = SafeDraw(bet_table(setup.rule.level))
    if setup.lifetime is not None:
        return policy, lifetime_exact.start(setup, setup.lifetime)
    return policy, exact.start_exact(setup)


def _start_slots(setup: Setup) -> tuple[SafeDraw, State]:
    policy = SafeDraw(bet_table(setup.rule.level, SLOT_WEIGHTS))
    if setup.lifetime is not None:
        return policy, lifetime_slots.start(setup, setup.lifetime)
    return policy, slots.start_slots(setup)


def _arranged(state: State, base: Items, present: Flags) -> State:
    """The state for these items and this ranking of production's, in the form that suits their number.

    What bets and certificates say stays. The guesses of one form mean nothing to the other: they begin again.
    """
    if isinstance(state, LifetimeExactState | LifetimeSlotState):
        return _arranged_with_lifetime(state, base, present)
    if int(present.sum()) > MOST_SEATS:
        return slots.arranged_slots(state if isinstance(state, SlotState) else slots.from_exact(state), base, present)
    return exact.arranged_exact(state if isinstance(state, ExactState) else exact.from_slots(state), base, present)


def _arranged_with_lifetime(state: LifetimeExactState | LifetimeSlotState, base: Items, present: Flags) -> State:
    if int(present.sum()) > MOST_SEATS:
        return lifetime_slots.arranged(state, base, present)
    known = lifetime_slots.known_of(state) if isinstance(state, LifetimeSlotState) else state
    return lifetime_exact.arranged(known, base, present)


def _rebuild(policy: SafeDraw, state: State, base: Items) -> State:
    return _arranged(state, base, _form(state).present_items(state))


def _regroup(policy: SafeDraw, state: State, present: Flags) -> State:
    """Production's ranking closes up when one of its items leaves."""
    return _arranged(state, close_ranks(_form(state).base_of(state), present), present)


def _form(state: State) -> Any:
    """The module of the state's form."""
    return _FORMS[type(state)]


def _leader(state: State) -> Ints:
    return np.asarray(_form(state).leader_of(state))


def _settled(state: State, i: int, j: int) -> bool:
    return bool(_form(state).settled(state, i, j))


def _worst(state: State) -> int:
    return int(_form(state).worst_of_newest(state))


def _outlook(policy: SafeDraw, state: State) -> Outlook:
    outlook: Outlook = _form(state).outlook(state)
    return outlook


def _grow(state: State) -> State:
    grown: State = _form(state).with_room(state)
    return grown


KIND = register(
    "safe-draw",
    SafeDraw,
    start=_start,
    leader=_leader,
    certifies=True,
    safe=True,
    rule=given_rule,
    rules=("anytime",),
    most_positions=MOST_POSITIONS,
    compared=lambda setup: max(min(setup.n_items, MOST_SEATS), setup.n_positions + RACERS),
    regroup=_regroup,
    rebuild=_rebuild,
    outlook=_outlook,
    settled=_settled,
    worst=_worst,
    grow=_grow,
    caches=("plan", "possible", "race", "renewal"),
    lifetimes=True,
    shown_as=Presentation(
        "SafeDraw",
        Look("#b3136f", "#ff7ac4", (0, (12, 1.5)), "8"),
        OURS,
        order=13,
        about="draws pages from a known law, bets on every pair at its odds, and allows exactly what no order forbids",
    ),
)

register_variant(KIND, "slots", _start_slots)
