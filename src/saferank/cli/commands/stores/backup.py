"""``saferank backup``: everything that a store holds, in one file."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError


def command(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder of a service's store, or postgresql://...")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; an older one is replaced.")],
) -> None:
    """Copy a store as of one moment, with its keys, into one file. Its service may be running.

    Whoever has the file can sign tokens: it is readable by its owner alone, keep it so. The file is itself a store, in
    SQLite, wherever it came from: `saferank replay` checks it, and it is restored into a folder or into PostgreSQL. The
    database's own check and the checksum of every page are compared on the way.

    **Example**: `saferank backup saferank-store saferank.backup`

    **What comes out**: the file, complete or not at all, and a sentence about what is in it.
    """
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError
    from saferank.store.copying import backup
    from saferank.store.opening import open_store

    try:
        copied = asyncio.run(backup(open_store(store, readonly=True), file))
    except (DamagedStoreError, StoreUnavailableError) as problem:
        raise CommandError(str(problem)) from problem
    except StoreError as problem:
        raise InputError(str(problem)) from problem
    typer.echo(copied.sentence(str(file)))
