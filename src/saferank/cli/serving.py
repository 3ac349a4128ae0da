"""The work of ``saferank serve``: socket, engine and server, in the order in which they can fail."""

import socket
import tempfile
from collections.abc import Callable

import typer

from saferank.cli.terminal.errors import CommandError, InputError
from saferank.progress import announce_compilation_once
from saferank.service.engine import Engine, open_engine
from saferank.service.http.server import Companion, StopError, bind, run
from saferank.service.http.workers import Workers
from saferank.service.json_logs import log_to_stderr
from saferank.service.knowledge.warm_up import warm_up
from saferank.service.settings import Settings, masked
from saferank.store.contract import StoreError


def serve_demo(settings: Settings, throw_away: bool) -> None:
    """Serve simulated visitors, from a temporary store unless one was named."""
    from saferank.service.demo import visitors

    with tempfile.TemporaryDirectory(prefix="saferank-demo-") as folder:
        placed = settings.model_copy(update={"store": folder}) if throw_away else settings
        serve(placed, visitors)


def serve(settings: Settings, companion: Companion | None = None) -> None:
    """Serve until a signal stops it."""
    log_to_stderr(settings.log_level)
    with _bound(settings) as bound:
        announce_compilation_once()
        if settings.workers == 1:
            typer.echo("opening the store and warming up the kernels", err=True)
            _serve_here(settings, bound, lambda address: _say_ready(address, settings), companion)
        else:
            typer.echo("warming up the kernels", err=True)
            warm_up(settings.policy, settings.rule)  # once, not in all workers at the same time
            _serve_by_workers(settings, bound)


def _serve_here(
    settings: Settings, bound: socket.socket, ready: Callable[[str], None], companion: Companion | None = None
) -> None:
    try:
        run(settings, _engine(settings), bound, ready, companion)
    except (StoreError, StopError) as problem:
        raise CommandError(str(problem)) from problem


def _serve_by_workers(settings: Settings, bound: socket.socket) -> None:
    def serve_one(shared: socket.socket, ready: Callable[[str], None]) -> int:
        try:
            _serve_here(settings, shared, ready)
        except CommandError as problem:
            typer.echo(str(problem), err=True)
            return 1
        return 0

    code = Workers(settings.workers, bound, serve_one).run(lambda address: _say_ready(address, settings))
    if code:
        raise typer.Exit(code)


def _bound(settings: Settings) -> socket.socket:
    try:
        return bind(settings.host, settings.port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(f"{settings.host}:{settings.port}: cannot be listened on: {reason}") from problem


def _engine(settings: Settings) -> Engine:
    try:
        return open_engine(settings)
    except StoreError as problem:
        raise CommandError(str(problem)) from problem


def _say_ready(address: str, settings: Settings) -> None:
    typer.echo(f"ready: {address} (dashboard: {address}/, store: {masked(settings.store)})")
