"""``saferank replay``, ``export``, ``backup``, ``restore`` and ``forget``: commands about a store of a service."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import CommandError, InputError
from saferank.cli.terminal.options import Plugins, option

Store = Annotated[str, typer.Argument(metavar="STORE", help="Folder of a service's store, or postgresql://...")]


@contextmanager
def _store_errors() -> Iterator[None]:
    """A store that is damaged or out of reach ends a command with 1, one that cannot be used so with 2."""
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError

    try:
        yield
    except (DamagedStoreError, StoreUnavailableError) as problem:
        raise CommandError(str(problem)) from problem
    except StoreError as problem:
        raise InputError(str(problem)) from problem


def replay(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="Folder of a service's store, a backup, or postgresql://...")
    ],
    every: Annotated[
        int,
        option(
            "N",
            "Check whether pages were legal for the first 20,000 of a context and one in N after; 0: for none.",
            min=0,
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
    from saferank.progress import progress_of
    from saferank.service.calls.replay import DifferenceError, verify
    from saferank.store.contract import DamagedStoreError, StoreError, StoreUnavailableError
    from saferank.store.opening import open_store

    load_checked_plugins(plugin or ())
    with progress_of(True).status("replaying the log") as update:
        try:
            opened = open_store(store, readonly=True)
            found = asyncio.run(verify(opened, lambda pages: update(f"replaying the log: {pages} pages"), every))
        except (DifferenceError, DamagedStoreError) as problem:
            raise CommandError(f"{store}: {problem}") from problem
        except (StoreError, StoreUnavailableError) as problem:
            raise InputError(str(problem)) from problem
    for sentence in found.sentences():
        typer.echo(sentence)


def export(
    store: Store,
    form: Annotated[
        str,
        option(
            "NAME", "events (everything), sessions, ubi (bulk NDJSON), or obp (exact propensities).", True, "--format"
        ),
    ] = "events",
    tenant: Annotated[str | None, option("NAME", "Only this tenant.", "all tenants")] = None,
    arm: Annotated[
        str | None, option("NAME", "Only pages of this arm (explore, holdout, ...), of sessions and ubi.", "all arms")
    ] = None,
    out: Annotated[Path | None, option("FILE", "The file to write.", "standard output")] = None,
) -> None:
    """Write a service's log as lines of JSON.

    The service may be running. sessions and ubi are what `saferank fit`, `saferank logs` and other programs read: a
    page each, with its clicks, once its window is over. obp has logged decisions with their exact propensities, for
    off-policy estimators like those of the Open Bandit Pipeline.

    **Example**: `saferank export saferank-store --format sessions --out pages.ndjson`, then
    `saferank fit pages.ndjson --format sessions --out mine.json`

    **What comes out**: one JSON object a line.
    """
    from saferank.service.calls.export import export

    export(store, form, tenant, sys.stdout.buffer if out is None else out, arm)


def backup(
    store: Store,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; an older one is replaced.")],
) -> None:
    """Copy a store as of one moment, with its keys, into one file. Its service may be running.

    A person who has the file can sign tokens: it is readable by its owner alone, keep it so. The file is itself a
    store, in SQLite, wherever it came from: `saferank replay` checks it, and it is restored into a folder or into
    PostgreSQL. The database's own check and the checksum of every page are compared on the way.

    **Example**: `saferank backup saferank-store saferank.backup`

    **What comes out**: the file, complete or not at all, and a sentence about its contents.
    """
    from saferank.store.copying import backup
    from saferank.store.opening import open_store

    with _store_errors():
        copied = asyncio.run(backup(open_store(store, readonly=True), file))
    typer.echo(copied.sentence(str(file)))


def restore(
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
    from saferank.store.contract import DamagedStoreError
    from saferank.store.copying import restore
    from saferank.store.opening import open_store

    with _store_errors():
        try:
            opened = open_store(store)
            copied = asyncio.run(restore(file, opened))
        except DamagedStoreError as problem:  # the file that was given
            raise InputError(str(problem)) from problem
    typer.echo(copied.sentence(opened.name))


def forget(
    store: Store,
    tenant: Annotated[str, option("NAME", "The tenant whose visitor it is.")],
    session: Annotated[str | None, option("ID", "The session_id of rank calls.", "none")] = None,
    source: Annotated[str | None, option("ID", "The source of rank calls.", "none")] = None,
) -> None:
    """Delete what a stopped service has stored about a session or a source.

    The log holds keyed hashes of sessions and sources; give the id as the calls named it. With both options the pages
    of either are deleted. What was learnt from them stays, as sums. While some of the pages are in open windows,
    nothing is deleted, and a sentence says when they can go.

    **Example**: `saferank forget saferank-store --tenant default --session 7f3a`

    **What comes out**: how much was removed from how many contexts, and what stays.
    """
    from saferank.service.calls.forget import NotForgottenError, forget
    from saferank.store.opening import check_exists, open_store

    if session is None and source is None:
        raise InputError("--session: name a session, or a source by --source, or both")
    with _store_errors():
        try:
            asyncio.run(check_exists(store))
            opened = open_store(store)
            forgotten = asyncio.run(forget(opened, tenant, session, source))
        except NotForgottenError as problem:
            raise InputError(f"{opened.name}: {problem}") from problem
    for sentence in forgotten.sentences():
        typer.echo(sentence)
