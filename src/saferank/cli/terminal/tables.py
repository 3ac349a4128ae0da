"""Tables of results and timings for the screen."""

import re
from collections.abc import Sequence

from rich import box
from rich.table import Table

from saferank.experiments.frames import HEADINGS, final_rows, title
from saferank.simulation.bench import Timing
from saferank.simulation.results import Result

_WIDEST = 18
"""Characters of a name in a line, so that a table fits a screen of 80 columns."""


def results_table(results: Sequence[Result]) -> Table:
    """The end of every curve: one row per click model and policy, averaged over instances."""
    table = Table(title=title(results), box=box.SIMPLE_HEAD, title_justify="left")
    rows = final_rows(results)
    model, policy, *numbers = HEADINGS
    table.add_column(model, overflow="fold")
    add_names(table, policy, [row.policy for row in rows], _WIDEST)
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        model, policy, *cells = row.cells()
        table.add_row(
            model, in_lines(policy, _WIDEST), *cells, end_section=following is not None and following.model != row.model
        )
    return table


def timing_table(timings: Sequence[Timing], title: str, unit: str) -> Table:
    """One row per policy, one column per click model; ``unit`` is what a cell shows: ns or multiples."""
    models = list(dict.fromkeys(timing.model for timing in timings))
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    add_names(table, "policy", [timing.policy for timing in timings], _WIDEST)
    for model in models:
        table.add_column(model, justify="right")
    for policy in dict.fromkeys(timing.policy for timing in timings):
        table.add_row(
            in_lines(policy, _WIDEST), *(_cell(timing, unit) for timing in timings if timing.policy == policy)
        )
    return table


def in_lines(name: str, width: int) -> str:
    r"""A name in lines of at most ``width`` characters, broken between words, and in long ones after a colon or =.

    >>> in_lines("bubble-rank:all-candidates", 18)
    'bubble-rank:\nall-candidates'
    >>> in_lines("kl-ucb-br rule=anytime:1e-5 K=3", 18)
    'kl-ucb-br\nrule=anytime:1e-5\nK=3'
    """
    lines = [""]
    for word in re.findall(r"[^ ]* ?", name):
        for part in [word] if len(word.rstrip()) <= width else re.findall(r"[^:=]*[:=]?", word):
            if lines[-1] and len((lines[-1] + part).rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def add_names(table: Table, heading: str, names: Sequence[str], width: int) -> None:
    """Add a column that is wide enough for these names in lines; only a part that is longer is folded."""
    longest = max((len(line) for name in names for line in in_lines(name, width).split("\n")), default=1)
    table.add_column(heading, overflow="fold", min_width=min(longest, width))


def _cell(timing: Timing, unit: str) -> str:
    return f"{timing.nanoseconds:.0f}" if unit == "ns" else f"{timing.multiple:.1f}x"
