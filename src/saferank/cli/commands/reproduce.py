"""``saferank reproduce``: options, one call of ``saferank.reproduce``, the claims."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import (
    Cluster,
    Jobs,
    MaxBad,
    Overwrite,
    Plugins,
    Policies,
    Positions,
    Resume,
    Rounds,
    Rule,
    Seed,
    names_if_given,
    names_in,
    number,
)

_FROM_PROFILE = "of the profile"


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
        typer.Option(
            "--format",
            metavar="NAME",
            help="Of --log: yandex-personalized, yandex-relevance, sessions (NDJSON, Parquet), ubi, ga4 or segment.",
        ),
    ] = None,
    policies: Policies = None,
    models: Annotated[str, typer.Option(metavar="NAMES", help="Click models, with commas between.")] = "pbm,cm",
    rule: Rule = "paper:1/T",
    positions: Positions = 5,
    items: Annotated[
        int,
        typer.Option(
            parser=number,
            metavar="L",
            help="How many items of a query take part: those of its page, then those that its other pages showed.",
        ),
    ] = 10,
    page_length: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="N",
            help="Of --log: take each query's most frequent ranking of N items.",
            show_default="10 where a query has such a page, else its most frequent length",
        ),
    ] = None,
    rounds: Rounds = 100_000,
    repetitions: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="N",
            help="Independent runs of every policy on every query.",
            show_default=_FROM_PROFILE,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="N",
            help="The N most frequent queries.",
            show_default=_FROM_PROFILE,
        ),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(parser=number, metavar="N", help="Sessions of the synthetic log.", show_default=_FROM_PROFILE),
    ] = None,
    iterations: Annotated[int, typer.Option(parser=number, metavar="N", help="Iterations of EM.")] = 50,
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
    jobs: Jobs = None,
    cluster: Cluster = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Reproduce the paper's experiments, or run your own study with its protocol.

    Click models are estimated from the pages of the log's most frequent queries. The paper's five algorithms are played
    against users who click like that, and beside them our own safe-draw (left out with
    --without additions, or by naming --policies). Two more parts follow: what the paper left open (decision rules,
    ties, BubbleRank's candidates; --without sensitivity), and the anytime rule beside the paper's under six click
    models (--without study).

    **Example**: `saferank reproduce --out demo` takes a few minutes and needs no data.

    **The paper's size**: `saferank reproduce --profile paper --log train.gz --format yandex-personalized --out paper`

    **Something else**: `saferank reproduce --rule anytime:1/T --models dbn,ubm --positions 3 --queries 50 --out mine`

    **A long run** keeps what is finished. After Ctrl-C, a crash or a full disk, the same command with --resume
    continues it and gives the same results. With --cluster tcp://host:8786 a Dask cluster does the work.

    **What comes out**: the claims of the paper with verdicts on the screen; DIR/report.html; DIR/results.json,
    sensitivity.json and study.json with all curves; DIR/instances.json with the click models.
    """
    from saferank.checks.plugin import load_checked_plugins
    from saferank.cli.terminal.claims import show_report
    from saferank.reproduction.reproduce import reproduce

    load_checked_plugins(plugin or (), compiled=True)
    done = reproduce(
        out,
        profile,
        log=log,
        format=log_format,
        policies=names_if_given(policies, "--policies"),
        models=names_in(models, "--models"),
        rule=rule,
        positions=positions,
        items=items,
        page_length=page_length,
        rounds=rounds,
        repetitions=repetitions,
        queries=queries,
        sessions=sessions,
        iterations=iterations,
        seed=seed,
        without=names_if_given(without, "--without") or (),
        study_instances=study_instances,
        max_bad=max_bad,
        plugins=plugin or (),
        jobs=jobs,
        cluster=cluster,
        resume=resume,
        overwrite=overwrite,
        command=context.obj,
    )
    if done.report is None:
        typer.echo(out / "results.json")
    else:
        show_report(done.report)
