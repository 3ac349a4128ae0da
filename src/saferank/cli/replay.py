"""``saferank replay``: tells whether a store holds what its log gives."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saferank.cli.console import STDERR, announce
from saferank.cli.errors import CommandError, InputError

if TYPE_CHECKING:
    from saferank.service.replay import Report


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder of a service's store, or its log file.")],
) -> None:
    """Fold a service's log from the beginning and compare everything that was derived from it.

    Snapshots are not used but checked: each must be equal to the fold, bit for bit. So must every leader and its
    evidence. A running service may go on meanwhile; what it has written by now is checked.

    **Example**: `saferank replay saferank-store`

    **What comes out**: what was verified, in sentences; exit code 1 and the first difference if there is one.
    """
    announce()
    for sentence in _verified(_log_file(store)).sentences():
        typer.echo(sentence)


def _log_file(store: Path) -> Path:
    from saferank.service.engine import LOG_NAME

    return store / LOG_NAME if store.is_dir() else store


def _verified(path: Path) -> "Report":
    from saferank.service.replay import DifferenceError, verify
    from saferank.store.sqlite import ReadableStore, StoreError

    log = ReadableStore(path)
    try:
        log.check()
    except StoreError as problem:
        raise InputError(str(problem)) from problem
    with STDERR.status("replaying the log") as status:
        try:
            return verify(log, lambda seq: status.update(f"replaying the log: {seq} events"))
        except DifferenceError as problem:
            raise CommandError(f"{path}: {problem}") from problem
