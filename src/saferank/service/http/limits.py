"""How much is taken in: the lag of the event loop, requests of a tenant, and bodies by type, size and time.

Twice the load must be refused politely, never piled up: a request that waits in a queue of seconds is of no use to the
page that needs it.
"""

import asyncio
import math
from collections.abc import Callable, Iterable

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
