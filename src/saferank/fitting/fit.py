"""``saferank.fit``: from a click log to click models, their standard errors and their quality, as one function."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from saferank.click_models import PBM
from saferank.errors import ArgumentError, RunInterrupted, argument, several, unknown, whole_number, writing
from saferank.fitting import ESTIMATORS, ITERATIONS, Estimator, Fitted, estimator
from saferank.fitting.bootstrap import standard_errors
from saferank.fitting.evaluation import Evaluation, evaluate_model
from saferank.fitting.export import instances_of, save_errors
from saferank.instances import Instance, save_instances
from saferank.logs import FORMATS, ClickLog, LogSummary, read_log, split
from saferank.logs.reading import source_of
from saferank.logs.records import check_lengths
from saferank.logs.tables.passes import pages_by_length
from saferank.progress import MEGABYTES, Reporter, progress_of
from saferank.table import TextTable


@dataclass(frozen=True, eq=False)
class Fit:
    """Click models of a log."""

    log: str  # the name of the file
    summary: LogSummary  # what was read and what was left out
    models: dict[str, Fitted]  # by name
    instances: list[Instance]  # one for each query and model, for ``simulate``
    iterations: int  # of EM
    errors: list[Instance] = field(default_factory=list)  # standard errors in the shape of instances, if asked for
    replicates: int = 0  # logs drawn for standard errors
    evaluations: dict[str, Evaluation] = field(default_factory=dict)  # by model, if asked for
    held_out: int = 0  # pages on which models were evaluated

    @property
    def queries(self) -> list[str]:
        """The ids of the queries that have instances."""
        return list(dict.fromkeys(instance.id for instance in self.instances))

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the instance file and, if there are any, the standard errors beside it.

        Args:
            path: The instance file.

        Returns:
            The files.

        Raises:
            OutputError: A file cannot be written.

        """
        out = Path(path)
        about = f"estimated by saferank fit from {self.log}, {self.iterations} iterations"
        with writing(out):
            save_instances(out, self.instances, about)
        if not self.errors:
            return [out]
        beside = out.with_name(f"{out.stem}-errors.json")
        with writing(beside):
            save_errors(beside, self.errors, f"standard errors, bootstrap of {self.replicates} replicates")
        return [out, beside]

    def tables(self) -> list[TextTable]:
        """How far EM came, and how well the models foresee held-out pages where they were evaluated."""
        rows = [
            [
                name, str(fitted.iterations), f"{fitted.log_likelihoods[-1]:,.2f}",
                "-" if fitted.last_change is None else f"{fitted.last_change:+.2g}",
            ]
            for name, fitted in self.models.items()
        ]  # fmt: skip
        estimation = TextTable("estimation", ["model", "iterations", "log-likelihood", "last change"], rows)
        if not self.evaluations:
            return [estimation]
        best = max(self.evaluations, key=lambda name: self.evaluations[name].log_likelihood)
        quality = [
            [
                f"{name} *" if name == best else name, f"{found.log_likelihood:.4f}", f"{found.perplexity:.4f}",
                f"{100 * found.impossible:.1f} %",
            ]
            for name, found in self.evaluations.items()
        ]  # fmt: skip
        by_position = zip(*(found.perplexities for found in self.evaluations.values()), strict=True)
        places = [[str(k), *(f"{perplexity:.4f}" for perplexity in row)] for k, row in enumerate(by_position, 1)]
        columns = ["model", "log-likelihood a page", "perplexity", "impossible pages"]
        return [
            estimation,
            TextTable(f"{self.held_out:,} held-out pages (* the best model)", columns, quality),
            TextTable("perplexity by position", ["position", *self.evaluations], places),
        ]

    def __repr__(self) -> str:
        head = f"Fit of {', '.join(self.models)} to {self.log}: {len(self.queries)} queries"
        return "\n\n".join([head, *(f"{table.title}\n{table.text()}" for table in self.tables())])


