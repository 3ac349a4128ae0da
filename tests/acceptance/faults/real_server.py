"""The service's own server objects in the simulation: everything but HTTP, under simulated time, network and store."""

import asyncio
import json
import os
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from saferank.service.identifiers import impression_id
from saferank.service.knowledge.fold import Fold, differences, pack
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.view import unpack_catalogue
from saferank.service.protocol.heartbeat import LONGEST_JUMP
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankAnswer, RankCall
from saferank.service.wire.problems import Problem
from saferank.store.contract import (
    SHARDS,
    OperationKind,
    Outcome,
    PageRow,
    Publication,
    StoreError,
    StoreUnavailableError,
)
from tests.acceptance.faults.monitor import BreachError, Monitor
from tests.acceptance.faults.network import Link, SharedStore
from tests.acceptance.faults.scenario import Plan, Scenario, Story, finished
from tests.acceptance.faults.virtual_loop import Host
from tests.store.memory import Context, MemoryStore, issued_at

LEASE, WINDOW = 3.0, 2.0
PLAN = Plan(LEASE, duration=6.0, end=40.0, probe=0.1, jump=LONGEST_JUMP * LEASE, shards=SHARDS, most_steps=200_000)
TENANT = "default"
CALL: dict[str, Any] = {"base_ranking": ["a", "b", "c", "d"], "candidates": ["x", "y"], "k": 3}
BUSY = 503


class HostClock:
    """What a server measures time by."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def monotonic(self) -> float:
        return self._host.monotonic() / 1000

    def wall(self) -> float:
        return self._host.wall() / 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Shown(NamedTuple):
    """A page as a visitor keeps it."""

    token: str
    ranking: list[str]


class RealServer:
    """One server on one host; visitors keep tokens, which any server takes."""

    def __init__(self, host: Host, store: Link, monitor: Monitor) -> None:
        settings = Settings(
            policy="kl-ucb-br", rule="anytime:0.3", window_seconds=WINDOW, freshness_seconds=LEASE, log_level="error",
            holdout_share=0, guardrail_drop=0,
        )  # fmt: skip
        self.host, self.monitor, self.store = host, monitor, store
        self.server = Server(settings, store, HostClock(host))  # type: ignore[arg-type]
        self.ready = False

    def start(self) -> None:
        self.host.run(self._start())

    async def _start(self) -> None:
        while not self.ready:
            try:
                await self.server.start()
                self.ready = True
            except StoreError:
                await asyncio.sleep(0.1)

    def may_explore(self, context: int) -> bool:
        return self.ready and not self.server.switches.is_killed(TENANT, context) and self.server.heartbeat.is_fresh()

    async def rank(self, context: int) -> PageRow:
        self._check_ready()
        call = RankCall(context=f"context {context}", **CALL)
        with _busy():
            answer = await self.server.rank(TENANT, call)
        return self._noted(answer, context)

    def _noted(self, answer: RankAnswer, context: int) -> PageRow:
        monitor, impression = self.monitor, impression_id(answer.impression_id)
        assert impression is not None
        monitor.pages += 1
        if answer.mode == "live":
            monitor.explored += 1
            monitor.explored_now(self.host.name, context)
        monitor.shown[impression] = Shown(answer.token, answer.ranking)
        closes_at = issued_at(impression) + round(1000 * WINDOW)
        return PageRow(impression, context, closes_at, b"")

    async def feedback(self, page: PageRow, clicks: int, event_id: str | None) -> Outcome:
        self._check_ready()
        shown: Shown = self.monitor.shown[page.impression]
        items = [item for place, item in enumerate(shown.ranking) if clicks >> place & 1]
        call = FeedbackCall(token=shown.token, clicks=items, event_id=event_id)
        with _busy():
            (answer,) = await self.server.feedback(TENANT, [call])
        if isinstance(answer, Problem):
            assert answer.status == 409, answer
            return Outcome.CONFLICT
        if answer.late:
            return Outcome.LATE
        return Outcome.DUPLICATE if answer.duplicate else Outcome.ACCEPTED

    async def switch(self, context: int, kind: OperationKind) -> None:
        self._check_ready()
        on = kind == OperationKind.KILL
        with _busy():
            await self.server.kill(TENANT, f"context {context}", on, "a simulation")
        if on:
            self.monitor.kill_returned(context, 0)

    def _check_ready(self) -> None:
        if not self.ready:
            raise StoreUnavailableError("the server has not started")


@contextmanager
def _busy() -> Iterator[None]:
    """A call that is answered 503 promises nothing."""
    try:
        yield
    except Problem as problem:
        if problem.status != BUSY:
            raise
        raise StoreUnavailableError(str(problem)) from problem


class RealScenario(Scenario):
    """A run with the service's own servers; the first rank call opens a context."""

    async def open_contexts(self) -> None:
        """Numbered in order: they are opened by the calls of a server that is not in the run."""
        host = Host(self.loop, 0)
        opener = RealServer(host, Link(host, self.store), self.monitor)
        await opener.server.start(loops=False)
        for number in range(1, self.contexts + 1):
            await opener.server.rank(TENANT, RankCall(context=f"context {number}", **CALL))
        await opener.server.stop()

    def all_folded(self) -> bool:
        """And every server knows of it: none serves by old knowledge."""
        return super().all_folded() and not self.behind()

    def behind(self) -> list[str]:
        """Contexts that a server has in memory and whose newest publication it does not know."""
        newest = {number: known.publication.number for number, known in self.store.of_id.items() if known.publication}
        return [
            f"{server.host.name} knows publication {context.published} of context {context.number}"
            for server in self.servers
            if isinstance(server, RealServer) and server.ready
            for context in server.server.contexts
            if context.published != newest.get(context.number, 0)
        ]

    def check(self) -> None:
        if self.behind():
            raise BreachError(f"long after the last publication {', '.join(self.behind())}")
        for context in self.store.of_id.values():
            check_replay(self.store, context)
        for sent in self.monitor.sent:
            page = self.store.pages.get(sent.page.impression)
            found = {} if page is None else {sent.page.impression.hex(): page.clicks}
            self.monitor.check_sent(sent, found)


