"""``saferank reproduce``: what it takes and what it tells; the work is done in ``reproduction.py``."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.logs import MaxBad
from saferank.cli.options import (
    ALL_POLICIES,
    CORES,
    Cluster,
    Jobs,
    Plugins,
    Policies,
    Positions,
    Rounds,
    Rule,
    Seed,
    at_most_if_given,
)

_FROM_PROFILE = "of the profile"
_MOST = 10**6


def command(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for everything that comes out.")],
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="quick (20 queries, 10 repetitions) or paper (100 queries, 100 repetitions)."
        ),
    ] = "quick",
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your click log.", show_default="a synthetic one, written to DIR"),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Of --log: yandex-personalized, yandex-relevance or sessions."),
    ] = None,
    policies: Policies = ALL_POLICIES,
    models: Annotated[str, typer.Option(metavar="NAMES", help="Click models, with commas between.")] = "pbm,cm",
    rule: Rule = "paper:1/T",
    positions: Positions = 5,
    items: Annotated[
        int, typer.Option(min=1, metavar="L", help="How many items of a query's page take part, at most 10.")
    ] = 10,
    rounds: Rounds = 100_000,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            callback=at_most_if_given(_MOST),
            metavar="N",
            help="Independent runs of every policy on every query.",
            show_default=_FROM_PROFILE,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            min=1,
            callback=at_most_if_given(_MOST),
            metavar="N",
            help="The N most frequent queries.",
            show_default=_FROM_PROFILE,
        ),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Sessions of the synthetic log.", show_default=_FROM_PROFILE),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="Iterations of EM.")] = 50,
    seed: Seed = 0,
    without: Annotated[
        str | None,
        typer.Option(
            metavar="PARTS", help="Leave out additions, sensitivity, study, or several.", show_default="nothing"
        ),
    ] = None,
    study_instances: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instance file for the study, beside the embedded set.", show_default="none"),
    ] = None,
    max_bad: MaxBad = 0.01,
    plugin: Plugins = None,
    jobs: Jobs = CORES,
    cluster: Cluster = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in DIR, or begin.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Throw away the run that is in DIR and begin anew.")
    ] = False,
) -> None:
    """Do the paper again, from a click log to a report, or do a study of your own in its manner.

    The most frequent queries of the log, click models estimated from their pages, the five algorithms against users who
    click like that, and beside them safe-blocks and safe-order, our own (--without additions; not played when you
    choose --policies); then what the paper left open (decision rules, ties, BubbleRank's candidates: --without
    sensitivity) and the anytime rule beside the paper's under six click models (--without study).

    **Example**: `saferank reproduce --out demo` takes a minute or two and needs no data.

    **The paper's size**: `saferank reproduce --profile paper --log train.gz --format yandex-personalized --out paper`

    **Something else**: `saferank reproduce --rule anytime:1/T --models dbn,ubm --positions 3 --queries 50 --out mine`

    **A long run** keeps what is finished. After Ctrl-C, a crash or a full disk the same command with --resume goes on
    where it was, and gives the same results. With --cluster tcp://host:8786 a Dask cluster does the work.

    **What comes out**: the claims of the paper with verdicts on the screen; DIR/report.html; DIR/results.json,
    sensitivity.json and study.json with all curves; DIR/instances.json with the click models.
    """
    from saferank.cli.plugins import load_plugins
    from saferank.cli.reproduction import Order, carry_out

    load_plugins(plugin or ())
    order = Order(
        profile=profile,
        log=log,
        form=log_format,
        policies=policies,
        models=models,
        rule=rule,
        positions=positions,
        items=items,
        rounds=rounds,
        repetitions=repetitions,
        queries=queries,
        sessions=sessions,
        iterations=iterations,
        seed=seed,
        without=without,
        study_instances=study_instances,
        max_bad=max_bad,
        plugins=tuple(plugin or ()),
        jobs=jobs,
        cluster=cluster,
        resume=resume,
        overwrite=overwrite,
        out=out,
        command=context.obj,
    )
    carry_out(order)
