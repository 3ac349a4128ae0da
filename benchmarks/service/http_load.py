"""A small HTTP/1.1 client for load: connections that stay open, and as little work per request as possible.

A request and its answer cost about 60 microseconds of this process, so that it can ask for thousands of pages a second
beside a server on two cores.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    head: bytes

    def json(self) -> Any:
        """The body, understood."""
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """A header by its name in small letters."""
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server has accepted."""
        self._transport, self.is_open = cast(asyncio.Transport, transport), True

    def connection_lost(self, problem: Exception | None) -> None:
        """Tell the callers that wait for an answer that none will come."""
        self.is_open = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Hand over an answer once it is whole."""
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None:
            return
        head = bytes(self._received[:end])
        length = _content_length(head)
        if len(self._received) >= end + 4 + length:
            body = bytes(self._received[end + 4 : end + 4 + length])
            self._received.clear()
            if b"\r\nconnection: close" in head.lower():
                self.close()
            if not self._waiting.done():
                self._waiting.set_result(Answer(int(head[9:12]), body, head))

    async def send(self, request: bytes) -> Answer:
        """The answer to a whole request; ConnectionError when the server goes away."""
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("the connection is closed")
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Let go of it."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()


def _content_length(head: bytes) -> int:
    lower = head.lower()
    start = lower.find(b"\r\ncontent-length:")
    if start < 0:
        return 0
    end = lower.find(b"\r\n", start + 2)
    return int(lower[start + 17 : end if end > 0 else len(lower)])


def post(path: str, body: bytes, key: str | None = None) -> bytes:
    """A request with a JSON body."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{authorization}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str, key: str | None = None) -> bytes:
    """A request without a body."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n".encode()


class Connections:
    """Connections to one server, used again; at most ``most`` at a time, others wait in line for their turn."""

    def __init__(self, port: Callable[[], int], most: int) -> None:
        self._port, self._most, self._open = port, most, 0
        self._idle: deque[Connection] = deque()
        self._line: deque[asyncio.Future[Connection | None]] = deque()

    async def send(self, request: bytes) -> Answer:
        """The answer to a request, or OSError (of which ConnectionError is one kind)."""
        connection = await self._take()
        try:
            return await connection.send(request)
        except BaseException:
            connection.close()
            raise
        finally:
            self._give_back(connection)

    async def post(self, path: str, content: Any, key: str | None = None) -> Answer:
        """The answer to a JSON body."""
        return await self.send(post(path, json.dumps(content).encode(), key))

    def close(self) -> None:
        """Close those that are idle."""
        while self._idle:
            self._idle.pop().close()
            self._open -= 1

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            self._open -= 1
        if self._open < self._most:
            self._open += 1
            return await self._connect()
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        return await turn or await self._connect()

    async def _connect(self) -> Connection:
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(Connection, "127.0.0.1", self._port())
        except BaseException:
            self._hand_on(None)
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        self._hand_on(connection if connection.is_open else None)

    def _hand_on(self, connection: Connection | None) -> None:
        """Give the caller that is first in line a connection, or the right to open one."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._open -= 1
        else:
            self._idle.append(connection)
