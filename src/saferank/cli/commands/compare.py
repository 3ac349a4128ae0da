"""``saferank compare``: options, one call of ``Results.compare_all``, tables."""

import json
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import names_if_given


def command(
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", help="Folder of `saferank simulate` or `reproduce`, or its results.json."),
    ],
    policies: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Policies to compare, with commas between.", show_default="all"),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="regret, violations, wrong_certificates, clicks_relative or worst_page, after all rounds.",
        ),
    ] = "regret",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout: by pair, by query, by policy.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw every query as a point (PNG, SVG or PDF); for up to four policies.",
            show_default="no figure",
        ),
    ] = None,
) -> None:
    """Compare policies that played the same queries against the same users.

    Differences are paired: in a repetition of a query every policy meets the same users. For each pair of policies and
    each click model: the mean difference with its standard error within queries (other random streams) and across
    queries (other queries), on how many queries the first is clearly better, not clearly different, or clearly worse,
    and Wilcoxon's signed-rank test over queries, its p-value also adjusted for the number of tests (Holm). For each
    policy quantiles over all runs, and the worst run.

    **Example**: `saferank compare out --policies kl-ucb-br,original --plot by-query.png`

    **What comes out**: two tables, and the figure if asked for; with --json the same as
    `{"pairs": [...], "by_query": [...], "tails": [...]}`.
    """
    from saferank.cli.terminal.comparisons import show_comparisons
    from saferank.experiments.results import Results

    loaded = Results.load(results)
    found = loaded.compare_all(names_if_given(policies, "--policies"), measure)
    if as_json:
        typer.echo(json.dumps({**found.as_json(), "instances": loaded.provenance.get("instances")}, indent=1))
    else:
        show_comparisons(found, loaded.provenance)
    if plot is not None:
        typer.echo(found.save_plot(plot), err=as_json)
