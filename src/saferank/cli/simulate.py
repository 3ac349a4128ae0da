"""``saferank simulate``: what it takes and what it tells; the work is done in ``experiment.py``."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.options import (
    ALL_POLICIES,
    CORES,
    Cluster,
    Jobs,
    Models,
    Plugins,
    Policies,
    Positions,
    Rounds,
    Rule,
    Seed,
)


def command(
    context: typer.Context,
    instances: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCES", help="Instance file (JSON), or the word `embedded` for the set that comes along."
        ),
    ] = "embedded",
    policies: Policies = ALL_POLICIES,
    positions: Positions = 5,
    rounds: Rounds = 100_000,
    repetitions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Independent runs of every policy on every instance.")
    ] = 100,
    rule: Rule = "paper:1/T",
    seed: Seed = 0,
    jobs: Jobs = CORES,
    checkpoints: Annotated[
        str | None,
        typer.Option(
            metavar="ROUNDS",
            help="Rounds at which results are written, like 10,100,1000.",
            show_default="about 200, every power of ten among them",
        ),
    ] = None,
    models: Models = None,
    queries: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Only the first N queries (ids).", show_default="all, 20 of the embedded"
        ),
    ] = None,
    plugin: Plugins = None,
    cluster: Cluster = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("saferank-results"),
) -> None:
    """Play policies against simulated users and measure regret and safety.

    Every policy plays every instance (a query with its items and the click model of its users) from the same original
    ranking, again and again from independent random streams.

    **Example**: `saferank simulate data/yandex60.json --policies kl-ucb-br,bubble-rank --rounds 10000 --out out`

    **What comes out**: a table of final regret, violations and wrong certificates; DIR/results.json with means
    and standard errors at every checkpoint; DIR/regret.png with the curves.
    """
    from saferank.cli.experiment import Order, carry_out
    from saferank.cli.plugins import load_plugins

    load_plugins(plugin or ())
    order = Order(
        source=instances,
        policies=policies,
        positions=positions,
        rounds=rounds,
        repetitions=repetitions,
        rule=rule,
        seed=seed,
        jobs=jobs,
        checkpoints=checkpoints,
        models=models,
        queries=queries,
        cluster=cluster,
        plugins=tuple(plugin or ()),
        out=out,
        command=context.obj,
    )
    carry_out(order)
