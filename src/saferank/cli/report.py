"""``saferank report``: one page from a results file."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Results file of `saferank simulate` or `saferank reproduce`.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page and the figures.")],
    without: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Policies to leave out, with commas between.", show_default="none"),
    ] = None,
    optimal: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The query whose original ranking is optimal.", show_default="as the results say"
        ),
    ] = None,
    none_of_best: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The query whose original ranking holds none of the best items.",
            show_default="as the results say",
        ),
    ] = None,
) -> None:
    """Make a page of results: the paper's figures, its claims with verdicts, sensitivity, what was run.

    Everything comes from the results file and the files beside it that it names; nothing is simulated.

    **Example**: `saferank report out/results.json --out out --optimal optimal-original --none-of-best worst-original`

    **What comes out**: DIR/report.html, one page that needs no network; DIR/figures with every figure as PNG, SVG and
    PDF; a table of the claims on the screen.
    """
    from saferank.cli.claims import missing_for_a_report, show_report
    from saferank.cli.errors import InputError
    from saferank.cli.options import names_in
    from saferank.cli.output import output_folder

    if missing_for_a_report():
        raise InputError("a report needs matplotlib and jinja2; to get them: pip install 'saferank[report]'")
    left_out = () if without is None else names_in(without, "--without")
    special = {"optimal": optimal, "none_of_best": none_of_best}
    with output_folder(out):
        show_report(results, out, left_out, {key: query for key, query in special.items() if query is not None})