def check_replay(store: MemoryStore, context: Context) -> None:
    """A fold from the beginning gives the newest publication, and every page is in it."""
    publication = context.publication
    pages = sorted(page for page in store.pages.values() if page.context == context.row.id)
    left_out = [page for page in pages if publication is None or issued_at(page.impression) > publication.through]
    if left_out:
        raise BreachError(f"context {context.row.id}: {len(left_out)} pages were never folded")
    if publication is None:
        return
    fold = replayed(store, context, pages, publication)
    found = differences(pack(fold), publication.body)
    if found:
        raise BreachError(f"context {context.row.id}: a replay gives other {', '.join(found)}")


def replayed(store: MemoryStore, context: Context, pages: list[PageRow], publication: Publication) -> Fold:
    facts = json.loads(context.row.terms)
    terms = Terms(facts["policy"], facts["rule"], facts["window_ms"], facts["lifetime_ms"], context.row.opened_at)
    digest = bytes.fromhex(facts["catalogue"])
    fold = Fold.opened(context.row.id, terms, facts["k"], digest, unpack_catalogue(store.bodies[digest]))
    fold.fold(pages, publication.through)
    return fold


@contextmanager
def seeded_secrets(seed: int) -> Iterator[None]:
    """Ids, names and coins from a seed, so that a run can be repeated."""
    chance = random.Random(seed)
    with (
        patch.object(secrets, "token_bytes", lambda size=32: chance.randbytes(size)),
        patch.object(secrets, "token_hex", lambda size=32: chance.randbytes(size).hex()),
        patch.object(os, "urandom", chance.randbytes),
    ):
        yield


def run_real(seed: int, store: type[SharedStore] = SharedStore) -> Story:
    """Run a seed with real servers; an AssertionError says what was breached."""
    with seeded_secrets(seed):
        return finished(RealScenario(seed, RealServer, store, PLAN))
