"""``saferank fit``: options, one call of ``saferank.fit``, tables."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import Format, Iterations, Log, MaxBad, Models, MostFrequent, names_if_given, number


def command(
    log: Log,
    log_format: Format,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file to write.")],
    models: Models = None,
    queries: MostFrequent = 100,
    page_length: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="N",
            help="Instances are made of each query's most frequent ranking of N items; other queries have none.",
            show_default="10 where a query has such a page, else its most frequent length",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            parser=number,
            metavar="L",
            help="At most L items per instance: those of the ranking, then those of the query's other pages, most "
            "frequent first.",
            show_default="those of the ranking",
        ),
    ] = None,
    evaluate: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also hold out this share of the pages, fit on the others and compare all models on it.",
            show_default="no evaluation",
        ),
    ] = None,
    iterations: Iterations = 50,
    replicates: Annotated[
        int, typer.Option(parser=number, metavar="B", help="Bootstrap replicates for the standard errors; 0: none.")
    ] = 30,
    seed: Annotated[int, typer.Option(parser=number, metavar="N", help="Seed of the split and of the bootstrap.")] = 0,
    max_bad: MaxBad = 0.01,
) -> None:
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
    from saferank.cli.terminal.estimates import show_click_through, show_fit
    from saferank.files import check_output_file, output_folder
    from saferank.fitting.fit import fit

    check_output_file(out, beside=True)
    with output_folder(out.parent):
        found = fit(
            log,
            log_format,
            names_if_given(models, "--models"),
            queries,
            page_length=page_length,
            items=items,
            evaluate=evaluate,
            iterations=iterations,
            replicates=replicates,
            seed=seed,
            max_bad=max_bad,
        )
        files = found.save(out)
    show_fit(found, files)
    show_click_through(found, out.with_name(f"{out.stem}-ctr.png"))
