"""What a client may send, and how long it may take, before its request is complete."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from saferank.service.http.bounded_protocol import HEAD_SECONDS, LARGEST_HEAD
from saferank.service.http.direct_protocol import DirectProtocol
from tests.running_service import read_answer
from tests.service.http.server_process import running
from tests.service.http.service_in_process import Service

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Transport(asyncio.Transport):
    """Notes what is written, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted, self.written = False, b""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_aborted

    def close(self) -> None:
        self.is_aborted = True

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Loop(asyncio.SelectorEventLoop):
    """A loop whose timers are due when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[tuple[float, Callable[..., object], asyncio.TimerHandle]] = []

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self)
        self.timers.append((delay, callback, handle))
        return handle

    def due(self, seconds: float) -> None:
        """Let so much time pass."""
        for delay, callback, handle in self.timers:
            if not handle.cancelled() and delay <= seconds:
                callback()


class Connection:
    """A connection of a client to a service."""

    def __init__(self, service: Service, loop: Loop) -> None:
        self.loop, self.transport = loop, Transport()
        app, idle = cast(Any, service.app), int(3 * HEAD_SECONDS)
        config = Config(app, http=DirectProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=idle)
        self.protocol = DirectProtocol(config, ServerState(), {}, loop)
        self.protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)
        for _ in range(20):  # answers of this service wait for nothing
            self.loop.run_until_complete(_turn())


async def _turn() -> None: ...


@pytest.fixture
def connection() -> Any:
    loop = Loop()
    yield Connection(Service(), loop)
    loop.close()


def test_a_connection_without_a_byte_is_closed(connection: Connection) -> None:
    connection.loop.due(HEAD_SECONDS - 1)
    assert not connection.transport.is_aborted
    connection.loop.due(HEAD_SECONDS)
    assert connection.transport.is_aborted


@pytest.mark.parametrize("sent", [b"\r\n", b"GET", HEALTH[:-2], HEALTH + b"\r\n", HEALTH + HEALTH[:-2]])
def test_a_head_that_does_not_end_is_closed(connection: Connection, sent: bytes) -> None:
    for place in range(len(sent)):
        connection.send(sent[place : place + 1])
    connection.loop.due(HEAD_SECONDS)
    assert connection.transport.is_aborted


def test_the_rest_of_a_body_that_was_answered_is_not_waited_for_without_end(connection: Connection) -> None:
    connection.send(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
    assert connection.transport.written.startswith(b"HTTP/1.1 404")
    connection.loop.due(HEAD_SECONDS)
    assert not connection.transport.is_aborted  # the time of an idle connection is longer
    connection.send(b"a")
    connection.loop.due(HEAD_SECONDS)
    assert connection.transport.is_aborted


def test_a_connection_with_whole_requests_stays(connection: Connection) -> None:
    for _ in range(3):
        connection.send(HEALTH)
    assert connection.transport.written.count(b"HTTP/1.1 200") == 3
    connection.loop.due(HEAD_SECONDS)
    assert not connection.transport.is_aborted


def test_a_large_head_is_closed(connection: Connection) -> None:
    connection.send(HEALTH[:-2] + b"X-Endless: " + b"a" * LARGEST_HEAD)
    assert connection.transport.is_aborted


def test_silent_connections_and_endless_bodies_make_room_for_others() -> None:
    endless = b"POST /v1/beacon HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{"
    with running(max_connections=4) as server:
        opened = [server.connect() for _ in range(6)]
        for connection in opened[4:]:
            connection.sendall(endless)
        for _ in range(8):
            with server.connect() as connection:
                connection.sendall(HEALTH)
                assert read_answer(connection)[0] == 200
        assert opened[0].recv(1) == b""
        for connection in opened:
            connection.close()
