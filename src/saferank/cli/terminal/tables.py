"""What commands print: results, timings, comparisons, claims, fits, forecasts and logs as tables and lines."""

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.table
import typer
from rich import box
from rich.console import Console
from rich.markup import escape

from saferank.errors import writing
from saferank.experiments.sources import in_words
from saferank.reporting.claims import HOLDS
from saferank.reporting.frames import RESULTS, labelled
from saferank.reporting.numbers import counted
from saferank.reporting.pooling import long_table
from saferank.reporting.readings import claims_table, in_standard_errors
from saferank.table import MarkedCell, TextTable, text_of

if TYPE_CHECKING:
    from saferank.experiments.results import Results
    from saferank.fitting.fit import Fit
    from saferank.forecasting.outcome import Forecast
    from saferank.logs import LogSummary
    from saferank.reporting.build import Report
    from saferank.simulation.bench import SpeedUp, Timing

STDOUT = Console()
"""Results go to stdout, everything about the way there to stderr."""
_WIDEST, _TWO_NAMES = 18, 14
"""Characters of a name in a line, so that a table fits a screen of 80 columns; fewer beside many numbers."""
_MANY = 7
_COLOURS = {"holds": "green", "fails": "bold red", "open": "yellow"}
_NO_FIGURE = "no figure without matplotlib; to get it: pip install 'saferank[report]'"


def drawn(table: TextTable) -> rich.table.Table:
    """A table for the screen: names of policies in lines, numbers to the right, a rule where the first name changes."""
    many, all_names = len(table.columns) >= _MANY, table.names == len(table.columns)
    looks: dict[str, Any] = {"padding": (0, 1, 0, 0), "pad_edge": False} if many else {}
    made = rich.table.Table(
        title=escape(table.title), title_justify="left", box=box.SIMPLE_HEAD, show_header=any(table.columns), **looks
    )
    wide = _TWO_NAMES if many else _WIDEST
    widths = [wide if heading in ("policy", "first", "second") else 0 for heading in table.columns]
    rows = [[_cell(cell, width) for cell, width in zip(row, widths, strict=False)] for row in table.rows]
    for place, (heading, width) in enumerate(zip(table.columns, widths, strict=True)):
        lines = [line for row in rows if len(row) > place for line in row[place].split("\n")] if width else []
        least = min(max(map(len, lines)), width) if lines else None
        justify: Any = "left" if place < table.names else "right"
        made.add_column(escape(text_of(heading)), justify=justify, overflow="fold", min_width=least)
    for row, following in zip(rows, [*rows[1:], [""]], strict=True):
        last = len(following) < len(row) if all_names else table.names > 1 and following[0] not in ("", row[0])
        made.add_row(*row, end_section=last)
    return made


def _cell(cell: str | MarkedCell, width: int) -> str:
    if isinstance(cell, str):
        return escape(in_lines(cell, width) if width else cell)
    colour = _COLOURS.get(cell.look)
    text = f"[{colour}]{escape(cell.text)}[/{colour}]" if colour else escape(cell.text)
    return f"{text} {escape(cell.beside)}" if cell.beside else text


def show(*parts: object) -> None:
    """Print tables as tables, and everything else as lines; None: nothing."""
    for part in parts:
        if isinstance(part, TextTable):
            STDOUT.print(drawn(part))
        elif part is not None:
            typer.echo(part)


def show_results(results: "Results", folder: Path) -> None:
    """Print the table, what was played, the results file, and the figure, or how to get matplotlib."""
    source = in_words(results.provenance)
    show(long_table(labelled(results.means)), *results.left_out, source, folder / RESULTS)
    if _can_draw():
        show(results.plot().save(folder / "regret.png"))


def _can_draw() -> bool:
    if importlib.util.find_spec("matplotlib") is not None:
        return True
    typer.echo(_NO_FIGURE, err=True)
    return False


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


def show_timings(timings: "Sequence[Timing]", speed_up: "SpeedUp") -> None:
    """Print nanoseconds, multiples of the bare loop, and how much faster two jobs are."""
    bare = min(timing.bare_nanoseconds for timing in timings)
    show(
        timing_table(timings, f"nanoseconds a round (bare loop: {bare:.1f})", "ns"),
        timing_table(timings, "multiples of the bare loop", "multiples"),
        f"{speed_up.jobs} jobs are {speed_up.factor:.2f} times as fast as one",
    )


