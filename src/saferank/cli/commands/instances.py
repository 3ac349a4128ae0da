"""``saferank instances``: the embedded instance set as a file, to look at and to change."""

from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.options import Models, names_if_given, number
from saferank.errors import writing


def command(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file to write.")],
    queries: Annotated[int, typer.Option(parser=number, metavar="N", help="How many queries.")] = 20,
    models: Models = None,
    seed: Annotated[int, typer.Option(parser=number, metavar="N", help="Another seed makes other queries.")] = 1,
) -> None:
    """Write the embedded instance set to a file.

    The set is made from a seed in the shape of real web search. A file of it shows what an instance is, and is a start
    for one of your own.

    **Example**: `saferank instances --queries 5 --models pbm --out mine.json`

    **What comes out**: an instance file for `saferank simulate mine.json`, one instance a line.
    """
    from saferank.files import check_output_file, is_device
    from saferank.instances import choose_instances, save_instances
    from saferank.reporting.numbers import counted

    made = choose_instances(models=names_if_given(models, "--models"), queries=queries, seed=seed)
    check_output_file(out)
    with writing(f"--out {out}"):
        save_instances(out, made, about=f"the embedded instance set of saferank, seed {seed}")
    typer.echo(f"{counted(len(made), 'instance')}: {out}", err=is_device(out))
