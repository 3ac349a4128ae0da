"""Two real servers on one real PostgreSQL, faults that happen to them, and visitors of both."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from http_load import Answer, Connections
from service_process import ServiceProcess

from tests.acceptance.service.jumping_clock import Skews
from tests.acceptance.service.ledger import Ledger, ShownPage
from tests.acceptance.service.visitors import POLITE, some_clicks
from tests.postgres_process import PostgresProcess, Proxy

FRESHNESS = 2.0
PATIENCE = 4.0
KILL_PATIENCE = 30.0


class Cluster:
    """Server 0 reaches PostgreSQL directly, server 1 through a proxy that can be cut."""

    def __init__(self, folder: Path, postgres: PostgresProcess, database: str, **settings: Any) -> None:
        self.postgres, self.database = postgres, database
        self.proxy = Proxy(postgres.socket)
        self.folder, self.settings = folder, {**settings, "freshness_seconds": FRESHNESS}
        self.servers: list[ServiceProcess] = []
        self.clocks: list[Skews] = []
        self.connections: list[Connections] = []

    async def start(self) -> None:
        await self.proxy.start()
        addresses = [self.postgres.database(self.database), self.proxy.address(self.database)]
        for number, address in enumerate(addresses):
            folder = self.folder / f"server-{number}"
            folder.mkdir()
            server = ServiceProcess(folder, **self.settings)
            server.address = address
            server.program = ["tests.acceptance.service.jumping_clock", str(folder / "clock")]
            self.clocks.append(Skews(folder / "clock"))
            self.servers.append(server)
            await asyncio.to_thread(server.start)
            self.connections.append(Connections(lambda server=server: server.port, 32))  # type: ignore[misc]

    async def stop(self) -> None:
        for server in self.servers:
            if server.runs:
                server.kill()  # also when it stands still
        await self.proxy.stop()

    # --- faults; each ends by itself ---

    async def kill_a_server(self, chance: random.Random) -> None:
        """Its machine starts anew, with a clock that is right: a server does not start by one that is far behind."""
        number = chance.randrange(len(self.servers))
        server, clock = self.servers[number], self.clocks[number]
        server.kill()
        await asyncio.sleep(chance.random() * FRESHNESS)
        clock.jump(wall=-clock.wall)
        await asyncio.to_thread(server.start)

    async def kill_postgres(self, chance: random.Random) -> None:
        self.postgres.kill()
        await asyncio.sleep(chance.random() * 2 * FRESHNESS)
        await asyncio.to_thread(self.postgres.start)

    async def pause_a_server(self, chance: random.Random) -> None:
        """Longer than its leases."""
        server = chance.choice(self.servers)
        server.pause()
        await asyncio.sleep(FRESHNESS * chance.uniform(1.2, 2.5))
        server.resume()

    async def cut_a_server_off(self, chance: random.Random) -> None:
        self.proxy.cut()
        await asyncio.sleep(FRESHNESS * chance.uniform(0.5, 2.5))
        self.proxy.mend(lose=chance.random() < 0.5)

    async def let_a_clock_jump(self, chance: random.Random) -> None:
        """Its machine sleeps, and only its wall clock counts that; or one of its clocks is set, ahead or back."""
        number = chance.randrange(len(self.servers))
        if chance.random() < 0.4:
            await self._sleep(number, FRESHNESS * chance.uniform(0.5, 2.5), chance)
        else:
            jump = chance.choice([0.1, 1.0, 60.0, 86_400.0]) * chance.uniform(-1.0, 1.0)
            self.clocks[number].jump(**{chance.choice(["monotonic", "wall"]): jump})
            await asyncio.sleep(FRESHNESS * chance.random())

    async def _sleep(self, number: int, seconds: float, chance: random.Random) -> None:
        """Sometimes the store is out of reach when the machine wakes up: only the clocks can tell."""
        cut = number == 1 and chance.random() < 0.7
        self.servers[number].pause()
        if cut:
            self.proxy.cut()
        await asyncio.sleep(seconds)
        self.clocks[number].jump(monotonic=-seconds)
        self.servers[number].resume()
        if cut:
            await asyncio.sleep(FRESHNESS * chance.random())
            self.proxy.mend(lose=chance.random() < 0.5)

    def faults(self) -> list[Callable[[random.Random], Awaitable[None]]]:
        return [
            self.kill_a_server,
            self.kill_postgres,
            self.pause_a_server,
            self.cut_a_server_off,
            self.let_a_clock_jump,
        ]

    # --- calls ---

    async def post(self, path: str, content: dict[str, Any], number: int, patience: float = PATIENCE) -> Answer | None:
        """The answer of a server; None when it is away, too slow, or busy: then nothing is promised."""
        try:
            async with asyncio.timeout(patience):
                answer = await self.connections[number].post(path, content)
        except (OSError, TimeoutError):
            await asyncio.sleep(0.02)
            return None
        if answer.status in POLITE:
            await asyncio.sleep(0.05)
            return None
        assert answer.status == 200, f"{path} {content}: {answer.status} {answer.body!r}"
        return answer


def now() -> int:
    """Milliseconds of this machine's clock, which is also the store's."""
    return time.time_ns() // 1_000_000


class Crowd:
    """Visitors who call any server, and call another when one does not answer."""

    def __init__(self, cluster: Cluster, seed: int, appeal: dict[str, float]) -> None:
        self.cluster, self.chance, self.appeal = cluster, random.Random(seed), appeal
        self.ledger = Ledger()
        self.open = True
        self.clicking: set[asyncio.Task[None]] = set()
        self.asked: dict[str, tuple[int, int]] = {}  # by impression: when a page was asked for, and answered

    async def visit(self, number: int, a_call: Callable[[random.Random, str], dict[str, Any]]) -> None:
        visit = 0
        while self.open:
            visit += 1
            call = a_call(self.chance, f"{number}-{visit // 4}")
            asked = now()
            answer = await self.cluster.post("/v1/rank", call, self.chance.randrange(2))
            if answer is not None:
                self.asked[answer.json()["impression_id"]] = (asked, now())
                task = asyncio.create_task(self._click(self.ledger.add(call, answer.json()), f"{number}-{visit}"))
                self.clicking.add(task)
                task.add_done_callback(self.clicking.discard)
            await asyncio.sleep(self.chance.uniform(0.0, 0.15))
        while self.clicking:
            await asyncio.gather(*self.clicking)

    async def _click(self, page: ShownPage, name: str) -> None:
        for number, item in enumerate(sorted(some_clicks(page, self.appeal, self.chance))):
            await asyncio.sleep(self.chance.choice([0.0, 0.05, 2.0]) * self.chance.random())
            event_id = f"{name}-{number}" if self.chance.random() < 0.5 else None
            for _ in range(self.chance.choice([1, 1, 2])):
                await self._report(page, item, event_id)

    async def _report(self, page: ShownPage, item: str, event_id: str | None) -> None:
        """Until it is acknowledged or late, at whichever server answers."""
        report = {"token": page.token, "clicks": [item]} | ({} if event_id is None else {"event_id": event_id})
        page.unsure[item] += 1
        attempts = 0
        while True:
            attempts += 1
            answer = await self.cluster.post("/v1/feedback", report, self.chance.randrange(2))
            if answer is not None:
                break
        said = answer.json()
        if said["accepted"]:
            page.confirmed.add(item)
            self.ledger.acknowledged += 1
            return
        assert said["late"], said
        self.ledger.late += 1
        if attempts == 1:  # it was never sent before, so nothing of it can have counted
            page.unsure[item] -= 1
