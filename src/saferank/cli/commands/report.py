"""``saferank report``: one page from a results file."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import number


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
    model_study: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULTS",
            help="Results with policies that assume a click model, for the section about wrong models.",
            show_default="model-study.json beside the results, or the results themselves",
        ),
    ] = None,
    axes: Annotated[str, typer.Option(metavar="KIND", help="Axes of the curves: log or linear.")] = "log",
    columns: Annotated[
        int | None,
        typer.Option(
            metavar="1|2",
            help="Size the figure files for one or two columns of a paper (3.4 or 6.8 inches, 7 to 10 points type).",
            show_default="one panel for every click model, side by side",
        ),
    ] = None,
    first_round: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="ROUND",
            help="The first round that curves show.",
            show_default="the last three powers of ten; all rounds on linear axes",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY=NAME,...",
            help="Other names for policies in figures and tables.",
            show_default="their titles",
        ),
    ] = None,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Of a sweep: this decision rule.", show_default="the only one")
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(
            parser=number, metavar="K", help="Of a sweep: pages of this many items.", show_default="the only ones"
        ),
    ] = None,
    lifetime: Annotated[
        str | None,
        typer.Option(
            metavar="D", help="Of a sweep: this lifetime of certificates, or `none`.", show_default="the only one"
        ),
    ] = None,
) -> None:
    """Make a page of results: the paper's figures, its claims with verdicts, sensitivity, what was run.

    Everything comes from the results file and the files beside it that it names; nothing is simulated. The page says
    which data the results are about: a synthetic log, or the name and digest of a log or an instance file. Single runs
    (runs.parquet beside the results) give the tables of clicks and of the worst runs.

    **Examples**: `saferank report out/results.json --out out --optimal optimal-original --none-of-best worst-original`

    Figures for one column of a paper, from round 1,000 on linear axes, with names of your own:
    `saferank report out/results.json --out paper --columns 1 --axes linear --from 1000 --names "kl-ucb-br=Ours"`

    Of a sweep, one combination: `saferank report out/results.json --out k3 --rule paper:1e-5 --positions 3`

    When the model is wrong:
    `saferank simulate embedded --policies cascade-kl-ucb,pbm-ucb,top-rank,kl-ucb-br,original --out study`, then
    `saferank report out/results.json --out out --model-study study/results.json`

    **What comes out**: DIR/report.html, one page that needs no network; DIR/figures with every figure as PNG, SVG and
    PDF and every table as LaTeX (booktabs); a table of the claims on the screen.
    """
    from saferank.cli.terminal.claims import show_report
    from saferank.cli.terminal.errors import naming
    from saferank.cli.terminal.options import names_in
    from saferank.files import output_folder
    from saferank.reporting.report import report

    left_out = () if without is None else names_in(without, "--without")
    with output_folder(out), naming(first_round="--from"):
        made = report(
            results,
            out,
            without=left_out,
            optimal=optimal,
            none_of_best=none_of_best,
            model_study=model_study,
            axes=axes,
            columns=columns,
            first_round=first_round,
            names=_labels(names),
            rule=rule,
            positions=positions,
            lifetime=lifetime,
        )
    show_report(made)


def _labels(text: str | None) -> dict[str, str]:
    """The names of a list like ``kl-ucb-br=Ours,original=Production``."""
    from saferank.cli.terminal.errors import InputError

    found: dict[str, str] = {}
    for part in [] if text is None else text.split(","):
        policy, equals, name = (piece.strip() for piece in part.partition("="))
        if not (policy and equals and name):
            raise InputError(f"--names: found {part.strip()!r}, expected POLICY=NAME, for example kl-ucb-br=Ours")
        found[policy] = name
    return found
