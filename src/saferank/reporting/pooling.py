"""Averages over queries, and the ends of averaged curves as a table.

With means m_i and standard errors e_i of n queries, whose runs are independent of each other, mean = sum m_i / n has
two standard errors. *Within* queries, sqrt(sum e_i^2) / n, is the noise of the simulation: that of the average over
*these* queries, which falls with repetitions. *Across* queries, std(m_i) / sqrt(n), is the spread of the queries: that
of queries in general, runs included, which falls only with more of them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars
from polars import DataFrame, Expr, col, when

from saferank.reporting.frames import in_order
from saferank.reporting.looks import model_name
from saferank.reporting.numbers import CHANCE, Measured, is_clear, plainly, student
from saferank.table import BEST, MarkedCell, TextTable
from saferank.verbs import Floats, Ints


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Averaged:
    """A measure at every checkpoint, averaged over queries."""

    mean: Floats
    stderr: Floats | None  # within queries; None where single repetitions have no standard error
    across: Floats | None  # None for a single query
    freedom: float  # degrees of freedom of the last standard error within queries

    @property
    def end(self) -> Measured:
        """At the last checkpoint."""
        stderr, across = (None if each is None else float(each[-1]) for each in (self.stderr, self.across))
        return Measured(float(self.mean[-1]), stderr, self.freedom, across)

    def bands(self, queries: int) -> list[Floats]:
        """Half widths of bands of 95 % (Student's t): within queries, and across them where there are several."""
        errors = ((self.stderr, self.freedom), (self.across, queries - 1))
        return [student(CHANCE, freedom) * error for error, freedom in errors if error is not None]


@dataclass(frozen=True, eq=False)
class Pooled:
    """One policy under one click model, averaged over its queries; measures are parallel to ``rounds``."""

    model: str
    policy: str
    instances: int
    repetitions: int
    rounds: Ints
    regret: Averaged
    violations: Averaged
    wrong_certificates: Floats | None  # None for policies without certificates

    @property
    def wrong_in_the_end(self) -> str:
        """Wrong certificates a run; a dash for policies without certificates."""
        return "-" if self.wrong_certificates is None else plainly(float(self.wrong_certificates[-1]))


def within(stderr: str) -> Expr:
    """The standard error of a mean over queries that comes from their runs."""
    return when(col(stderr).null_count() == 0).then((col(stderr) ** 2).sum().sqrt() / polars.len())


def across(value: str) -> Expr:
    """The standard error of a mean over queries that comes from the queries."""
    return col(value).std() / polars.len().sqrt()


def _freedom(stderr: str) -> Expr:
    """Degrees of freedom by Welch and Satterthwaite; infinite without noise."""
    above, below = (col(stderr) ** 2).sum() ** 2, (col(stderr) ** 4 / (col("repetitions") - 1)).sum()
    return when(below > 0).then(above / below).otherwise(math.inf)


def pooled(means: DataFrame) -> list[Pooled]:
    """One curve per click model and policy, models together, both in the order of their first row."""
    parts = [part for measure in ("regret", "violations") for part in (
        col(f"{measure}_mean").mean().alias(measure), within(f"{measure}_stderr").alias(f"{measure}_stderr"),
        across(f"{measure}_mean").alias(f"{measure}_across"), _freedom(f"{measure}_stderr").alias(f"{measure}_freedom"),
    )]  # fmt: skip
    frame = means.group_by("model", "policy", "round", maintain_order=True).agg(
        *parts, instances=polars.len(), rules=col("rule").n_unique(), repetitions=col("repetitions").first(),
        wrong_certificates=col("wrong_certificates_mean").mean(),
    )  # fmt: skip
    curves = frame.partition_by("model", "policy", as_dict=True, maintain_order=True)
    models, policies = in_order(means, "model"), in_order(means, "policy")
    return [_curve(m, p, curves[m, p]) for m in models for p in policies if (m, p) in curves]


def _curve(model: str, policy: str, frame: DataFrame) -> Pooled:
    last = frame.row(-1, named=True)
    if frame["rules"].max() != 1 or frame["instances"].n_unique() > 1 or not frame["round"].is_sorted():
        raise ValueError(f"results of {policy} under {model} differ in rule or checkpoints: not of one run")

    def column(name: str) -> Floats | None:
        return None if frame[name].null_count() else frame[name].to_numpy()

    regret, violations = (
        Averaged(frame[name].to_numpy(), column(f"{name}_stderr"), column(f"{name}_across"), last[f"{name}_freedom"])
        for name in ("regret", "violations")
    )
    size, rounds = (last["instances"], last["repetitions"]), frame["round"].to_numpy()
    return Pooled(model, policy, *size, rounds, regret, violations, column("wrong_certificates"))


def least(curves: Iterable[Pooled]) -> Pooled | None:
    """The curve that ends lowest."""
    return min(curves, key=lambda curve: curve.regret.end.mean, default=None)


LEVELS = (0.5, 0.9, 0.99, 0.999)
LESS_IS_WORSE = ("clicks_relative", "worst_page")


def tails_of(ends: DataFrame, measure: str = "regret") -> DataFrame:
    """All runs of each policy under each click model at their end: quantiles over them, and the worst.

    A quantile is the value of a run: the smallest that at least this share of the runs does not exceed. Below 1,000
    runs the 99.9 % quantile is the worst run itself. Where less is worse, quantiles are counted from the other end.
    """
    sign = -1.0 if measure in LESS_IS_WORSE else 1.0
    value, worst = sign * col(measure), (sign * col(measure)).arg_max()
    quantiles = [(sign * value.quantile(level, "equiprobable")).alias(str(level)) for level in LEVELS]
    return ends.group_by("model", "policy", maintain_order=True).agg(
        runs=polars.len(), mean=col(measure).mean(), quantiles=polars.struct(quantiles),
        worst=col(measure).get(worst), worst_instance=col("instance").get(worst),
        worst_repetition=col("repetition").get(worst),
    )  # fmt: skip


def _is_as_low(curve: Pooled, best: Pooled | None) -> bool:
    """True for the curve that ends lowest, and for those that do not clearly end above it."""
    if best is None or curve is best:
        return True
    above, stderr, freedom, _ = curve.regret.end.minus(best.regret.end)
    return above == 0 if stderr is None else not is_clear(above, stderr, freedom)


BOLD = "Bold: the least regret, and all that chance cannot tell from it (Welch's t at 5 %)."


def endings_table(
    curves: Sequence[Pooled], policies: Iterable[str], models: Sequence[str], name: Callable[[str], str], title: str,
    key: str = "endings", caption: str = "",
) -> TextTable:  # fmt: skip
    """Every policy by this name, with its regret and violations under every click model.

    The least regret is marked, and all that chance cannot tell from it (Welch's t at 5 %).
    """
    ends = {(curve.policy, curve.model): curve for curve in curves}
    best = {model: least([curve for curve in curves if curve.model == model]) for model in models}

    def cells(policy: str, model: str) -> list[str | MarkedCell]:
        curve = ends.get((policy, model))
        if curve is None:
            return ["-", "-"]
        return [
            MarkedCell(str(curve.regret.end), BEST if _is_as_low(curve, best[model]) else ""),
            str(curve.violations.end),
        ]

    rows = [[name(policy), *(cell for model in models for cell in cells(policy, model))] for policy in policies]
    columns = ["policy", *["regret", "violations"] * len(models)]
    return TextTable(title, columns, rows, caption, [("", 1), *((model_name(model), 2) for model in models)], key=key)


def long_table(means: DataFrame, headline: str = "") -> TextTable:
    """The ends of all curves for a screen or a notebook: one row per click model and policy."""
    columns = ["model", "policy", "regret", "violations a run", "wrong certificates"]
    rows = [
        [each.model, each.policy, str(each.regret.end), plainly(each.violations.end.mean), each.wrong_in_the_end]
        for each in pooled(means)
    ]
    title = f"{headline}after {max(means['round']):,} rounds, averaged over instances"
    return TextTable(title, columns, rows, names=2)
