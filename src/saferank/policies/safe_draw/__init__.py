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
>>> ranker.rank().items[0]
'x'
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import OURS, Look, Presentation, Setup, given_rule, register, register_variant
from saferank.policies.safe_draw import large, small
from saferank.policies.safe_draw.constants import RACERS, TRUST
from saferank.policies.safe_draw.large import LargeState
from saferank.policies.safe_draw.learning import (
    draw_from_plan,
    has_room_for_page,
    note_exchanges,
    settle_bets,
    turn_epoch,
)
from saferank.policies.safe_draw.small import SmallState
from saferank.policies.safe_draw.trust import Trust, new_trust
from saferank.policies.shared.derivation import close_ranks, with_more_in_order
from saferank.policies.shared.epochs import advance
from saferank.policies.shared.issuing import freeze
from saferank.policies.shared.room import has_room
from saferank.randomness import Words
from saferank.safety.worst_case import MOST_SEATS
from saferank.statistics.bets import Bets, BetTable, bet_table, budget, most_bets, new_bets, same_level
from saferank.statistics.certificates import surely
from saferank.verbs import Flags, Impression, Ints, Items, choose, learn

State = SmallState | LargeState
"""Evidence is the same for both; the plan for up to 12 items is another one than the plan for more."""


MOST_POSITIONS = 63 - RACERS
"""Which exchanges a page allows is one bit of a word for each place, the hidden ones of a race among them."""


class SafeDraw(NamedTuple):
    """Hyper-parameters: the table of the bets, which knows the errors of pairs, and the trust in production."""

    table: BetTable
    trust: float


class Known(NamedTuple):
    """What a state begins with."""

    round: Ints
    learned: Ints
    order: Items
    trust: Trust
    duels: Bets


@implements(choose, SafeDraw)
def _choose(policy: SafeDraw, state: Any, rng: Words, impression: Impression) -> None:
    draw_from_plan(state, policy, rng, impression)


@implements(learn, SafeDraw)
def _learn(policy: SafeDraw, state: Any, impression: Impression, clicks: Ints) -> None:
    settle_bets(state, policy, impression, clicks)


@implements(freeze, SafeDraw)
def _freeze(policy: SafeDraw, state: Any, impression: Impression) -> None:
    note_exchanges(state, policy, impression)


@implements(advance, SafeDraw)
def _advance(policy: SafeDraw, state: Any) -> None:
    if state.round[0] >= state.duels.epoch[0] + state.duels.epoch[1]:
        turn_epoch(state)


@implements(has_room, SafeDraw)
def _has_room(policy: SafeDraw, state: Any) -> bool:
    return has_room_for_page(state)


def _start(setup: Setup) -> tuple[SafeDraw, State]:
    """Nothing is known; the first items are production's ranking."""
    return _start_as(setup, setup.n_items > MOST_SEATS)


def _start_large(setup: Setup) -> tuple[SafeDraw, State]:
    return _start_as(setup, is_large=True)


def _start_as(setup: Setup, is_large: bool) -> tuple[SafeDraw, State]:
    level = setup.rule.level
    levels = budget(level, setup.n_positions, setup.n_items) if setup.rule.kind == "budget" else same_level(level)
    policy = SafeDraw(bet_table(levels), TRUST if setup.trust is None else setup.trust)
    duels = new_bets(setup.n_items, setup.lifetime, most_bets(setup.n_positions + RACERS))
    order = np.arange(setup.n_items, dtype=np.uint32)
    known = Known(np.zeros(1, np.int64), np.zeros(1, np.int64), order, new_trust(setup.n_items), duels)
    base, present = np.arange(setup.n_positions, dtype=np.uint32), np.ones(setup.n_items, np.bool_)
    return policy, (large if is_large else small).arranged(known, base, present)


def _arranged(state: State, base: Items, present: Flags) -> State:
    """The state for these items and this ranking of production's, with the plan that suits their number."""
    return _grow((large if int(present.sum()) > MOST_SEATS else small).arranged(state, base, present))


def _rebuild(policy: SafeDraw, state: State, base: Items) -> State:
    return _arranged(state, base, _plan(state).present_items(state))


def _regroup(policy: SafeDraw, state: State, present: Flags) -> State:
    """Production's ranking closes up when one of its items leaves."""
    order = with_more_in_order(state.order, len(present))
    return _arranged(state, close_ranks(_plan(state).base_of(state), present, order), present)


def _reorder(policy: SafeDraw, state: State, order: Items) -> State:
    """Untried candidates are tried in this order from now on."""
    return _arranged(state._replace(order=order), _plan(state).base_of(state), _plan(state).present_items(state))


def _plan(state: State) -> Any:
    """The module of the state's plan."""
    return small if isinstance(state, SmallState) else large


def _grow(state: State) -> State:
    grown: State = _plan(state).with_room(state)
    return grown


KIND = register(
    "safe-draw",
    SafeDraw,
    start=_start,
    leader=lambda state: _plan(state).leader_of(state),
    certifies=True,
    safe=True,
    rule=given_rule,
    rules=("anytime", "budget"),
    keeps_budget=True,
    most_positions=MOST_POSITIONS,
    compared=lambda setup: max(min(setup.n_items, MOST_SEATS), setup.n_positions + RACERS),
    regroup=_regroup,
    rebuild=_rebuild,
    reorder=_reorder,
    pins=True,
    outlook=lambda _, state: _plan(state).outlook(state),
    settled=lambda state, i, j: bool(surely(state.duels.closure, i, j)),
    worst=lambda state: _plan(state).worst_of_newest(state),
    grow=_grow,
    caches=("plan", "possible", "renewal"),
    lifetimes=True,
    trusts=True,
    shown_as=Presentation(
        "SafeDraw",
        Look("#b3136f", "#ff7ac4", (0, (12, 1.5)), "8"),
        OURS,
        order=13,
        about="draws pages from a known law, bets on every pair at its odds, and allows exactly what no order forbids",
    ),
)

register_variant(KIND, "slots", _start_large)
