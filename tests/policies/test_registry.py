"""The registry: what a policy is registered with, and what it needs to be served."""

from typing import Any

import pytest

from saferank.policies import POLICIES, PolicyKind, Servable, policies_of, policy_kind, register
from saferank.policies.original import Original


def test_a_part_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="a policy has no part 'leeder'; known ones: start, leader, plan"):
        register("mine", Original, start=lambda setup: setup, leeder=lambda state: state)
    assert "mine" not in POLICIES


def test_registering_again_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.policies.registry.POLICIES", dict(POLICIES))
    parts: dict[str, Any] = {"start": POLICIES["original"].start, "leader": POLICIES["original"].leader}
    first, second = register("mine", Original, **parts), register("mine", Original, **parts)
    assert policy_kind("mine") is second is not first
    assert policy_kind(first) is first


def test_every_built_in_policy_has_a_title_a_look_of_its_own_and_a_sentence() -> None:
    ours = [kind for kind in POLICIES.values() if kind.policy.__module__.startswith("saferank.")]
    shown = [kind.shown_as for kind in ours]
    assert all(how is not None and how.look is not None and how.about for how in shown)
    for part in ("colour", "in_the_dark", "line", "marker"):
        assert len({getattr(how.look, part) for how in shown if how}) == len(ours), part
    assert len({how.order for how in shown if how}) == len(ours)
    assert {how.origin for how in shown if how} <= {"paper", "ours", "peer"}


def test_the_five_of_the_paper_come_in_its_order() -> None:
    assert policies_of("paper") == ("kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")


@pytest.mark.parametrize("kind", POLICIES.values(), ids=list(POLICIES))
def test_what_is_missing_to_be_served_is_named(kind: PolicyKind) -> None:
    assert isinstance(kind, Servable)
    parts = [part for part in ("plan", "with_items", "follows_base") if not getattr(kind, part)]
    assert kind.missing_to_be_served() == [*parts, *([] if kind.certifies else ["certificates"])]


def test_the_safe_policies_can_be_served_and_no_other() -> None:
    served = {name for name, kind in POLICIES.items() if not kind.missing_to_be_served()}
    assert served == {"kl-ucb-br", "bubble-rank", "safe-draw"}
