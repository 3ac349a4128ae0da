"""The work of ``saferank serve``: socket, engine and server, in the order in which they can fail."""

import socket
import tempfile
from pathlib import Path

import typer

from saferank.cli.console import announce
from saferank.cli.errors import CommandError, InputError
from saferank.service.engine import Engine, open_engine
from saferank.service.json_logs import log_to_stderr
from saferank.service.learning import warm_up
from saferank.service.server import Companion, StopError, bind, run
from saferank.service.settings import Settings
from saferank.store.sqlite import StoreError


def serve_demo(settings: Settings, throw_away: bool) -> None:
    """Serve simulated visitors, from a store that is thrown away if nobody named one."""
    from saferank.service.demo import visitors

    with tempfile.TemporaryDirectory(prefix="saferank-demo-") as folder:
        placed = settings.model_copy(update={"store": Path(folder)}) if throw_away else settings
        serve(placed, visitors)


def serve(settings: Settings, companion: Companion | None = None) -> None:
    """Serve until told to stop."""
    log_to_stderr(settings.log_level)
    with _bound(settings) as bound:
        announce()
        typer.echo("warming up the kernels", err=True)
        warm_up(settings.policy, settings.rule)
        engine = _engine(settings)
        try:
            run(settings, engine, bound, lambda address: _say_ready(address, settings), companion)
        except (StoreError, StopError) as problem:
            raise CommandError(str(problem)) from problem


def _bound(settings: Settings) -> socket.socket:
    try:
        return bind(settings.host, settings.port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(f"{settings.host}:{settings.port}: cannot be listened on: {reason}") from problem


def _engine(settings: Settings) -> Engine:
    try:
        return open_engine(settings)
    except OSError as problem:
        raise CommandError(f"store {settings.store}: cannot be used: {problem}") from problem
    except ValueError as problem:  # a store or keys that are not what they should be
        raise CommandError(str(problem)) from problem


def _say_ready(address: str, settings: Settings) -> None:
    typer.echo(f"ready: {address} (dashboard: {address}/, store: {settings.store})")
