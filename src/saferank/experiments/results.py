"""``Results``: the results of an experiment as frames, tables, figures, comparisons and files."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, several, unknown, writing
from saferank.experiments.comparisons import Comparison, compared
from saferank.experiments.plot import Plot, plot_of
from saferank.reporting.frames import (
    KEYS,
    RESULTS,
    RUNS,
    in_order,
    labelled,
    means_of,
    pandas_frame,
    read_runs,
    results_of,
    runs_frame,
    write_runs,
)
from saferank.reporting.looks import labels, policy_name
from saferank.reporting.numbers import counted
from saferank.reporting.pooling import BOLD, endings_table, long_table, pooled
from saferank.reporting.report import figure_options
from saferank.simulation.results import Result, ResultsError, read_results, write_results
from saferank.simulation.runs import Runs

if TYPE_CHECKING:
    import pandas
    from polars import DataFrame


@dataclass(frozen=True, eq=False, repr=False)  # frames have no single truth of equality
class Results:
    """The results of an experiment: two frames of polars, and what they came from.

    ``means`` has a row for every policy on every instance at every checkpoint, with means and standard errors over
    repetitions. ``polars.DataFrame(results)`` and everything else that reads Arrow takes what ``to_polars`` gives.
    """

    means: "DataFrame"  # a row for every policy on every instance at every checkpoint
    runs: "DataFrame | None" = None  # a row for every run at about 25 checkpoints; None: only means are known
    provenance: dict[str, Any] = field(default_factory=dict)  # seed, version, digests of instances and plug-ins

    @classmethod
    def of(
        cls, curves: Sequence[Result], runs: Sequence[Runs] | None = None, provenance: dict[str, Any] | None = None
    ) -> "Results":
        """From results that were played or read elsewhere.

        Args:
            curves: An entry for each policy on each instance.
            runs: The single runs of each entry, if they are known.
            provenance: Seed, version and whatever else is to be kept with them.

        Returns:
            The results.

        """
        return cls(means_of(curves), None if runs is None else runs_frame(curves, runs), provenance or {})

    @classmethod
    def concat(cls, parts: Iterable["Results"]) -> "Results":
        """Several results as one.

        Args:
            parts: Results without a curve in common.

        Returns:
            All of them, with the provenance of the first.

        Raises:
            ArgumentError: There are none, or two hold the same policy on the same instance.

        """
        import polars

        several = list(parts)
        if not several:
            raise ArgumentError("parts", "found none, expected one or more Results")
        means = polars.concat([part.means for part in several])
        twice = means.filter(means.select(*KEYS, "round").is_duplicated())
        if len(twice):
            where = "{policy} on instance {instance!r} ({model})".format(**twice.row(0, named=True))
            raise ArgumentError("parts", f"{where} is there twice; keep one")
        runs = [part.runs for part in several if part.runs is not None]
        return cls(means, polars.concat(runs) if len(runs) == len(several) else None, several[0].provenance)

    @property
    def curves(self) -> list[Result]:
        """The entries of ``results.json``: means by checkpoint of each policy on each instance."""
        return results_of(self.means)

    @property
    def policies(self) -> list[str]:
        """The policies, in the order in which they were played."""
        return in_order(self.means, "policy")

    @property
    def models(self) -> list[str]:
        """The click models."""
        return in_order(self.means, "model")

    @property
    def instances(self) -> list[str]:
        """The ids of the queries."""
        return in_order(self.means, "instance")

    @property
    def labels(self) -> list[str]:
        """The names that distinguish rows: policies, and what differs among the rows of one policy."""
        return in_order(labelled(self.means), "policy")

    @property
    def left_out(self) -> list[str]:
        """What was asked for and is not among the results, in sentences: rules that a policy does not take."""
        return list(self.provenance.get("left_out", ()))

    def to_polars(self, *, mean: bool = False) -> "DataFrame":
        """Long form: one row per instance, model, policy, rule, repetition and checkpoint.

        Args:
            mean: One row per checkpoint instead, with means and standard errors over repetitions, at all checkpoints.

        Returns:
            The frame.

        Raises:
            ResultsError: Single runs are asked for and only means are known.

        """
        return self.means if mean else self._known_runs()

    def to_pandas(self, *, mean: bool = False) -> "pandas.DataFrame":
        """The same rows for pandas.

        Args:
            mean: As in ``to_polars``.

        Returns:
            The frame.

        Raises:
            ResultsError: Single runs are asked for and only means are known.

        """
        return pandas_frame(self.to_polars(mean=mean))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows of ``to_polars`` as a stream of Arrow; those of means where there are no single runs."""
        return (self.means if self.runs is None else self.runs).__arrow_c_stream__(requested_schema)

    def _known_runs(self) -> "DataFrame":
        if self.runs is None:
            raise ResultsError(f"these results hold means only: there was no {RUNS} beside {RESULTS}; try mean=True")
        return self.runs

    def compare(self, a: str, b: str, measure: str = "regret") -> Comparison:
        """Policy ``a`` beside ``b``: differences per query with standard errors, wins, ties, losses, a paired test.

        Where several click models are tested together, p-values are adjusted for that too (Holm).

        Args:
            a: A policy, or one of ``labels``.
            b: Another one.
            measure: ``regret``, ``violations``, ``wrong_certificates``, ``clicks_relative`` or ``worst_page``.

        Returns:
            The comparison; ``print`` shows it, ``pairs`` and ``by_query`` are frames.

        Raises:
            ArgumentError: There are no results of a policy, or the measure is not known.
            ResultsError: Only means are known.

        """
        a, b = self._chosen((a, b))
        return compared(labelled(self._known_runs()), [(a, b)], measure)

    def compare_all(self, policies: Sequence[str] | None = None, measure: str = "regret") -> Comparison:
        """All pairs of policies, with p-values adjusted over all tests; quantiles and worst runs of each.

        Args:
            policies: Two or more policies or ``labels``; None: all.
            measure: As in ``compare``.

        Returns:
            The comparison.

        Raises:
            ArgumentError: Fewer than two policies, or one without results.
            ResultsError: Only means are known.

        """
        chosen = self._chosen(policies)
        if len(chosen) < 2:
            raise ArgumentError("policies", f"found {', '.join(chosen) or 'none'}, expected two or more to compare")
        return compared(labelled(self._known_runs()), list(itertools.combinations(chosen, 2)), measure)

    def _chosen(self, policies: Sequence[str] | None) -> list[str]:
        """The labels that are meant; a policy with a single label is meant by its name, and None means all."""
        names = list(dict.fromkeys(zip(self.means["policy"], labelled(self.means)["policy"], strict=True)))
        one = {policy: label for policy, label in names if sum(policy == other for other, _ in names) == 1}
        known = [label for _, label in names]
        wanted = known if policies is None else several(policies, "policies")
        chosen = [one.get(label, label) for label in wanted]
        for label in chosen:
            if label not in known:
                raise ArgumentError("policies", f"no results of {label!r}; there are {', '.join(known)}")
        return chosen

    def _shown(self, policies: Sequence[str] | None, models: Sequence[str] | None) -> "DataFrame":
        """The means of these labels and click models, labelled."""
        models = None if models is None else several(models, "models")
        for model in models or ():
            if model not in self.models:
                raise ArgumentError("models", unknown("click model", model, self.models))
        from polars import col

        labels = self._chosen(policies)
        chosen = col("policy").is_in(labels) & col("model").is_in(self.models if models is None else list(models))
        return labelled(self.means).filter(chosen)

    def plot(
        self,
        policies: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        *,
        axes: str = "log",
        columns: int | None = None,
        first_round: int | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Plot:
        """Regret and safety violations by round, one column per click model. Needs matplotlib.

        Args:
            policies: Policies or ``labels``; None: all.
            models: Click models; None: all.
            axes: ``log`` or ``linear``.
            columns: 1 or 2: make it fit one or two columns of a paper at full size.
            first_round: Where curves start.
            names: Other names for policies.

        Returns:
            The figure; a notebook shows it, ``save`` writes it.

        Raises:
            ArgumentError: A policy or model is not among the results, or an option is not known.

        """
        return plot_of(self._shown(policies, models), figure_options(axes, columns, first_round), names or {})

    def to_latex(
        self,
        policies: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        *,
        names: Mapping[str, str] | None = None,
    ) -> str:
        """The ends of all curves as a LaTeX table (booktabs), averaged over instances; ± is within queries.

        Args:
            policies: Policies or ``labels``; None: all.
            models: Click models; None: all.
            names: Other names for policies.

        Returns:
            The table.

        Raises:
            ArgumentError: A policy or model is not among the results.

        """
        shown = self._shown(policies, models)
        first = shown.row(0, named=True)
        queries = counted(shown["instance"].n_unique(), "query", "queries")
        size = f"{queries}, {counted(first['repetitions'], 'run')} each"
        seed = f", seed {self.provenance['seed']}" if "seed" in self.provenance else ""
        caption = f"after {first_rounds(shown)}, mean over {size}{seed}; ± one standard error within queries. {BOLD}"
        with labels(names or {}, {}):
            policies, models = in_order(shown, "policy"), in_order(shown, "model")
            return endings_table(pooled(shown), policies, models, policy_name, caption).latex()

    def save(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write ``results.json`` and, beside it, the single runs as Parquet.

        Args:
            folder: The folder; it is made if it is not there.
            overwrite: Replace the results that the folder holds.

        Returns:
            The files.

        Raises:
            ArgumentError: The folder holds results and ``overwrite`` is not given.
            OutputError: A file cannot be written.

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
                write_runs(home / RUNS, self.runs)
        with writing(path):
            write_results(path, self.curves, self.provenance)
        return [path] if self.runs is None else [path, home / RUNS]

    @classmethod
    def load(cls, path: str | Path) -> "Results":
        """The results of a folder or of a results file, with the runs beside it when they are there.

        Args:
            path: The folder, or the file.

        Returns:
            The results.

        Raises:
            ResultsError: There is no sound results file.

        """
        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        curves, provenance = read_results(file)
        means = means_of(curves)
        return cls(means, read_runs(file.with_name(RUNS), means), provenance)

    def __repr__(self) -> str:
        head = "\n".join([self._headline(), *self.left_out])
        return f"{head}\n{long_table(labelled(self.means)).text()}" if len(self.means) else head

    def _repr_html_(self) -> str:
        if self.means.is_empty():
            return f"<p>{self._headline()}</p>"
        return long_table(labelled(self.means), f"{self._headline()}; ").html()

    def _headline(self) -> str:
        parts = [
            counted(len(self.instances), "query", "queries"),
            counted(len(self.models), "click model"),
            counted(len(self.policies), "policy", "policies"),
        ]
        if len(self.means):
            parts.append(f"{counted(self.means['repetitions'][0], 'repetition')} of {first_rounds(self.means)}")
        return f"Results: {', '.join(parts)}"


def first_rounds(means: "DataFrame") -> str:
    """The rounds of a run in words."""
    return counted(max(means["round"]), "round")
