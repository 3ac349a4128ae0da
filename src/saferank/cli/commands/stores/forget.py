"""``saferank forget``: delete the pages of a session or of a source."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError

if TYPE_CHECKING:
    from saferank.service.commands.forgetting import Forgotten


def command(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder of a service's store, or postgresql://...")],
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenant whose visitor it is.")],
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="The session_id of rank calls.", show_default="none")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="ID", help="The source of rank calls.", show_default="none")
    ] = None,
) -> None:
    """Delete what a stopped service has stored about a session or a source.

    The log holds keyed hashes of sessions and sources; give the id as the calls named it. With both options the pages
    of either are deleted. What was learnt from them stays, as sums. While some of the pages are in open windows,
    nothing is deleted, and a sentence says when they can go.

    **Example**: `saferank forget saferank-store --tenant default --session 7f3a`

    **What comes out**: how much was removed from how many contexts, and what stays.
    """
    if session is None and source is None:
        raise InputError("--session: name a session, or a source by --source, or both")
    for sentence in _forgotten(store, tenant, session, source).sentences():
        typer.echo(sentence)


def _forgotten(store: str, tenant: str, session: str | None, source: str | None) -> "Forgotten":
    from saferank.service.commands.forgetting import NotForgottenError, forget
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError
    from saferank.store.opening import open_store

    try:
        asyncio.run(_check_exists(store))
        opened = open_store(store)
        return asyncio.run(forget(opened, tenant, session, source))
    except (DamagedStoreError, StoreUnavailableError) as problem:
        raise CommandError(str(problem)) from problem
    except StoreError as problem:
        raise InputError(str(problem)) from problem
    except NotForgottenError as problem:
        raise InputError(f"{opened.name}: {problem}") from problem


async def _check_exists(store: str) -> None:
    """StoreError unless there is a store: whoever opens one for writing makes it."""
    from saferank.store.opening import open_store

    opened = open_store(store, readonly=True)
    await opened.open()
    await opened.close()
