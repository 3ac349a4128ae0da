"""Fitted click models on the screen: how far EM came, how well models predict held-out pages, where the files are."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich import box
from rich.table import Table

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.results import NO_FIGURE
from saferank.errors import writing
from saferank.fitting import Fitted
from saferank.fitting.evaluation import Evaluation
from saferank.fitting.fit import Fit


def show_fit(found: Fit, files: Sequence[Path]) -> None:
    """Print the tables and the paths."""
    STDOUT.print(convergence_table(found.models))
    if found.evaluations:
        STDOUT.print(evaluation_table(found.evaluations, found.held_out))
        STDOUT.print(position_table(found.evaluations))
    typer.echo(f"{len(found.instances)} instances of {len(found.queries)} queries: {files[0]}")
    for errors in files[1:]:
        typer.echo(f"standard errors: {errors}")


def show_click_through(found: Fit, path: Path) -> None:
    """Draw click-through by position of models that were evaluated, and print the path."""
    if not found.evaluations:
        return
    if importlib.util.find_spec("matplotlib") is None:
        typer.echo(NO_FIGURE, err=True)
        return
    from saferank.reporting.figures.click_through import click_through_figure

    with writing(path):
        click_through_figure(found.evaluations, path)
    typer.echo(f"click-through by position: {path}")


def convergence_table(fits: Mapping[str, Fitted]) -> Table:
    """Where EM stands after its last iteration, and how much it still moved."""
    table = _table("estimation", "iterations", "log-likelihood", "last change")
    for name, fitted in fits.items():
        change = "-" if fitted.last_change is None else f"{fitted.last_change:+.2g}"
        table.add_row(name, str(fitted.iterations), f"{fitted.log_likelihoods[-1]:,.2f}", change)
    return table


def evaluation_table(evaluations: Mapping[str, Evaluation], n_pages: int) -> Table:
    """All models side by side, the most likely one marked."""
    title = f"{n_pages:,} held-out pages (* the best model)"
    table = _table(title, "log-likelihood a page", "perplexity", "impossible pages")
    best = max(evaluations, key=lambda name: evaluations[name].log_likelihood)
    for name, found in evaluations.items():
        row = f"{found.log_likelihood:.4f}", f"{found.perplexity:.4f}", f"{100 * found.impossible:.1f} %"
        table.add_row(f"{name} *" if name == best else name, *row)
    return table


def position_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """Perplexity by position, one column per model."""
    table = _table("perplexity by position", *evaluations, first="position")
    rows = zip(*(found.perplexities for found in evaluations.values()), strict=True)
    for k, row in enumerate(rows):
        table.add_row(str(k + 1), *(f"{perplexity:.4f}" for perplexity in row))
    return table


def _table(title: str, *headings: str, first: str = "model") -> Table:
    table = Table(first, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
