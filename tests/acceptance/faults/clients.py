"""Simulated visitors and an operator: they call any server, do not give up at once, and keep a ledger."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from saferank.store.contract import OperationKind, Outcome, PageRow, StoreUnavailableError
from tests.acceptance.faults.monitor import Monitor, Sent
from tests.acceptance.faults.network import NOWHERE
from tests.acceptance.faults.virtual_loop import Host, VirtualLoop

Page = TypeVar("Page")
WAY = 0.004
ATTEMPTS = 4


class NoAnswerError(Exception):
    """The server is gone, or too slow, or answered 503: nothing is promised."""


class Server(Protocol):
    """What a client sees of a server."""

    host: Host

    def may_explore(self, context: int) -> bool: ...

    async def rank(self, context: int) -> PageRow: ...

    async def feedback(self, page: PageRow, clicks: int, event_id: str | None) -> Outcome: ...

    async def switch(self, context: int, kind: OperationKind) -> None: ...

    def start(self) -> None: ...


class Clients:
    """All clients of a run."""

    def __init__(self, loop: VirtualLoop, servers: list[Server], monitor: Monitor, contexts: int, lease: float) -> None:
        self.loop, self.servers, self.monitor, self.contexts = loop, servers, monitor, contexts
        self.patience = 0.8 * lease
        self.chance, self.events = loop.random, 0
        self.unanswered = 0

    async def visits(self, count: int, pause: float) -> None:
        """One visitor: page after page, with the clicks of each reported meanwhile."""
        clicking = []
        for _ in range(count):
            await asyncio.sleep(self.chance.random() * pause)
            try:
                context = self.chance.randint(1, self.contexts)
                page = await self._call(functools.partial(_rank, context), self.patience)
            except NoAnswerError:
                self.unanswered += 1
                continue
            if self.chance.random() < 0.8:
                clicking.append(self.loop.create_task(self._click(page)))
        for task in clicking:
            await task

    async def _click(self, page: PageRow) -> None:
        """Some clicks come at once, some when the window has ended, some twice, some under one event id with others."""
        chance, window = self.chance, (page.closes_at - int.from_bytes(page.impression[:6], "big")) / 1000
        await asyncio.sleep(window * (chance.random() if chance.random() < 0.6 else chance.uniform(0.85, 1.05)))
        sent = Sent(page, chance.randint(1, 3), self._event() if chance.random() < 0.7 else None)
        await self._report(sent)
        if chance.random() < 0.2:
            again = sent.clicks if chance.random() < 0.5 else 3 - sent.clicks % 3
            await self._report(Sent(page, again, sent.event_id))

    def _event(self) -> str:
        self.events += 1
        return f"event-{self.events}"

    async def _report(self, sent: Sent) -> None:
        """Until it is acknowledged, too late or refused; or given up."""
        self.monitor.sent.append(sent)
        for _ in range(ATTEMPTS):
            try:
                outcome = await self._call(
                    lambda server: server.feedback(sent.page, sent.clicks, sent.event_id), self.patience
                )
            except NoAnswerError:
                self.unanswered += 1
                continue
            sent.answers.append(outcome)
            return

    async def operate(self, context: int, kind: OperationKind, patience: float) -> bool:
        """An operator throws a switch; True when the call has returned."""
        for _ in range(3):
            try:
                await self._call(lambda server: server.switch(context, kind), patience)
            except NoAnswerError:
                self.unanswered += 1
            else:
                return True
        return False

    async def _call(self, work: Callable[[Server], Coroutine[Any, Any, Page]], patience: float) -> Page:
        """Call some server over the network."""
        server = self.chance.choice(self.servers)
        answer: asyncio.Future[Page] = self.loop.create_future()
        timer = self.loop.call_later(patience, _no_answer, answer, context=NOWHERE)
        self.loop.call_later(self.chance.random() * WAY, self._arrive, server, work, answer, context=NOWHERE)
        result = await answer
        timer.cancel()
        return result

    def _arrive(self, server: Server, work: Callable[[Server], Coroutine[Any, Any, Page]], answer: Any) -> None:
        if not server.host.dead:
            server.host.run(self._carry_out(server, work, answer))

    async def _carry_out(
        self, server: Server, work: Callable[[Server], Coroutine[Any, Any, Page]], answer: "asyncio.Future[Page]"
    ) -> None:
        way = self.chance.random() * WAY
        try:
            result = await work(server)
        except StoreUnavailableError:
            self.loop.call_later(way, _no_answer, answer, context=NOWHERE)
        else:
            self.loop.call_later(way, _answer, answer, result, context=NOWHERE)


async def _rank(context: int, server: Server) -> PageRow:
    return await server.rank(context)


def _no_answer(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(NoAnswerError())


def _answer(answer: "asyncio.Future[Any]", result: Any) -> None:
    if not answer.done():
        answer.set_result(result)
