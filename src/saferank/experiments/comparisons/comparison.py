"""One policy beside another on the same queries: differences with standard errors, wins and losses, a paired test.

For every query the difference is the mean over its runs of (a - b) at the last checkpoint. Runs are paired by
repetition: in each, both policies meet the same users. Two standard errors are given for the mean over queries:
*within* queries (what other random streams would change) and *across* queries (what other queries would change, runs
included). The test is Wilcoxon's signed-rank test over queries. It is exact up to 50 queries without ties, and it does
not assume normal differences, which regret with its heavy tails does not have. With a single query the test is over its
runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from saferank.errors import ArgumentError
from saferank.experiments.comparisons.tails import LESS_IS_WORSE
from saferank.experiments.frames import polars_frame
from saferank.reporting.numbers import Measured, counted
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs
from saferank.verbs import Floats

if TYPE_CHECKING:
    import polars

CLEAR = 1.96
"""A query is won or lost when its difference exceeds so many of its own standard errors; else it is a tie."""


@dataclass(frozen=True)
class QueryDifference:
    """One query: the mean of both policies, their difference and its standard error over runs."""

    instance: str
    model: str
    mean_a: float
    mean_b: float
    difference: float
    stderr: float | None  # None: a single run has none
    less_is_better: bool = True

    @property
    def outcome(self) -> str:
        """``win`` when a is clearly better, ``loss`` when it is clearly worse, else ``tie``."""
        if abs(self.difference) <= CLEAR * (self.stderr or 0.0) or self.difference == 0:
            return "tie"
        return "win" if (self.difference < 0) == self.less_is_better else "loss"


@dataclass(frozen=True)
class ModelDifference:
    """All queries under one click model."""

    model: str
    queries: int
    difference: float
    stderr_within: float | None
    stderr_across: float | None
    wins: int
    ties: int
    losses: int
    p_value: float | None  # None: fewer than two queries, and of a single one fewer than two runs
    p_holm: float | None = None  # adjusted for the number of tests made together; None: not tested


@dataclass(frozen=True)
class Comparison:
    """What ``Results.compare`` gives; differences are a - b: of regret, negative ones are in favour of a."""

    a: str
    b: str
    measure: str
    by_query: list[QueryDifference]
    by_model: list[ModelDifference]

    def to_polars(self) -> "polars.DataFrame":
        """One row per query."""
        names = ("instance", "model", "mean_a", "mean_b", "difference", "stderr", "outcome")
        return polars_frame({name: [getattr(each, name) for each in self.by_query] for name in names})

    def __repr__(self) -> str:
        return "\n".join([f"{self.measure} of {self.a} minus {self.b}", *map(_in_words, self.by_model)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{_in_words(each)}</li>" for each in self.by_model)
        return f"<p>{self.measure} of {self.a} minus {self.b}</p><ul>{rows}</ul>"


def _in_words(found: ModelDifference) -> str:
    within = str(Measured(found.difference, found.stderr_within))
    across = "" if found.stderr_across is None else f" within queries, ± {found.stderr_across:,.3g} across"
    outcomes = outcomes_in_words(found)
    tested = "" if found.p_value is None else f", p = {found.p_value:.2g}"
    tested += "" if found.p_holm is None or found.p_holm == found.p_value else f" ({found.p_holm:.2g} after Holm)"
    return f"{found.model}: {within}{across}; {outcomes} on {counted(found.queries, 'query', 'queries')}{tested}"


def outcomes_in_words(found: ModelDifference) -> str:
    """How many queries the first policy won, tied and lost."""
    parts = ((found.wins, "win", None), (found.ties, "tie", None), (found.losses, "loss", "losses"))
    return ", ".join(counted(number, one, several) for number, one, several in parts)


def compared(curves: Sequence[Result], runs: Sequence[Runs], a: str, b: str, measure: str) -> Comparison:
    """Policy ``a`` beside policy ``b`` on every query that both have played."""
    if measure not in MEASURES:
        raise ArgumentError("measure", f"found {measure!r}, expected one of {', '.join(MEASURES)}")
    finals = {
        (curve.policy, curve.model, curve.instance): each.finals[:, MEASURES.index(measure)]
        for curve, each in zip(curves, runs, strict=True)
    }
    pairs = [(model, instance) for policy, model, instance in finals if policy == a and (b, model, instance) in finals]
    less = measure not in LESS_IS_WORSE
    by_query, by_model = [], []
    for model in dict.fromkeys(model for model, _ in pairs):
        instances = [instance for of, instance in pairs if of == model]
        of_model = [(instance, finals[a, model, instance], finals[b, model, instance]) for instance in instances]
        queries = [_query(instance, model, of_a, of_b, less) for instance, of_a, of_b in of_model]
        by_query += queries
        by_model.append(_model(model, queries, _differences(*of_model[0][1:])))
    return Comparison(a, b, measure, by_query, by_model)


def _differences(a: Floats, b: Floats) -> Floats:
    """Of the runs that both have, by repetition."""
    paired = min(len(a), len(b))
    return a[:paired] - b[:paired]


def _query(instance: str, model: str, a: Floats, b: Floats, less_is_better: bool) -> QueryDifference:
    differences = _differences(a, b)
    stderr = float(differences.std(ddof=1) / math.sqrt(len(differences))) if len(differences) > 1 else None
    means = float(a.mean()), float(b.mean()), float(differences.mean())
    return QueryDifference(instance, model, *means, stderr, less_is_better)


def _model(model: str, queries: Sequence[QueryDifference], runs: Floats) -> ModelDifference:
    """All queries of a model; ``runs`` are the differences of the runs of the first, for when there is no other."""
    differences = np.array([each.difference for each in queries])
    errors = [each.stderr for each in queries]
    outcomes = [each.outcome for each in queries]
    several = len(queries) > 1
    return ModelDifference(
        model=model,
        queries=len(queries),
        difference=float(differences.mean()),
        stderr_within=None if None in errors else float(np.linalg.norm(np.array(errors, float)) / len(queries)),
        stderr_across=float(differences.std(ddof=1) / math.sqrt(len(queries))) if several else None,
        wins=outcomes.count("win"),
        ties=outcomes.count("tie"),
        losses=outcomes.count("loss"),
        p_value=_signed_rank(differences if several else runs),
    )


def _signed_rank(differences: Floats) -> float | None:
    """The two-sided p-value of Wilcoxon's signed-rank test; 1 when nothing differs, None for a single difference."""
    from scipy.stats import wilcoxon

    if len(differences) < 2:
        return None
    if not np.any(differences):
        return 1.0
    return float(wilcoxon(differences).pvalue)
