"""The network between simulated servers and the store: late, lossy, repeating, cut.

Every fate of a call that a real network and a real connection pool can bring about is possible: it is lost on its way,
it is carried out and its answer is lost, it is carried out after the caller gave up, it is carried out twice.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from saferank.store.contract import Lease, PageRow, Publication, StoreUnavailableError
from tests.acceptance.faults.virtual_loop import Host, VirtualLoop
from tests.store.memory import MemoryStore

Work = Callable[[], Coroutine[Any, Any, Any]]
NOWHERE = Context()
"""What is under way belongs to no host: it goes on while its sender stands still."""


@dataclass
class Weather:
    """How good the network is at present; seconds and probabilities."""

    delay: float = 0.002
    slow: float = 0.0  # share of messages that take up to ``long``
    long: float = 0.4
    lost: float = 0.0
    repeated: float = 0.0
    gives_up: float = 0.25  # how long a caller waits for an answer

    def way(self, chance: random.Random) -> float:
        if self.slow and chance.random() < self.slow:
            return chance.random() * self.long
        return chance.random() * self.delay

    def loses(self, chance: random.Random) -> bool:
        return self.lost > 0.0 and chance.random() < self.lost


class SharedStore(MemoryStore):
    """The store of all hosts; it tells every host of a change, as NOTIFY does, if the network lets it."""

    atomic = True

    def __init__(self, loop: VirtualLoop, weather: Weather, shards: int) -> None:
        super().__init__(loop.milliseconds, shards=shards)
        self.loop, self.weather = loop, weather
        self.links: list[Link] = []
        self.on_publish: Callable[[Publication | None, Publication], None] = lambda old, new: None

    async def publish(self, lease: Lease, publication: Publication, *args: Any, **named: Any) -> None:
        context = self.of_id[publication.context]
        before = context.publication
        await super().publish(lease, publication, *args, **named)
        if context.publication != before:
            self.on_publish(before, publication)

    def _tell(self) -> None:
        for link in self.links:
            if not link.cut:
                self.loop.call_later(self.weather.way(self.loop.random), link.wake, context=NOWHERE)


class Link:
    """The store as one host reaches it: keeps the contract, with the network in between."""

    def __init__(self, host: Host, store: SharedStore) -> None:
        self.host, self.store, self.loop, self.weather = host, store, host.loop, store.weather
        self.waiting: asyncio.Future[None] | None = None
        self.told = False
        store.links.append(self)

    @property
    def cut(self) -> bool:
        return self.host.cut_off_until > self.loop.time()

    @property
    def slow(self) -> bool:
        return self.host.slow_until > self.loop.time()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.store, name)

        def call(*args: Any, **named: Any) -> Awaitable[Any]:
            if self.host.trap is not None and self.host.trap[0] == name:
                self._spring(self.host.trap[1])
            return self._call(lambda: method(*args, **named))

        setattr(self, name, call)
        return call

    def _spring(self, seconds: float) -> None:
        self.host.trap = None
        self.host.paused_until = self.loop.time() + seconds

    def _call(self, work: Work) -> "asyncio.Future[Any]":
        chance, weather, loop, cut = self.loop.random, self.weather, self.loop, self.cut
        answer: asyncio.Future[Any] = loop.create_future()
        if weather.lost or weather.slow or cut:
            loop.call_later(weather.gives_up, _give_up, answer, context=NOWHERE)
        if not (cut or weather.loses(chance)):
            loop.call_later(weather.way(chance), self._arrive, work, answer, context=NOWHERE)
            if weather.repeated and chance.random() < weather.repeated:
                loop.call_later(weather.way(chance) * 3, self._arrive, work, None, context=NOWHERE)
        return answer

    def _arrive(self, work: Work, answer: "asyncio.Future[Any] | None") -> None:
        """At the store, where a call is one step (it is atomic)."""
        if not self.store.atomic:
            self.loop.create_task(self._arrive_slowly(work, answer), context=Context())
            return
        try:
            work().send(None)
        except StopIteration as done:
            self._send_back(answer, done.value, None)
        except Exception as problem:
            self._send_back(answer, None, problem)

    async def _arrive_slowly(self, work: Work, answer: "asyncio.Future[Any] | None") -> None:
        try:
            value = await work()
        except Exception as problem:
            self._send_back(answer, None, problem)
        else:
            self._send_back(answer, value, None)

    def _send_back(self, answer: "asyncio.Future[Any] | None", value: Any, problem: Exception | None) -> None:
        weather, chance = self.weather, self.loop.random
        if answer is None or answer.done():
            return
        if self.cut or weather.loses(chance):
            self.loop.call_later(weather.gives_up, _give_up, answer, context=NOWHERE)
        else:
            way = chance.uniform(0.5, 0.95) * weather.gives_up if self.slow else weather.way(chance)
            self.loop.call_later(way, _settle, answer, value, problem, context=NOWHERE)

    # --- what is not one step at the store ---

    async def wait(self, seconds: float) -> None:
        """As a connection that listens: returns on a notification, also an earlier one, or after this time."""
        if not self.told:
            self.waiting = self.loop.create_future()
            timer = self.loop.call_later(seconds, self.wake, context=NOWHERE)
            await self.waiting
            timer.cancel()
        self.waiting, self.told = None, False

    def wake(self) -> None:
        self.told = True
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)

    async def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[Sequence[PageRow]]:
        async for pages in self.store.all_pages(context, after):
            yield pages


def _give_up(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(StoreUnavailableError("the store does not answer"))


def _settle(answer: "asyncio.Future[Any]", value: Any, problem: Exception | None) -> None:
    if answer.done():
        return
    if problem is None:
        answer.set_result(value)
    else:
        answer.set_exception(problem)
