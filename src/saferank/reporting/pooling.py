"""Averages over instances, and the ends of averaged curves as a table.

With means m_i and standard errors e_i of n instances, whose runs are independent of each other,

    mean = sum m_i / n,    standard error = sqrt(sum e_i^2) / n:

the error of the average over *these* instances, not over queries in general.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saferank.reporting.looks import model_name
from saferank.reporting.numbers import Measured, freedom_of, plainly
from saferank.simulation.results import Result
from saferank.table import BEST, MarkedCell, TextTable
from saferank.verbs import Floats, Ints


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Pooled:
    """One policy under one click model, averaged over its instances; columns are parallel to ``rounds``."""

    model: str
    policy: str
    instances: int
    rounds: Ints
    regret: Floats
    regret_stderr: Floats | None  # None where single repetitions have no standard error
    violations: Floats
    violations_stderr: Floats | None
    wrong_certificates: Floats | None  # None for policies without certificates
    regret_freedom: float = math.inf  # degrees of freedom of the last standard error
    violations_freedom: float = math.inf


def pooled(results: Sequence[Result]) -> list[Pooled]:
    """One curve per click model and policy, models together, both in the order of their first result."""
    models = dict.fromkeys(result.model for result in results)
    policies = dict.fromkeys(result.policy for result in results)
    groups = ([r for r in results if (r.model, r.policy) == (m, p)] for m in models for p in policies)
    return [_pool(group) for group in groups if group]


def _pool(group: list[Result]) -> Pooled:
    first = group[0]
    if any((other.rule, other.rounds) != (first.rule, first.rounds) for other in group):
        raise ValueError(f"results of {first.policy} under {first.model} differ in rule or checkpoints: not of one run")
    return Pooled(
        model=first.model,
        policy=first.policy,
        instances=len(group),
        rounds=np.array(first.rounds),
        regret=mean_of([result.regret_mean for result in group]),
        regret_stderr=stderr_of([result.regret_stderr for result in group]),
        violations=mean_of([result.violations_mean for result in group]),
        violations_stderr=stderr_of([result.violations_stderr for result in group]),
        wrong_certificates=_mean_if_any([result.wrong_certificates_mean for result in group]),
        regret_freedom=freedom_of([(result.regret_stderr[-1] or 0.0, result.repetitions - 1) for result in group]),
        violations_freedom=freedom_of(
            [(result.violations_stderr[-1] or 0.0, result.repetitions - 1) for result in group]
        ),
    )


def mean_of(columns: Sequence[Sequence[float]]) -> Floats:
    """The mean over instances, by checkpoint."""
    return np.mean(np.array(columns), axis=0)  # type: ignore[no-any-return]


def stderr_of(columns: Sequence[Sequence[float | None]]) -> Floats | None:
    """The standard error of the mean over instances, by checkpoint.

    >>> stderr_of([[3.0], [4.0]])
    array([2.5])
    """
    if any(error is None for column in columns for error in column):
        return None
    return np.sqrt(np.sum(np.square(np.array(columns, float)), axis=0)) / len(columns)  # type: ignore[no-any-return]


def _mean_if_any(columns: list[list[float] | None]) -> Floats | None:
    known = [column for column in columns if column is not None]
    return mean_of(known) if known else None


def final_regret(curve: Pooled) -> Measured:
    """Regret at the last checkpoint."""
    stderr = None if curve.regret_stderr is None else float(curve.regret_stderr[-1])
    return Measured(float(curve.regret[-1]), stderr, curve.regret_freedom)


def final_violations(curve: Pooled) -> Measured:
    """Violations a run up to the last checkpoint."""
    stderr = None if curve.violations_stderr is None else float(curve.violations_stderr[-1])
    return Measured(float(curve.violations[-1]), stderr, curve.violations_freedom)


class Ending(NamedTuple):
    """The last checkpoint of a curve."""

    regret: Measured
    violations: Measured  # a run
    wrong_certificates: str  # a run; a dash for policies without certificates


def ending(curve: Pooled) -> Ending:
    """Where a curve ended."""
    wrong = "-" if curve.wrong_certificates is None else plainly(float(curve.wrong_certificates[-1]))
    return Ending(final_regret(curve), final_violations(curve), wrong)


def least(curves: Iterable[Pooled]) -> Pooled | None:
    """The curve that ends lowest."""
    return min(curves, key=lambda curve: float(curve.regret[-1]), default=None)


def endings_table(
    curves: Sequence[Pooled], policies: Iterable[str], models: Sequence[str], name: Callable[[str], str], title: str,
    key: str = "endings", caption: str = "",
) -> TextTable:  # fmt: skip
    """Every policy by this name, with its regret and violations under every click model; the least regret is marked."""
    ends = {(curve.policy, curve.model): curve for curve in curves}
    best = {model: least([curve for curve in curves if curve.model == model]) for model in models}

    def cells(policy: str, model: str) -> list[str | MarkedCell]:
        curve = ends.get((policy, model))
        if curve is None:
            return ["-", "-"]
        return [
            MarkedCell(str(final_regret(curve)), BEST if curve is best[model] else ""),
            str(final_violations(curve)),
        ]

    rows = [[name(policy), *(cell for model in models for cell in cells(policy, model))] for policy in policies]
    columns = ["policy", *["regret", "violations"] * len(models)]
    return TextTable(title, columns, rows, caption, [("", 1), *((model_name(model), 2) for model in models)], key=key)
