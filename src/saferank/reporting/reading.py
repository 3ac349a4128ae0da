"""Results for a report: read and checked, so that all other modules can rely on finite numbers.

One combination out of the results of a sweep: a rule, a number of positions, a lifetime of certificates.

Results of different combinations must not be averaged or compared as if they were one, so a report is about one.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polars import DataFrame, col, lit

from saferank.errors import ArgumentError, UsageError
from saferank.files import on_one_line
from saferank.reporting.frames import KEYS, RUNS, differing_rules, in_order, means_of, read_runs
from saferank.reporting.looks import PAPER_MODELS
from saferank.simulation.results import read_results
from saferank.statistics.decision import decision_rule


class ReportError(UsageError):
    """Why no report can be made of a file, in one line."""


NONE = "none"
"""How a reader names the results whose certificates never end."""
_PARTS = ("rule", "positions", "lifetime")


@dataclass(frozen=True)
class Selection:
    """What was chosen; None: nothing, which is enough where the results do not differ in it."""

    rule: str | None = None
    positions: int | None = None
    lifetime: int | str | None = None

    def of(self, means: DataFrame) -> DataFrame:
        """The results of one combination; an ``ArgumentError`` when it is not there or when several are left.

        A policy that takes no rule, or has no certificates, was played once for all of them; it is always kept.
        """
        kept = means
        for name in _PARTS:
            if getattr(self, name) is not None:
                kept = _chosen(kept, name, getattr(self, name))
        swept = {name: values for name in _PARTS if (values := _swept_values(kept, name))}
        if swept:
            over = " and ".join(f"{name} ({', '.join(map(_text, values))})" for name, values in swept.items())
            reason = f"the results are a sweep over {over}; a report is about one combination, so choose one of each"
            raise ArgumentError(next(iter(swept)), reason)
        return kept


ALL_ALIKE = Selection()
"""Nothing is chosen: the results are not of a sweep."""


def _chosen(means: DataFrame, name: str, wanted: Any) -> DataFrame:
    there, last = in_order(means, name), means["round"].max()
    same = [value for value in there if _is_same(value, wanted, last)]  # type: ignore[arg-type]
    if not same:
        known = ", ".join(_text(value) for value in there if value is not None or name == "lifetime")
        raise ArgumentError(name, f"no results with {name} {_text(wanted)}; there are {known}")
    once = (col(name).n_unique().over("policy") == 1) if name != "positions" else lit(False)
    return means.filter(col(name).is_in(same, nulls_equal=True) | once)


def _swept_values(means: DataFrame, name: str) -> list[Any]:
    """The values with which policies were played, of those policies that were played with several."""
    return in_order(means.filter(col(name).n_unique().over("policy") > 1), name)


def _is_same(value: Any, wanted: Any, rounds: int) -> bool:
    """Equal as texts, or the same rule: paper:1e-5 is paper:0.00001."""
    if _text(value) == _text(wanted):
        return True
    try:
        one, other = decision_rule(value, rounds), decision_rule(wanted, rounds)
    except ValueError:  # not rules
        return False
    return (one.kind, one.level) == (other.kind, other.level)


def _text(value: object) -> str:
    return NONE if value is None else str(value)


@dataclass(frozen=True, eq=False)
class Run:
    """A results file: its results, means at every checkpoint, and their provenance."""

    path: Path
    means: DataFrame
    provenance: dict[str, Any]

    @property
    def models(self) -> list[str]:
        """The click models, the paper's first."""
        found = in_order(self.means, "model")
        return sorted(found, key=lambda model: PAPER_MODELS.index(model) if model in PAPER_MODELS else len(found) + 2)

    @property
    def policies(self) -> list[str]:
        """The policies, in the order of their first result."""
        return in_order(self.means, "policy")

    def first(self, column: str) -> int:
        """A number that all results of a report share: positions, items, repetitions."""
        return int(self.means[column][0])

    @property
    def rounds(self) -> int:
        """The last round."""
        return int(self.means["round"].max())  # type: ignore[arg-type]

    @property
    def rules(self) -> dict[str, str]:
        """The rule of each policy that takes one, where they differ; nothing where all decide by the same."""
        return differing_rules(self.means)

    @property
    def reproduction(self) -> dict[str, Any]:
        """What ``saferank reproduce`` says about its run; empty for other results."""
        facts = self.provenance.get("reproduction", {})
        return facts if isinstance(facts, dict) else {}

    @property
    def rule(self) -> str | None:
        """The decision rule of the run: the one that a reproduction names, else the first."""
        named = self.reproduction.get("rule")
        return named if isinstance(named, str) else next(iter(self.means["rule"].drop_nulls()), None)

    def runs(self) -> DataFrame | str:
        """The single runs beside the results, or why there are none."""
        there = read_runs(self.path.with_name(RUNS), self.means)
        missing = f"{RUNS} is not beside {self.path.name}; saferank simulate and saferank reproduce write it."
        return missing if there is None else there

    def companion(self, name: str) -> "Run | str":
        """The results file beside this one that a reproduction calls by this name, or why there is none."""
        file = self.reproduction.get(name)
        if not isinstance(file, str) or Path(file).name != file:
            return "These results name no such runs; saferank reproduce makes them."
        path = self.path.parent / file
        if not path.is_file():
            return f"{file} is not beside {self.path.name}; put it back, or run saferank reproduce."
        return read_checked(path)


def read_run(path: Path, without: Collection[str] = (), selection: Selection = ALL_ALIKE) -> Run:
    """The results of one experiment: every policy on the same queries, with one rule, at the same checkpoints.

    Of a sweep ``selection`` says which combination; an ``ArgumentError`` when it leaves several.
    """
    run = read_checked(path)
    for policy in without:
        if policy not in run.policies:
            raise ReportError(f"no results of {policy!r} to leave out; there are {', '.join(run.policies)}")
    kept = run.means.filter(~col("policy").is_in(list(without)))
    if kept.is_empty():
        raise ReportError(f"{on_one_line(path)}: nothing is left of the results; leave out fewer policies")
    chosen = Run(path, selection.of(kept), run.provenance)
    _check_together(chosen)
    return chosen


def read_checked(path: Path) -> Run:
    """The results of a file, each of them sound."""
    results, provenance = read_results(path)
    if not results:
        raise ReportError(
            f"{on_one_line(path)}: results: is empty; make some with saferank simulate or saferank reproduce"
        )
    return Run(path, means_of(results), provenance if isinstance(provenance, dict) else {})


def _check_together(run: Run) -> None:
    """Averages may be compared only when they are taken over the same queries, once each."""
    name, curves = on_one_line(run.path), run.means.select(KEYS).unique(maintain_order=True)
    there = run.means.select("policy", "instance", "model", "round")
    twice = there.filter(there.is_duplicated())
    if len(twice):
        where = "{policy} on instance {instance!r} ({model})".format(**twice.row(0, named=True))
        raise ReportError(f"{name}: {where} is there twice; keep one")
    for of_model in curves.partition_by("model", maintain_order=True):
        (first, queries), *others = [
            (part["policy"][0], set(part["instance"])) for part in of_model.partition_by("policy", maintain_order=True)
        ]
        for policy, ids in others:
            if ids != queries:
                raise ReportError(
                    f"{name}: {policy} under {of_model['model'][0]} was not run on the same queries as {first} "
                    f"({len(ids)} and {len(queries)}); run them together"
                )
