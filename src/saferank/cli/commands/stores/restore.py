"""``saferank restore``: a store from a backup."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `saferank backup` wrote.")],
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder or postgresql://... of the new, empty store.")],
) -> None:
    """Make a store from a backup. A service that is started on it continues from the moment of the backup.

    Tokens of pages from before the backup are accepted, and those from after it as well, because the keys are the same.
    Clicks that were acknowledged after the backup are lost. A file that was cut off or changed is refused before
    anything is written, and so is a store that is not empty.

    **Example**: `saferank restore saferank.backup saferank-store-2`

    **What comes out**: a sentence about what was restored. `saferank replay` checks it.
    """
    from saferank.store.contract import StoreError, StoreUnavailableError
    from saferank.store.copying import restore
    from saferank.store.opening import open_store

    try:
        opened = open_store(store)
        copied = asyncio.run(restore(file, opened))
    except StoreError as problem:
        raise InputError(str(problem)) from problem
    except StoreUnavailableError as problem:
        raise CommandError(str(problem)) from problem
    typer.echo(copied.sentence(opened.name))
