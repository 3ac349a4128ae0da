"""A forecast on the screen: one row a policy, one sentence, and where the files are."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich import box
from rich.table import Table

from saferank.cli.terminal.console import STDOUT
from saferank.forecasting.outcome import Band, Forecast
from saferank.forecasting.playing import CHANGED, CONFIRMED
from saferank.forecasting.worlds import DEADLINES


def show_forecast(found: Forecast, files: Sequence[Path]) -> None:
    """Print the table, the headline and the files."""
    STDOUT.print(forecast_table(found))
    typer.echo(found.headline)
    for file in files:
        typer.echo(file)


def forecast_table(found: Forecast) -> Table:
    """One row for each policy."""
    queries = f"{len(found.queries)} queries with {found.covered:.0%} of {found.pages_a_day:,.0f} pages a day"
    title = f"extra clicks a day (bands of 90 %), {queries}, users by {found.model}"
    table = Table("policy", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    deadlines = "/".join(map(str, DEADLINES))
    for heading in ("week 1", "last week", f"decided, {deadlines} d", "worst page", "cost if right"):
        table.add_column(heading, justify="right", overflow="fold")
    for policy in found.policies:
        decided = [policy.decided[days][CHANGED].mean + policy.decided[days][CONFIRMED].mean for days in DEADLINES]
        table.add_row(
            policy.policy,
            _band(policy.weeks[0]),
            _band(policy.weeks[-1]),
            "/".join(f"{number:.0f}" for number in decided),
            f"{policy.worst_page:.3f}",
            "-" if policy.right_cost is None else f"{100 * policy.right_cost.estimate:+.1f} %",
        )
    return table


def _band(band: Band) -> str:
    return f"{band.estimate:+,.0f} ({band.low:+,.0f} to {band.high:+,.0f})"