def timing_table(timings: "Sequence[Timing]", title: str, unit: str) -> TextTable:
    """One row per policy, one column per click model; ``unit`` is what a cell shows: ns or multiples."""
    models = dict.fromkeys(timing.model for timing in timings)
    cells: dict[str, list[str]] = {}
    for each in timings:
        text = f"{each.nanoseconds:.0f}" if unit == "ns" else f"{each.multiple:.1f}x"
        cells.setdefault(each.policy, []).append(text)
    return TextTable(title, ["policy", *models], [[policy, *row] for policy, row in cells.items()])


def show_report(report: "Report") -> None:
    """Print the verdicts, one row a claim and one column a click model; in words what does not hold or was not run."""
    show(*(f"{weakness}: claims under it are about other users" for weakness in report.weaknesses))
    if report.claims:
        show(claims_table(report.claims, list(dict.fromkeys(claim.model for claim in report.claims))))
    for claim in report.claims:
        if claim.verdict != HOLDS:
            errors = in_standard_errors(claim.standard_errors)
            show(f"{claim.verdict}: {claim.sentence}: {claim.numbers} ({errors})")
    if report.claims:  # else the last line says that there are none, and the page says why
        show(*(f"not run: {counted(len(of_it), 'claim')}: {reason}" for reason, of_it in report.reasons.items()))
    show(report.headline, report.page)


def show_fit(found: "Fit", files: Sequence[Path]) -> None:
    """Print how far EM came and how well models foresee held-out pages, draw click-through, and print the paths."""
    show(*found.tables(), f"{len(found.instances)} instances of {len(found.queries)} queries: {files[0]}")
    show(*(f"standard errors: {errors}" for errors in files[1:]))
    if not found.evaluations or not _can_draw():
        return
    from saferank.reporting.figures.click_through import click_through_figure

    path = files[0].with_name(f"{files[0].stem}-ctr.png")
    with writing(path):
        click_through_figure(found.evaluations, path)
    show(f"click-through by position: {path}")


def forecast_table(found: "Forecast") -> TextTable:
    """One row for each policy."""
    from saferank.forecasting.playing import CHANGED, CONFIRMED
    from saferank.forecasting.worlds import DEADLINES

    queries = f"{len(found.queries)} queries with {found.covered:.0%} of {found.pages_a_day:,.0f} pages a day"
    title = f"extra clicks a day (bands of 90 %), {queries}, users by {found.model}"
    deadlines = "/".join(map(str, DEADLINES))
    columns = ["policy", "week 1", "last week", f"decided, {deadlines} d", "worst page", "cost if right"]
    rows = []
    for policy in found.policies:
        decided = [policy.decided[days][CHANGED].mean + policy.decided[days][CONFIRMED].mean for days in DEADLINES]
        cost = "-" if policy.right_cost is None else f"{100 * policy.right_cost.estimate:+.1f} %"
        weeks = [str(policy.weeks[week]) for week in (0, -1)]
        counts = "/".join(f"{number:.0f}" for number in decided)
        rows.append([policy.policy, *weeks, counts, f"{policy.worst_page:.3f}", cost])
    return TextTable(title, columns, rows)


def show_summary(summary: "LogSummary") -> None:
    """Print the counts of a log, clicks by position, and its bad lines."""
    counts = {
        "lines": summary.lines,
        "bad lines": summary.bad,
        "sessions": summary.sessions,
        "pages": summary.pages,
        "pages of T records, left out": summary.test_pages,
        "clicks on them, left out": summary.test_clicks,
        "different queries": summary.queries,
        "clicked items": summary.clicks,
        "stray clicks, on items not shown": summary.stray_clicks,
    }
    rows = [[what, f"{number:,}"] for what, number in counts.items() if number is not None]
    rows.append(["pages without a click", f"{summary.abandonment:.2%}"])
    both = enumerate(zip(summary.shown_by_position, summary.clicks_by_position, strict=True), 1)
    places = [[str(k), f"{shown:,}", f"{clicked:,}", f"{clicked / shown:.4f}"] for k, (shown, clicked) in both]
    show(
        TextTable(f"{summary.source} ({summary.format})", ["what", "number"], rows),
        TextTable("by position", ["position", "pages", "clicks", "clicks a page"], places, names=0),
        *(f"bad lines: {bad}" for bad in summary.bad_lines),
    )
