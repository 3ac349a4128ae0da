"""The names of policies, and what the simulator and the live ranker need to know of each besides its verbs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from saferank.safety import Budget, Price
from saferank.statistics.decision import DecisionRule, decision_rule
from saferank.verbs import NOBODY, Flags, Ints, Items


@dataclass(frozen=True)
class Setup:
    """What a policy starts from. Items are 0..n_items-1, of which the first n_positions are the original ranking."""

    n_items: int
    n_positions: int
    rule: DecisionRule = field(default_factory=lambda: decision_rule("paper:1e-5"))
    horizon: int | None = None  # None for a live ranker, which has none


@dataclass(frozen=True)
class Outlook:
    """What a policy would explore next, in words and, where it has one, with the optimistic index."""

    note: str
    challenger: int = NOBODY
    index: float | None = None
    against: int = NOBODY  # whom it challenges; NOBODY: the bottom item of the leader


class TooManyItemsError(ValueError):
    """A catalogue that is too large for a policy."""


@dataclass(frozen=True)
class PolicyKind:
    """An algorithm by name."""

    name: str
    policy: type  # the NamedTuple for which choose and learn are implemented
    start: Callable[[Setup], tuple[Any, Any]]  # its hyper-parameters and its first state
    leader: Callable[[Any], Ints]  # its current best guess, n_positions items, from a state
    certifies: bool = False  # its state has duels with certificates
    rule: Callable[[Setup], DecisionRule] | None = None  # the rule behind its field lead_needed, if it has one
    compares_all: bool = False  # a page may compare items that are not shown, any number of them
    largest_catalogue: int | None = None  # more items than this are refused; None: no limit
    regroup: Callable[[Any, Any, Flags], Any] | None = None  # the state for these items, of which the flagged are here
    outlook: Callable[[Any, Any], Outlook] | None = None  # for explanations
    settled: Callable[[Any, int, int], bool] | None = None  # is the order of two items settled? None: ask the rule
    budget: Callable[[Any], Budget] | None = None  # what its next page may spend; None: it keeps no budget
    price: Callable[[Any], Price] | None = None  # of its newest page; None: leader and challenger, shuffled in blocks
    compares_blocks: bool = False  # a page may compare every shown item and the hidden one with every other
    rebuild: Callable[[Any, Any, Items], Any] | None = None  # the state with its leader derived anew from this ranking
    caches: tuple[str, ...] = ()  # fields of the state that issuing pages changes beyond what ``count_issued`` does

    def check_size(self, n_items: int) -> None:
        """TooManyItemsError when the policy cannot take so many."""
        if self.largest_catalogue is not None and n_items > self.largest_catalogue:
            raise TooManyItemsError(
                f"{n_items} items: {self.name} compares all pairs and takes at most {self.largest_catalogue}"
            )

    def places(self, setup: Setup) -> int:
        """How many places a page may compare: all items, or the shown ones and the hidden one."""
        return setup.n_items if self.compares_all else setup.n_positions + 1

    def new_pairs(self, setup: Setup) -> int:
        """How many pairs that never met a page may compare: room for them is made in the table of duels."""
        places = setup.n_positions + 1
        return places * (places - 1) // 2 if self.compares_blocks else places


def given_rule(setup: Setup) -> DecisionRule:
    """The rule of the setup: what the bubble policies decide by."""
    return setup.rule


POLICIES: dict[str, PolicyKind] = {}
VARIANTS: dict[str, PolicyKind] = {}
"""Policies with another reading of an open point, called ``policy:reading``: for sensitivity runs, not on offer."""


def register(
    name: str,
    policy: type,
    *,
    start: Callable[[Setup], tuple[Any, Any]],
    leader: Callable[[Any], Ints],
    certifies: bool = False,
    rule: Callable[[Setup], DecisionRule] | None = None,
    compares_all: bool = False,
    largest_catalogue: int | None = None,
    regroup: Callable[[Any, Any, Flags], Any] | None = None,
    outlook: Callable[[Any, Any], Outlook] | None = None,
    settled: Callable[[Any, int, int], bool] | None = None,
    budget: Callable[[Any], Budget] | None = None,
    price: Callable[[Any], Price] | None = None,
    compares_blocks: bool = False,
    rebuild: Callable[[Any, Any, Items], Any] | None = None,
    caches: tuple[str, ...] = (),
) -> PolicyKind:
    """Make an algorithm known under ``name``; registering the same name again replaces it.

    The optional parts give a live ranker more: ``regroup`` lets items come and go, ``outlook``, ``settled``,
    ``budget`` and ``price`` let it explain itself, ``rebuild`` lets production's ranking change, ``caches`` lets a log
    be replayed.
    """
    kind = PolicyKind(
        name=name,
        policy=policy,
        start=start,
        leader=leader,
        certifies=certifies,
        rule=rule,
        compares_all=compares_all,
        largest_catalogue=largest_catalogue,
        regroup=regroup,
        outlook=outlook,
        settled=settled,
        budget=budget,
        price=price,
        compares_blocks=compares_blocks,
        rebuild=rebuild,
        caches=caches,
    )
    POLICIES[name] = kind
    return kind


def register_variant(kind: PolicyKind, reading: str, start: Callable[[Setup], tuple[Any, Any]]) -> PolicyKind:
    """Make a policy that differs from ``kind`` in its hyper-parameters known as ``policy:reading``."""
    variant = replace(kind, name=f"{kind.name}:{reading}", start=start)
    VARIANTS[variant.name] = variant
    return variant


def policy_kind(name: str) -> PolicyKind:
    """The policy, or variant of a policy, called ``name``."""
    if name not in POLICIES and name not in VARIANTS:
        raise ValueError(f"unknown policy {name!r}; known are {', '.join(sorted(POLICIES))}")
    return POLICIES[name] if name in POLICIES else VARIANTS[name]
