r"""CascadeKL-UCB: made for users who read from the top and stop at their first click.

    show the K items with the largest f(w_i, T_i, t), in decreasing order,

f being the KL-UCB index, T_i how often item i was examined and w_i its clicks divided by T_i. With the first click at
position C the items at 1..C were examined, all K without a click; later clicks are not looked at. It knows no original
ranking and gives no promise about a single page.

B. Kveton, C. Szepesvari, Z. Wen, A. Ashkan: Cascading Bandits: Learning to Rank in the Cascade Model. ICML 2015.

>>> from saferank import Ranker
>>> ranker = Ranker("cascade-kl-ucb", original=["a", "b"], candidates=["x"])
>>> for visitor in range(100):
...     page = ranker.rank()
...     ranker.feedback(page, clicked=[item for item in page.items if item == "x"])
>>> ranker.leader
('x', 'a')
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.best_items import enlarged, ranked, show_items
from saferank.randomness import Words
from saferank.statistics.kl import budget_at, entropy, first_budgets, optimistic_near
from saferank.verbs import Flags, Floats, Impression, Ints, Items, choose, learn


class CascadeKlUcb(NamedTuple):
    """Hyper-parameters: the budgets of the first rounds as a table, and the positions in order."""

    budgets: Floats
    places: Ints


class CascadeKlUcbState(NamedTuple):
    """Examinations and clicks by item, and the order of their indices on the newest page.

    Indices are kept as x = -log(1 - f): the order is the same, and no digits are lost where f is close to 1. As x is
    concave in the budget, ``x`` and ``slope`` at an earlier budget bound it now, which settles most comparisons.
    """

    round: Ints  # [1] pages issued
    examined: Ints  # by item
    clicked: Ints  # by item: clicks that were a page's first
    present: Flags  # by item
    x: Floats  # by item: the index at the budget ``at``; infinite where f = 1
    slope: Floats  # by item: its derivative there
    at: Floats  # by item: the budget, -1 after a change of the record
    row: Items  # [position] the newest page, best first
    shown: Flags  # by item, scratch: stands in the row


@kernel
def _renew(state: CascadeKlUcbState, item: int, allowed: float) -> None:
    """Compute the index of an item at the present budget."""
    if state.at[item] == allowed:
        return
    wins, losses = float(state.clicked[item]), float(state.examined[item] - state.clicked[item])
    if losses == 0 or allowed == np.inf:
        state.x[item], state.slope[item] = np.inf, 0.0
        state.at[item] = -1.0 if allowed == np.inf else allowed  # without a budget nothing is known for later
    else:
        state.at[item] = allowed
        state.x[item] = optimistic_near(state.x[item], wins, losses, entropy(wins, losses), allowed)
        rest = math.exp(-state.x[item])
        state.slope[item] = 1.0 / (losses - wins * rest / (1.0 - rest))


@kernel
def _at_most(state: CascadeKlUcbState, item: int, allowed: float) -> float:
    """An upper bound of the index at the present budget, from an earlier one."""
    return float((state.x[item] + state.slope[item] * (allowed - state.at[item])) * (1.0 + 1e-12))


@kernel
def _ahead(state: CascadeKlUcbState, item: int, other: int, allowed: float) -> bool:
    """True when the index of ``item`` is larger; equal ones are in item order."""
    same = state.clicked[item] == state.clicked[other] and state.examined[item] == state.examined[other]
    if same or (state.x[item] == np.inf and state.x[other] == np.inf):
        return item < other
    if _at_most(state, item, allowed) < state.x[other]:
        return False
    if _at_most(state, other, allowed) < state.x[item]:
        return True
    _renew(state, item, allowed)
    _renew(state, other, allowed)
    return bool(state.x[item] > state.x[other] or (state.x[item] == state.x[other] and item < other))


@kernel
def _climb(state: CascadeKlUcbState, seat: int, allowed: float) -> None:
    """Move the item at ``seat`` up in the row to its place."""
    item = state.row[seat]
    while seat > 0 and _ahead(state, item, state.row[seat - 1], allowed):
        state.row[seat] = state.row[seat - 1]
        seat -= 1
    state.row[seat] = item


@kernel
def _sort_best(state: CascadeKlUcbState, allowed: float) -> None:
    """Bring the best items into the row: those of the last page in order, then those ahead of its last one."""
    for item in range(len(state.present)):
        state.shown[item] = False
        if state.at[item] < 0:
            _renew(state, item, allowed)
    for seat in range(len(state.row)):
        state.shown[state.row[seat]] = True
        _climb(state, seat, allowed)
    last = len(state.row) - 1
    for item in range(len(state.present)):
        if state.present[item] and not state.shown[item] and _ahead(state, item, state.row[last], allowed):
            state.row[last] = item
            _climb(state, last, allowed)


@implements(choose, CascadeKlUcb)
def _choose(policy: CascadeKlUcb, state: CascadeKlUcbState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    allowed = budget_at(policy.budgets, state.round[0])
    _sort_best(state, allowed)
    show_items(impression, state.round[0], state.row, policy.places)


@implements(learn, CascadeKlUcb)
def _learn(policy: CascadeKlUcb, state: CascadeKlUcbState, impression: Impression, clicks: Ints) -> None:
    for position in range(len(clicks)):
        item = impression.ranking[position]
        state.examined[item] += 1
        state.at[item] = -1.0
        if clicks[position] == 1:
            state.clicked[item] += 1
            return


def _start(setup: Setup) -> tuple[CascadeKlUcb, CascadeKlUcbState]:
    state = CascadeKlUcbState(
        round=np.zeros(1, np.int64),
        examined=np.zeros(setup.n_items, np.int64),
        clicked=np.zeros(setup.n_items, np.int64),
        present=np.ones(setup.n_items, np.bool_),
        x=np.full(setup.n_items, np.inf),
        slope=np.zeros(setup.n_items),
        at=np.full(setup.n_items, -1.0),
        row=np.arange(setup.n_positions, dtype=np.uint32),
        shown=np.zeros(setup.n_items, np.bool_),
    )
    return CascadeKlUcb(first_budgets(), np.arange(setup.n_positions)), state


def _leader(state: Any) -> Ints:
    """The largest click rates; items that were never examined come last."""
    rates = np.where(state.examined > 0, state.clicked / np.maximum(state.examined, 1), -1.0)
    return ranked(rates, state.present, np.arange(len(state.row)))


def _regroup(policy: CascadeKlUcb, state: CascadeKlUcbState, present: Flags) -> CascadeKlUcbState:
    n_items = len(present)
    return state._replace(
        examined=enlarged(state.examined, n_items),
        clicked=enlarged(state.clicked, n_items),
        present=present,
        x=np.full(n_items, np.inf),
        slope=np.zeros(n_items),
        at=np.full(n_items, -1.0),
        row=np.flatnonzero(present)[: len(state.row)].astype(np.uint32),
        shown=np.zeros(n_items, np.bool_),
    )


def _outlook(policy: CascadeKlUcb, state: CascadeKlUcbState) -> Outlook:
    unseen = int(np.sum(state.present & (state.examined == 0)))
    return Outlook(f"shows the items with the largest optimistic click rate; {unseen} were never examined")


register(
    "cascade-kl-ucb",
    CascadeKlUcb,
    start=_start,
    leader=_leader,
    regroup=_regroup,
    outlook=_outlook,
    made_for="cm",
    shown_as=Presentation(
        "CascadeKL-UCB",
        Look("#a6761d", "#e0b45f", (0, (2, 1)), "*"),
        PEER,
        order=20,
        about="made for the cascade model; not safe",
    ),
)
