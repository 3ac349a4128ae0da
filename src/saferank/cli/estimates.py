"""The work behind ``saferank fit``: read, estimate, evaluate; write when all is done, and show."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from saferank.cli.console import STDERR, STDOUT, announce
from saferank.cli.errors import InputError, Interrupted, blaming, writing
from saferank.cli.estimate_tables import convergence_table, evaluation_table, position_table
from saferank.cli.file_progress import MEGABYTES, file_meter
from saferank.cli.options import names_in
from saferank.cli.output import output_folder
from saferank.datasets import FORMATS, ClickLog, LogError, read_log, split
from saferank.datasets.sessions import RANKING_LENGTH
from saferank.fitting import ESTIMATORS, Fitted, estimator
from saferank.fitting.bootstrap import standard_errors
from saferank.fitting.evaluation import Evaluation, evaluate
from saferank.fitting.export import instances_of, save_errors
from saferank.instances import save_instances


@dataclass(frozen=True)
class Order:
    """What was asked for, as it was typed."""

    log: Path
    form: str
    out: Path
    models: str | None
    queries: int
    evaluate: float | None
    iterations: int
    replicates: int
    seed: int
    max_bad: float


def carry_out(order: Order) -> None:
    """Estimate; nothing is written before everything is known."""
    announce()
    names = _models(order)
    with output_folder(order.out.parent), _interruptible():
        log = read(order)
        fits = {name: fit(name, log, order) for name in names}
        STDOUT.print(convergence_table(fits))
        evaluations = _evaluations(names, log, order)
        errors = _errors(fits, log, order)
        _write(log, {name: fitted.model for name, fitted in fits.items()}, errors, order)
    _draw(evaluations, order)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None


def _models(order: Order) -> tuple[str, ...]:
    names = tuple(ESTIMATORS) if order.models is None else names_in(order.models, "--models")
    with blaming("--models"):
        for name in names:
            estimator(name)
    if order.replicates == 1:
        raise InputError("--replicates: found 1, expected 0 or at least 2: one log does not tell how far others differ")
    if order.evaluate is not None and not 0 < order.evaluate < 1:
        raise InputError(f"--evaluate: found {order.evaluate:g}, expected a share between 0 and 1, for example 0.25")
    return names


def read(order: Order) -> ClickLog:
    """The pages of the log's most frequent queries."""
    if order.form not in FORMATS:
        raise InputError(f"--format: unknown format {order.form!r}; known ones: {', '.join(FORMATS)}")
    size = order.log.stat().st_size if order.log.is_file() else 0
    try:
        with file_meter(2 * size, MEGABYTES) as meter:  # one pass counts queries, the other collects their pages
            log = read_log(order.log, order.form, queries=order.queries, max_bad=order.max_bad, progress=meter)
    except LogError as problem:
        raise InputError(str(problem)) from problem
    for warning in log.summary.warnings:
        typer.echo(f"{order.log}: {warning}", err=True)
    if not any(log.rankings):
        raise InputError(f"{order.log}: no query has a page of {RANKING_LENGTH} items; instances need one")
    return log


def fit(name: str, log: ClickLog, order: Order) -> Fitted:
    """One click model of the log."""
    with STDERR.status(f"estimating {name}"):
        return estimator(name)(log, order.iterations)


def _evaluations(names: tuple[str, ...], log: ClickLog, order: Order) -> dict[str, Evaluation]:
    if order.evaluate is None:
        return {}
    seen, unseen = split(log, order.evaluate, order.seed)
    if not len(seen.pages.weight) or not len(unseen.pages.weight):
        raise InputError(f"--evaluate {order.evaluate:g}: leaves no page to fit or none to evaluate; try another share")
    evaluations = {name: evaluate(fit(name, seen, order).model, unseen.pages) for name in names}
    STDOUT.print(evaluation_table(evaluations, int(unseen.pages.weight.sum())))
    STDOUT.print(position_table(evaluations))
    return evaluations


def _errors(fits: dict[str, Fitted], log: ClickLog, order: Order) -> dict[str, Any]:
    if order.replicates == 0:
        return {}
    with STDERR.status(f"standard errors from {order.replicates} drawn logs"):
        return {
            name: standard_errors(estimator(name), log, fitted, order.iterations, order.replicates, order.seed)
            for name, fitted in fits.items()
        }


def _write(log: ClickLog, models: dict[str, Any], errors: dict[str, Any], order: Order) -> None:
    about = f"estimated by saferank fit from {order.log.name}, {order.iterations} iterations"
    instances = instances_of(log, models)
    with writing(f"--out {order.out}"):
        save_instances(order.out, instances, about)
    typer.echo(f"{len(instances)} instances of {len(instances) // len(models)} queries: {order.out}")
    if errors:
        path = _beside(order.out, "errors.json")
        with writing(path):
            save_errors(path, instances_of(log, errors), f"standard errors, bootstrap of {order.replicates} replicates")
        typer.echo(f"standard errors: {path}")


def _draw(evaluations: dict[str, Evaluation], order: Order) -> None:
    if not evaluations:
        return
    if importlib.util.find_spec("matplotlib") is None:
        typer.echo("no figure without matplotlib; to get it: pip install 'saferank[report]'", err=True)
        return
    from saferank.report.click_through import click_through_figure

    path = _beside(order.out, "ctr.png")
    with writing(path):
        click_through_figure(evaluations, path)
    typer.echo(f"click-through by position: {path}")


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.stem}-{ending}")
