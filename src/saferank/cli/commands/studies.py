"""``saferank reproduce`` and ``saferank report``: options, one call of the library, the claims."""

from pathlib import Path
from typing import Annotated, Any

import typer

import saferank as library
from saferank.cli.terminal.errors import naming
from saferank.cli.terminal.options import (
    FORMATS,
    LENGTH,
    REQUIRED,
    asked,
    count,
    follows,
    labels_in,
    names_in,
    option,
)

_FROM_PROFILE = "of the profile"


@follows(
    "saferank.reproduction.reproduce:reproduce",
    out=option("DIR", "Folder for everything that comes out."),
    profile=option("NAME", "quick (20 queries, 10 repetitions) or paper (100 queries, 100 repetitions)."),
    log=option("FILE", "Your click log.", "a synthetic one, written to DIR"),
    format=option("NAME", f"Of --log: {FORMATS}"),
    models=Annotated[str | None, option("NAMES", "Click models, with commas between.")],
    rule=option("RULE", "Decision rule: paper:DELTA, anytime:ALPHA or budget:ALPHA; 1/T is one over --rounds."),
    items=count("L", "How many items of a query take part: those of its page, then those that its other pages showed."),
    page_length=count("N", "Of --log: take each query's most frequent ranking of N items.", LENGTH),
    repetitions=count("N", "Independent runs of every policy on every query.", _FROM_PROFILE),
    queries=count("N", "The N most frequent queries.", _FROM_PROFILE),
    sessions=count("N", "Sessions of the synthetic log.", _FROM_PROFILE),
    without=Annotated[str | None, option("PARTS", "Leave out additions, sensitivity, study, or several.", "nothing")],
    study_instances=option("FILE", "Instance file for the study, beside the embedded set.", "none"),
    optimal=option("ID", "The query whose original ranking is optimal.", "the one that comes nearest"),
    none_of_best=option(
        "ID", "The query whose original ranking holds none of the best items.", "the one that comes nearest"
    ),
)
def reproduce(**given: Any) -> None:
    """Reproduce the paper's experiments, or run your own study with its protocol.

    Click models are estimated from the pages of the log's most frequent queries. The paper's five algorithms are played
    against users who click like that, and beside them our own safe-draw (left out with
    --without additions, or by naming --policies). Two more parts follow: what the paper left open (decision rules,
    ties, BubbleRank's candidates; --without sensitivity), and the anytime rule beside the paper's under six click
    models (--without study).

    **Example**: `saferank reproduce --out demo` takes a few minutes and needs no data.

    **The paper's size**: `saferank reproduce --profile paper --log train.gz --format yandex-personalized --out paper`

    **Something else**: `saferank reproduce --rule anytime:1/T --models dbn,ubm --positions 3 --queries 50 --out mine`

    **A long run** keeps its finished parts. After Ctrl-C, a crash or a full disk, the same command with --resume
    continues it and gives the same results. With --cluster tcp://host:8786 a Dask cluster does the work.

    **What comes out**: the claims of the paper with verdicts on the screen; DIR/report.html; DIR/results.json,
    sensitivity.json and study.json with all curves; DIR/instances.json with the click models.
    """
    given = asked(given, policies=names_in, models=names_in, without=names_in)
    from saferank.cli.terminal.tables import show_report

    given |= {"plugins": given["plugins"] or (), "without": given["without"] or ()}
    done = library.reproduce(**given)
    if done.report is None:
        typer.echo(done.folder / "results.json")
    else:
        show_report(done.report)


@follows(
    "saferank.reporting.report:report",
    results=Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Results file of `saferank simulate` or `saferank reproduce`.")
    ],
    out=(Annotated[Path, option("DIR", "Folder for the page and the figures.")], REQUIRED),
    without=Annotated[str | None, option("NAMES", "Policies to leave out, with commas between.", "none")],
    optimal=option("ID", "The query whose original ranking is optimal.", "as the results say"),
    none_of_best=option("ID", "The query whose original ranking holds none of the best items.", "as the results say"),
    model_study=option(
        "RESULTS",
        "Results with policies that assume a click model, for the section about wrong models.",
        "model-study.json beside the results, or the results themselves",
    ),
    axes=option("KIND", "Axes of the curves: log or linear."),
    columns=option(
        "1|2",
        "Size the figure files for one or two columns of a paper (3.4 or 6.8 inches, 7 to 10 points type).",
        "one panel for every click model, side by side",
    ),
    first_round=option(
        "ROUND",
        "The first round that curves show.",
        "the last three powers of ten; all rounds on linear axes",
        "--from",
    ),
    names=Annotated[
        str | None, option("POLICY=NAME,...", "Other names for policies in figures and tables.", "their titles")
    ],
    rule=option("RULE", "Of a sweep: this decision rule.", "the only one"),
    positions=count("K", "Of a sweep: pages of this many items.", "the only ones"),
    lifetime=Annotated[
        str | None, option("D", "Of a sweep: this lifetime of certificates, or `none`.", "the only one")
    ],
)
def report(**given: Any) -> None:
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
    given = asked(given, without=names_in, names=labels_in)
    from saferank.cli.terminal.tables import show_report
    from saferank.files import output_folder

    given["without"] = given["without"] or ()
    with output_folder(given["out"]), naming(first_round="--from"):
        made = library.report(**given)
    show_report(made)
