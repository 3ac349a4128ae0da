"""Results on the screen: the table, where the files are, the figure."""

import importlib.util
from pathlib import Path

import typer

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.tables import results_table
from saferank.experiments.frames import labelled
from saferank.experiments.results import Results
from saferank.experiments.sources import in_words

NO_FIGURE = "no figure without matplotlib; to get it: pip install 'saferank[report]'"


def show_results(results: Results, file: Path) -> None:
    """Print the table, what was played, and the path of the results file."""
    STDOUT.print(results_table(labelled(results.curves)))
    for sentence in results.left_out:
        typer.echo(sentence)
    source = in_words(results.provenance)
    if source is not None:
        typer.echo(source)
    typer.echo(file)


def show_figure(results: Results, path: Path) -> None:
    """Draw the figure and print its path, or how to get matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        typer.echo(NO_FIGURE, err=True)
        return
    typer.echo(results.plot().save(path))
