"""One run from a seed: servers, visitors, an operator, some faults; then the faults end and the reckoning comes."""

import asyncio
import os
from collections.abc import Callable
from typing import NamedTuple

from saferank.store.contract import OperationKind
from tests.acceptance.faults.clients import Clients, Server
from tests.acceptance.faults.model_server import LEASE_MS, LONGEST_JUMP_MS, TENANT, ModelServer, digest_of
from tests.acceptance.faults.monitor import Monitor
from tests.acceptance.faults.network import NOWHERE, Link, SharedStore, Weather
from tests.acceptance.faults.virtual_loop import Host, VirtualLoop
from tests.store.memory import issued_at

SERVERS, VISITORS, PAGES = 2, 3, 4


MakeServer = Callable[[Host, Link, Monitor], Server]


class Plan(NamedTuple):
    """The size of a run; seconds."""

    lease: float = LEASE_MS / 1000
    duration: float = 0.7
    end: float = 4.0  # after the last fault: some windows, some leases
    probe: float = 0.02
    jump: float = LONGEST_JUMP_MS / 1000  # of a clock that a server need not notice
    shards: int = 2
    most_steps: int = 60_000


class Story(NamedTuple):
    """What a run did."""

    steps: int
    pages: int
    explored: int
    reports: int
    acknowledged: int
    kills: int
    faults: tuple[str, ...]


