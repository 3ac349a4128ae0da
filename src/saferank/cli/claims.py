"""A report made and shown: the page, and the verdicts on the paper's claims for the screen."""

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from saferank.cli.console import STDOUT
from saferank.cli.errors import InputError, OutputError
from saferank.report import build
from saferank.report.claims import Claim
from saferank.report.looks import model_name
from saferank.report.summary import ClaimRow, claim_tables, headline, in_standard_errors
from saferank.report.verdicts import FAILS, HOLDS, UNDECIDED

_COLOURS = {HOLDS: "green", FAILS: "bold red", UNDECIDED: "yellow"}


def missing_for_a_report() -> list[str]:
    """What a report needs and this installation lacks."""
    return [module for module in ("matplotlib", "jinja2") if importlib.util.find_spec(module) is None]


def show_report(
    results: Path, out: Path, without: Collection[str] = (), special: Mapping[str, str] | None = None
) -> None:
    """Make the report, print the claims and in the end the path of the page."""
    try:
        report = build(results, out, without=without, special=special)
    except ValueError as problem:
        raise InputError(str(problem)) from problem
    except OSError as problem:
        raise OutputError(f"{problem.filename or out}: cannot be written: {problem.strerror or problem}") from problem
    show_claims(report.claims)
    typer.echo(report.page)


def show_claims(claims: Sequence[Claim]) -> None:
    """Print the verdicts, one row a claim and one column a click model, and in words what does not hold."""
    if claims:
        STDOUT.print(claims_table(claims))
    for claim in claims:
        if claim.verdict != HOLDS:
            typer.echo(
                f"{claim.verdict}: {claim.sentence}: {claim.numbers} ({in_standard_errors(claim.standard_errors)})"
            )
    typer.echo(headline([claim for claim in claims if claim.of_the_paper]))


def claims_table(claims: Sequence[Claim]) -> Table:
    """The verdicts as a table; numbers are differences in standard errors."""
    models = list(dict.fromkeys(claim.model for claim in claims))
    title = "the paper's claims; in brackets the difference in standard errors"
    table = Table("claim", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for model in models:
        table.add_column(escape(model_name(model)))
    for place, rows in claim_tables(claims, models).items():
        table.add_row(f"[bold]{place}[/bold]")
        for row in rows:
            table.add_row(*_cells(row), end_section=row is rows[-1])
    return table


def _cells(row: ClaimRow) -> list[str]:
    return [escape(row.text), *("" if claim is None else _cell(claim) for claim in row.cells)]


def _cell(claim: Claim) -> str:
    colour = _COLOURS[claim.verdict]
    difference = claim.standard_errors
    noisy = difference is not None and 0 < abs(difference) < 1e6
    return f"[{colour}]{claim.verdict}[/{colour}]" + (f" ({difference:,.1f})" if noisy else "")
