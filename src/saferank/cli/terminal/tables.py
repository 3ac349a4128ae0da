"""What commands print: results, timings, comparisons, claims, fits, forecasts and logs as tables and lines."""

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from saferank.errors import writing
from saferank.experiments.comparisons import LEVELS
from saferank.experiments.frames import HEADINGS, final_rows, labelled, title
from saferank.experiments.sources import in_words
from saferank.reporting.claims import FAILS, HOLDS, UNDECIDED, Claim, NotRun
from saferank.reporting.looks import model_name
from saferank.reporting.numbers import Measured, plainly
from saferank.reporting.readings import claim_tables, headline, in_standard_errors

if TYPE_CHECKING:
    from saferank.experiments.comparisons import Comparison, Comparisons, ModelDifference
    from saferank.experiments.results import Results
    from saferank.fitting import Fitted
    from saferank.fitting.evaluation import Evaluation
    from saferank.fitting.fit import Fit
    from saferank.forecasting.outcome import Band, Forecast
    from saferank.logs import LogSummary
    from saferank.reporting.build import Report
    from saferank.simulation.bench import SpeedUp, Timing
    from saferank.simulation.results import Result

STDOUT = Console()
"""Results go to stdout, everything about the way there to stderr."""
_WIDEST = 18
"""Characters of a name in a line, so that a table fits a screen of 80 columns."""
_TWO_NAMES = 14
"""The same where two names stand in a row beside five numbers."""
_NARROW: dict[str, Any] = {"padding": (0, 1, 0, 0), "pad_edge": False}
_COLOURS = {HOLDS: "green", FAILS: "bold red", UNDECIDED: "yellow"}
_NO_FIGURE = "no figure without matplotlib; to get it: pip install 'saferank[report]'"


def _table(title: str, first: str | None = None, *numbers: str, **looks: Any) -> Table:
    """A table with its title to the left, a first column and others of numbers."""
    table = Table(*([] if first is None else [first]), title=title, box=box.SIMPLE_HEAD, title_justify="left", **looks)
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _say_source(provenance: dict[str, Any]) -> None:
    """What was played, where results say it."""
    source = in_words(provenance)
    if source is not None:
        typer.echo(source)


def show_results(results: "Results", file: Path) -> None:
    """Print the table, what was played, and the path of the results file."""
    STDOUT.print(results_table(labelled(results.curves)))
    for sentence in results.left_out:
        typer.echo(sentence)
    _say_source(results.provenance)
    typer.echo(file)


def show_figure(results: "Results", path: Path) -> None:
    """Draw the figure and print its path, or how to get matplotlib."""
    if _can_draw():
        typer.echo(results.plot().save(path))


def _can_draw() -> bool:
    if importlib.util.find_spec("matplotlib") is not None:
        return True
    typer.echo(_NO_FIGURE, err=True)
    return False


def results_table(results: "Sequence[Result]") -> Table:
    """The end of every curve: one row per click model and policy, averaged over instances."""
    table = _table(title(results))
    rows = final_rows(results)
    model, policy, *numbers = HEADINGS
    table.add_column(model, overflow="fold")
    _add_names(table, policy, [row.policy for row in rows], _WIDEST)
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        model, policy, *cells = row.cells()
        last = following is not None and following.model != row.model
        table.add_row(model, in_lines(policy, _WIDEST), *cells, end_section=last)
    return table


