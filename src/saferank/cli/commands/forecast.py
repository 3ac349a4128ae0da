"""``saferank forecast``: options, one call of ``saferank.forecast``, a table."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import Format, Iterations, Jobs, Log, MaxBad, MostFrequent, Seed, names_in, number
from saferank.forecasting.forecast import POLICIES


def command(
    context: typer.Context,
    log: Log,
    log_format: Format,
    pages_a_day: Annotated[
        float, typer.Option(metavar="N", help="Pages of the whole site in a day; a query gets its share in the log.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page, the figures and the numbers.")],
    policies: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Policies with commas between; the first is the one of the headline."),
    ] = ",".join(POLICIES),
    queries: MostFrequent = 100,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Click model of the users.", show_default="the one that foresees held-out pages best"
        ),
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(
            parser=number, metavar="K", help="How many items a page shows.", show_default="all of the ranking"
        ),
    ] = None,
    page_length: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="N",
            help="Production's ranking is each query's most frequent one of N items.",
            show_default="10 where a query has such a page, else its most frequent length",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="L",
            help="At most so many items a query: behind the ranking come candidates from its other pages.",
            show_default="those of the ranking",
        ),
    ] = None,
    rule: Annotated[str, typer.Option(metavar="RULE", help="Decision rule, anytime:ALPHA.")] = "anytime:1e-5",
    certificate_days: Annotated[
        float,
        typer.Option(metavar="DAYS", help="Length of an epoch of certificates, as the service is set; 0: no end."),
    ] = 14.0,
    replicates: Annotated[
        int,
        typer.Option(
            parser=number, metavar="B", help="Bootstrap replicates for the bands, and runs on the fitted model."
        ),
    ] = 12,
    iterations: Iterations = 200,
    most_pages: Annotated[
        int,
        typer.Option(
            parser=number, metavar="N", help="The longest run of a query; later pages are as in its last tenth."
        ),
    ] = 50_000,
    seed: Seed = 0,
    jobs: Jobs = None,
    max_bad: MaxBad = 0.01,
) -> None:
    """Estimate the benefit of safe re-ranking on your own queries, before you switch it on.

    A click model is fitted to the log, and policies are simulated on its most frequent queries, each with its own
    traffic, for 13 weeks: extra clicks a day by week with bands, how many queries decide within 7, 30 and 90 days, the
    worst single page, and what exploration costs where the ranking is already right. The fitted model is taken for the
    truth; the bands cover the error of the fit and the variation between runs, not a wrong model.

    **Example**: `saferank forecast log.ndjson --format sessions --pages-a-day 20000 --out forecast`

    **Pages of 5 with candidates**: `saferank forecast log.gz --format yandex-personalized --pages-a-day 2e4
    --positions 5 --out forecast`

    **What comes out**: DIR/forecast.html, one page that needs no network; DIR/forecast.json with all numbers;
    DIR/figures; a short table on the screen.
    """
    from saferank.cli.terminal.errors import naming
    from saferank.cli.terminal.forecasts import show_forecast
    from saferank.files import output_folder
    from saferank.forecasting.forecast import forecast

    with output_folder(out), naming(log="LOG"):
        found = forecast(
            log,
            log_format,
            pages_a_day,
            names_in(policies, "--policies"),
            queries=queries,
            model=model,
            positions=positions,
            page_length=page_length,
            items=items,
            rule=rule,
            certificate_days=certificate_days,
            replicates=replicates,
            iterations=iterations,
            most_pages=most_pages,
            seed=seed,
            jobs=jobs,
            max_bad=max_bad,
            command=context.obj,
        )
        files = found.save(out)
    show_forecast(found, files)
