"""A service from its first second to its last: bind, restore, warm up, answer, stop when told."""

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from saferank._kernel import nothing_compiled
from saferank.service import limits
from saferank.service.http.app import App
from saferank.service.http.limits import LARGEST_HEAD, GuardedProtocol, OpenConnections
from saferank.service.json_logs import log
from saferank.service.server import Server
from saferank.service.settings import masked

Ready = Callable[[str], None]
"""Called with the address, like http://127.0.0.1:8080, once it is answered there."""
Companion = Callable[[str, threading.Event], None]
"""Something that runs beside the service in a thread until the event is set, given the address: the demo's visitors."""


PATIENCE_SECONDS = 3.0
SETTLE_SECONDS = 2.0
LOOK_SECONDS = 1.0
"""So often connections are looked for whose requests do not come."""

ACCEPTED_A_TURN = 64
"""uvloop accepts one connection per listening socket in every turn of its loop; turns are long under load. With a
single socket new connections would wait for half a minute behind 200 busy ones, so this many sockets listen."""


OTHER_FILES = ACCEPTED_A_TURN + 136
"""Open files of a process besides its connections, at most: sockets that are listened on, the store."""


class StopError(RuntimeError):
    """The service ended before everything was put away; what was acknowledged is on disk."""


def bind(host: str, port: int) -> socket.socket:
    """The socket of the service, before anything else is done; OSError when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def address_of(bound: socket.socket) -> str:
    """Where a bound socket is reached."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(server: Server, bound: socket.socket, ready: Ready, companion: Companion | None = None) -> None:
    """Serve until SIGTERM or SIGINT and close the socket; StopError when the end was not clean."""
    _allow_open_files(limits.MAX_CONNECTIONS + OTHER_FILES)
    with bound, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(server, bound, ready, companion))


async def _serve(server: Server, bound: socket.socket, ready: Ready, companion: Companion | None) -> None:
    app = App(server)
    web = uvicorn.Server(_configuration(app))
    company = _Company(companion)
    listen_to_signals = _signals(app, web, company)
    listen_to_signals()
    await server.start()

    async def begin() -> None:
        while not web.started:
            await asyncio.sleep(LOOK_SECONDS / 100)
        listen_to_signals()  # uvicorn has taken them over, and would stop without the companion and the server
        log(logging.INFO, "ready", address=address_of(bound), store=masked(server.settings.store))
        ready(address_of(bound))
        company.join(address_of(bound))

    upkeep = [asyncio.create_task(work) for work in (begin(), _keep_memory_settled(), _close_late(app.connections))]
    app.lag.start()
    try:
        if not web.should_exit:  # it may have been told to stop while the server was starting
            with nothing_compiled():
                await web.serve(sockets=[bound.dup() for _ in range(ACCEPTED_A_TURN)])
    finally:
        for task in upkeep:
            task.cancel()
        app.lag.stop()
        await _stop(server, limits.STOP_SECONDS)


class _Company:
    """The companion, if there is one: it leaves before the service does."""

    def __init__(self, companion: Companion | None) -> None:
        self._companion, self._leaving = companion, threading.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self, address: str) -> None:
        """Start it."""
        if self._companion is not None:
            self._task = asyncio.create_task(self._run(self._companion, address))

    async def leave(self) -> None:
        """Ask it to go and wait a little."""
        self._leaving.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=PATIENCE_SECONDS)

    async def _run(self, companion: Companion, address: str) -> None:
        try:
            await asyncio.to_thread(companion, address, self._leaving)
        except Exception as error:  # the service is worth more than its company
            log(logging.ERROR, "companion failed", error=error)


def spoken_protocol(app: Any) -> Any:
    """The protocol with which uvicorn speaks HTTP; what it is made from is uvicorn's own.

    h11 and not httptools: only h11 reads the body of a request that offers to go on in another protocol.
    """
    configuration = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_config=None)
    configuration.load()
    return configuration.http_protocol_class


def _configuration(app: App) -> uvicorn.Config:
    spoken = spoken_protocol(app)

    class Guarded(GuardedProtocol):
        def __init__(self, **parts: Any) -> None:
            super().__init__(spoken(**parts), app.connections, asyncio.get_running_loop())

    return uvicorn.Config(
        app,
        http=Guarded,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=logging.ERROR,  # what strangers send is no line of the log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(limits.STOP_SECONDS),
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with suppress(ImportError):  # not there on Windows; the standard loop does the same, slower
        import uvloop

        return uvloop.new_event_loop
    return None


def _allow_open_files(wanted: int) -> None:
    """Raise the limit of open files of this process, which is often 1,024, as far as the system allows."""
    with suppress(ImportError):  # not there on Windows, which has no such limit
        import resource

        allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed == resource.RLIM_INFINITY or allowed >= wanted:
            return
        reachable = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, most))
        if reachable < wanted:
            detail = "fewer than max_connections and the store may need; raise the limit, or lower max_connections"
            log(logging.WARNING, "few open files", allowed=reachable, wanted=wanted, detail=detail)


def _signals(app: App, web: uvicorn.Server, company: _Company) -> Callable[[], None]:
    """A function that has signals come here: the first one stops in order, the second at once."""
    told: list[asyncio.Task[None]] = []

    async def stop() -> None:
        await company.leave()
        app.stopping = web.should_exit = True

    def tell(number: int) -> None:
        if told:
            os._exit(128 + number)
        log(logging.INFO, "stopping", signal=signal.Signals(number).name)
        told.append(asyncio.create_task(stop()))

    def listen() -> None:
        loop = asyncio.get_running_loop()
        with suppress(RuntimeError, ValueError):  # in a thread other than the main one: the caller stops it
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, tell, number)

    return listen


async def _keep_memory_settled() -> None:
    """Open pages live for long: the garbage collector must not walk through millions of them, again and again.

    What is left after a look at the newest objects is out of its sight from then on, and freed when nothing refers to
    it any more, as usual; only garbage in circles that closed later would stay.
    """
    while True:
        gc.collect()
        gc.freeze()
        await asyncio.sleep(SETTLE_SECONDS)


async def _close_late(connections: OpenConnections) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        connections.close_late(asyncio.get_running_loop().time())


async def _stop(server: Server, seconds: float) -> None:
    try:
        await asyncio.wait_for(server.stop(), seconds)
    except TimeoutError as problem:
        raise StopError(f"the store did not take the last writes within {seconds:g} s") from problem
    log(logging.INFO, "stopped")
