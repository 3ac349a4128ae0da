"""All pairs of policies side by side: paired tests with their multiplicity controlled, and the tails of each policy.

Every pair under every click model is one test. Holm's step-down procedure adjusts the p-values: the probability that
any pair without a difference gets an adjusted p-value of at most alpha is at most alpha, however the tests depend on
each other.
"""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError
from saferank.experiments.comparisons.comparison import Comparison, ModelDifference, compared
from saferank.experiments.comparisons.tails import LEVELS, Tail, tails_of
from saferank.experiments.frames import polars_frame
from saferank.simulation.results import Result
from saferank.simulation.runs import Runs

if TYPE_CHECKING:
    import polars

    from saferank.experiments.comparisons.scatter import Scatter


@dataclass(frozen=True)
class Comparisons:
    """What ``Results.compare_all`` gives; in every pair (a, b) differences are a - b."""

    measure: str
    pairs: list[Comparison]
    tails: list[Tail]

    def rows(self) -> list[dict[str, Any]]:
        """One row per pair and click model."""
        return [{"a": pair.a, "b": pair.b, **asdict(each)} for pair in self.pairs for each in pair.by_model]

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a frame."""
        rows = self.rows()
        return polars_frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def as_json(self) -> dict[str, Any]:
        """Everything, for a JSON file."""
        tails = [
            {**asdict(tail), "quantiles": dict(zip(map(str, LEVELS), tail.quantiles, strict=True))}
            for tail in self.tails
        ]
        by_query = [
            {"a": pair.a, "b": pair.b, **asdict(each), "outcome": each.outcome}
            for pair in self.pairs
            for each in pair.by_query
        ]
        return {"measure": self.measure, "pairs": self.rows(), "by_query": by_query, "tails": tails}

    def plot(self) -> "Scatter":
        """Every query as a point, one panel per pair and click model. Needs matplotlib."""
        from saferank.experiments.comparisons.scatter import Scatter

        return Scatter(self)

    def save_plot(self, path: str | Path) -> Path:
        """Write the figure; the ending of the name is the format."""
        return self.plot().save(path)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.pairs))


def compared_all(curves: Sequence[Result], runs: Sequence[Runs], policies: Sequence[str], measure: str) -> Comparisons:
    """Every pair of these policies, p-values adjusted over all pairs and click models together."""
    if len(policies) < 2:
        raise ArgumentError("policies", f"found {', '.join(policies) or 'none'}, expected two or more to compare")
    pairs = [compared(curves, runs, a, b, measure) for a, b in itertools.combinations(policies, 2)]
    chosen = [(curve, each) for curve, each in zip(curves, runs, strict=True) if curve.policy in policies]
    tails = tails_of([curve for curve, _ in chosen], [each for _, each in chosen], measure)
    return Comparisons(measure, adjusted(pairs), tails)


def adjusted(pairs: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with Holm's p-values over all of them together."""
    found = [each.p_value for pair in pairs for each in pair.by_model]
    tested = iter(holm([p for p in found if p is not None]))

    def with_p(each: ModelDifference) -> ModelDifference:
        return each if each.p_value is None else replace(each, p_holm=next(tested))

    return [replace(pair, by_model=[with_p(each) for each in pair.by_model]) for pair in pairs]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order of the given ones.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    result, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        result[place] = highest
    return result
