"""``saferank bench``: how long a round is on this machine."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.options import Models, Plugins, Positions, names_if_given, number

if TYPE_CHECKING:
    from saferank.simulation.bench import SpeedUp, Timing


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
    policies: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Policies to time, with commas between.", show_default="all"),
    ] = None,
    models: Models = None,
    rounds: Annotated[
        int, typer.Option(parser=number, metavar="T", help="Rounds of a lap; more is steadier.")
    ] = 100_000,
    positions: Positions = 5,
    plugin: Plugins = None,
) -> None:
    """Time a round of every policy under every click model.

    Beside each policy runs a bare loop that only draws the clicks, in turn with it; machines differ, and the multiple
    of the bare loop is the number to compare. Every figure is the fastest of several laps over embedded queries.

    **Example**: `saferank bench --policies kl-ucb-br,top-rank --models pbm,cm`

    **What comes out**: nanoseconds a round, multiples of the bare loop, and how much faster two jobs are than
    one; with --json the same as `{"timings": [...], "speed_up": {...}}`.
    """
    from saferank.checks.plugin import load_checked_plugins
    from saferank.experiments.bench import bench

    load_checked_plugins(plugin or ())
    found = bench(names_if_given(policies, "--policies"), names_if_given(models, "--models"), rounds, positions)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1))
    else:
        _show(found.timings, found.speed_up)


def _show(timings: "list[Timing]", speed_up: "SpeedUp") -> None:
    from saferank.cli.terminal.tables import timing_table

    bare = min(timing.bare_nanoseconds for timing in timings)
    STDOUT.print(timing_table(timings, f"nanoseconds a round (bare loop: {bare:.1f})", "ns"))
    STDOUT.print(timing_table(timings, "multiples of the bare loop", "multiples"))
    typer.echo(f"{speed_up.jobs} jobs are {speed_up.factor:.2f} times as fast as one")
