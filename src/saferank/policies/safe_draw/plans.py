"""What both plans of safe-draw can do: each verb has a case beside the plan for small and for large catalogues."""

from typing import Any

from saferank._kernel import kernel, verb
from saferank.policies.safe_draw.constants import PAGES_OF_A_PLAN
from saferank.randomness import Words
from saferank.verbs import Impression, Ints


@verb
def take_call(plan: Any, evidence: Any) -> None:
    """Note the items of the call, and derive R from its ranking."""


@verb
def work_out(plan: Any, policy: Any, evidence: Any) -> None:
    """Derive R if the certificates have changed, then the weights."""


@verb
def draw_from_plan(plan: Any, policy: Any, evidence: Any, rng: Words, impression: Impression) -> None:
    """Draw a page."""


@verb
def note_exchanges(plan: Any, evidence: Any, impression: Impression, places: Ints) -> None:
    """Note on a page which exchanges of these places are possible now."""


@kernel
def plan_is_old(plan: Any, evidence: Any) -> bool:
    """True when certificates have changed since, or the learnt pages have passed a multiple of PAGES_OF_A_PLAN."""
    changed = evidence.changes[0] != plan.known[0] or evidence.changes[1] != plan.known[1]
    return bool(changed or evidence.learned[0] // PAGES_OF_A_PLAN != plan.known[2] // PAGES_OF_A_PLAN)


@kernel
def note_age(plan: Any, evidence: Any) -> None:
    """The plan is made of this evidence."""
    plan.known[0], plan.known[1], plan.known[2] = evidence.changes[0], evidence.changes[1], evidence.learned[0]


@kernel
def plan_again(plan: Any, policy: Any, evidence: Any) -> None:
    """Derive everything from the evidence and the call."""
    take_call(plan, evidence)
    note_age(plan, evidence)
    _work_out(plan, policy, evidence)


@kernel
def follow_evidence(plan: Any, policy: Any, evidence: Any) -> None:
    """Derive what has changed: R after a change of the certificates, the weights then and after some pages."""
    if plan_is_old(plan, evidence):
        _work_out(plan, policy, evidence)


@kernel
def _work_out(plan: Any, policy: Any, evidence: Any) -> None:
    work_out(plan, policy, evidence)
    note_age(plan, evidence)
