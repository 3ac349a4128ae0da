"""When the model is wrong: policies made for one click model, played against users who follow another.

Every policy meets every click model among the instances. A line of the study is one policy under one model: regret and
violations at the horizon, averaged over the queries, with two standard errors. *Within* queries is the noise of the
simulation: it falls with repetitions. *Across* queries is the spread of the queries: it falls only with more of them.

>>> from saferank.instances import embedded_instances
>>> lines = when_the_model_is_wrong(embedded_instances(2, models=("cm",)), rounds=50, policies=("cascade-kl-ucb",))
>>> [(line.policy, line.model, line.role, line.queries) for line in lines]
[('cascade-kl-ucb', 'cm', 'matching', 2)]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saferank.instances import Instance
from saferank.policies import POLICIES
from saferank.simulation.engine import SimulationEngine, simulate
from saferank.simulation.experiment import OnRounds, Plan, cells_of, ignore_rounds
from saferank.simulation.results import Result
from saferank.verbs import Floats

STUDIED = (
    "cascade-kl-ucb", "pbm-ucb", "pbm-ts", "batch-rank", "top-rank", "uni-rank", "kl-ucb-br", "safe-draw",
    "original",
)  # fmt: skip
"""The policies of the published study. What each of them is, its registration says."""


@dataclass(frozen=True)
class Estimate:
    """A mean over queries and its standard errors within and across them; None where one run or query has none."""

    mean: float
    within: float | None
    across: float | None


@dataclass(frozen=True)
class StudyLine:
    """One policy under one click model at the horizon."""

    policy: str
    model: str
    role: str  # matching, foreign, agnostic, safe or original
    queries: int
    repetitions: int
    regret: Estimate
    violations: Estimate


def when_the_model_is_wrong(
    instances: Sequence[Instance],
    *,
    policies: Sequence[str] = STUDIED,
    rounds: int = 100_000,
    repetitions: int = 2,
    n_positions: int = 5,
    rule: str = "paper:1/T",
    seed: int = 0,
    jobs: int = 1,
    on_rounds: OnRounds = ignore_rounds,
    engine: SimulationEngine | None = None,
) -> list[StudyLine]:
    """Play every policy against every instance; lines by click model, in the order of the policies."""
    plan = Plan(tuple(policies), n_positions, rounds, repetitions, rule, seed, checkpoints=(rounds,))
    return lines_of(simulate(cells_of(instances, plan), jobs, on_rounds, engine=engine))


def lines_of(results: Sequence[Result]) -> list[StudyLine]:
    """The lines of results that end at one horizon."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.model, result.policy), []).append(result)
    return [_line(policy, model, group) for (model, policy), group in groups.items()]


def role_of(policy: str, model: str) -> str:
    """What a policy is under a click model: matching, foreign, agnostic, safe or original."""
    if policy == "original":
        return "original"
    if (home := made_for(policy)) is not None:
        return "matching" if home == model else "foreign"
    return "safe" if _registered(policy, "safe") else "agnostic"


def made_for(policy: str) -> str | None:
    """The click model that a policy assumes; None if it assumes none, or is a plug-in that is not loaded."""
    home: str | None = _registered(policy, "made_for")
    return home


def _registered(policy: str, part: str) -> Any:
    """A part of a policy's registration; a variant ``policy:reading`` has those of the policy."""
    return getattr(POLICIES.get(policy.partition(":")[0]), part, None)


def _line(policy: str, model: str, group: Sequence[Result]) -> StudyLine:
    return StudyLine(
        policy=policy,
        model=model,
        role=role_of(policy, model),
        queries=len(group),
        repetitions=group[0].repetitions,
        regret=_estimate([(each.regret_mean[-1], each.regret_stderr[-1]) for each in group]),
        violations=_estimate([(each.violations_mean[-1], each.violations_stderr[-1]) for each in group]),
    )


def _estimate(by_query: Sequence[tuple[float, float | None]]) -> Estimate:
    """The mean over queries of (mean, standard error over repetitions)."""
    means: Floats = np.array([mean for mean, _ in by_query])
    errors = [error for _, error in by_query if error is not None]
    whole = len(errors) == len(means)
    within = float(np.sqrt(np.square(errors).sum())) / len(means) if whole else None
    across = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None
    return Estimate(float(means.mean()), within, across)
