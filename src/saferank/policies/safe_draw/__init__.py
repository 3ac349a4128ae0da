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

from saferank._kernel import implements
from saferank.policies.registry import OURS, Look, Presentation, Setup, given_rule, register, register_variant
from saferank.policies.safe_draw import large, small
from saferank.policies.safe_draw.constants import MOST_POSITIONS, RACERS, TRUST
from saferank.policies.safe_draw.large import LargePlan
from saferank.policies.safe_draw.learning import SafeDrawEvidence, learn_page, new_evidence, turn_epoch, with_items
from saferank.policies.safe_draw.plans import (
    draw_from_plan,
    follow_evidence,
    note_exchanges,
    plan_again,
    plan_is_old,
)
from saferank.policies.safe_draw.small import SmallPlan
from saferank.randomness import Words
from saferank.safety.worst_case import MOST_SEATS
from saferank.statistics.bets import BetTable, bet_table, bets_have_room, budget, most_bets, same_level, with_room
from saferank.statistics.certificates import surely
from saferank.verbs import Call, Impression, Ints, advance, choose, follow, freeze, has_room, is_outdated, learn, renew

Plan = SmallPlan | LargePlan
"""Evidence is the same for both; the plan for up to 12 items is another one than the plan for more."""


class SafeDraw(NamedTuple):
    """Hyper-parameters: the table of the bets, which knows the errors of pairs, and the trust in production."""

    table: BetTable
    trust: float
    slots: bool = False  # the plan for many items serves few as well


@implements(choose, SafeDraw)
def _choose(policy: SafeDraw, evidence: SafeDrawEvidence, plan: Any, rng: Words, impression: Impression) -> None:
    draw_from_plan(plan, policy, evidence, rng, impression)


@implements(freeze, SafeDraw)
def _freeze(policy: SafeDraw, evidence: SafeDrawEvidence, plan: Any, impression: Impression, places: Ints) -> None:
    note_exchanges(plan, evidence, impression, places)


implements(learn, SafeDraw)(learn_page)


@implements(follow, SafeDraw)
def _follow(
    policy: SafeDraw, evidence: SafeDrawEvidence, plan: Any, impression: Impression, clicks: Ints, issued: int
) -> None:
    follow_evidence(plan, policy, evidence)


@implements(renew, SafeDraw)
def _renew(policy: SafeDraw, evidence: SafeDrawEvidence, plan: Any, issued: int) -> None:
    plan_again(plan, policy, evidence)


@implements(is_outdated, SafeDraw)
def _is_outdated(policy: SafeDraw, evidence: SafeDrawEvidence, plan: Any) -> bool:
    return plan_is_old(plan, evidence)


@implements(advance, SafeDraw)
def _advance(policy: SafeDraw, evidence: SafeDrawEvidence, issued: int) -> bool:
    over = issued >= evidence.duels.epoch[0] + evidence.duels.epoch[1]
    return bool(over) and turn_epoch(evidence, issued)


@implements(has_room, SafeDraw)
def _has_room(policy: SafeDraw, evidence: SafeDrawEvidence, places: int) -> bool:
    return bets_have_room(evidence.duels, places)


def _start(setup: Setup) -> tuple[SafeDraw, SafeDrawEvidence]:
    """Nothing is known; the first items are production's ranking."""
    level = setup.rule.level
    levels = budget(level, setup.n_positions, setup.n_items) if setup.rule.kind == "budget" else same_level(level)
    policy = SafeDraw(bet_table(levels), TRUST if setup.trust is None else setup.trust)
    return policy, new_evidence(setup.n_items, setup.lifetime, most_bets(setup.n_positions + RACERS))


def _start_with_slots(setup: Setup) -> tuple[SafeDraw, SafeDrawEvidence]:
    policy, evidence = _start(setup)
    return policy._replace(slots=True), evidence


def _plan(policy: SafeDraw, evidence: SafeDrawEvidence, call: Call) -> Plan:
    few = len(call.base) + len(call.candidates) <= MOST_SEATS and not policy.slots
    return small.small_plan(evidence, call) if few else large.large_plan(evidence, call)


def _many_pages(plan: Plan) -> Plan:
    return small.for_many_pages(plan) if isinstance(plan, SmallPlan) else plan


def _grow(evidence: SafeDrawEvidence, places: int) -> SafeDrawEvidence:
    return evidence._replace(duels=with_room(evidence.duels, places))


def _module(plan: Plan) -> Any:
    return small if isinstance(plan, SmallPlan) else large


KIND = register(
    "safe-draw",
    SafeDraw,
    start=_start,
    leader=lambda evidence, plan: _module(plan).leader_of(plan),
    plan=_plan,
    plan_is_derived=True,
    for_many_pages=_many_pages,
    certifies=True,
    safe=True,
    follows_base=True,
    rule=given_rule,
    rules=("anytime", "budget"),
    keeps_budget=True,
    most_positions=MOST_POSITIONS,
    compared=lambda n_items, n_positions: max(min(n_items, MOST_SEATS), n_positions + RACERS),
    with_items=with_items,
    tries_in_order=True,
    outlook=lambda policy, evidence, plan, issued: _module(plan).outlook_of(plan),
    settled=lambda evidence, plan, i, j: bool(surely(evidence.duels.closure, i, j)),
    worst=lambda evidence, plan, shown: _module(plan).worst_of(plan, evidence, shown),
    grow=_grow,
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

register_variant(KIND, "slots", _start_with_slots)
