"""``saferank bench``: how long a round is on this machine."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saferank._version import __version__
from saferank.cli.console import STDERR, STDOUT, announce
from saferank.cli.options import ALL_POLICIES, LONGEST, OURS, Models, Plugins, Policies, Positions, at_most, names_in

if TYPE_CHECKING:
    from saferank.instances import Instance
    from saferank.simulation.bench import SpeedUp, Timing
    from saferank.simulation.experiment import Plan

QUERIES = 4


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
    policies: Policies = f"{ALL_POLICIES},{OURS}",
    models: Models = None,
    rounds: Annotated[
        int, typer.Option(min=1, callback=at_most(LONGEST), metavar="T", help="Rounds of a lap; more is steadier.")
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
    from saferank.cli.plugins import load_plugins

    announce()
    load_plugins(plugin or ())
    instances, plan = _task(policies, models, rounds, positions)
    timings, speed_up = _measured(instances, plan)
    if as_json:
        typer.echo(json.dumps(_as_json(timings, speed_up, plan), indent=1))
    else:
        _show(timings, speed_up)


def _task(policies: str, models: str | None, rounds: int, positions: int) -> "tuple[list[Instance], Plan]":
    from saferank.cli.errors import blaming
    from saferank.cli.instance_sets import EMBEDDED, instance_set
    from saferank.simulation.experiment import Plan

    names = names_in(policies, "--policies")
    with blaming("--policies"):
        plan = Plan(names, positions, rounds, repetitions=2)
    return instance_set(EMBEDDED, models, QUERIES, positions), plan


def _measured(instances: "list[Instance]", plan: "Plan") -> "tuple[list[Timing], SpeedUp]":
    from saferank.simulation.bench import time_jobs, time_policies

    with STDERR.status("timing; a quiet machine gives the best figures"):
        return list(time_policies(instances, plan)), time_jobs(instances, plan)


def _as_json(timings: "list[Timing]", speed_up: "SpeedUp", plan: "Plan") -> dict[str, Any]:
    return {
        "version": __version__,
        "positions": plan.n_positions,
        "rounds": plan.rounds,
        "timings": [{**asdict(timing), "multiple": timing.multiple} for timing in timings],
        "speed_up": {**asdict(speed_up), "factor": speed_up.factor},
    }


def _show(timings: "list[Timing]", speed_up: "SpeedUp") -> None:
    from saferank.cli.tables import timing_table

    bare = min(timing.bare_nanoseconds for timing in timings)
    STDOUT.print(timing_table(timings, f"nanoseconds a round (bare loop: {bare:.1f})", "ns"))
    STDOUT.print(timing_table(timings, "multiples of the bare loop", "multiples"))
    typer.echo(f"{speed_up.jobs} jobs are {speed_up.factor:.2f} times as fast as one")
