"""The ends of single runs beyond their mean: quantiles over all runs of a policy, and its worst run.

Quantiles are values of runs (the smallest value that at least so many of the runs do not exceed): below 1,000 runs the
99.9 % quantile is the worst run itself. For the clicks relative to the original, where less is worse, they are counted
from the other end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

LEVELS = (0.5, 0.9, 0.99, 0.999)
LESS_IS_WORSE = ("clicks_relative", "worst_page")


@dataclass(frozen=True)
class Tail:
    """All runs of one policy under one click model at the last checkpoint."""

    model: str
    policy: str
    runs: int
    mean: float
    quantiles: tuple[float, ...]  # parallel to LEVELS
    worst: float
    worst_instance: str
    worst_repetition: int  # from 0


def tails_of(curves: Sequence[Result], runs: Sequence[Runs], measure: str) -> list[Tail]:
    """One row per click model and policy, in the order of the curves."""
    groups: dict[tuple[str, str], list[tuple[str, Floats]]] = {}
    for curve, each in zip(curves, runs, strict=True):
        groups.setdefault((curve.model, curve.policy), []).append(
            (curve.instance, each.finals[:, MEASURES.index(measure)])
        )
    sign = -1.0 if measure in LESS_IS_WORSE else 1.0
    return [_tail(model, policy, parts, sign) for (model, policy), parts in groups.items()]


def _tail(model: str, policy: str, parts: Sequence[tuple[str, Floats]], sign: float) -> Tail:
    values = sign * np.concatenate([finals for _, finals in parts])
    owners = [(instance, repetition) for instance, finals in parts for repetition in range(len(finals))]
    worst = int(np.argmax(values))
    quantiles = np.quantile(values, LEVELS, method="inverted_cdf")
    return Tail(
        model=model,
        policy=policy,
        runs=len(values),
        mean=float(sign * values.mean()),
        quantiles=tuple((sign * quantiles).tolist()),
        worst=float(sign * values[worst]),
        worst_instance=owners[worst][0],
        worst_repetition=owners[worst][1],
    )
