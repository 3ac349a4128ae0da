"""The work behind ``saferank simulate``: check everything, play, write, show."""

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path

import typer

from saferank.cli.console import STDOUT, announce
from saferank.cli.engines import compiling, engine_of
from saferank.cli.errors import InputError, Interrupted, blaming, writing
from saferank.cli.instance_sets import instance_set
from saferank.cli.options import names_in
from saferank.cli.output import output_folder
from saferank.cli.progress import round_meter
from saferank.cli.tables import results_table
from saferank.instances import Instance
from saferank.policies import policy_kind
from saferank.simulation.engine import Engine, simulate
from saferank.simulation.experiment import Plan, cells_of
from saferank.simulation.results import Result, provenance, write_results
from saferank.statistics.decision import decision_rule


@dataclass(frozen=True)
class Order:
    """What was asked for, as it was typed."""

    source: str
    policies: str
    positions: int
    rounds: int
    repetitions: int
    rule: str
    seed: int
    jobs: int
    checkpoints: str | None
    models: str | None
    queries: int | None
    cluster: str | None
    plugins: tuple[str, ...]
    out: Path
    command: list[str]


def carry_out(order: Order) -> None:
    """Run the experiment; nothing is played before everything that was given has been checked."""
    announce()
    plan = _plan(order)
    instances = instance_set(order.source, order.models, order.queries, order.positions)
    with output_folder(order.out), engine_of(order.jobs, order.cluster, order.plugins) as engine:
        started = time.perf_counter()
        results = _play(instances, plan, order, engine)
        _write(results, order, time.perf_counter() - started)
    _show(results, order.out)


def _plan(order: Order) -> Plan:
    policies = names_in(order.policies, "--policies")
    with blaming("--policies"):
        for name in policies:
            policy_kind(name)
    with blaming("--rule"):
        decision_rule(order.rule, order.rounds)
    texts = [] if order.checkpoints is None else order.checkpoints.split(",")
    checkpoints = tuple(_checkpoint(text, order.rounds) for text in texts)
    return Plan(policies, order.positions, order.rounds, order.repetitions, order.rule, order.seed, checkpoints)


def _checkpoint(text: str, rounds: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= rounds:
        expected = f"expected whole numbers from 1 to {rounds} (--rounds) with commas between, for example 1,{rounds}"
        raise InputError(f"--checkpoints: found {text.strip()!r}, {expected}")
    return int(text)


def _play(instances: list[Instance], plan: Plan, order: Order, engine: Engine) -> list[Result]:
    total = len(instances) * len(plan.policies) * plan.repetitions * plan.rounds
    with round_meter(total) as meter:
        try:
            with compiling():
                with blaming(order.source):
                    cells = cells_of(instances, plan)
                return simulate(cells, on_rounds=meter, engine=engine)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {meter.played:,} of {total:,} rounds; nothing was written") from None


def _write(results: list[Result], order: Order, seconds: float) -> None:
    path = order.out / "results.json"
    with writing(path):
        write_results(path, results, provenance(order.command, order.seed, seconds))


def _show(results: list[Result], folder: Path) -> None:
    STDOUT.print(results_table(results))
    typer.echo(folder / "results.json")
    if importlib.util.find_spec("matplotlib") is None:
        typer.echo("no figure without matplotlib; to get it: pip install 'saferank[report]'", err=True)
        return
    from saferank.report.figures import regret_figure

    figure = folder / "regret.png"
    with writing(figure):
        regret_figure(results, figure)
    typer.echo(figure)
