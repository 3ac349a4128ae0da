"""Feedback that waits to be delivered: a bounded queue whose oldest entries give way, every one of them counted."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple


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
