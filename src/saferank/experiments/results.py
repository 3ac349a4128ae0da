"""``Results``: the results of an experiment as tables, figures, comparisons and files."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, writing
from saferank.experiments.comparisons import Comparison, compared
from saferank.experiments.frames import (
    labelled,
    long_table,
    mean_frame,
    pandas_frame,
    polars_frame,
    run_columns,
    wide_table,
    write_runs,
)
from saferank.experiments.plot import Plot
from saferank.reporting.numbers import counted
from saferank.reporting.runs import RUNS, read_runs
from saferank.simulation.results import Result, ResultsError, read_results, write_results
from saferank.simulation.runs import Runs

if TYPE_CHECKING:
    import pandas
    import polars

RESULTS = "results.json"


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Results:
    """The results of an experiment.

    ``curves`` has the means and standard errors at every checkpoint, one entry for each policy on each instance;
    ``runs`` the single runs at about 25 of the checkpoints, parallel to ``curves``, or None when only means are known.
    """

    curves: list[Result]
    runs: list[Runs] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def policies(self) -> list[str]:
        """The policies, in the order in which they were played."""
        return list(dict.fromkeys(curve.policy for curve in self.curves))

    @property
    def models(self) -> list[str]:
        """The click models."""
        return list(dict.fromkeys(curve.model for curve in self.curves))

    @property
    def instances(self) -> list[str]:
        """The ids of the queries."""
        return list(dict.fromkeys(curve.instance for curve in self.curves))

    @property
    def left_out(self) -> list[str]:
        """What was asked for and is not among the results, in sentences: rules that a policy does not take."""
        return list(self.provenance.get("left_out", ()))

    def to_polars(self, *, mean: bool = False) -> "polars.DataFrame":
        """Long form: one row per instance, model, policy, rule, repetition and checkpoint.

        With ``mean`` one row per checkpoint with means and standard errors over repetitions, at all checkpoints.
        """
        return mean_frame(self.curves) if mean else polars_frame(run_columns(self.curves, self._known_runs()))

    def to_pandas(self, *, mean: bool = False) -> "pandas.DataFrame":
        """The same rows for pandas."""
        return pandas_frame(self.to_polars(mean=mean))

    def _known_runs(self) -> list[Runs]:
        if self.runs is None:
            raise ResultsError(f"these results hold means only: there was no {RUNS} beside {RESULTS}; try mean=True")
        return self.runs

    def compare(self, a: str, b: str, measure: str = "regret") -> Comparison:
        """Policy ``a`` beside ``b``: differences per query with standard errors, wins, ties, losses, a paired test.

        Where several click models are tested together, p-values are adjusted for that too (Holm).
        """
        (a, b), curves = self._chosen((a, b))
        return compared(curves, self._known_runs(), [(a, b)], measure)

    def compare_all(self, policies: Sequence[str] | None = None, measure: str = "regret") -> Comparison:
        """All pairs of policies (None: of all), p-values adjusted over all tests; quantiles and worst runs of each."""
        chosen, curves = self._chosen(self.labels if policies is None else policies)
        if len(chosen) < 2:
            raise ArgumentError("policies", f"found {', '.join(chosen) or 'none'}, expected two or more to compare")
        return compared(curves, self._known_runs(), list(itertools.combinations(chosen, 2)), measure)

    @property
    def labels(self) -> list[str]:
        """The names that distinguish rows: policies, and what differs among the rows of one policy."""
        return list(dict.fromkeys(curve.policy for curve in labelled(self.curves)))

    def _chosen(self, policies: Sequence[str]) -> tuple[list[str], list[Result]]:
        """The labels that are meant, and the curves with theirs; a policy with a single label is meant by its name."""
        curves = labelled(self.curves)
        labels: dict[str, dict[str, None]] = {}
        for curve, named in zip(self.curves, curves, strict=True):
            labels.setdefault(curve.policy, {})[named.policy] = None
        one = {policy: next(iter(own)) for policy, own in labels.items() if len(own) == 1}
        chosen = [one.get(policy, policy) for policy in policies]
        for label in chosen:
            if label not in self.labels:
                raise ArgumentError("policies", f"no results of {label!r}; there are {', '.join(self.labels)}")
        return chosen, curves

    def plot(self) -> Plot:
        """Regret and safety violations by round, one column per click model. Needs matplotlib."""
        return Plot(labelled(self.curves))

    def to_latex(self) -> str:
        """The ends of all curves as a LaTeX table (booktabs), averaged over instances."""
        return wide_table(labelled(self.curves)).latex()

    def save(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write ``results.json`` and, beside it, the single runs as Parquet; returns the files.

        A folder that holds results is refused unless ``overwrite`` is given.
        """
        home = Path(folder)
        there = [name for name in (RESULTS, RUNS) if (home / name).exists()]
        if there and not overwrite:
            choice = "save them with overwrite=True, or name another folder"
            raise ArgumentError("folder", f"{home} holds {' and '.join(there)}; {choice}")
        if overwrite:
            with writing(home / RUNS):
                (home / RUNS).unlink(missing_ok=True)  # those of other results must not stay beside these
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
        path = home / RESULTS
        if self.runs is not None:
            with writing(home / RUNS):
                write_runs(home / RUNS, self.curves, self.runs)
        with writing(path):
            write_results(path, self.curves, self.provenance)
        return [path] if self.runs is None else [path, home / RUNS]

    @classmethod
    def load(cls, path: str | Path) -> "Results":
        """The results of a folder or of a results file, with the runs beside it when they are there."""
        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        curves, provenance = read_results(file)
        return cls(curves, read_runs(file.with_name(RUNS), curves), provenance)

    def __repr__(self) -> str:
        head = "\n".join([self._headline(), *self.left_out])
        return f"{head}\n{long_table(labelled(self.curves)).text()}" if self.curves else head

    def _repr_html_(self) -> str:
        if not self.curves:
            return f"<p>{self._headline()}</p>"
        return long_table(labelled(self.curves), f"{self._headline()}; ").html()

    def _headline(self) -> str:
        parts = [
            counted(len(self.instances), "query", "queries"),
            counted(len(self.models), "click model"),
            counted(len(self.policies), "policy", "policies"),
        ]
        if self.curves:
            first = self.curves[0]
            parts.append(f"{counted(first.repetitions, 'repetition')} of {counted(first.rounds[-1], 'round')}")
        return f"Results: {', '.join(parts)}"


def joined(parts: Sequence[Results]) -> Results:
    """Several results as one; the provenance is that of the first."""
    runs = None if any(part.runs is None for part in parts) else [runs for part in parts for runs in part.runs or ()]
    return Results([curve for part in parts for curve in part.curves], runs, parts[0].provenance)