def fit(
    log: Any,
    format: str = "sessions",
    models: Sequence[str] | None = None,
    queries: int = 100,
    *,
    page_length: int | None = None,
    items: int | None = None,
    normalize: str | None = None,
    evaluate: float | None = None,
    iterations: int = ITERATIONS,
    replicates: int = 30,
    seed: int = 0,
    max_bad: float = 0.01,
    progress: bool = True,
) -> Fit:
    """Estimate click models from the pages of a log's most frequent queries.

    Args:
        log: A file in this ``format``; or sessions, as a frame or a list of dicts with query, items and clicked.
        format: The format of the file (docs/researchers/click-logs.md).
        models: Names of click models; None: all.
        queries: How many queries, the most frequent first.
        page_length: Items of the rankings that instances are made of, each query's most frequent one; None: ten where
            a query has such a page, else its most frequent length.
        items: The largest number of items of an instance: beyond the ranking those come that other pages showed, the
            most shown first; None: the ranking alone.
        normalize: ``first``: PBM on the scale on which the first position is always examined, which clicks do not
            tell; attractions are click-through there. None: the scale on which EM ends.
        evaluate: A share of the pages that is held out to compare the models on; None: none.
        iterations: Of EM.
        replicates: Logs that are drawn for standard errors; 0: none.
        seed: Seed of what is held out and drawn.
        max_bad: The share of unreadable lines up to which the log is read.
        progress: Show a bar.

    Returns:
        The click models, and an instance for each query and model.

    Raises:
        UsageError: Something cannot be used: an argument, the log, or too many of its lines.
        RunInterrupted: Ctrl-C.

    """
    names = checked_models(models)
    check_lengths(page_length, items)
    whole_number(iterations, "iterations")
    _check(replicates, evaluate)
    if normalize not in (None, "first"):
        raise ArgumentError("normalize", f"found {normalize!r}, expected first or None")
    shown, source = progress_of(progress), source_of(log)
    try:
        pages = read_pages(source, format, queries, max_bad, shown, page_length)
        fits = {name: scaled(estimate(name, pages, iterations, shown), normalize) for name in names}
        evaluations, held_out = evaluated(names, pages, evaluate, iterations, seed, shown) if evaluate else ({}, 0)
        if evaluate and not evaluations:
            reason = f"{evaluate:g} leaves no page to fit or none to evaluate; try another share"
            raise ArgumentError("evaluate", reason)
        errors = _errors(fits, pages, iterations, replicates, seed, shown, normalize)
    except KeyboardInterrupt:
        raise RunInterrupted("interrupted; nothing was written") from None
    instances = instances_of(pages, {name: fitted.model for name, fitted in fits.items()}, items)
    return Fit(
        log=Path(pages.summary.source).name,
        summary=pages.summary,
        models=fits,
        instances=instances,
        iterations=iterations,
        errors=instances_of(pages, errors, items) if errors else [],
        replicates=replicates,
        evaluations=evaluations,
        held_out=held_out,
    )


def checked_models(models: Sequence[str] | None) -> tuple[str, ...]:
    """The names of click models that can be estimated; None for all."""
    names = tuple(ESTIMATORS) if models is None else several(models, "models")
    with argument("models"):
        for name in names:
            estimator(name)
    return names


def _check(replicates: int, evaluate: float | None) -> None:
    whole_number(replicates, "replicates", at_least=0)
    if replicates == 1:
        reason = "found 1, expected 0 or at least 2: one log does not tell how far others differ"
        raise ArgumentError("replicates", reason)
    if evaluate is not None and not 0 < evaluate < 1:
        raise ArgumentError("evaluate", f"found {evaluate:g}, expected a share between 0 and 1, for example 0.25")


def read_pages(
    path: Path | list[Any], form: str, queries: int, max_bad: float, shown: Reporter, page_length: int | None = None
) -> ClickLog:
    """The pages of the most frequent queries, of which at least one has a ranking for instances."""
    if form not in FORMATS:
        raise ArgumentError("format", unknown("format", form, FORMATS))
    whole_number(queries, "queries")
    size = path.stat().st_size if isinstance(path, Path) and path.is_file() else 0
    with shown.meter(2 * size, MEGABYTES) as meter:  # one pass counts queries, the other collects their pages
        log = read_log(path, form, queries=queries, page_length=page_length, max_bad=max_bad, progress=meter)
    for warning in log.summary.warnings:
        shown.note(f"{log.summary.source}: {warning}")
    if not any(log.rankings):
        reason = f"no query has a page of {page_length} items; there are pages of {_lengths_of(log)} items"
        raise ArgumentError("page_length", f"{log.summary.source}: {reason}; choose one of these, or leave it out")
    return log


def _lengths_of(log: ClickLog) -> str:
    """The most frequent lengths of pages, in words."""
    counts = pages_by_length(log.pages).sum(axis=0)
    frequent = [int(length) for length in np.argsort(-counts, kind="stable")[:4] if counts[length]]
    return ", ".join(map(str, frequent))


def estimate(name: str, log: ClickLog, iterations: int, shown: Reporter) -> Fitted:
    """One click model of the log."""
    with shown.status(f"estimating {name}"):
        return estimator(name)(log, iterations)


def scaled(fitted: Fitted, normalize: str | None) -> Fitted:
    """PBM on the scale on which the first position is always examined, if that is asked for; others as they are."""
    if normalize is None or not isinstance(fitted.model, PBM):
        return fitted
    attraction, examination = fitted.model
    model = PBM(attraction * examination[0], np.minimum(examination / examination[0], 1.0))
    return replace(fitted, model=model)


def evaluated(
    names: Sequence[str], log: ClickLog, share: float, iterations: int, seed: int, shown: Reporter
) -> tuple[dict[str, Evaluation], int]:
    """The models, fitted without a share of the pages, on that share, and how many pages that are.

    Nothing where no page with a click is left to fit, or no page to evaluate.
    """
    seen, unseen = split(log, share, seed)
    if not seen.pages.clicks.any() or not len(unseen.pages.weight):
        return {}, 0
    found = {name: evaluate_model(estimate(name, seen, iterations, shown).model, unseen.pages) for name in names}
    return found, int(unseen.pages.weight.sum())


def _errors(
    fits: Mapping[str, Fitted],
    log: ClickLog,
    iterations: int,
    replicates: int,
    seed: int,
    shown: Reporter,
    normalize: str | None,
) -> dict[str, Any]:
    def on_scale(name: str) -> Estimator:
        return lambda *given: scaled(estimator(name)(*given), normalize)

    if replicates == 0:
        return {}
    with shown.status(f"standard errors from {replicates} drawn logs"):
        return {
            name: standard_errors(on_scale(name), log, fitted, iterations, replicates, seed)
            for name, fitted in fits.items()
        }
