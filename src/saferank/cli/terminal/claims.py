"""A report on the screen: the verdicts on the paper's claims, and where the page is."""

from collections import Counter
from collections.abc import Sequence

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from saferank.cli.terminal.console import STDOUT
from saferank.reporting.build import Report
from saferank.reporting.claims import FAILS, HOLDS, UNDECIDED, Claim, NotRun
from saferank.reporting.looks import model_name
from saferank.reporting.readings import ClaimRow, claim_tables, headline, in_standard_errors

_COLOURS = {HOLDS: "green", FAILS: "bold red", UNDECIDED: "yellow"}


def show_report(report: Report) -> None:
    """Print the claims and in the end the path of the page."""
    show_claims(report.claims, report.data, report.not_run)
    typer.echo(report.page)


def show_claims(claims: Sequence[Claim], data: str, not_run: Sequence[NotRun] = ()) -> None:
    """Print the verdicts, one row a claim and one column a click model, and in words what does not hold."""
    if claims:
        STDOUT.print(claims_table(claims))
    for claim in claims:
        if claim.verdict != HOLDS:
            typer.echo(
                f"{claim.verdict}: {claim.sentence}: {claim.numbers} ({in_standard_errors(claim.standard_errors)})"
            )
    _show_not_run(not_run)
    typer.echo(headline([claim for claim in claims if claim.of_the_paper], data))


def _show_not_run(not_run: Sequence[NotRun]) -> None:
    """How many claims of the paper were not judged, by reason."""
    reasons = Counter(claim.reason for claim in not_run if claim.of_the_paper)
    for reason, count in reasons.items():
        typer.echo(f"not run: {count} {'claim' if count == 1 else 'claims'}: {reason}")


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
