"""How much is taken in: connections, the lag of the event loop, requests of a tenant, bodies by type, size and time.

Twice the load must be refused politely, never piled up: a request that waits in a queue of seconds is of no use to the
page that needs it.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from saferank.service.wire.problems import Problem

BEAT_SECONDS = 0.05


class LoopLag:
    """Watches how far the event loop is behind: a beat that is overdue means that everything else is, too."""

    def __init__(self, largest_lag: float) -> None:
        self._largest = largest_lag
        self._due = math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None
        self.last_lag = self.longest_lag = 0.0

    def start(self) -> None:
        """Begin to beat on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._schedule(self._loop.time())

    def stop(self) -> None:
        """No more beats."""
        if self._next is not None:
            self._next.cancel()

    def is_behind(self) -> bool:
        """True when the loop is too far behind for new work."""
        return self._loop is not None and self._loop.time() - self._due > self._largest

    def _schedule(self, now: float) -> None:
        assert self._loop is not None
        self._due = now + BEAT_SECONDS
        self._next = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        assert self._loop is not None
        now = self._loop.time()
        self.last_lag = max(0.0, now - self._due)
        self.longest_lag = max(self.longest_lag, self.last_lag)
        self._schedule(now)


class Bucket:
    """Tokens that fill up at a steady rate; every request takes some.

    >>> now = 0.0
    >>> bucket = Bucket(rate=2.0, burst=3, clock=lambda: now)
    >>> [bucket.take(1) for _ in range(4)]
    [0.0, 0.0, 0.0, 0.5]
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._at = float(burst), clock()

    def take(self, tokens: int) -> float:
        """Zero if there were enough; otherwise nothing is taken, and the seconds until there will be."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        wanted = min(tokens, self._burst)  # more than a bucket can never be had at once
        if self._level >= wanted:
            self._level -= wanted
            return 0.0
        return (wanted - self._level) / self._rate


class TenantLimits:
    """A bucket for every tenant; rate 0 is no limit."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, Bucket] = {}

    def admit(self, tenant: str, requests: int = 1) -> None:
        """Problem 429 when the tenant has sent too much."""
        if not self._rate:
            return
        if tenant not in self._buckets:
            self._buckets[tenant] = Bucket(self._rate, self._burst, self._clock)
        wait = self._buckets[tenant].take(requests)
        if wait:
            detail = f"tenant {tenant} may send {self._rate:g} requests a second; try again in {wait:.1f} s"
            raise Problem(429, "Too many requests", detail, retry_after=math.ceil(wait))


def check_headers(headers: Iterable[tuple[bytes, bytes]], limit: int) -> None:
    """Problem for a body that is not JSON or is declared too large."""
    content_type = length = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise Problem(415, "Unsupported encoding", "send the body as it is, without Content-Encoding")
    if content_type != b"application/json":
        _check_content_type(content_type.decode("latin-1"))
    if length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise too_large(limit)


def _check_content_type(given: str) -> None:
    media_type, _, parameters = given.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() == "application/json" and charset in ("", "utf-8", "utf8"):
        return
    found = f"found {given[:100]!r}" if given else "it is missing"
    raise Problem(415, "Unsupported content type", f"Content-Type must be application/json; {found}")


def too_large(limit: int) -> Problem:
    """The refusal of a body beyond the limit."""
    return Problem(413, "Body too large", f"the body must have at most {limit} bytes; send less at a time")


# --- connections: how many there are, how long they may be silent, how much of unfinished bodies they hold ---
# Anybody can open a connection and send nothing, or a head without an end, or a body byte by byte, before any key is
# looked at. When there is no room, the connection that has waited the longest for its client is closed. So a new
# connection always gets in, and a request that is being answered is never cut off.
#
# HTTP itself is spoken by uvicorn's protocol. What stands before it passes bytes on and does not know what they mean.


HEAD_SECONDS = 10.0
"""A head that takes longer is not waited for. The first one of a connection is expected from its beginning."""

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line and its headers. The protocol looks at the size of what is not complete yet, so it is given
no more than this at a time."""

LONGEST_BLANK = 512
"""Blanks and tabs in a row. h11 tries a line of n blanks and a bad character in n^2 / 2 ways: with 64 KB of them a
server would be busy for half a minute, with these for a millisecond. No honest client sends more."""

