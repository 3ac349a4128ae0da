"""The work of ``saferank serve``: socket, server and process, in the order in which they can fail."""

import logging
import socket
import tempfile

import typer
from msgspec import structs

from saferank._kernel import announce_compilation
from saferank.cli.terminal.errors import CommandError, InputError
from saferank.experiments.engines import cores
from saferank.precompiling import SERVICE, jobs_for
from saferank.progress import STDERR, VISITS, Shown
from saferank.service.demo import DEMO_SETTINGS, N_VISITS, SIMULATED, play_past, visitors
from saferank.service.http.process import Companion, StopError, bind, run
from saferank.service.json_logs import log, log_to_stderr
from saferank.service.server import new_server
from saferank.service.settings import Settings, masked
from saferank.simulation.compiling import compile_ahead, worth_compiling
from saferank.store.contract import StoreError
from saferank.store.embedded.file import file_at
from saferank.store.opening import is_shared


def serve_demo(settings: Settings, throw_away: bool) -> None:
    """Serve simulated visitors and their past, from a temporary store unless a new one was named."""
    if is_shared(settings.store) or (not throw_away and file_at(settings.store).exists()):
        what = "a demo plays a past of its own into a new folder; name one that is empty, or none"
        raise InputError(f"--store {masked(settings.store)}: {what}")
    if settings.window_seconds < (least := DEMO_SETTINGS["window_seconds"]):
        raise InputError(f"window_seconds: a demo plays its past in steps of a minute and needs at least {least:g}")
    with tempfile.TemporaryDirectory(prefix="saferank-demo-") as folder:
        serve(structs.replace(settings, store=folder) if throw_away else settings, demo=True)


def serve(settings: Settings, demo: bool = False) -> None:
    """Serve until a signal stops it."""
    log_to_stderr(settings.log_level)
    with _bound(settings) as bound:
        _compile_ahead(settings.policy)
        try:
            companion = _past_of_demo(settings) if demo else None
            announce_compilation(lambda: log(logging.INFO, "compiling for this machine, once"))
            log(logging.INFO, "opening the store and warming up the kernels")
            server = new_server(settings)
            server.simulated = SIMULATED if demo else None
            run(server, bound, lambda address: _say_ready(address, settings), companion)
        except (StoreError, StopError) as problem:
            raise CommandError(str(problem)) from problem


def _past_of_demo(settings: Settings) -> Companion:
    """Play the past of a demo; what visits from then on."""
    typer.echo("playing the visitors of the last hours, before the demo starts", err=True)
    if STDERR.is_terminal:  # lines of JSON would run through the bar, and the dashboard shows the alarms
        log_to_stderr("critical")
    with Shown().meter(N_VISITS, VISITS) as played:
        play_past(settings, played)
    log_to_stderr(settings.log_level)
    return visitors


def _compile_ahead(policy: str) -> None:
    """A first start compiles on all cores, with a bar; a later one finds everything in the cache."""
    if jobs := worth_compiling(jobs_for(SERVICE, [policy]), cores()):
        log(logging.INFO, "compiling for this machine, once, for about half a minute; `saferank compile` does it ahead")
        compile_ahead(jobs, Shown(), cores())


def _bound(settings: Settings) -> socket.socket:
    try:
        return bind(settings.host, settings.port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(f"{settings.host}:{settings.port}: cannot be listened on: {reason}") from problem


def _say_ready(address: str, settings: Settings) -> None:
    typer.echo(f"ready: {address} (dashboard: {address}/, store: {masked(settings.store)})")