def in_lines(name: str, width: int) -> str:
    r"""A name in lines of at most ``width`` characters, broken between words, and in long ones after a colon or =.

    >>> in_lines("bubble-rank:all-candidates", 18)
    'bubble-rank:\nall-candidates'
    >>> in_lines("kl-ucb-br rule=anytime:1e-5 K=3", 18)
    'kl-ucb-br\nrule=anytime:1e-5\nK=3'
    """
    lines = [""]
    for word in re.findall(r"[^ ]* ?", name):
        for part in [word] if len(word.rstrip()) <= width else re.findall(r"[^:=]*[:=]?", word):
            if lines[-1] and len((lines[-1] + part).rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _add_names(table: Table, heading: str, names: Sequence[str], width: int) -> None:
    """Add a column that is wide enough for these names in lines; only a part that is longer is folded."""
    longest = max((len(line) for name in names for line in in_lines(name, width).split("\n")), default=1)
    table.add_column(heading, overflow="fold", min_width=min(longest, width))


def show_timings(timings: "Sequence[Timing]", speed_up: "SpeedUp") -> None:
    """Print nanoseconds, multiples of the bare loop, and how much faster two jobs are."""
    bare = min(timing.bare_nanoseconds for timing in timings)
    STDOUT.print(timing_table(timings, f"nanoseconds a round (bare loop: {bare:.1f})", "ns"))
    STDOUT.print(timing_table(timings, "multiples of the bare loop", "multiples"))
    typer.echo(f"{speed_up.jobs} jobs are {speed_up.factor:.2f} times as fast as one")


def timing_table(timings: "Sequence[Timing]", title: str, unit: str) -> Table:
    """One row per policy, one column per click model; ``unit`` is what a cell shows: ns or multiples."""
    table = _table(title)
    _add_names(table, "policy", [timing.policy for timing in timings], _WIDEST)
    for model in dict.fromkeys(timing.model for timing in timings):
        table.add_column(model, justify="right")
    for policy in dict.fromkeys(timing.policy for timing in timings):
        own = [timing for timing in timings if timing.policy == policy]
        cells = [f"{each.nanoseconds:.0f}" if unit == "ns" else f"{each.multiple:.1f}x" for each in own]
        table.add_row(in_lines(policy, _WIDEST), *cells)
    return table


def show_names(title: str, lines: Mapping[str, str]) -> None:
    """Print what there is to choose from, each with a line about it."""
    table = _table(title, show_header=False)
    for heading in ("name", "what it is"):
        table.add_column(heading)
    for name, line in lines.items():
        table.add_row(name, line)
    STDOUT.print(table, markup=False)


def show_comparisons(found: "Comparisons", provenance: dict[str, Any]) -> None:
    """Print pairs of policies, the tails of each, and what was played."""
    STDOUT.print(pair_table(found))
    STDOUT.print(tail_table(found))
    _say_source(provenance)


def pair_table(found: "Comparisons") -> Table:
    """One row per click model and pair."""
    what = found.measure.replace("_", " ")
    title = f"{what}: first policy minus second, same queries, same users; + = - counts queries"
    table = _table(f"{title} on which the first is better, not clearly different, worse", "model", **_NARROW)
    for heading in ("first", "second"):
        _add_names(table, heading, [tail.policy for tail in found.tails], _TWO_NAMES)
    for heading in ("± within", "± across", "+ = -", "p", "Holm"):
        table.add_column(heading, justify="right", overflow="fold")
    for model in dict.fromkeys(each.model for pair in found.pairs for each in pair.by_model):
        for pair in found.pairs:
            for each in pair.by_model:
                if each.model == model:
                    table.add_row(*_pair_cells(pair, each))
        table.add_section()
    return table


def _pair_cells(pair: "Comparison", each: "ModelDifference") -> tuple[str, ...]:
    across = "-" if each.stderr_across is None else plainly(each.stderr_across)
    outcomes = f"{each.wins} {each.ties} {each.losses}" if each.wins + each.ties + each.losses else "-"
    tested = ("-" if p is None else f"{p:.1g}" for p in (each.p_value, each.p_holm))
    within = str(Measured(each.difference, each.stderr_within))
    return each.model, in_lines(pair.a, _TWO_NAMES), in_lines(pair.b, _TWO_NAMES), within, across, outcomes, *tested


def tail_table(found: "Comparisons") -> Table:
    """One row per click model and policy: quantiles over all runs, and the worst one."""
    table = _table(f"{found.measure.replace('_', ' ')} of single runs", "model", **_NARROW)
    _add_names(table, "policy", [tail.policy for tail in found.tails], _TWO_NAMES)
    for heading in ("runs", *(f"{100 * level:g} %" for level in LEVELS), "worst", "query and run"):
        table.add_column(heading, justify="right", overflow="fold")
    models = [each.model for each in found.tails]
    for tail in sorted(found.tails, key=lambda tail: models.index(tail.model)):
        numbers = [plainly(value) for value in (*tail.quantiles, tail.worst)]
        worst = in_lines(f"{tail.worst_instance} {tail.worst_repetition}", _TWO_NAMES)
        table.add_row(tail.model, in_lines(tail.policy, _TWO_NAMES), f"{tail.runs:,}", *numbers, worst)
    return table


def show_report(report: "Report") -> None:
    """Print the claims and in the end the path of the page."""
    for weakness in report.weaknesses:
        typer.echo(f"{weakness}: claims under it are about other users")
    show_claims(report.claims, report.data, report.not_run)
    typer.echo(report.page)


def show_claims(claims: Sequence[Claim], data: str, not_run: Sequence[NotRun] = ()) -> None:
    """Print the verdicts, one row a claim and one column a click model; in words what does not hold or was not run."""
    if claims:
        STDOUT.print(claims_table(claims))
    for claim in claims:
        if claim.verdict != HOLDS:
            typer.echo(
                f"{claim.verdict}: {claim.sentence}: {claim.numbers} ({in_standard_errors(claim.standard_errors)})"
            )
    for reason, count in Counter(each.reason for each in not_run if each.of_the_paper).items():
        typer.echo(f"not run: {count} {'claim' if count == 1 else 'claims'}: {reason}")
    missing = sum(claim.of_the_paper for claim in not_run)
    typer.echo(headline([claim for claim in claims if claim.of_the_paper], data, missing))


def claims_table(claims: Sequence[Claim]) -> Table:
    """The verdicts as a table; numbers are differences in standard errors."""
    models = list(dict.fromkeys(claim.model for claim in claims))
    table = _table("the paper's claims; in brackets the difference in standard errors", "claim")
    for model in models:
        table.add_column(escape(model_name(model)))
    for place, rows in claim_tables(claims, models).items():
        table.add_row(f"[bold]{place}[/bold]")
        for row in rows:
            cells = ("" if claim is None else _verdict(claim) for claim in row.cells)
            table.add_row(escape(row.text), *cells, end_section=row is rows[-1])
    return table


def _verdict(claim: Claim) -> str:
    colour, difference = _COLOURS[claim.verdict], claim.standard_errors
    noisy = difference is not None and 0 < abs(difference) < 1e6
    return f"[{colour}]{claim.verdict}[/{colour}]" + (f" ({difference:,.1f})" if noisy else "")


def show_fit(found: "Fit", files: Sequence[Path]) -> None:
    """Print how far EM came, how well models foresee held-out pages, and the paths."""
    STDOUT.print(convergence_table(found.models))
    if found.evaluations:
        STDOUT.print(evaluation_table(found.evaluations, found.held_out))
        STDOUT.print(perplexity_table(found.evaluations))
    typer.echo(f"{len(found.instances)} instances of {len(found.queries)} queries: {files[0]}")
    for errors in files[1:]:
        typer.echo(f"standard errors: {errors}")


def show_click_through(found: "Fit", path: Path) -> None:
    """Draw click-through by position of models that were evaluated, and print the path."""
    if not found.evaluations or not _can_draw():
        return
    from saferank.reporting.figures.click_through import click_through_figure

    with writing(path):
        click_through_figure(found.evaluations, path)
    typer.echo(f"click-through by position: {path}")


def convergence_table(fits: "Mapping[str, Fitted]") -> Table:
    """Where EM stands after its last iteration, and how much it still moved."""
    table = _table("estimation", "model", "iterations", "log-likelihood", "last change")
    for name, fitted in fits.items():
        change = "-" if fitted.last_change is None else f"{fitted.last_change:+.2g}"
        table.add_row(name, str(fitted.iterations), f"{fitted.log_likelihoods[-1]:,.2f}", change)
    return table


def evaluation_table(evaluations: "Mapping[str, Evaluation]", n_pages: int) -> Table:
    """All models side by side, the most likely one marked."""
    title = f"{n_pages:,} held-out pages (* the best model)"
    table = _table(title, "model", "log-likelihood a page", "perplexity", "impossible pages")
    best = max(evaluations, key=lambda name: evaluations[name].log_likelihood)
    for name, found in evaluations.items():
        row = f"{found.log_likelihood:.4f}", f"{found.perplexity:.4f}", f"{100 * found.impossible:.1f} %"
        table.add_row(f"{name} *" if name == best else name, *row)
    return table


def perplexity_table(evaluations: "Mapping[str, Evaluation]") -> Table:
    """Perplexity by position, one column per model."""
    table = _table("perplexity by position", "position", *evaluations)
    rows = zip(*(found.perplexities for found in evaluations.values()), strict=True)
    for k, row in enumerate(rows):
        table.add_row(str(k + 1), *(f"{perplexity:.4f}" for perplexity in row))
    return table


def show_forecast(found: "Forecast", files: Sequence[Path]) -> None:
    """Print one row for each policy, the headline and the files."""
    STDOUT.print(forecast_table(found))
    typer.echo(found.headline)
    for file in files:
        typer.echo(file)


def forecast_table(found: "Forecast") -> Table:
    """One row for each policy."""
    from saferank.forecasting.playing import CHANGED, CONFIRMED
    from saferank.forecasting.worlds import DEADLINES

    queries = f"{len(found.queries)} queries with {found.covered:.0%} of {found.pages_a_day:,.0f} pages a day"
    title = f"extra clicks a day (bands of 90 %), {queries}, users by {found.model}"
    deadlines = "/".join(map(str, DEADLINES))
    table = _table(title, "policy", "week 1", "last week", f"decided, {deadlines} d", "worst page", "cost if right")
    for policy in found.policies:
        decided = [policy.decided[days][CHANGED].mean + policy.decided[days][CONFIRMED].mean for days in DEADLINES]
        table.add_row(
            policy.policy,
            *(_band(policy.weeks[week]) for week in (0, -1)),
            "/".join(f"{number:.0f}" for number in decided),
            f"{policy.worst_page:.3f}",
            "-" if policy.right_cost is None else f"{100 * policy.right_cost.estimate:+.1f} %",
        )
    return table


def _band(band: "Band") -> str:
    return f"{band.estimate:+,.0f} ({band.low:+,.0f} to {band.high:+,.0f})"


def show_summary(summary: "LogSummary") -> None:
    """Print the counts of a log, clicks by position, and its bad lines."""
    table = _table(f"{summary.source} ({summary.format})", "what", "number")
    counts = {
        "lines": summary.lines,
        "bad lines": summary.bad,
        "sessions": summary.sessions,
        "pages": summary.pages,
        "pages of T records, left out": summary.test_pages,
        "clicks on them, left out": summary.test_clicks,
        "different queries": summary.queries,
        "clicked items": summary.clicks,
        "stray clicks, on items not shown": summary.stray_clicks,
    }
    for what, number in counts.items():
        if number is not None:
            table.add_row(what, f"{number:,}")
    table.add_row("pages without a click", f"{summary.abandonment:.2%}")
    STDOUT.print(table)
    table = _table("by position", None, "position", "pages", "clicks", "clicks a page")
    for k, (shown, clicked) in enumerate(zip(summary.shown_by_position, summary.clicks_by_position, strict=True)):
        table.add_row(str(k + 1), f"{shown:,}", f"{clicked:,}", f"{clicked / shown:.4f}")
    STDOUT.print(table)
    for bad in summary.bad_lines:
        typer.echo(f"bad lines: {bad}")