_BLANK = b" " * (LONGEST_BLANK + 1)
Address = tuple[str, int]


class Connection(Protocol):
    """A connection, as the count of them sees it."""

    def give_up(self) -> None:
        """Close it at once."""

    def is_late(self, now: float) -> bool:
        """True when its head has been waited for too long."""


class OpenConnections:
    """The connections of a process."""

    def __init__(self, most: int, most_bytes: int, note_closed: Callable[[], None]) -> None:
        self._most, self._most_bytes, self._note_closed = most, most_bytes, note_closed
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # those without a whole request, the longest wait first
        self._unfinished: dict[Connection, int] = {}  # bytes of bodies that are arriving, the oldest first
        self._bytes = 0
        self.by_address: dict[Address | None, GuardedProtocol] = {}
        """Requests know the address of their client, and so their connection."""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """A client has connected."""
        self._open.add(connection)
        self._waiting[connection] = None
        if len(self._open) > self._most:
            self._close(next(iter(self._waiting)))

    def remove(self, connection: Connection) -> None:
        """A connection has ended."""
        self._open.discard(connection)
        self.stop_waiting(connection)

    def wait(self, connection: Connection) -> None:
        """A request was answered, or the next piece of its body is waited for."""
        if connection in self._open:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def stop_waiting(self, connection: Connection) -> None:
        """A request has arrived whole."""
        self._waiting.pop(connection, None)
        if connection in self._unfinished:
            self._bytes -= self._unfinished.pop(connection)

    def hold(self, connection: Connection, size: int) -> None:
        """A piece of a body has arrived, of ``size`` bytes, and is not the last."""
        if connection in self._open:
            self._unfinished[connection] = self._unfinished.get(connection, 0) + size
            self._bytes += size
        while self._bytes > self._most_bytes:
            self._close(next(iter(self._unfinished)))

    def close_late(self, now: float) -> None:
        """Close the connections whose heads have been waited for too long."""
        for connection in [each for each in self._waiting if each.is_late(now)]:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._note_closed()
        self.remove(connection)  # at once: the connection itself ends with the next turn of the loop
        connection.give_up()


class GuardedProtocol(asyncio.Protocol):
    """Stands between a connection and the protocol that understands it, and is one of the open connections."""

    def __init__(self, inner: asyncio.Protocol, connections: OpenConnections, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._all, self._time = inner, connections, loop.time
        self._transport: asyncio.Transport | None = None
        self._address: Address | None = None
        self._head_since: float | None = None  # None: a request is being answered, or nothing of the next one has come
        self._answering = False
        self._end = b""  # the last bytes that came

    # --- what the transport says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected; its first head must come."""
        self._transport, self._head_since = cast(asyncio.Transport, transport), self._time()
        peer = transport.get_extra_info("peername")
        self._address = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) and len(peer) > 1 else None
        self._all.by_address[self._address] = self
        self._inner.connection_made(transport)
        self._all.add(self)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, unless they would keep the protocol busy for long."""
        assert self._transport is not None
        if not self._answering and self._head_since is None:
            self._head_since = self._time()
        seen = (self._end + data).replace(b"\t", b" ")
        self._end = seen[-LONGEST_BLANK:]
        if _BLANK in seen:
            self._all.remove(self)
            self.give_up()
        for start in range(0, len(data), LARGEST_HEAD):
            if self._transport.is_closing():
                return
            self._inner.data_received(data[start : start + LARGEST_HEAD])
        if self._transport.is_closing():  # it was no HTTP, and the protocol has said so: nothing else may be answered
            self._inner.connection_lost(None)

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._all.remove(self)
        if self._all.by_address.get(self._address) is self:
            del self._all.by_address[self._address]
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._inner.resume_writing()

    # --- what the application asks and says ---

    @property
    def has_unread(self) -> bool:
        """True while the client does not read its answers: what is written now leaves no sooner than they do."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def begin(self) -> None:
        """The head of a request was understood."""
        self._answering, self._head_since = True, None
        self._all.stop_waiting(self)

    def end(self) -> None:
        """The request was answered."""
        self._answering = False
        self._all.stop_waiting(self)
        self._all.wait(self)

    # --- what the count of connections says ---

    def is_late(self, now: float) -> bool:
        """True when its head has been waited for too long."""
        return self._head_since is not None and now - self._head_since > HEAD_SECONDS

    def give_up(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()
