"""What the two clients share: asking, judging, counting failures, the outbox, and surviving a fork.

``begin`` and ``finish`` never raise. In between, the client waits in its own way (a thread, or a task) for the answer.
"""

import atexit
import logging
import os
import ssl
import threading
import uuid
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from saferank_client.answers import (
    PreparedCall,
    Ranked,
    Refused,
    Trouble,
    Unusable,
    Wish,
    believed,
    prepare,
    production_page,
)
from saferank_client.delivering import Delivering, Delivery, Outbox, Patience
from saferank_client.transport import Background, Breaker, Wire

_log = logging.getLogger("saferank_client")


class Attempt(NamedTuple):
    """A rank call under way: what production would show, the answer to come, or why none will."""

    page: tuple[Any, ...]
    answer: Future[Ranked] | None
    trouble: Trouble | None
    ends: float

    @property
    def seconds_left(self) -> float:
        """How long the caller may still wait."""
        return max(0.0, self.ends - monotonic())


class Link:
    """A client's connection to one service."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None,
        time_limit: float,
        queue: int,
        trust: ssl.SSLContext | None,
        patience: Patience,
    ) -> None:
        self._urls = [_checked_url(one) for one in (url if isinstance(url, list | tuple) else [url])]
        self._key, self._trust = key, trust
        if time_limit <= 0 or queue < 1:
            raise ValueError(f"time_limit is {time_limit} and queue {queue}: expected both to be positive")
        if not self._urls:
            raise ValueError("name at least one address of the service")
        if trust is None and any(one.startswith("https:") for one in self._urls):
            self._trust = ssl.create_default_context()  # tens of milliseconds: here, not in the first call
        self._limit, self._queue, self._patience = time_limit, queue, patience
        self._closed = False
        self._fresh()
        self._started().submit(_warm_up()).result(30.0)
        _LINKS.add(self)

    def _fresh(self) -> None:
        """Everything that a forked child must not share with its parent."""
        self._lock = threading.Lock()
        self._background: Background | None = None
        self._breaker = Breaker(failures=5, pause=1.0, longest_pause=30.0)
        self._outbox = Outbox(self._queue)
        self._warned: set[str] = set()

    def _started(self) -> Background:
        with self._lock:
            if self._closed:
                raise Trouble("closed", "the client is closed")
            if self._background is None:
                self._background = Background()
                self._wire = Wire(self._urls, self._key, self._trust)
                self._delivering = Delivering(self._wire, self._outbox, self._patience)
                self._background.submit(self._delivering.run())
            return self._background

    # --- rank ---

    def begin(self, wish: Wish) -> Attempt:
        """Start a rank call."""
        ends = monotonic() + self._limit
        if hasattr(wish.base_ranking, "__next__"):  # can be gone through only once
            wish = wish._replace(base_ranking=production_page(wish.base_ranking, None))
        page = production_page(wish.base_ranking, wish.k)
        try:
            call = prepare(wish)
            background = self._started()
            if not self._breaker.allows():
                why = f"not tried: calls failed repeatedly; next try in {self._breaker.waits:.1f} s"
                return Attempt(page, None, Trouble("paused", why), ends)
            return Attempt(page, background.submit(self._ask(call, ends)), None, ends)
        except Trouble as trouble:
            return Attempt(page, None, trouble, ends)
        except Exception as problem:
            return Attempt(page, None, Trouble("client", f"{type(problem).__name__}: {problem}"), ends)

    async def _ask(self, call: PreparedCall, ends: float) -> Ranked:
        return believed(call, await self._wire.post("/v1/rank", call.body, max(0.0, ends - monotonic())))

    def finish(self, attempt: Attempt, outcome: Ranked | BaseException | None) -> Ranked:
        """The page of an attempt that ended in ``outcome``: an answer, an exception, or nothing to wait for."""
        if isinstance(outcome, Ranked):
            if self._breaker.succeeded():
                _log.info("the service at %s answers again", ", ".join(self._urls))
            return outcome
        trouble = attempt.trouble or self._as_trouble(outcome)
        tried = attempt.answer is not None and not isinstance(trouble, Refused | Unusable)
        if tried and self._breaker.failed():
            _log.warning("%s: production's ranking is shown without asking for a while", trouble)
        self._warn(trouble)
        return Ranked(attempt.page, token=None, fallback=True, why=str(trouble))

    def _as_trouble(self, problem: Ranked | BaseException | None) -> Trouble:
        if isinstance(problem, Trouble):
            return problem
        if isinstance(problem, TimeoutError):
            return Trouble("time", f"no answer within {1000 * self._limit:g} ms")
        return Trouble("client", f"{type(problem).__name__}: {problem}")

    # --- feedback ---

    def feedback(self, page: Any, clicks: Any, event_id: str | None) -> str | None:
        """Queue clicks for delivery; the id of the event, or None when there is nothing to deliver."""
        try:
            token = page.token if isinstance(page, Ranked) else page
            if token is None:
                return None  # production's own page: nothing to learn from it
            body = _event(token, clicks, event_id)
            if not body["clicks"]:
                return None  # a page without clicks and a page without feedback are the same
            background = self._started()
            if not self._outbox.put(body):
                self._warn(Trouble("dropped", f"more than {self._queue} reports wait: the oldest are dropped"))
            background.call(self._delivering.wake)
            return str(body["event_id"])
        except Exception as problem:
            self._outbox.refuse()
            self._warn(self._as_trouble(problem))
            return None

    @property
    def delivery(self) -> Delivery:
        """What became of the feedback so far."""
        return self._outbox.delivery

    def flush(self, seconds: float) -> bool:
        """Wait until all feedback is delivered or settled; False when some still waits after ``seconds``."""
        with self._lock:
            if self._background is not None:
                self._background.call(self._delivering.hurry)
        return self._outbox.wait_until_empty(seconds)

    def close(self, seconds: float) -> bool:
        """Flush, then end the background thread; later calls get production's ranking."""
        ends = monotonic() + seconds
        delivered = self.flush(seconds)
        with self._lock:
            background, self._background, self._closed = self._background, None, True
        if background is not None:
            left = max(0.2, ends - monotonic())
            try:
                background.submit(self._wire.close()).result(left)
            except Exception as problem:
                _log.debug("connections could not be closed in time: %r", problem)
            background.stop(left)
        return delivered

    def _warn(self, trouble: Trouble) -> None:
        if trouble.kind not in self._warned:
            self._warned.add(trouble.kind)
            _log.warning("%s (said once)", trouble)


