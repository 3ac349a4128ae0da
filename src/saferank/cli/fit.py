"""``saferank fit``: what it takes and what it tells; the work is done in ``estimates.py``."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.logs import Format, MaxBad
from saferank.cli.options import Models


def command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Click log, plain or gzip.")],
    log_format: Format,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file to write.")],
    models: Models = None,
    queries: Annotated[int, typer.Option(min=1, metavar="N", help="The N most frequent queries.")] = 100,
    evaluate: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also hold out this share of the pages, fit on the others and compare all models on it.",
            show_default="no evaluation",
        ),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="Iterations of EM.")] = 50,
    replicates: Annotated[
        int, typer.Option(min=0, metavar="B", help="Logs drawn for the standard errors; 0 leaves them out.")
    ] = 30,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the split and the drawn logs.")] = 0,
    max_bad: MaxBad = 0.01,
) -> None:
    """Estimate click models from a click log.

    Parameters come from all pages of the most frequent queries; attraction belongs to a query and an item, what is said
    about positions to everybody. Instances are written for the queries that have a ranking of ten items.

    **Example**: `saferank fit train.gz --format yandex-personalized --models pbm,cm --evaluate 0.25 --out mine.json`

    **What comes out**: an instance file for `saferank simulate mine.json`; mine-errors.json with standard errors; a
    table of how far EM came. With --evaluate a table of held-out likelihood and perplexity, and mine-ctr.png.
    """
    from saferank.cli.estimates import Order, carry_out

    order = Order(
        log=log,
        form=log_format,
        out=out,
        models=models,
        queries=queries,
        evaluate=evaluate,
        iterations=iterations,
        replicates=replicates,
        seed=seed,
        max_bad=max_bad,
    )
    carry_out(order)
