"""The contract of policies that are served: all of ours keep it, and each way to break it is named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.checks import ContractError, check_servable
from saferank.policies import POLICIES, PolicyKind, policy_kind

SERVED = sorted(kind.name for kind in POLICIES.values() if not kind.missing_to_be_served())


def test_what_is_served() -> None:
    assert SERVED == ["bubble-rank", "kl-ucb-br", "safe-draw"]


@pytest.mark.parametrize("policy", SERVED)
def test_every_policy_that_is_served_keeps_the_contract(policy: str) -> None:
    check_servable(policy)


def test_a_policy_without_the_parts_is_named() -> None:
    with pytest.raises(ContractError, match="top-rank cannot be served: it has no rebuild"):
        check_servable("top-rank")


def rebuild_to_nothing(policy: Any, state: Any, base: Any) -> Any:
    return state


def rebuild_with_new_evidence(policy: Any, state: Any, base: Any) -> Any:
    rebuilt = policy_kind("kl-ucb-br").rebuild(policy, state, base)  # type: ignore[misc]
    rebuilt.duels.pairs.wins[1] += 1
    return rebuilt


def forget_who_left(policy: Any, state: Any, present: Any) -> Any:
    return policy_kind("kl-ucb-br").regroup(policy, state, np.ones_like(present))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("part", "broken", "why"),
    [
        ("rebuild", rebuild_to_nothing, "makes another leader of the base ranking"),
        ("rebuild", rebuild_with_new_evidence, "changes the evidence"),
        ("regroup", forget_who_left, "compares an item that was removed by regroup"),
    ],
)
def test_each_way_to_break_it_is_named(
    part: str, broken: Callable[..., Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: Any = {part: broken}
    kind: PolicyKind = replace(policy_kind("kl-ucb-br"), name="broken", **changed)
    monkeypatch.setitem(POLICIES, "broken", kind)
    with pytest.raises(ContractError, match=why):
        check_servable(kind)
