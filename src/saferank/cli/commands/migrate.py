"""``saferank migrate``: takes a store of the first edition over into a new one."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError


def command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of a store of the first edition.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Folder or postgresql://... of the new, empty store.")],
) -> None:
    """Convert a store of the first edition (schemas 1 and 2) into one that this saferank can serve from.

    Contexts, pages with their clicks, event ids and kill switches that are on are taken over, and what a rollback undid
    stays undone. The old store is only read. Stop its service first. If the command fails halfway, remove NEW and begin
    again.

    **Example**: `saferank migrate saferank-store saferank-store-2`

    **What comes out**: what was taken over and what was not, in sentences.
    """
    from saferank.store.contract import StoreError, StoreUnavailableError
    from saferank.store.first_edition.migrating import migrate
    from saferank.store.opening import open_store

    try:
        result = asyncio.run(migrate(old, open_store(new)))
    except StoreError as problem:
        raise InputError(str(problem)) from problem
    except StoreUnavailableError as problem:
        raise CommandError(f"{problem}; remove the new store and begin again") from problem
    for sentence in result.sentences():
        typer.echo(sentence)
