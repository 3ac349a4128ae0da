"""``saferank logs``, ``fit``, ``forecast`` and ``instances``: click logs, and their models and forecasts."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from saferank.cli.terminal.errors import naming
from saferank.cli.terminal.help import PlainCommand
from saferank.cli.terminal.options import (
    LENGTH,
    REQUIRED,
    AsJson,
    Format,
    MaxBad,
    asked,
    count,
    follows,
    names_in,
    option,
)
from saferank.errors import ArgumentError, unknown, writing

_INSTANCE_FILE = (Annotated[Path, option("FILE", "The instance file to write.")], REQUIRED)

logs = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look into a click log (`saferank logs summary`), or make one (`saferank logs synthesize`).\n\n"
    "**Example**: `saferank logs summary train.gz --format yandex-personalized`\n\n"
    "**What comes out**: a table, or a log file; see the help of the two.",
)


@logs.command("summary", cls=PlainCommand)
def summary(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log, plain or gzip.")],
    format: Format,
    max_bad: MaxBad = 0.01,
    as_json: AsJson = False,
) -> None:
    """Count the contents of a click log: pages, queries, clicks by position, abandonment, bad lines.

    **Example**: `saferank logs summary train.gz --format yandex-personalized`

    **What comes out**: two tables, and a line for each kind of bad lines with the numbers of the first ones; with
    --json the same as an object.
    """
    from saferank.logs import FORMATS, summarize_log
    from saferank.progress import MEGABYTES, progress_of

    if format not in FORMATS:
        raise ArgumentError("format", unknown("format", format, FORMATS))
    size = log.stat().st_size if log.is_file() else 0
    with progress_of(True).meter(size, MEGABYTES) as meter:
        found = summarize_log(log, format, max_bad=max_bad, progress=meter)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "abandonment": found.abandonment}, indent=1))
        return
    from saferank.cli.terminal.tables import show_summary

    show_summary(found)


@logs.command("synthesize", cls=PlainCommand)
@follows(
    "saferank.logs.synthetic:synthesize_log",
    out=option("FILE", "The log to write; packed if its name ends in .gz."),
    sessions=count("N", "How many sessions; about 330 bytes each."),
    queries=count("N", "How many queries."),
    model=option("NAME", "The click model of all users."),
    page_length=count("N", "How many items a page shows."),
    items=count(
        "L", "How many items a query has; those beyond a page are on some of its pages.", "10, or those of a page"
    ),
    seed=count("N", "The same seed gives the same file."),
    truth=option("FILE", "Write the planted users here, as an instance file."),
)
def synthesize(**given: Any) -> None:
    """Write a log in the format yandex-personalized whose users are known.

    The users are those of the embedded instances. Their log is as untidy as a real one: several rankings of a query,
    queries asked again, T records, pages without clicks, clicks that come late or out of order.

    **Example**: `saferank logs synthesize --sessions 100000 --model dbn --out log.gz --truth truth.json`

    **A larger catalogue**: `saferank logs synthesize --page-length 10 --items 50 --out log.gz`

    **What comes out**: the log, for `saferank logs summary log.gz --format yandex-personalized`; with --truth also
    the parameters that an estimator should find in it.
    """
    from saferank.files import is_device
    from saferank.logs.synthetic import synthesize_log
    from saferank.reporting.numbers import counted

    out = given["out"]
    synthesize_log(**given)
    size = "" if is_device(out) else f", {out.stat().st_size:,} bytes"
    typer.echo(f"{counted(given['sessions'], 'session')}{size}: {out}", err=is_device(out))


@follows(
    "saferank.fitting.fit:fit",
    format=(Format, REQUIRED),
    out=_INSTANCE_FILE,
    page_length=count(
        "N", "Instances are made of each query's most frequent ranking of N items; other queries have none.", LENGTH
    ),
    items=count(
        "L",
        "At most L items per instance: those of the ranking, then those of the query's other pages, most "
        "frequent first.",
        "those of the ranking",
    ),
    evaluate=option(
        "SHARE",
        "Also hold out this share of the pages, fit on the others and compare all models on it.",
        "no evaluation",
    ),
    replicates=count("B", "Bootstrap replicates for the standard errors; 0: none."),
    seed=count("N", "Seed of the split and of the bootstrap."),
)
def fit(**given: Any) -> None:
    """Estimate click models from a click log.

    Parameters come from all pages of the most frequent queries; attraction belongs to a query and an item, parameters
    of positions are shared by all queries. An instance has the items of a query's most frequent ranking, of ten items
    or of another length; with --items also others that the query's pages showed.

    **Example**: `saferank fit train.gz --format yandex-personalized --models pbm,cm --evaluate 0.25 --out mine.json`

    **Larger catalogues**: `saferank fit log.ndjson --format sessions --page-length 10 --items 50 --out mine.json`, then
    `saferank simulate mine.json --positions 10`

    **What comes out**: an instance file for `saferank simulate mine.json`; mine-errors.json with standard errors; a
    table of how far EM came. With --evaluate a table of held-out likelihood and perplexity, and mine-ctr.png.
    """
    given = asked(given, models=names_in)
    from saferank.cli.terminal.tables import show_fit
    from saferank.files import check_output_file, output_folder
    from saferank.fitting.fit import fit

    out = given.pop("out")
    check_output_file(out, beside=True)
    with output_folder(out.parent):
        found = fit(**given)
        files = found.save(out)
    show_fit(found, files)


@follows(
    "saferank.forecasting.forecast:forecast",
    pages_a_day=option("N", "Pages of the whole site in a day; a query gets its share in the log."),
    out=(Annotated[Path, option("DIR", "Folder for the page, the figures and the numbers.")], REQUIRED),
    policies=Annotated[
        str | None, option("NAMES", "Policies with commas between; the first is the one of the headline.")
    ],
    model=option("NAME", "Click model of the users.", "the one that foresees held-out pages best"),
    positions=count("K", "How many items a page shows.", "all of the ranking"),
    page_length=count("N", "Production's ranking is each query's most frequent one of N items.", LENGTH),
    items=count(
        "L",
        "Maximum items of a query: behind the ranking come candidates from its other pages.",
        "those of the ranking",
    ),
    rule=option("RULE", "Decision rule, anytime:ALPHA or budget:ALPHA."),
    certificate_days=option("DAYS", "Length of an epoch of certificates, as the service is set; 0: no end."),
    replicates=count("B", "Bootstrap replicates for the bands, and runs on the fitted model."),
    most_pages=count("N", "The longest run of a query; later pages are as in its last tenth."),
)
def forecast(**given: Any) -> None:
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
    given = asked(given, policies=names_in)
    from saferank.cli.terminal.tables import forecast_table, show
    from saferank.files import output_folder
    from saferank.forecasting.forecast import forecast

    out = given.pop("out")
    with output_folder(out), naming(log="LOG"):
        found = forecast(**given)
        files = found.save(out)
    show(forecast_table(found), found.headline, *files)


@follows(
    "saferank.instances:choose_instances",
    out=_INSTANCE_FILE,
    queries=(count("N", "How many queries."), 20),
    seed=count("N", "Another seed makes other queries."),
)
def instances(**given: Any) -> None:
    """Write the embedded instance set to a file.

    The set is made from a seed in the shape of real web search. A file of it shows what an instance is, and is a start
    for one of your own.

    **Example**: `saferank instances --queries 5 --models pbm --out mine.json`

    **What comes out**: an instance file for `saferank simulate mine.json`, one instance a line.
    """
    given = asked(given, models=names_in)
    from saferank.files import check_output_file, is_device
    from saferank.instances import choose_instances, save_instances
    from saferank.reporting.numbers import counted

    out = given.pop("out")
    made = choose_instances(**given)
    check_output_file(out)
    with writing(f"--out {out}"):
        save_instances(out, made, about=f"the embedded instance set of saferank, seed {given['seed']}")
    typer.echo(f"{counted(len(made), 'instance')}: {out}", err=is_device(out))
