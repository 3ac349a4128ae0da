"""``saferank bench``: how long a round is on this machine."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saferank._version import __version__
from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.options import Models, Plugins, Positions, names_if_given, number

if TYPE_CHECKING:
    from saferank.instances import Instance
    from saferank.simulation.bench import SpeedUp, Timing
    from saferank.simulation.experiment import Plan

QUERIES = 4


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

    load_checked_plugins(plugin or ())
    instances, plan = _task(policies, models, rounds, positions)
    timings, speed_up = _measured(instances, plan)
    if as_json:
        typer.echo(json.dumps(_as_json(timings, speed_up, plan), indent=1))
    else:
        _show(timings, speed_up)


def _task(policies: str | None, models: str | None, rounds: int, positions: int) -> "tuple[list[Instance], Plan]":
    from saferank.experiments.simulate import plan_of
    from saferank.instances import choose_instances
    from saferank.policies import POLICIES

    names = names_if_given(policies, "--policies") or tuple(POLICIES)
    plan = plan_of(names, positions, rounds, repetitions=2, rule="paper:1/T", seed=0)
    return choose_instances(models=names_if_given(models, "--models"), queries=QUERIES), plan


def _measured(instances: "list[Instance]", plan: "Plan") -> "tuple[list[Timing], SpeedUp]":
    from saferank.progress import progress_of
    from saferank.simulation.bench import time_jobs, time_policies

    with progress_of(True).status("timing; a quiet machine gives the best figures"):
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
    from saferank.cli.terminal.tables import timing_table

    bare = min(timing.bare_nanoseconds for timing in timings)
    STDOUT.print(timing_table(timings, f"nanoseconds a round (bare loop: {bare:.1f})", "ns"))
    STDOUT.print(timing_table(timings, "multiples of the bare loop", "multiples"))
    typer.echo(f"{speed_up.jobs} jobs are {speed_up.factor:.2f} times as fast as one")
