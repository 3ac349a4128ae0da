"""``saferank replay``: checks whether a store holds what its pages give."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError
from saferank.cli.terminal.options import Plugins

if TYPE_CHECKING:
    from saferank.service.queries.replay_report import ReplayReport


def command(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="Folder of a service's store, a backup, or postgresql://...")
    ],
    every: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Check whether pages were legal for the first 20,000 of a context and one in N after; 0: for none.",
        ),
    ] = 100,
    plugin: Plugins = None,
) -> None:
    """Replay the log of a service from the beginning, and compare everything that was derived from it.

    Publications, snapshots, leaders and their evidence must equal the result of the replay, bit for bit, and every
    explored page must have been legal under the version that it names. The service may be running; what it has
    published so far is checked.

    **Example**: `saferank replay saferank-store`

    **With a policy of your own**: `saferank replay saferank-store --plugin mine.py`

    **What comes out**: what was verified, in sentences; exit code 1 and the first difference if there is one.
    """
    from saferank.checks.plugin import load_checked_plugins

    load_checked_plugins(plugin or ())
    for sentence in _verified(store, every).sentences():
        typer.echo(sentence)


def _verified(store: str, every: int) -> "ReplayReport":
    from saferank.progress import progress_of
    from saferank.service.queries.known_policies import check_policies_known
    from saferank.service.queries.replay import DifferenceError, verify
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError
    from saferank.store.opening import open_store

    with progress_of(True).status("replaying the log") as update:
        try:
            asyncio.run(check_policies_known(store))
            opened = open_store(store, readonly=True)
            return asyncio.run(verify(opened, lambda pages: update(f"replaying the log: {pages} pages"), every))
        except (DifferenceError, DamagedStoreError) as problem:
            raise CommandError(f"{store}: {problem}") from problem
        except (StoreError, StoreUnavailableError) as problem:
            raise InputError(str(problem)) from problem