def _event(token: Any, clicks: Any, event_id: Any) -> dict[str, Any]:
    """The body of a feedback call; ``Unusable`` says what does not do."""
    if not isinstance(token, str):
        raise Unusable("page", f"feedback for {token!r}: expected the page that rank() returned, or its token")
    if isinstance(clicks, str | bytes) or not isinstance(clicks, Iterable):
        raise Unusable("clicks", f"clicks is {clicks!r}: expected a list of ids")
    clicked = list(dict.fromkeys(clicks))
    stranger = next((item for item in clicked if not isinstance(item, str)), None)
    if stranger is not None:
        raise Unusable("clicks", f"clicks holds {stranger!r}: ids are text")
    if event_id is not None and not isinstance(event_id, str):
        raise Unusable("event_id", f"event_id is {event_id!r}: expected text")
    return {"token": token, "clicks": clicked, "event_id": event_id or uuid.uuid4().hex}


def _checked_url(url: Any) -> str:
    """A programmer's mistake, found when the program starts: the only one that is raised."""
    if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError(f"{url!r} is not the address of a service: expected something like http://127.0.0.1:8080")
    return url.rstrip("/")


_LINKS: "weakref.WeakSet[Link]" = weakref.WeakSet()


_LEFT_BY_PARENT: list[object] = []
"""Connections and loops of the parent process: kept forever, because tidying them up would disturb the parent's."""


async def _warm_up() -> None:
    """Load what httpx would otherwise load in the first call, which takes tens of milliseconds."""
    import anyio.streams.tls

    await anyio.sleep(0)


def _after_fork() -> None:
    for link in _LINKS:
        _LEFT_BY_PARENT.append((link._background, link._wire, link._delivering))
        link._fresh()


@atexit.register
def _at_exit() -> None:
    """What still waits gets a second."""
    for link in list(_LINKS):
        link.close(1.0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
