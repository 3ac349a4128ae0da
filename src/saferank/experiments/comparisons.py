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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.errors import ArgumentError
from saferank.reporting.frames import ends_of, pandas_frame
from saferank.reporting.numbers import Measured, counted, is_clear, plainly
from saferank.reporting.pooling import LESS_IS_WORSE, LEVELS, across, tails_of, within
from saferank.simulation.runs import MEASURES
from saferank.table import TextTable
from saferank.verbs import Floats

if TYPE_CHECKING:
    import pandas
    import polars

    from saferank.experiments.plot import Plot


@dataclass(frozen=True, eq=False)  # frames have no single truth of equality
class Comparison:
    """What ``Results.compare`` and ``compare_all`` give, as frames; in every pair (a, b) differences are a - b.

    ``pairs`` has a row per pair and click model, ``by_query`` one per pair, click model and query (``outcome`` is win
    where a is clearly better, loss where it is clearly worse, tie otherwise, and null for a single run), ``tails`` one
    per click model and policy.
    """

    measure: str
    pairs: "polars.DataFrame"
    by_query: "polars.DataFrame"
    tails: "polars.DataFrame"

    def to_polars(self) -> "polars.DataFrame":
        """One row per pair and click model."""
        return self.pairs

    def to_pandas(self) -> "pandas.DataFrame":
        """The same rows for pandas."""
        return pandas_frame(self.pairs)

    def to_latex(self) -> str:
        """The same rows as a LaTeX table (booktabs)."""
        return self.table().latex()

    def as_json(self) -> dict[str, Any]:
        """Everything, for a JSON file."""
        frames = {"pairs": self.pairs, "by_query": self.by_query, "tails": self.tails}
        return {"measure": self.measure, **{name: frame.to_dicts() for name, frame in frames.items()}}

    def plot(self) -> "Plot":
        """Every query as a point, one panel per pair and click model. Needs matplotlib."""
        from saferank.experiments.plot import scatter_of

        return scatter_of(self)

    def table(self) -> TextTable:
        """One row per click model and pair, as a table."""
        title = (
            f"{self.measure.replace('_', ' ')}: first policy minus second, same queries, same users; + = - counts "
            "queries on which the first is better, not clearly different, worse"
        )
        columns = ["model", "first", "second", "± within", "± across", "+ = -", "p", "Holm"]
        rows = [[row["model"], row["a"], row["b"], *_cells(row)] for row in _by_model(self.pairs)]
        return TextTable(title, columns, rows, names=3)

    def tail_table(self) -> TextTable:
        """One row per click model and policy: quantiles over all runs, and the worst one."""
        rows = [
            [
                row["model"], row["policy"], f"{row['runs']:,}",
                *map(plainly, (*row["quantiles"].values(), row["worst"])),
                f"{row['worst_instance']} {row['worst_repetition']}",
            ]
            for row in _by_model(self.tails)
        ]  # fmt: skip
        levels = [f"{100 * level:g} %" for level in LEVELS]
        columns = ["model", "policy", "runs", *levels, "worst", "query and run"]
        return TextTable(f"{self.measure.replace('_', ' ')} of single runs", columns, rows, names=2)

    def __repr__(self) -> str:
        lines: list[str] = []
        for row in self.pairs.to_dicts():
            head = f"{self.measure} of {row['a']} minus {row['b']}"
            lines += [_in_words(row)] if head in lines else [head, _in_words(row)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table().html() + self.tail_table().html()


def _by_model(frame: "polars.DataFrame") -> list[dict[str, Any]]:
    """The rows, those of a click model together."""
    return [row for part in frame.partition_by("model", maintain_order=True) for row in part.to_dicts()]


def _cells(row: dict[str, Any]) -> list[str]:
    across = "-" if row["stderr_across"] is None else plainly(row["stderr_across"])
    counts = [row["wins"], row["ties"], row["losses"]]
    tested = ["-" if row[p] is None else f"{row[p]:.1g}" for p in ("p_value", "p_holm")]
    outcomes = " ".join(map(str, counts)) if any(counts) else "-"
    return [str(Measured(row["difference"], row["stderr_within"])), across, outcomes, *tested]


def _in_words(row: dict[str, Any]) -> str:
    within = str(Measured(row["difference"], row["stderr_within"]))
    across = "" if row["stderr_across"] is None else f" within queries, ± {row['stderr_across']:,.3g} across"
    p, adjusted = row["p_value"], row["p_holm"]
    tested = "" if p is None else f", p = {p:.2g}"
    tested += "" if adjusted is None or adjusted == p else f" ({adjusted:.2g} after Holm)"
    many = counted(row["queries"], "query", "queries")
    return f"{row['model']}: {within}{across}; {outcomes_in_words(row)} on {many}{tested}"


def outcomes_in_words(row: dict[str, Any]) -> str:
    """How many queries the first policy won, tied and lost."""
    if row["wins"] + row["ties"] + row["losses"] == 0:
        return "no verdict from single runs"
    parts = (("wins", "win", None), ("ties", "tie", None), ("losses", "loss", "losses"))
    return ", ".join(counted(row[name], one, several) for name, one, several in parts)


def compared(runs: "polars.DataFrame", pairs: Sequence[tuple[str, str]], measure: str) -> Comparison:
    """These pairs of policies on every query that both have played, p-values adjusted over all tests together."""
    import polars

    if measure not in MEASURES:
        raise ArgumentError("measure", f"found {measure!r}, expected one of {', '.join(MEASURES)}")
    ends = ends_of(runs)
    found = [_pair(ends.with_columns(value=measure), a, b, measure not in LESS_IS_WORSE) for a, b in pairs]
    by_model = polars.concat([each for each, _ in found])
    tested = iter(holm(by_model["p_value"].drop_nulls().to_list()))
    adjusted = [None if p is None else next(tested) for p in by_model["p_value"]]
    by_model = by_model.with_columns(p_holm=polars.Series(adjusted, dtype=polars.Float64))
    wanted = ends.filter(polars.col("policy").is_in(list(dict.fromkeys(name for pair in pairs for name in pair))))
    return Comparison(measure, by_model, polars.concat([each for _, each in found]), tails_of(wanted, measure))


def _pair(
    ends: "polars.DataFrame", a: str, b: str, less_is_better: bool
) -> tuple["polars.DataFrame", "polars.DataFrame"]:
    """Policy ``a`` beside ``b``: by click model, and by query; runs are paired by repetition."""
    import polars
    from polars import col

    paired = ["model", "instance", "repetition"]
    both = ends.filter(policy=a).join(ends.filter(policy=b), on=paired, suffix="_b", maintain_order="left")
    both = both.with_columns(difference=(col("value") - col("value_b")).cast(polars.Float64))
    queries = both.group_by("instance", "model", maintain_order=True).agg(
        mean_a=col("value").mean(),
        mean_b=col("value_b").mean(),
        difference=col("difference").mean(),
        stderr=col("difference").std() / polars.len().sqrt(),
        runs=polars.len(),
    )
    ends_of = zip(queries["difference"], queries["stderr"], queries["runs"], strict=True)
    outcomes = [_outcome(*each, less_is_better=less_is_better) for each in ends_of]
    queries = queries.with_columns(outcome=polars.Series(outcomes, dtype=polars.String))
    models = queries.group_by("model", maintain_order=True).agg(
        queries=polars.len(),
        difference=col("difference").mean(),
        stderr_within=within("stderr"),
        stderr_across=across("difference"),
        wins=(col("outcome") == "win").sum(),
        ties=(col("outcome") == "tie").sum(),
        losses=(col("outcome") == "loss").sum(),
    )
    tested = [queries if several > 1 else both for several in models["queries"]]  # a single query by its runs
    p_values = [
        _signed_rank(of.filter(model=m)["difference"].to_numpy()) for m, of in zip(models["model"], tested, strict=True)
    ]
    models = models.with_columns(p_value=polars.Series(p_values, dtype=polars.Float64))
    named = [polars.lit(a).alias("a"), polars.lit(b).alias("b")]
    return models.select(*named, polars.all()), queries.select(*named, polars.all())


def _outcome(difference: float, stderr: float | None, runs: int, *, less_is_better: bool) -> str | None:
    """Clearly is beyond what Student's t gives to chance in 5 % of the queries that do not differ."""
    clear = is_clear(difference, stderr, runs - 1)
    if not clear:
        return clear if clear is None else "tie"
    return "win" if (difference < 0) == less_is_better else "loss"


def _signed_rank(differences: Floats) -> float | None:
    """The two-sided p-value of Wilcoxon's signed-rank test; 1 when nothing differs, None for a single difference."""
    from scipy.stats import wilcoxon

    if len(differences) < 2:
        return None
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


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
