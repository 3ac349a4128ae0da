"""Tables of results and timings for the screen."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from saferank.experiments.tables import HEADINGS, final_rows, title
from saferank.simulation.bench import Timing
from saferank.simulation.results import Result


def results_table(results: Sequence[Result]) -> Table:
    """The end of every curve: one row per click model and policy, averaged over instances."""
    table = Table(title=title(results), box=box.SIMPLE_HEAD, title_justify="left")
    for place, heading in enumerate(HEADINGS):  # long names are folded, not cut
        table.add_column(heading, justify="left" if place < 2 else "right", overflow="fold")
    rows = final_rows(results)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(*row.cells(), end_section=following is not None and following.model != row.model)
    return table


def timing_table(timings: Sequence[Timing], title: str, unit: str) -> Table:
    """One row per policy, one column per click model; ``unit`` is what a cell shows: ns or multiples."""
    models = list(dict.fromkeys(timing.model for timing in timings))
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("policy", overflow="fold")
    for model in models:
        table.add_column(model, justify="right")
    for policy in dict.fromkeys(timing.policy for timing in timings):
        table.add_row(policy, *(_cell(timing, unit) for timing in timings if timing.policy == policy))
    return table


def _cell(timing: Timing, unit: str) -> str:
    return f"{timing.nanoseconds:.0f}" if unit == "ns" else f"{timing.multiple:.1f}x"
