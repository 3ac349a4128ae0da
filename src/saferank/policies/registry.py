"""The names of policies, and what the simulator and the live ranker need to know of each besides its verbs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from saferank.statistics.decision import DecisionRule, decision_rule
from saferank.verbs import Ints


@dataclass(frozen=True)
class Setup:
    """What a policy starts from. Items are 0..n_items-1, of which the first n_positions are the original ranking."""

    n_items: int
    n_positions: int
    rule: DecisionRule = field(default_factory=lambda: decision_rule("paper:1e-5"))
    horizon: int | None = None  # None for a live ranker, which has none


@dataclass(frozen=True)
class PolicyKind:
    """An algorithm by name."""

    name: str
    policy: type  # the NamedTuple for which choose and learn are implemented
    start: Callable[[Setup], tuple[Any, Any]]  # its hyper-parameters and its first state
    leader: Callable[[Any], Ints]  # its current best guess, n_positions items, from a state
    certifies: bool = False  # its state has duels with certificates
    rule: Callable[[Setup], DecisionRule] | None = None  # the rule behind its field lead_needed, if it has one
    largest_catalogue: int | None = None  # more items than this are refused; None: no limit


def given_rule(setup: Setup) -> DecisionRule:
    """The rule of the setup: what the bubble policies decide by."""
    return setup.rule


POLICIES: dict[str, PolicyKind] = {}


def register(
    name: str,
    policy: type,
    *,
    start: Callable[[Setup], tuple[Any, Any]],
    leader: Callable[[Any], Ints],
    certifies: bool = False,
    rule: Callable[[Setup], DecisionRule] | None = None,
    largest_catalogue: int | None = None,
) -> PolicyKind:
    """Make an algorithm known under ``name``; registering the same name again replaces it."""
    kind = PolicyKind(name, policy, start, leader, certifies, rule, largest_catalogue)
    POLICIES[name] = kind
    return kind


def policy_kind(name: str) -> PolicyKind:
    """The policy called ``name``."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; known are {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
