"""Comparisons on the screen: pairs of policies, and the tails of each."""

from typing import Any

import typer
from rich import box
from rich.table import Table

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.tables import add_names, in_lines
from saferank.experiments.comparisons import LEVELS, Comparison, Comparisons, ModelDifference, Tail
from saferank.experiments.sources import in_words
from saferank.reporting.numbers import Measured, plainly

_WIDEST = 14
"""Characters of a name in a line: two names stand in a row beside five numbers."""


def show_comparisons(found: Comparisons, provenance: dict[str, Any]) -> None:
    """Print both tables and what was played."""
    STDOUT.print(pair_table(found))
    STDOUT.print(tail_table(found))
    source = in_words(provenance)
    if source is not None:
        typer.echo(source)


def pair_table(found: Comparisons) -> Table:
    """One row per click model and pair."""
    what = found.measure.replace("_", " ")
    title = f"{what}: first policy minus second, same queries, same users; + = - counts queries"
    table = _table(f"{title} on which the first is better, not clearly different, worse")
    table.add_column("model")
    for heading in ("first", "second"):
        add_names(table, heading, [tail.policy for tail in found.tails], _WIDEST)
    for heading in ("± within", "± across", "+ = -", "p", "Holm"):
        table.add_column(heading, justify="right", overflow="fold")
    models = dict.fromkeys(each.model for pair in found.pairs for each in pair.by_model)
    for model in models:
        for pair in found.pairs:
            for each in pair.by_model:
                if each.model == model:
                    table.add_row(*_cells(pair, each))
        table.add_section()
    return table


def _cells(pair: Comparison, each: ModelDifference) -> tuple[str, ...]:
    across = "-" if each.stderr_across is None else plainly(each.stderr_across)
    outcomes = f"{each.wins} {each.ties} {each.losses}"
    tested = ("-" if p is None else f"{p:.1g}" for p in (each.p_value, each.p_holm))
    return (
        each.model,
        in_lines(pair.a, _WIDEST),
        in_lines(pair.b, _WIDEST),
        str(Measured(each.difference, each.stderr_within)),
        across,
        outcomes,
        *tested,
    )


def tail_table(found: Comparisons) -> Table:
    """One row per click model and policy: quantiles over all runs, and the worst one."""
    table = _table(f"{found.measure.replace('_', ' ')} of single runs")
    table.add_column("model")
    add_names(table, "policy", [tail.policy for tail in found.tails], _WIDEST)
    for heading in ("runs", *(f"{100 * level:g} %" for level in LEVELS), "worst", "query and run"):
        table.add_column(heading, justify="right", overflow="fold")
    for tail in sorted(found.tails, key=lambda tail: [each.model for each in found.tails].index(tail.model)):
        table.add_row(*_tail_cells(tail))
    return table


def _tail_cells(tail: Tail) -> tuple[str, ...]:
    numbers = [plainly(value) for value in (*tail.quantiles, tail.worst)]
    worst = in_lines(f"{tail.worst_instance} {tail.worst_repetition}", _WIDEST)
    return tail.model, in_lines(tail.policy, _WIDEST), f"{tail.runs:,}", *numbers, worst


def _table(title: str) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
