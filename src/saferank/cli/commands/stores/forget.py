"""``saferank forget``: delete the pages of a session or of a source, or what names an item."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError

if TYPE_CHECKING:
    from saferank.service.commands.forgetting import Forgotten
    from saferank.service.commands.forgetting_items import ForgottenItem


def command(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder of a service's store, or postgresql://...")],
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenant whose visitor or item it is.")],
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="The session_id of rank calls.", show_default="none")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="ID", help="The source of rank calls.", show_default="none")
    ] = None,
    item: Annotated[str | None, typer.Option(metavar="ID", help="An item of rank calls.", show_default="none")] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --item: from this context only.", show_default="all")
    ] = None,
) -> None:
    """Delete what a stopped service has stored about a session or a source, or about an item.

    The log holds keyed hashes of sessions and sources; give the id as the calls named it. With both options the pages
    of either are deleted. What was learnt from them stays, as sums. While some of the pages are in open windows,
    nothing is deleted, and a sentence says when they can go.

    With `--item`, every page that names the item is deleted, and so are lists of calls that name it, what was learnt of
    it, and its name in earlier versions. What is known of other items stays. The files are written again, which needs
    as much free space as they take.

    **Example**: `saferank forget saferank-store --tenant default --session 7f3a`

    **What comes out**: how much was removed from how many contexts, and what stays.
    """
    visitor = session is not None or source is not None
    if item is None and context is not None:
        raise InputError("--context: goes with --item")
    if item is None and not visitor:
        raise InputError("--session: name a session, or a source by --source, or both; or an item by --item")
    if item is not None and visitor:
        raise InputError("--item: cannot be combined with --session or --source; run the command twice")
    for sentence in _forgotten(store, tenant, session, source, item, context).sentences():
        typer.echo(sentence)


def _forgotten(
    store: str, tenant: str, session: str | None, source: str | None, item: str | None, context: str | None
) -> "Forgotten | ForgottenItem":
    from saferank.service.commands.forgetting import NotForgottenError, forget
    from saferank.service.commands.forgetting_items import forget_item
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError
    from saferank.store.opening import open_store

    try:
        asyncio.run(_check_exists(store))
        opened = open_store(store)
        if item is not None:
            return asyncio.run(forget_item(opened, tenant, item, context))
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
