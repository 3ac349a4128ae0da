"""The way to a service: one request and its answer, the thread that it runs on, and when none is tried.

A request is never followed elsewhere, its answer never read beyond a limit, every failure a ``Trouble``. It runs on an
event loop of our own, in a thread that can be left behind at any moment, so no caller waits for it: httpx's time limits
are for single reads, so a server that sends a byte now and then is never late, and the search for an address (DNS)
cannot be interrupted at all. Here both are cancelled, or abandoned, when time is up.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, TypeVar

import httpx

from saferank_client.answers import Refused, Trouble

T = TypeVar("T")
LARGEST_ANSWER = 2**20
"""Bytes; a hundred ids of 256 characters and their token are far below."""
IDLE_SECONDS = 4.0
"""Idle connections are kept for less than the 5 s after which a usual server closes them."""
_PASSING = (404, 405, 408, 425, 429)
"""Of the 4xx, those that pass; the first two are not the service's but of something in front of it."""


class Wire:
    """Requests to one service, whose servers have one or several addresses; used on one event loop.

    The server that answered last is asked first. One that fails is passed over for the next, within the same time.
    """

    def __init__(self, urls: Sequence[str], key: str | None, trust: ssl.SSLContext | None) -> None:
        """``trust`` None: certificates are not looked at, because all of ``urls`` are http and have none."""
        self._urls, self._first = urls, 0
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._client = httpx.AsyncClient(
            headers=headers if key is None else {**headers, "Authorization": f"Bearer {key}"},
            timeout=None,  # every request runs under one limit for all of it
            verify=trust or False,
            trust_env=False,  # production's ranking must not depend on a proxy variable
            follow_redirects=False,
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=IDLE_SECONDS),
        )

    async def post(self, path: str, body: bytes, seconds: float) -> bytes:
        """The body of a 200 answer; ``Trouble`` (or ``Refused``, for a 4xx) or TimeoutError for everything else.

        Each address gets an equal part of the time that is left.
        """
        ends, problem = monotonic() + seconds, None
        for left in range(len(self._urls), 0, -1):
            number = self._first
            try:
                async with asyncio.timeout(max(0.0, ends - monotonic()) / left):
                    return await self._post_to(self._urls[number], path, body)
            except Refused:
                raise
            except (Trouble, TimeoutError) as found:
                problem = found
                if self._first == number:  # others who wait for the same server have not moved on yet
                    self._first = (number + 1) % len(self._urls)
        assert problem is not None
        raise problem

    async def _post_to(self, url: str, path: str, body: bytes) -> bytes:
        """A kept connection may have been closed by the other side at the moment of use: a second try, on another."""
        try:
            try:
                return await self._post(url + path, body)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                return await self._post(url + path, body)
        except httpx.HTTPError as problem:
            why = f"the service cannot be reached ({type(problem).__name__}: {problem})"
            raise Trouble("connection", why) from problem

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _post(self, url: str, body: bytes) -> bytes:
        async with self._client.stream("POST", url, content=body) as answer:
            received = bytearray()
            async for chunk in answer.aiter_raw():  # raw: nothing is unpacked, so nothing small becomes huge
                received += chunk
                if len(received) > LARGEST_ANSWER:
                    raise Trouble("answer", f"the answer is larger than {LARGEST_ANSWER} bytes")
            _check(answer.status_code, answer.headers, bytes(received))
            return bytes(received)


def _check(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status == 200:
        return
    said = f"{body[:300].decode('utf-8', 'replace')} (request {headers.get('x-request-id', 'without id')})"
    if 400 <= status < 500 and status not in _PASSING:
        raise Refused(f"status {status}", f"the service refused the call with status {status}: {said}")
    raise Trouble(f"status {status}", f"the service answered with status {status}: {said}", _seconds(headers))


def _seconds(headers: Mapping[str, Any]) -> float:
    """Retry-After in seconds, if it is given so; 0 otherwise."""
    try:
        return min(max(float(headers.get("retry-after", 0)), 0.0), 60.0)
    except ValueError:
        return 0.0


class Background:
    """An event loop in a daemon thread, until ``stop``."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="saferank-client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start ``work`` on the loop; the future may be waited for with a time limit, or cancelled."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # stopped meanwhile
            work.close()
            raise

    def call(self, function: Any) -> None:
        """Run a function on the loop soon; nothing happens after ``stop``."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def stop(self, seconds: float) -> None:
        """Cancel what runs and end the thread; after ``seconds`` it is left to end by itself."""
        self.call(self._loop.stop)
        self._thread.join(seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._cancel_all()
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())


class Breaker:
    """After repeated failures calls are answered at once for a while, instead of waiting in vain.

    Opens after ``failures`` in a row for ``pause`` seconds, then lets one call through to see; doubles the pause.

    >>> now = 0.0
    >>> breaker = Breaker(failures=2, pause=1.0, longest_pause=30.0, clock=lambda: now)
    >>> breaker.failed(), breaker.allows(), breaker.failed(), breaker.allows()
    (False, True, True, False)
    >>> now = 1.5
    >>> breaker.allows(), breaker.allows()
    (True, False)
    >>> breaker.succeeded(), breaker.allows()
    (True, True)
    """

    def __init__(
        self, failures: int, pause: float, longest_pause: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._enough, self._first_pause, self._longest_pause, self._clock = failures, pause, longest_pause, clock
        self._lock = threading.Lock()
        self._in_a_row, self._pause, self._closed_until = 0, pause, 0.0

    def allows(self) -> bool:
        """True when a call should be tried; while open, one caller after each pause is sent ahead."""
        with self._lock:
            if self._in_a_row < self._enough:
                return True
            if self._clock() < self._closed_until:
                return False
            self._closed_until = self._clock() + self._pause
            return True

    def failed(self) -> bool:
        """Count a failure; True when it is the one that opens the breaker."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._enough:
                return False
            if self._in_a_row > self._enough:
                self._pause = min(2 * self._pause, self._longest_pause)
            self._closed_until = self._clock() + self._pause
            return self._in_a_row == self._enough

    def succeeded(self) -> bool:
        """Count a success; True when it closes an open breaker."""
        with self._lock:
            was_open = self._in_a_row >= self._enough
            self._in_a_row, self._pause = 0, self._first_pause
            return was_open

    @property
    def waits(self) -> float:
        """Seconds until the next call is tried."""
        with self._lock:
            return max(0.0, self._closed_until - self._clock()) if self._in_a_row >= self._enough else 0.0
