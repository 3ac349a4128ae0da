"""Tables about a click log for the screen."""

from rich import box
from rich.table import Table

from saferank.logs import LogSummary


def summary_table(summary: LogSummary) -> Table:
    """The counts of a log, one a row."""
    table = Table("what", title=f"{summary.source} ({summary.format})", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("number", justify="right")
    for what, number in _counts(summary).items():
        if number is not None:
            table.add_row(what, f"{number:,}")
    table.add_row("pages without a click", f"{summary.abandonment:.2%}")
    return table


def _counts(summary: LogSummary) -> dict[str, int | None]:
    return {
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


def position_table(summary: LogSummary) -> Table:
    """Clicks and click-through rate by position."""
    table = Table(title="by position", box=box.SIMPLE_HEAD, title_justify="left")
    for heading in ("position", "pages", "clicks", "clicks a page"):
        table.add_column(heading, justify="right")
    for k, (shown, clicked) in enumerate(zip(summary.shown_by_position, summary.clicks_by_position, strict=True)):
        table.add_row(str(k + 1), f"{shown:,}", f"{clicked:,}", f"{clicked / shown:.4f}")
    return table
