"""Policies beside one another on the same queries: differences, paired tests, all pairs, and the tails of single runs.

For every query the difference is the mean over its runs of (a - b) at the last checkpoint. Runs are paired by
repetition: in each, both policies meet the same users. Two standard errors are given for the mean over queries:
*within* queries (what other random streams would change) and *across* queries (what other queries would change, runs
included). The test is Wilcoxon's signed-rank test over queries. It is exact up to 50 queries without ties, and it does
not assume normal differences, which regret with its heavy tails does not have. With a single query the test is over its
runs.

All pairs of policies side by side: paired tests with their multiplicity controlled, and the tails of each policy.

Every pair under every click model is one test. Holm's step-down procedure adjusts the p-values: the probability that
any pair without a difference gets an adjusted p-value of at most alpha is at most alpha, however the tests depend on
each other.

The ends of single runs beyond their mean: quantiles over all runs of a policy, and its worst run.

Quantiles are values of runs (the smallest value that at least so many of the runs do not exceed): below 1,000 runs the
99.9 % quantile is the worst run itself. For the clicks relative to the original, where less is worse, they are counted
from the other end.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.errors import ArgumentError
from saferank.experiments.frames import pandas_frame, polars_frame
from saferank.reporting.numbers import Measured, counted, is_clear, plainly
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs
from saferank.table import Table
from saferank.verbs import Floats

if TYPE_CHECKING:
    import pandas
    import polars

    from saferank.experiments.plot import Scatter


@dataclass(frozen=True)
class QueryDifference:
    """One query: the mean of both policies, their difference and its standard error over runs."""

    instance: str
    model: str
    mean_a: float
    mean_b: float
    difference: float
    stderr: float | None  # None: a single run has none
    runs: int
    less_is_better: bool = True

    @property
    def outcome(self) -> str | None:
        """``win`` when a is clearly better, ``loss`` when it is clearly worse, else ``tie``; None of a single run.

        Clearly is beyond what Student's t gives to chance in 5 % of the queries that do not differ.
        """
        clear = is_clear(self.difference, self.stderr, self.runs - 1)
        if not clear:
            return clear if clear is None else "tie"
        return "win" if (self.difference < 0) == self.less_is_better else "loss"


@dataclass(frozen=True)
class ModelDifference:
    """All queries under one click model."""

    model: str
    queries: int
    difference: float
    stderr_within: float | None
    stderr_across: float | None
    wins: int  # queries; of a single repetition there are none of the three
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

    def to_latex(self) -> str:
        """The click models as a LaTeX table (booktabs)."""
        return Comparisons(self.measure, [self], []).to_latex()

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per query, for pandas."""
        return pandas_frame(self.to_polars())

    def to_polars(self) -> "polars.DataFrame":
        """One row per query."""
        names = ("instance", "model", "mean_a", "mean_b", "difference", "stderr", "runs", "outcome")
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


def _cells(found: ModelDifference) -> list[str]:
    across = "-" if found.stderr_across is None else plainly(found.stderr_across)
    outcomes = f"{found.wins} {found.ties} {found.losses}" if found.wins + found.ties + found.losses else "-"
    tested = ["-" if p is None else f"{p:.1g}" for p in (found.p_value, found.p_holm)]
    return [str(Measured(found.difference, found.stderr_within)), across, outcomes, *tested]


def outcomes_in_words(found: ModelDifference) -> str:
    """How many queries the first policy won, tied and lost."""
    if found.wins + found.ties + found.losses == 0:
        return "no verdict from single runs"
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
    return QueryDifference(instance, model, *means, stderr, len(differences), less_is_better)


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


@dataclass(frozen=True)
class Comparisons:
    """What ``Results.compare_all`` gives; in every pair (a, b) differences are a - b."""

    measure: str
    pairs: list[Comparison]
    tails: list[Tail]

    def rows(self) -> list[dict[str, Any]]:
        """One row per pair and click model."""
        return [{"a": pair.a, "b": pair.b, **asdict(each)} for pair in self.pairs for each in pair.by_model]

    def table(self) -> Table:
        """One row per click model and pair, as a table."""
        title = (
            f"{self.measure.replace('_', ' ')}: first policy minus second, same queries, same users; + = - counts "
            "queries on which the first is better, not clearly different, worse"
        )
        pairs = [(pair, each) for pair in self.pairs for each in pair.by_model]
        models = dict.fromkeys(each.model for _, each in pairs)
        rows = [[each.model, pair.a, pair.b, *_cells(each)] for m in models for pair, each in pairs if each.model == m]
        columns = ["model", "first", "second", "± within", "± across", "+ = -", "p", "Holm"]
        return Table(title, columns, rows, names=3)

    def tail_table(self) -> Table:
        """One row per click model and policy: quantiles over all runs, and the worst one."""
        models = [tail.model for tail in self.tails]
        rows = [
            [
                tail.model, tail.policy, f"{tail.runs:,}", *map(plainly, (*tail.quantiles, tail.worst)),
                f"{tail.worst_instance} {tail.worst_repetition}",
            ]
            for tail in sorted(self.tails, key=lambda tail: models.index(tail.model))
        ]  # fmt: skip
        levels = [f"{100 * level:g} %" for level in LEVELS]
        columns = ["model", "policy", "runs", *levels, "worst", "query and run"]
        return Table(f"{self.measure.replace('_', ' ')} of single runs", columns, rows, names=2)

    def to_latex(self) -> str:
        """The pairs as a LaTeX table (booktabs)."""
        return self.table().latex()

    def _repr_html_(self) -> str:
        return self.table().html() + self.tail_table().html()

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows for pandas."""
        return pandas_frame(self.to_polars())

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
        from saferank.experiments.plot import Scatter

        return Scatter(self)

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
