"""Sweeps: several positions, rules, lifetimes and hyper-parameters in one experiment, every combination of them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from saferank.errors import ArgumentError, argument, several, whole_number
from saferank.instances import Instance, positions_problem
from saferank.policies import PolicyKind, policy_kind
from saferank.policies.registry import with_settings
from saferank.policies.shared.settings import parse_settings
from saferank.simulation.experiment import DEFAULT_RULE, Cell, Plan, cells_of
from saferank.statistics.decision import decision_rule


class Point(NamedTuple):
    """One combination."""

    positions: int
    rule: str | None  # None: none was given, every policy decides by its own kind of rule
    lifetime: int | None


def sweep_of(positions: Any, rule: Any, lifetime: Any) -> list[Point]:
    """Every combination of the values, in the order in which they were given.

    >>> sweep_of([3, 5], "paper:0.1", None)
    [Point(positions=3, rule='paper:0.1', lifetime=None), Point(positions=5, rule='paper:0.1', lifetime=None)]
    """
    several = [
        _several(values, name) for values, name in ((positions, "positions"), (rule, "rule"), (lifetime, "lifetime"))
    ]
    return [Point(*values) for values in itertools.product(*several)]


def swept_policies(policies: Sequence[str | PolicyKind], settings: Mapping[str, Any]) -> tuple[str | PolicyKind, ...]:
    """The policies, in place of each one that ``settings`` names its combinations of hyper-parameters.

    >>> [kind.name for kind in swept_policies(["bubble-rank"], {"bubble-rank.hidden_duels": [True, False]})]
    ['bubble-rank:hidden_duels=true', 'bubble-rank:hidden_duels=false']
    """
    if not settings:
        return tuple(policies)
    kinds = {policy_kind(policy).name: policy_kind(policy) for policy in policies}
    chosen: dict[str, dict[str, Sequence[Any]]] = {name: {} for name in kinds}
    for key, values in settings.items():
        name, _, field = key.rpartition(".")
        if name not in kinds:
            raise ArgumentError(
                "settings", f"{key!r} begins with no policy that is played; those are {', '.join(kinds)}"
            )
        chosen[name][field] = _several(values, f"settings of {key}")
    return tuple(each for name, kind in kinds.items() for each in _combinations(kind, chosen[name]))


def _combinations(kind: PolicyKind, fields: Mapping[str, Sequence[Any]]) -> list[PolicyKind]:
    if not fields:
        return [kind]
    with argument("settings"):
        combined = [
            parse_settings(
                kind.name, kind.policy, [f"{field}={value}" for field, value in zip(fields, values, strict=True)]
            )
            for values in itertools.product(*fields.values())
        ]
    return [with_settings(kind, values) for values in combined]


def _several(values: Any, name: str) -> Sequence[Any]:
    listed = several(values, name)
    if not listed:
        raise ArgumentError(name, "found none, expected one or more")
    twice = [value for value in listed if listed.count(value) > 1]
    if twice:
        raise ArgumentError(name, f"{twice[0]} is there twice; keep one")
    return listed


def swept_cells(instances: Sequence[Instance], plan: Plan, sweep: Sequence[Point]) -> tuple[list[Cell], list[str]]:
    """The cells of all combinations; a policy without a rule or lifetime is played once for all of them.

    A policy is played with those of several rules that it takes; a sentence for each of the others. One that takes none
    of them is an ``ArgumentError``.
    """
    plans = [_plan_at(plan, at) for at in sweep]
    kinds = [(policy, policy_kind(policy)) for policy in plan.policies]
    for _, kind in kinds:
        if not any(_takes(kind, each) for each in plans):
            with argument("rule"):
                kind.check_rule(decision_rule(plans[0].rule, plan.rounds))
    cells: list[Cell] = []
    left_out: list[str] = []
    for each in plans:
        if played := tuple(policy for policy, kind in kinds if _takes(kind, each)):
            cells += _checked_cells(instances, replace(each, policies=played))
        others = [kind.name for _, kind in kinds if not _takes(kind, each)]
        left_out += [f"{name} is not played with {each.rule}, which it does not take" for name in others]
    return list({_key(cell): cell for cell in reversed(cells)}.values())[::-1], list(dict.fromkeys(left_out))


def _plan_at(plan: Plan, at: Point) -> Plan:
    return replace(
        plan,
        n_positions=whole_number(at.positions, "positions"),
        rule=DEFAULT_RULE if at.rule is None else at.rule,
        rule_is_given=at.rule is not None,
        lifetime=at.lifetime,
    )


def _takes(kind: PolicyKind, plan: Plan) -> bool:
    """True when the policy can decide by the rule that was given; without one every policy has its own."""
    return not plan.rule_is_given or decision_rule(plan.rule, plan.rounds).kind in kind.rules


def _checked_cells(chosen: Sequence[Instance], plan: Plan) -> list[Cell]:
    """Every policy on every instance; an ``ArgumentError`` about the first instance that has no room for the page."""
    if not chosen:
        raise ArgumentError("instances", "found none, expected at least one")
    for instance in chosen:
        problem = positions_problem(instance, plan.n_positions)
        if problem is not None:
            raise ArgumentError("instances", problem)
    return cells_of(chosen, plan)


def _key(cell: Cell) -> tuple[Any, ...]:
    instance, setup = cell.instance, cell.setup
    return instance.id, instance.model_name, cell.kind.name, cell.rule_name, setup.n_positions, setup.lifetime
