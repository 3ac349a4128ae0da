"""More than the service can do: how much of its capacity is left at three times the load, how fast refusals are.

    python benchmarks/service/overload.py [--times 3] [--seconds 10] [--json FILE]

First the capacity: visitors who come one after the other, as many at a time as the service may work on, each with a
page and a click. Then an open loop at a multiple of it. The visitors are a process on the same machine, so the capacity
is that of the server beside its visitors. Shares are given by wall time and by the server's processor time; the latter
depends less on what else runs.
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from http_load import Connections
from machine import machine
from open_loop import Crowd, Tally
from service_process import ServiceProcess
from shop import Shop

AT_A_TIME = 24
MOST_CONNECTIONS = 1200


class Phase:
    """Answers of a phase, and the processor time that the server used for them."""

    def __init__(self, service: ServiceProcess) -> None:
        self._service, self._before, self._began = service, service.usage(), time.perf_counter()

    def rates(self, answered: int) -> dict[str, float]:
        """Answers by second of wall time and by second of processor time."""
        after, wall = self._service.usage(), time.perf_counter() - self._began
        used = after.user_seconds + after.system_seconds - self._before.user_seconds - self._before.system_seconds
        return {"a_second": answered / wall, "a_processor_second": answered / max(used, 0.01), "cores": used / wall}


async def capacity(service: ServiceProcess, connections: Connections, seconds: float) -> dict[str, float]:
    """Calls that are answered when there are always some to answer, and never too many."""
    shop, answered, phase = Shop(20), 0, Phase(service)
    until = time.perf_counter() + seconds

    async def visitor() -> None:
        nonlocal answered
        while time.perf_counter() < until:
            page = await connections.send(shop.rank_request())
            if page.status == 200:
                content = page.json()
                report = await connections.send(shop.feedback_request(content["token"], content["ranking"]))
                answered += 1 + (report.status == 200)

    await asyncio.gather(*(visitor() for _ in range(AT_A_TIME)))
    return phase.rates(answered)


async def overload(service: ServiceProcess, connections: Connections, rate: float, seconds: float) -> dict[str, Any]:
    """Calls at a rate, whatever becomes of them: a visitor makes one or two."""
    crowd, phase = Crowd(Shop(20), connections), Phase(service)
    tally: Tally = await crowd.visit(rate / 2, seconds)
    answered = sum(kind.get("200", 0) for kind in tally.statuses.values())
    refused = tally.refused_milliseconds
    found = {"statuses": tally.statuses, "sent_late_ms": tally.sent_late_ms, **phase.rates(answered)}
    for name, taken in {**tally.milliseconds, "refused": refused}.items():
        found[f"{name}_p50_ms"], found[f"{name}_p99_ms"] = np.percentile(taken, [50, 99]) if taken else (0.0, 0.0)
    return found


async def measured(service: ServiceProcess, times: float, seconds: float) -> dict[str, Any]:
    """Warm up, capacity, overload, and the shares of capacity that are answered."""
    connections = Connections(lambda: service.port, MOST_CONNECTIONS)
    await capacity(service, connections, 2)
    calm = await capacity(service, connections, seconds)
    storm = await overload(service, connections, times * calm["a_second"], seconds)
    connections.close()
    shares = {name: storm[name] / calm[name] for name in ("a_second", "a_processor_second")}
    return {"capacity": calm, "overload": storm, "shares": shares, "refusal_cost": _refusal_cost(calm, storm)}


def _refusal_cost(calm: dict[str, Any], storm: dict[str, Any]) -> float:
    """Processor time of a refusal, as a multiple of that of an answered call.

    It decides what can be left: where a refusal costs a third of an answer, three times the capacity takes all of it.
    """
    answered, refused = (sum(kind.get(status, 0) for kind in storm["statuses"].values()) for status in ("200", "503"))
    an_answer = 1 / calm["a_processor_second"]
    return float((answered / storm["a_processor_second"] - answered * an_answer) / max(1, refused) / an_answer)


def run(service: ServiceProcess, times: float, seconds: float) -> dict[str, Any]:
    """The same on a loop of its own."""
    gc.disable()  # pauses of the visitors would be counted as the server's
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(measured(service, times, seconds))
    finally:
        gc.enable()


def main() -> None:
    """Measure on the disk of this project: a temporary folder may be in memory, where fsync is free."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--policy", default="safe-draw")
    parser.add_argument("--folder", type=Path, default=Path("build"))
    parser.add_argument("--json", type=Path, help="write everything there")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        settings = {"policy": options.policy, "window_seconds": 10, "log_level": "warning"}
        with ServiceProcess(Path(name), **settings) as service:
            found = {"machine": machine(), **run(service, options.times, options.seconds)}
            found["longest_lag"] = service.metrics()["saferank_event_loop_longest_lag_seconds"]
            service.stop()
    text = json.dumps(found, indent=1, default=float)
    if options.json:
        options.json.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
