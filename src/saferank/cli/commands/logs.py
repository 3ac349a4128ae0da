"""``saferank logs``: what is in a click log, and a synthetic one to try things on."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.help import PlainCommand
from saferank.cli.terminal.options import Format, MaxBad, number
from saferank.errors import ArgumentError

if TYPE_CHECKING:
    from saferank.logs import LogSummary

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look into a click log (`saferank logs summary`), or make one (`saferank logs synthesize`).\n\n"
    "**Example**: `saferank logs summary train.gz --format yandex-personalized`\n\n"
    "**What comes out**: a table, or a log file; see the help of the two.",
)


@app.command("summary", cls=PlainCommand)
def summary(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log, plain or gzip.")],
    log_format: Format,
    max_bad: MaxBad = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """Count what is in a click log: pages, queries, clicks by position, abandonment, bad lines.

    **Example**: `saferank logs summary train.gz --format yandex-personalized`

    **What comes out**: two tables, and a line for each kind of bad lines with the numbers of the first ones; with
    --json the same as an object.
    """
    found = _summarized(log, log_format, max_bad)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "abandonment": found.abandonment}, indent=1))
        return
    from saferank.cli.terminal.log_tables import position_table, summary_table

    STDOUT.print(summary_table(found))
    STDOUT.print(position_table(found))
    for bad in found.bad_lines:
        typer.echo(f"bad lines: {bad}")


@app.command("synthesize", cls=PlainCommand)
def synthesize(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The log to write; packed if its name ends in .gz.")],
    sessions: Annotated[
        int, typer.Option(parser=number, metavar="N", help="How many sessions; about 330 bytes each.")
    ] = 100_000,
    queries: Annotated[int, typer.Option(parser=number, metavar="N", help="How many queries.")] = 20,
    model: Annotated[str, typer.Option(metavar="NAME", help="The click model of all users.")] = "pbm",
    page_length: Annotated[int, typer.Option(parser=number, metavar="N", help="How many items a page shows.")] = 10,
    items: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="L",
            help="How many items a query has; those beyond a page are on some of its pages.",
            show_default="10, or those of a page",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(parser=number, metavar="N", help="The same seed gives the same file.")] = 0,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the planted users here, as an instance file.")
    ] = None,
) -> None:
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

    made = synthesize_log(out, sessions, queries, model, page_length=page_length, items=items, seed=seed, truth=truth)
    size = "" if is_device(out) else f", {out.stat().st_size:,} bytes"
    typer.echo(f"{counted(made.sessions, 'session')}{size}: {out}", err=is_device(out))


def _summarized(log: Path, log_format: str, max_bad: float) -> "LogSummary":
    from saferank.logs import FORMATS, summarize_log
    from saferank.progress import MEGABYTES, progress_of

    if log_format not in FORMATS:
        raise ArgumentError("format", f"unknown format {log_format!r}; known ones: {', '.join(FORMATS)}")
    size = log.stat().st_size if log.is_file() else 0
    with progress_of(True).meter(size, MEGABYTES) as meter:
        return summarize_log(log, log_format, max_bad=max_bad, progress=meter)