class Scenario:
    """Everything of one run."""

    def __init__(self, seed: int, server: MakeServer, store: type[SharedStore], plan: Plan) -> None:
        self.loop, self.plan = VirtualLoop(seed), plan  # type: ignore[abstract]
        self.chance = self.loop.random
        self.weather = Weather(long=1.1 * plan.lease, gives_up=0.7 * plan.lease)
        self.store = store(self.loop, self.weather, plan.shards)
        self.monitor = Monitor(self.loop)
        self.store.on_publish = lambda old, new: self.monitor.published(old, new, digest_of(new))
        self.make, self.servers = server, list[Server]()
        self.contexts = self.chance.randint(1, 2)
        self.clients = Clients(self.loop, self.servers, self.monitor, self.contexts, plan.lease)
        self.faults: list[str] = []
        self.started = 0

    async def run(self) -> None:
        await self.open_contexts()
        for _ in range(SERVERS):
            self.start_server()
        self.plan_faults()
        work = [
            self.loop.create_task(self.clients.visits(PAGES, self.plan.duration / PAGES * 2)) for _ in range(VISITORS)
        ]
        work.append(self.loop.create_task(self.operator()))
        self.loop.create_task(self.probe())
        for task in work:
            await task
        await self.end()

    async def open_contexts(self) -> None:
        for number in range(self.contexts):
            await self.store.open_context(TENANT, f"context {number}", "{}", 10)

    def start_server(self) -> None:
        self.started += 1
        host = Host(self.loop, self.started)
        host.monotonic_skew = self.chance.randint(-10_000, 10_000)
        server = self.make(host, Link(host, self.store), self.monitor)
        self.servers.append(server)
        server.start()

    async def operator(self) -> None:
        await asyncio.sleep(self.chance.uniform(0.2, 0.8) * self.plan.duration)
        context = self.chance.randint(1, self.contexts)
        returned = await self.clients.operate(context, OperationKind.KILL, 2 * self.plan.lease)
        if returned and self.chance.random() < 0.3:
            await asyncio.sleep(self.chance.random() * 0.3)
            self.monitor.unkilled.add(context)
            await self.clients.operate(context, OperationKind.UNKILL, 2 * self.plan.lease)

    async def probe(self) -> None:
        """Ask every server often what it would do; between two calls of visitors a breach would be missed."""
        while True:
            await asyncio.sleep(self.plan.probe)
            for kill in self.monitor.kills:
                for server in self.servers:
                    if self.awake(server.host) and server.may_explore(kill.context):
                        self.monitor.explored_now(server.host.name, kill.context)

    def awake(self, host: Host) -> bool:
        return not host.dead and host.paused_until <= self.loop.time()

    # --- faults ---

    def plan_faults(self) -> None:
        kinds = [
            self.pause, self.trap, self.kill, self.cut_off, self.slow_and_cut_off, self.suspend, self.nap_and_cut_off,
            self.set_wall_clock, self.jump, self.storm,
        ]  # fmt: skip
        for _ in range(self.chance.choice([0, 1, 1, 2, 3])):
            fault = self.chance.choice(kinds)
            self.faults.append(fault.__name__)
            self.loop.call_later(self.chance.random() * self.plan.duration, fault, context=NOWHERE)

    def _victim(self) -> Host:
        return self.chance.choice(self.servers).host

    def pause(self) -> None:
        """SIGSTOP, for up to two leases."""
        self._victim().paused_until = self.loop.time() + self.chance.random() * 2 * self.plan.lease

    def trap(self) -> None:
        """SIGSTOP between two steps of the protocol."""
        step = self.chance.choice(["close_through", "pages_between", "heartbeat", "operations", "write"])
        self._victim().trap = (step, (0.5 + self.chance.random()) * self.plan.lease)

    def slow_and_cut_off(self) -> None:
        """Answers come late, then none."""
        victim = self._victim()
        victim.slow_until = self.loop.time() + self.chance.random() * self.plan.lease
        self.loop.call_at(victim.slow_until, self._cut_off, victim, context=NOWHERE)

    def _cut_off(self, victim: Host) -> None:
        victim.cut_off_until = self.loop.time() + self.chance.random() * 2 * self.plan.lease

    def kill(self) -> None:
        """kill -9; another server is started."""
        victim = self._victim()
        victim.dead = True
        self.servers[:] = [server for server in self.servers if server.host is not victim]
        self.start_server()

    def cut_off(self) -> None:
        self._cut_off(self._victim())

    def suspend(self) -> None:
        """The machine sleeps, and its monotonic clock with it."""
        self._sleep(self._victim(), self.chance.random() * 2 * self.plan.lease)

    def nap_and_cut_off(self) -> None:
        """So short a sleep that the server does not notice, and then no news from the store."""
        victim = self._victim()
        self._sleep(victim, self.chance.uniform(0.6, 1.0) * self.plan.jump)
        self._cut_off(victim)

    def _sleep(self, victim: Host, seconds: float) -> None:
        victim.paused_until = victim.asleep_until = self.loop.time() + seconds
        victim.monotonic_skew -= int(seconds * 1000)

    def set_wall_clock(self) -> None:
        """Nobody sets it while the machine sleeps: back by as much as its other clock stood still, none would tell."""
        victim, skew = self._victim(), self.chance.randint(-5000, 5000)
        if victim.asleep_until <= self.loop.time():
            victim.wall_skew += skew

    def jump(self) -> None:
        """A monotonic clock that jumps ahead."""
        self._victim().monotonic_skew += self.chance.randint(0, int(2000 * self.plan.lease))

    def storm(self) -> None:
        """A bad network for everybody."""
        weather = self.weather
        weather.slow, weather.lost, weather.repeated = 0.3, self.chance.choice([0.0, 0.1]), 0.3
        self.loop.call_later(self.chance.random() * 2 * self.plan.lease, self.calm, context=NOWHERE)

    def calm(self) -> None:
        self.weather.slow = self.weather.lost = self.weather.repeated = 0.0

    # --- the end ---

    async def end(self) -> None:
        """No more faults; after the last window and a lease somebody has closed everything."""
        self.calm()
        for server in self.servers:
            server.host.paused_until = server.host.cut_off_until = server.host.slow_until = 0.0
            server.host.trap = None
        for _ in range(round(self.plan.end / 0.1)):
            await asyncio.sleep(0.1)
            if self.all_folded():
                break
        self.check()

    def check(self) -> None:
        self.monitor.check_end(self.store)

    def all_folded(self) -> bool:
        """Every window has ended and every page is in the knowledge."""
        folded = {number: context.publication for number, context in self.store.of_id.items()}
        return all(
            page.closes_at < self.loop.milliseconds()
            and (publication := folded[page.context]) is not None
            and issued_at(page.impression) <= publication.through
            for page in self.store.pages.values()
        )

    def story(self) -> Story:
        sent = self.monitor.sent
        acknowledged = sum(report.acknowledged for report in sent)
        return Story(
            self.loop.steps, self.monitor.pages, self.monitor.explored, len(sent), acknowledged,
            len(self.monitor.kills), tuple(self.faults),
        )  # fmt: skip


def run(seed: int, server: type[ModelServer] = ModelServer, store: type[SharedStore] = SharedStore) -> Story:
    """Run a seed; an AssertionError says what was breached."""
    return finished(Scenario(seed, server, store, Plan()))


def finished(scenario: Scenario) -> Story:
    """Run a scenario to its end."""
    scenario.loop.run(scenario.run(), scenario.plan.most_steps)
    return scenario.story()


HOW_TO_SEARCH = "find another with SAFERANK_SEARCH=1000, which tries as many seeds, and store it"


def seeds_from(stored: int) -> range:
    """The stored seed alone; as many from zero as SAFERANK_SEARCH says when the protocol or its faults have changed."""
    most = int(os.environ.get("SAFERANK_SEARCH", "0"))
    return range(most) if most else range(stored, stored + 1)


def first_breach(seeds: range, attempt: Callable[[int], object]) -> tuple[int, AssertionError] | None:
    """The first seed that breaches a promise, and how."""
    for seed in seeds:
        try:
            attempt(seed)
        except AssertionError as breach:
            return seed, breach
    return None
