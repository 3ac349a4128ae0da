"""Room to learn: kernels never allocate, so between pages Python gives evidence what the next page might need.

Three things grow: the table of pairs with the pairs that met, the table of the decision rule with the largest n, and,
in a plan that is kept, the table of leaders with the leaders that were. ``has_room`` and ``plan_has_room`` are asked
before every page, in compiled code.
"""

from typing import Any

from saferank._kernel import kernel
from saferank.policies.registry import PolicyKind, Setup
from saferank.statistics.duels import Duels, LifetimeDuels, crowded, with_room
from saferank.statistics.leaders import leaders_full, with_more_leaders
from saferank.statistics.pairs import most_fought

_AHEAD = 1024
"""A live ranker's table of the rule reaches at least so far beyond the largest n."""

_FAR_AHEAD = 1 << 16
"""A simulated one, which knows its horizon, saves itself most interruptions."""


@kernel
def duels_have_room(evidence: Any, new_pairs: int) -> bool:
    """True when the pairs of one more page fit, and their n stays inside the rule's table.

    A page adds at most one to the n of a pair, so the table is long enough until ``horizon`` pages are learnt.
    """
    return evidence.learned[0] < evidence.horizon[0] and not crowded(evidence.duels, new_pairs)


def make_room(kind: PolicyKind, setup: Setup, policy: Any, evidence: Any, places: int) -> tuple[Any, Any]:
    """Policy and evidence with room for a page with ``places`` places, their contents unchanged."""
    if kind.grow is not None:
        return policy, kind.grow(evidence, places)
    grows = hasattr(evidence, "duels") and isinstance(evidence.duels, Duels | LifetimeDuels)
    if grows and crowded(evidence.duels, places):
        evidence = evidence._replace(duels=with_room(evidence.duels, places))
    if kind.rule is not None and hasattr(policy, "lead_needed"):
        most = most_fought(evidence.duels)
        ahead = _AHEAD if setup.horizon is None else min(setup.horizon, _FAR_AHEAD)
        policy = policy._replace(lead_needed=kind.rule(setup).table(most + ahead))
        evidence.horizon[0] = evidence.learned[0] + len(policy.lead_needed) - 1 - most
    return policy, evidence


def make_room_in_plan(plan: Any) -> Any:
    """The plan with room for more leaders, its contents unchanged."""
    if hasattr(plan, "leaders") and leaders_full(plan.leaders):
        return plan._replace(leaders=with_more_leaders(plan.leaders))
    return plan
