"""``saferank simulate``: options, one call of ``saferank.simulate``, a table."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import naming
from saferank.cli.terminal.options import (
    Cluster,
    Jobs,
    Models,
    Overwrite,
    Plugins,
    Policies,
    Resume,
    Rounds,
    Seed,
    floats_in,
    names_if_given,
    number,
    numbers_in,
    numbers_or_none_in,
    settings_in,
)


def command(
    context: typer.Context,
    instances: Annotated[
        str,
        typer.Argument(metavar="INSTANCES", help="Instance file (JSON), or the word `embedded` for the built-in set."),
    ] = "embedded",
    policies: Policies = None,
    positions: Annotated[
        str, typer.Option(metavar="K", help="How many items a page shows; several with commas between are all played.")
    ] = "5",
    rounds: Rounds = 100_000,
    repetitions: Annotated[
        int, typer.Option(parser=number, metavar="N", help="Independent runs of every policy on every instance.")
    ] = 100,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Decision rule: paper:DELTA or anytime:ALPHA; 1/T is one over --rounds. May be given several times: "
            "then all are played, each by the policies that take it.",
            show_default="paper:1/T, for safe-draw anytime:1/T",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
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
            parser=number, metavar="N", help="Only the first N queries (ids).", show_default="all, 20 of the embedded"
        ),
    ] = None,
    drift: Annotated[
        str | None,
        typer.Option(
            metavar="DRIFT",
            help="How attraction changes during a run: step:ROUND:TO (at once), slow:FIRST:LAST:TO (in 100 small "
            "steps), arrivals:EVERY (unranked items arrive one by one, with attraction 0 before), departures:EVERY "
            "(unranked items leave one by one, with attraction 0 afterwards). TO is `original` "
            "(the original ranking becomes the optimal one) or `reversed` (the best item becomes the worst one, and "
            "so on). Several with commas between.",
            show_default="nothing changes",
        ),
    ] = None,
    lifetime: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="Rounds of an epoch: evidence starts at zero in each, and a certificate holds until the end of the "
            "next one. For policies that certify; the others are played as they are. Several with commas between, "
            "`none` among them, are all played.",
            show_default="certificates never end",
        ),
    ] = None,
    delay: Annotated[
        str,
        typer.Option(metavar="PAGES", help="Delay of clicks, in pages: a number, or geometric:MEAN."),
    ] = "0",
    lost_pages: Annotated[
        float, typer.Option(metavar="P", help="Probability that all feedback of a page is lost.")
    ] = 0.0,
    lost_clicks: Annotated[float, typer.Option(metavar="P", help="Probability that a click is lost.")] = 0.0,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="PLACES",
            help="A screen that shows the page in another order than the policy assumes: for each place on the screen "
            "the position of the item shown there, like 2,1,3,4,5.",
            show_default="as the policy assumes",
        ),
    ] = None,
    examination: Annotated[
        str | None,
        typer.Option(
            metavar="PROBABILITIES",
            help="Examination by position, with commas between, given to the policies that need it.",
            show_default="the truth",
        ),
    ] = None,
    reward: Annotated[
        str, typer.Option(metavar="NAME", help="By which regret is measured: clicks, dcg or weights:W1,W2,...")
    ] = "clicks",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="POLICY.NAME=VALUES",
            help="Values of a hyper-parameter of a policy, like bubble-rank.hidden_duels=true,false; all are played. "
            "May be given several times.",
            show_default="as the policy has them",
        ),
    ] = None,
    plugin: Plugins = None,
    cluster: Cluster = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("saferank-results"),
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Play policies against simulated users and measure regret and safety.

    Every policy plays every instance (a query with its items and the click model of its users) from the same original
    ranking, once per repetition, with independent random streams.

    **Example**: `saferank simulate --policies kl-ucb-br,bubble-rank --queries 5 --rounds 10000 --out out`

    **Your own instances**: `saferank instances --queries 5 --out mine.json`, then `saferank simulate mine.json`

    **A sweep**: `saferank simulate --policies kl-ucb-br --rule paper:1e-5 --rule anytime:1e-5 --positions 3,5` plays
    every combination; the rows are named by what differs. `saferank report` takes one combination, chosen by
    the same options.

    **A long run** keeps what is finished. After Ctrl-C, a crash or a full disk, the same command with --resume
    continues it and gives the same results. A folder with results in it is never overwritten without --overwrite.

    **What comes out**: a table of final regret, violations and wrong certificates; DIR/results.json with means
    and standard errors at every checkpoint; DIR/runs.parquet with the single runs; DIR/regret.png with the curves.
    """
    from saferank.checks.plugin import load_checked_plugins
    from saferank.cli.terminal.results import show_figure, show_results
    from saferank.experiments.simulate import simulate

    load_checked_plugins(plugin or ())
    with naming(instances=instances, settings="--set"):
        results = simulate(
            instances,
            names_if_given(policies, "--policies"),
            numbers_in(positions, "--positions"),
            rounds,
            repetitions,
            rule,
            seed,
            jobs,
            checkpoints=() if checkpoints is None else numbers_in(checkpoints, "--checkpoints"),
            cluster=cluster,
            drift=drift,
            lifetime=None if lifetime is None else numbers_or_none_in(lifetime, "--lifetime"),
            delay=delay,
            lost_pages=lost_pages,
            lost_clicks=lost_clicks,
            layout=None if layout is None else numbers_in(layout, "--layout"),
            examination=None if examination is None else floats_in(examination, "--examination"),
            reward=reward,
            settings=settings_in(settings or (), "--set"),
            models=names_if_given(models, "--models"),
            queries=queries,
            out=out,
            resume=resume,
            overwrite=overwrite,
            command=context.obj,
        )
    show_results(results, out / "results.json")
    show_figure(results, out / "regret.png")
