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
from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.best_items import enlarged, items_of, ranked, show_items
from saferank.randomness import Words
from saferank.statistics.kl import budget_at, entropy, first_budgets, optimistic_near
from saferank.verbs import Call, Flags, Floats, Impression, Ints, Items, choose, follow, learn


class CascadeKlUcb(NamedTuple):
    """Hyper-parameters: the budgets of the first rounds as a table, and the positions in order."""

    budgets: Floats
    places: Ints


class CascadeKlUcbEvidence(NamedTuple):
    """Examinations and clicks by item."""

    examined: Ints  # by item
    clicked: Ints  # by item: clicks that were a page's first


class CascadeKlUcbPlan(NamedTuple):
    """The order of the indices on the newest page: room to compute in, from which the next page is sorted faster.

    Indices are kept as x = -log(1 - f): the order is the same, and no digits are lost where f is close to 1. As x is
    concave in the budget, ``x`` and ``slope`` at an earlier budget bound it now, which settles most comparisons.
    """

    base: Items  # production's ranking, of which only the length counts
    present: Flags  # by item
    x: Floats  # by item: the index at the budget ``at``; infinite where f = 1
    slope: Floats  # by item: its derivative there
    at: Floats  # by item: the budget, -1 after a change of the record
    row: Items  # [position] the newest page, best first
    shown: Flags  # by item, scratch: stands in the row


@kernel
def _compute(evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, item: int, allowed: float) -> None:
    """Compute the index of an item at the present budget."""
    if plan.at[item] == allowed:
        return
    wins, losses = float(evidence.clicked[item]), float(evidence.examined[item] - evidence.clicked[item])
    if losses == 0 or allowed == np.inf:
        plan.x[item], plan.slope[item] = np.inf, 0.0
        plan.at[item] = -1.0 if allowed == np.inf else allowed  # without a budget nothing is known for later
    else:
        plan.at[item] = allowed
        plan.x[item] = optimistic_near(plan.x[item], wins, losses, entropy(wins, losses), allowed)
        rest = math.exp(-plan.x[item])
        plan.slope[item] = 1.0 / (losses - wins * rest / (1.0 - rest))


@kernel
def _at_most(plan: CascadeKlUcbPlan, item: int, allowed: float) -> float:
    """An upper bound of the index at the present budget, from an earlier one."""
    return float((plan.x[item] + plan.slope[item] * (allowed - plan.at[item])) * (1.0 + 1e-12))


@kernel
def _ahead(evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, item: int, other: int, allowed: float) -> bool:
    """True when the index of ``item`` is larger; equal ones are in item order."""
    same = evidence.clicked[item] == evidence.clicked[other] and evidence.examined[item] == evidence.examined[other]
    if same or (plan.x[item] == np.inf and plan.x[other] == np.inf):
        return item < other
    if _at_most(plan, item, allowed) < plan.x[other]:
        return False
    if _at_most(plan, other, allowed) < plan.x[item]:
        return True
    _compute(evidence, plan, item, allowed)
    _compute(evidence, plan, other, allowed)
    return bool(plan.x[item] > plan.x[other] or (plan.x[item] == plan.x[other] and item < other))


@kernel
def _climb(evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, seat: int, allowed: float) -> None:
    """Move the item at ``seat`` up in the row to its place."""
    item = plan.row[seat]
    while seat > 0 and _ahead(evidence, plan, item, plan.row[seat - 1], allowed):
        plan.row[seat] = plan.row[seat - 1]
        seat -= 1
    plan.row[seat] = item


@kernel
def _sort_best(evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, allowed: float) -> None:
    """Bring the best items into the row: those of the last page in order, then those ahead of its last one."""
    for item in range(len(plan.present)):
        plan.shown[item] = False
        if plan.at[item] < 0:
            _compute(evidence, plan, item, allowed)
    for seat in range(len(plan.row)):
        plan.shown[plan.row[seat]] = True
        _climb(evidence, plan, seat, allowed)
    last = len(plan.row) - 1
    for item in range(len(plan.present)):
        if plan.present[item] and not plan.shown[item] and _ahead(evidence, plan, item, plan.row[last], allowed):
            plan.row[last] = item
            _climb(evidence, plan, last, allowed)


@implements(choose, CascadeKlUcb)
def _choose(
    policy: CascadeKlUcb, evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, rng: Words, impression: Impression
) -> None:
    _sort_best(evidence, plan, budget_at(policy.budgets, impression.round[0]))
    show_items(impression, plan.row, policy.places)


@implements(learn, CascadeKlUcb)
def _learn(policy: CascadeKlUcb, evidence: CascadeKlUcbEvidence, impression: Impression, clicks: Ints) -> None:
    for position in range(len(clicks)):
        item = impression.ranking[position]
        evidence.examined[item] += 1
        if clicks[position] == 1:
            evidence.clicked[item] += 1
            return


@implements(follow, CascadeKlUcb)
def _follow(
    policy: CascadeKlUcb,
    evidence: CascadeKlUcbEvidence,
    plan: CascadeKlUcbPlan,
    impression: Impression,
    clicks: Ints,
    issued: int,
) -> None:
    for position in range(len(clicks)):
        plan.at[impression.ranking[position]] = -1.0
        if clicks[position] == 1:
            return


def _start(setup: Setup) -> tuple[CascadeKlUcb, CascadeKlUcbEvidence]:
    examined, clicked = np.zeros((2, setup.n_items), np.int64)
    policy = CascadeKlUcb(first_budgets(), np.arange(setup.n_positions))
    return policy, CascadeKlUcbEvidence(examined, clicked)


def _plan(policy: CascadeKlUcb, evidence: CascadeKlUcbEvidence, call: Call) -> CascadeKlUcbPlan:
    n_items = len(evidence.examined)
    present = items_of(call, n_items)
    return CascadeKlUcbPlan(
        base=call.base,
        present=present,
        x=np.full(n_items, np.inf),
        slope=np.zeros(n_items),
        at=np.full(n_items, -1.0),
        row=np.flatnonzero(present)[: len(call.base)].astype(np.uint32),
        shown=np.zeros(n_items, np.bool_),
    )


def _with_items(evidence: CascadeKlUcbEvidence, n_items: int) -> CascadeKlUcbEvidence:
    return CascadeKlUcbEvidence(enlarged(evidence.examined, n_items), enlarged(evidence.clicked, n_items))


def _leader(evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan) -> Ints:
    """The largest click rates; items that were never examined come last."""
    rates = np.where(evidence.examined > 0, evidence.clicked / np.maximum(evidence.examined, 1), -1.0)
    return ranked(rates, plan.present, np.arange(len(plan.row)))


def _outlook(policy: CascadeKlUcb, evidence: CascadeKlUcbEvidence, plan: CascadeKlUcbPlan, issued: int) -> Outlook:
    unseen = int(np.sum(plan.present & (evidence.examined == 0)))
    return Outlook(f"shows the items with the largest optimistic click rate; {unseen} were never examined")


register(
    "cascade-kl-ucb",
    CascadeKlUcb,
    start=_start,
    leader=_leader,
    plan=_plan,
    with_items=_with_items,
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
