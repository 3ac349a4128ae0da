"""The contract of policies that are served: all of ours keep it, and each way to break it is named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from saferank._kernel import implemented, implements
from saferank.checks import ContractError, check_servable
from saferank.policies import POLICIES, PolicyKind, Setup, policy_kind
from saferank.statistics.duels import record
from saferank.verbs import Ints, advance, choose, follow, has_room, learn, plan_has_room, renew

SERVED = sorted(kind.name for kind in POLICIES.values() if not kind.missing_to_be_served())


def test_what_is_served() -> None:
    assert SERVED == ["bubble-rank", "kl-ucb-br", "safe-draw"]


@pytest.mark.parametrize("policy", SERVED)
def test_every_policy_that_is_served_keeps_the_contract(policy: str) -> None:
    check_servable(policy)


def test_a_policy_without_the_parts_is_named() -> None:
    with pytest.raises(ContractError, match="top-rank cannot be served: it has no follows_base"):
        check_servable("top-rank")


def broken(renewing: Callable[..., None]) -> PolicyKind:
    kind = policy_kind("kl-ucb-br")
    named: Any = NamedTuple
    policy: type = named("Broken", [("lead_needed", Ints)])
    for verb in (choose, learn, follow, advance, has_room, plan_has_room, record):
        case: Any = implemented(verb, kind.policy)
        implements(verb, policy)(case)
    implements(renew, policy)(renewing)

    def start(setup: Setup) -> tuple[Any, Any]:
        ours, evidence = kind.start(setup)
        return policy(*ours), evidence

    return replace(kind, name="broken", policy=policy, start=start)


RENEW: Any = implemented(renew, policy_kind("kl-ucb-br").policy)


def keep_the_order(policy: Any, evidence: Any, plan: Any, issued: int) -> None:
    RENEW(policy, evidence, plan, issued)
    plan.row[0], plan.row[1] = plan.row[1], plan.row[0]


def learn_meanwhile(policy: Any, evidence: Any, plan: Any, issued: int) -> None:
    RENEW(policy, evidence, plan, issued)
    if issued > 100:
        evidence.duels.pairs.wins[1] += 1


def keep_the_call_before(policy: Any, evidence: Any, plan: Any, issued: int) -> None:
    if plan.known[0] == 0:
        RENEW(policy, evidence, plan, issued)
    plan.known[0] = 1


@pytest.mark.parametrize(
    ("renewing", "why"),
    [
        (keep_the_order, "makes another leader of the base ranking"),
        (learn_meanwhile, "changes the evidence"),
        (keep_the_call_before, "does not derive everything again"),
    ],
)
def test_each_way_to_break_it_is_named(
    renewing: Callable[..., None], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = broken(renewing)
    monkeypatch.setitem(POLICIES, "broken", kind)
    with pytest.raises(ContractError, match=why):
        check_servable(kind)
