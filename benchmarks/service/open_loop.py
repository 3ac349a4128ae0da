"""Visitors who come when they are due, whatever became of those before them, and what became of their requests."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from typing import Any

import numpy as np
from http_load import Answer, Connections
from service_process import ServiceProcess, Usage
from shop import Shop

THINKING = (0.2, 1.0)
"""Seconds between a page and its click, evenly spread."""


class Tally:
    """What became of the requests of one phase."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {"rank": [], "feedback": []}
        self.statuses: dict[str, dict[str, int]] = {"rank": {}, "feedback": {}}
        self.refused_milliseconds: list[float] = []
        self.off = 0  # pages that were production's own, because the service had too much to write
        self.impolite = 0  # refusals that do not say when to come back
        self.sent_late_ms = 0.0  # the most that a request left after it was due: the fault of the visitors, if large
        self.slowest_by_second: dict[int, float] = {}  # second of the phase -> slowest page that was due in it

    def add(self, kind: str, answer: Answer | None, seconds: float) -> None:
        """Count a request; no answer is a broken connection."""
        status = "broken" if answer is None else str(answer.status)
        self.statuses[kind][status] = self.statuses[kind].get(status, 0) + 1
        if status == "200":
            self.milliseconds[kind].append(1000 * seconds)
        if answer is not None and answer.status in (429, 503):
            self.refused_milliseconds.append(1000 * seconds)
            self.impolite += answer.header("retry-after") is None

    def note_page(self, second: float, seconds: float) -> None:
        """Remember when in the phase pages were slow."""
        slowest = self.slowest_by_second
        slowest[int(second)] = max(slowest.get(int(second), 0.0), round(1000 * seconds, 1))

    def summary(self) -> dict[str, Any]:
        """Percentiles of what was answered, and all statuses."""
        found: dict[str, Any] = {"statuses": self.statuses, "off": self.off, "impolite": self.impolite}
        found["sent_late_ms"] = round(self.sent_late_ms, 1)
        found["slowest_rank_ms_by_second"] = list(self.slowest_by_second.values())
        for kind, taken in self.milliseconds.items():
            points = np.percentile(taken, [50, 90, 99, 99.9, 100]) if taken else [float("nan")] * 5
            names = ("p50", "p90", "p99", "p99.9", "max")
            found[kind] = {name: round(float(point), 2) for name, point in zip(names, points, strict=True)}
        return found


class Crowd:
    """Visitors that come at a fixed rate."""

    def __init__(self, shop: Shop, connections: Connections, seed: int = 2) -> None:
        self._shop, self._connections = shop, connections
        self._random = np.random.default_rng(seed)

    async def visit(self, rate: float, seconds: float) -> Tally:
        """Send ``rate`` visitors a second, each with a page and a click, and wait for the last of them."""
        tally, visits, count = Tally(), set(), int(rate * seconds)
        thinking = self._random.uniform(*THINKING, count)
        start = time.perf_counter()
        for number in range(count):
            due = start + number / rate
            if due > time.perf_counter():
                await asyncio.sleep(due - time.perf_counter())
            tally.sent_late_ms = max(tally.sent_late_ms, 1000 * (time.perf_counter() - due))
            visit = asyncio.create_task(self._visitor(due - start, start, float(thinking[number]), tally))
            visits.add(visit)
            visit.add_done_callback(visits.discard)
        while visits:
            await asyncio.wait(visits)
        return tally

    async def _visitor(self, second: float, start: float, thinking: float, tally: Tally) -> None:
        due = start + second
        answer = await self._timed("rank", self._shop.rank_request(), due, tally)
        tally.note_page(second, time.perf_counter() - due)
        if answer is None or answer.status != 200:
            return
        page = answer.json()
        tally.off += page["mode"] == "off"
        due = max(due + thinking, time.perf_counter())
        await asyncio.sleep(due - time.perf_counter())
        await self._timed("feedback", self._shop.feedback_request(page["token"], page["ranking"]), due, tally)

    async def _timed(self, kind: str, request: bytes, due: float, tally: Tally) -> Answer | None:
        answer = None
        with contextlib.suppress(OSError):
            answer = await self._connections.send(request)
        tally.add(kind, answer, time.perf_counter() - due)
        return answer


async def watched(service: ServiceProcess, work: Coroutine[Any, Any, Tally]) -> tuple[Tally, dict[str, Any]]:
    """Some work, and what server and visitors used while it ran."""
    began, own, before = time.perf_counter(), time.process_time(), service.usage()
    memory = [before.resident_mb]
    task = asyncio.create_task(work)
    while not (await asyncio.wait([task], timeout=1.0))[0]:
        memory.append(service.usage().resident_mb)
    wall, after = time.perf_counter() - began, service.usage()
    return task.result(), {
        "wall_seconds": round(wall, 1),
        "server_cores": _cores(before, after, wall),
        "visitors_cores": round((time.process_time() - own) / wall, 2),
        "memory_mb": [round(value) for value in memory],
    }


def _cores(before: Usage, after: Usage, wall: float) -> dict[str, float]:
    return {
        "user": round((after.user_seconds - before.user_seconds) / wall, 2),
        "system": round((after.system_seconds - before.system_seconds) / wall, 2),
    }
