"""Feedback that waits to be delivered, and its delivery: in batches, again and again with growing pauses.

The queue is bounded; its oldest entries give way, every one of them counted.

Every event carries an id, so an event whose answer was lost on the way back is counted once however often it is sent.
"""

import asyncio
import contextlib
import json
import logging
import random
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple

from saferank_client.answers import Refused, Trouble, decoded
from saferank_client.transport import Wire

PATH = "/v1/feedback"
LARGEST_BATCH = 100
_LARGEST_BODY = 500_000
_log = logging.getLogger("saferank_client")


@dataclass(frozen=True)
class Delivery:
    """What became of the feedback of one client, so far."""

    accepted: int = 0
    """counted by the service, or counted before (a retry)"""
    late: int = 0
    """known to the service, but after the page's window had closed"""
    refused: int = 0
    """the service, or this client, would not have it: see the log"""
    dropped: int = 0
    """gave way to newer feedback because the queue was full"""
    expired: int = 0
    """could not be delivered in time"""
    waiting: int = 0
    """in the queue now"""


class Event(NamedTuple):
    """One feedback call as it will be sent, and when it was made."""

    body: dict[str, Any]
    born: float


class Outbox:
    """First in, first out; ``put`` never waits. Safe for threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: OrderedDict[int, Event] = OrderedDict()
        self._made = 0
        self._delivery = Delivery()
        self._changed = threading.Condition()

    def put(self, body: dict[str, Any]) -> bool:
        """Queue an event; False when the oldest one had to give way."""
        with self._changed:
            self._events[self._made] = Event(body, monotonic())
            self._made += 1
            if len(self._events) <= self._capacity:
                return True
            self._events.popitem(last=False)
            self._count("dropped")
            return False

    def oldest(self, n: int) -> dict[int, Event]:
        """Up to n events by number, which stay in the queue until they are ``settled``."""
        with self._changed:
            return dict(islice(self._events.items(), n))

    def settled(self, number: int, outcome: str) -> None:
        """Take an event out and count its outcome, unless it has given way meanwhile and was counted as dropped."""
        with self._changed:
            if self._events.pop(number, None) is None:
                return
            self._count(outcome)
            if not self._events:
                self._changed.notify_all()

    def refuse(self) -> None:
        """Count feedback that could not even be queued."""
        with self._changed:
            self._count("refused")

    def wait_until_empty(self, seconds: float) -> bool:
        """True when nothing waits any more, at the latest after ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._events, max(0.0, seconds))

    @property
    def delivery(self) -> Delivery:
        """The counters at this moment."""
        with self._changed:
            return replace(self._delivery, waiting=len(self._events))

    def _count(self, outcome: str) -> None:
        self._delivery = replace(self._delivery, **{outcome: getattr(self._delivery, outcome) + 1})


class Patience(NamedTuple):
    """How long reports are gathered, how long sending may take, how pauses grow, when it is given up: in seconds."""

    gather: float = 0.05
    """Reports that come within this time of each other go in one request."""
    attempt: float = 5.0
    first_pause: float = 0.1
    longest_pause: float = 30.0
    give_up_after: float = 1800.0
    """Half an hour, the usual window of a page: later reports do not count."""


class Delivering:
    """Runs on the background loop until it is cancelled; ``wake`` tells it that there is something new."""

    def __init__(self, wire: Wire, outbox: Outbox, patience: Patience) -> None:
        self._wire, self._outbox, self._patience = wire, outbox, patience
        self._news, self._haste = asyncio.Event(), asyncio.Event()
        self._warned: set[str] = set()

    def wake(self) -> None:
        """There is something new in the outbox (call it on the loop)."""
        self._news.set()

    def hurry(self) -> None:
        """Somebody waits: end the present pause (call it on the loop)."""
        self._haste.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        failures = 0
        while True:
            events = self._fresh(self._outbox.oldest(LARGEST_BATCH))
            if not events:
                await self._news.wait()
                await self._rest(self._patience.gather)
                self._news.clear()
                continue
            try:
                await self._deliver(events)
                failures = 0
            except Trouble as trouble:
                failures += 1
                self._warn(trouble.kind, f"feedback waits and will be sent again: {trouble}")
                await self._rest(max(self._pause(failures), trouble.retry_after))

    async def _rest(self, seconds: float) -> None:
        """Wait, but not when somebody waits for us."""
        self._haste.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._haste.wait()

    def _pause(self, failures: int) -> float:
        """Doubling, with jitter, so that many clients do not come back in the same moment."""
        longest = min(self._patience.first_pause * 2.0 ** min(failures - 1, 30), self._patience.longest_pause)
        return longest * random.uniform(0.5, 1.0)

    def _fresh(self, events: dict[int, Event]) -> dict[int, Event]:
        oldest = monotonic() - self._patience.give_up_after
        for number, event in events.items():
            if event.born < oldest:
                self._outbox.settled(number, "expired")
                self._warn("expired", f"feedback was not delivered within {self._patience.give_up_after:g} s")
        return {number: event for number, event in events.items() if event.born >= oldest}

    async def _deliver(self, events: dict[int, Event]) -> None:
        """Send as many of the events as fit into one body, then the rest; Trouble when some have to wait."""
        batch: dict[int, bytes] = {}
        for number, event in events.items():
            body = json.dumps(event.body).encode()
            if batch and sum(map(len, batch.values())) + len(body) > _LARGEST_BODY:
                await self._send(batch)
                batch = {}
            batch[number] = body
        await self._send(batch)

    async def _send(self, batch: dict[int, bytes]) -> None:
        bodies = list(batch.values())
        one = len(bodies) == 1
        try:
            answer = decoded(await self._post(bodies[0] if one else b'{"batch": [' + b", ".join(bodies) + b"]}"))
        except Refused as refused:
            if one or refused.kind in ("status 401", "status 403"):
                for number in batch:
                    self._settle(number, {"status": 400, "title": refused.kind, "detail": str(refused)})
                return
            for number, body in batch.items():  # one bad event must not take the others with it
                await self._send({number: body})
            return
        results = [answer] if one else answer.get("results")
        if not isinstance(results, list) or len(results) != len(batch):
            raise Trouble("answer", "the answer does not fit the batch")
        settled = [self._settle(number, result) for number, result in zip(batch, results, strict=True)]
        if not all(settled):
            raise Trouble("busy", "the service could not take all of a batch")

    async def _post(self, body: bytes) -> bytes:
        try:
            return await self._wire.post(PATH, body, self._patience.attempt)
        except TimeoutError:
            raise Trouble("time", f"no answer to feedback within {self._patience.attempt:g} s") from None

    def _settle(self, number: int, result: Any) -> bool:
        """Count what became of an event; False when it has to be sent again."""
        if not isinstance(result, dict):
            raise Trouble("answer", "the answer to feedback holds something that is no answer")
        status = result.get("status")
        if isinstance(status, int):
            if status >= 500 or status == 429:
                return False
            self._outbox.settled(number, "refused")
            self._warn(f"refused {result.get('title')}", f"feedback was refused: {result.get('detail')}")
        elif result.get("late") is True:
            self._outbox.settled(number, "late")
        elif result.get("accepted") is True:
            self._outbox.settled(number, "accepted")
        else:
            raise Trouble("answer", "the answer to feedback neither accepts nor refuses it")
        return True

    def _warn(self, kind: str, what: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            _log.warning("%s (said once)", what)
