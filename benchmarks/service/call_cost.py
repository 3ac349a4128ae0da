"""Processor time of one rank call and of one report: inside a process, and all in over HTTP.

    python benchmarks/service/call_cost.py [--policy safe-draw] [--calls 5000] [--contexts 20] [--profile] [--no-http]

A call has 40 items (20 ranked, 20 candidates), k = 10, a session of its own; one base ranking in twenty differs from
the usual one of its context. Half of the calls come after something was learnt. Processor time is that of the whole
server process, its writer thread included, so other work on the machine changes it little; latencies are not looked at
here (``service_load.py`` does). Beside it stands a bare server that sends the same calls back (``echo.py``).
"""

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from http_load import Connections, post
from machine import machine
from service_process import ServiceProcess, Usage

from saferank.service.engine import Engine, open_engine
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankAnswer, RankCall

K, RANKED, ITEMS = 10, 20, 40
UNUSUAL = 0.05
"""Share of calls whose base ranking has two neighbours exchanged."""
WORKERS = 16
"""Calls at a time over HTTP, fewer than the service refuses."""


class Calls:
    """Bodies of rank calls and of reports."""

    def __init__(self, contexts: int, seed: int = 1) -> None:
        self._dice, self._contexts, self._sent = random.Random(seed), contexts, 0

    def rank(self) -> dict[str, object]:
        """The page of a new visitor."""
        self._sent += 1
        shelf = self._sent % self._contexts
        items = [f"shelf-{shelf}-product-{number}" for number in range(ITEMS)]
        if self._dice.random() < UNUSUAL:
            place = self._dice.randrange(RANKED - 1)
            items[place : place + 2] = reversed(items[place : place + 2])
        session = f"visitor-{self._sent}"
        lists = {"base_ranking": items[:RANKED], "candidates": items[RANKED:]}
        return {"context": f"shelf-{shelf}", **lists, "k": K, "session_id": session}

    def click(self, token: str, ranking: list[str]) -> dict[str, object]:
        """One click of that visitor."""
        return {"token": token, "clicks": [self._dice.choice(ranking)]}


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """What both kinds of run have in common."""
    common = {"policy": options.policy, "window_seconds": options.window, "log_level": "warning"}
    return common | {"max_lag_seconds": 60}  # nothing is refused because others use the machine


async def inside(options: argparse.Namespace, folder: Path) -> None:
    """The engine alone: rank, then the reports, in rounds, so that pages close in between."""
    engine = open_engine(Settings(store=str(folder / "inside"), **settings_of(options)))
    await engine.start()
    calls = Calls(options.contexts)
    await _round(engine, calls, 500, Costs())
    costs, profile = Costs(), cProfile.Profile(time.thread_time)  # not wall time: others use the machine
    if options.profile:
        profile.enable()
    began = time.perf_counter()
    for _ in range(10):
        await _round(engine, calls, options.calls // 10, costs)
        await asyncio.sleep(0.3)
    profile.disable()
    print(f"in process: {costs.sentence(options.calls)}; {time.perf_counter() - began:.1f} s of wall time")
    await engine.stop()
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


class Costs:
    """Seconds of processor time by part of the work."""

    def __init__(self) -> None:
        self.rank = self.feedback = 0.0
        self._begun = time.process_time()

    def sentence(self, calls: int) -> str:
        """In microseconds per call."""
        whole = 1e6 * (time.process_time() - self._begun) / calls
        rank, feedback = 1e6 * self.rank / calls, 1e6 * self.feedback / calls
        return (
            f"rank {rank:.0f} us, feedback {feedback:.0f} us, "
            f"both with closing, loops and the making of calls {whole:.0f} us"
        )


async def _round(engine: Engine, calls: Calls, size: int, costs: Costs) -> None:
    questions = [msgspec.convert(calls.rank(), RankCall) for _ in range(size)]
    began = time.process_time()
    pages: list[RankAnswer] = []
    for number, question in enumerate(questions):
        pages.append(await engine.rank("default", question))
        if number % 10 == 0:
            await asyncio.sleep(0)
    costs.rank += time.process_time() - began
    reports = [msgspec.convert(calls.click(page.token, page.ranking), FeedbackCall) for page in pages]
    began = time.process_time()
    for start in range(0, size, 20):
        await asyncio.gather(*(engine.feedback("default", [report]) for report in reports[start : start + 20]))
    costs.feedback += time.process_time() - began


async def over_http(options: argparse.Namespace, service: ServiceProcess) -> None:
    """A real server: its processor time per call, for rank calls alone, then for their reports alone."""
    calls, connections = Calls(options.contexts), Connections(lambda: service.port, WORKERS)
    await ask(connections, calls, 500)
    used, stalls = {"rank": 0.0, "feedback": 0.0}, Stalls(service)
    for _ in range(5):
        before = service.usage()
        pages = await ask(connections, calls, options.calls // 5)
        between = service.usage()
        bodies = [calls.click(page["token"], page["ranking"]) for page in pages]
        await _sent(connections, "/v1/feedback", bodies.pop, len(bodies))
        used["rank"] += _seconds(before, between)
        used["feedback"] += _seconds(between, service.usage())
    connections.close()
    rank, feedback = (1e6 * used[kind] / options.calls for kind in ("rank", "feedback"))
    print(f"over HTTP, all in: rank {rank:.0f} us, feedback {feedback:.0f} us of the server; {stalls.sentence()}")


async def echoed(options: argparse.Namespace, echo: ServiceProcess) -> None:
    """A server that does nothing with rank calls."""
    calls, connections = Calls(options.contexts), Connections(lambda: echo.port, WORKERS)
    await ask(connections, calls, 500)
    before = echo.usage()
    await ask(connections, calls, options.calls)
    connections.close()
    print(f"a bare server that sends them back: {1e6 * _seconds(before, echo.usage()) / options.calls:.0f} us")


class Stalls:
    """How far the event loop of a server was behind, from its metrics page."""

    def __init__(self, service: ServiceProcess) -> None:
        self._service = service

    def sentence(self) -> str:
        """The longest, if the server says so."""
        longest = self._service.metrics().get("saferank_event_loop_longest_lag_seconds")
        return "stalls not measured" if longest is None else f"longest stall of the event loop {1000 * longest:.0f} ms"


async def ask(connections: Connections, calls: Calls, count: int) -> list[dict[str, Any]]:
    """The answers to so many rank calls, sixteen at a time."""
    answers = await _sent(connections, "/v1/rank", calls.rank, count)
    return [json.loads(body) for body in answers]


async def _sent(connections: Connections, path: str, body: Callable[[], object], count: int) -> list[bytes]:
    numbers, answers = iter(range(count)), list[bytes]()

    async def worker(numbers: Iterator[int]) -> None:
        for _ in numbers:
            answer = await connections.send(post(path, json.dumps(body()).encode()))
            assert answer.status == 200, answer.body
            answers.append(answer.body)

    await asyncio.gather(*(worker(numbers) for _ in range(WORKERS)))
    return answers


def _seconds(before: Usage, after: Usage) -> float:
    return after.user_seconds + after.system_seconds - before.user_seconds - before.system_seconds


def main() -> None:
    """Both parts, for every policy that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", help="safe-draw and kl-ucb-br if none is named")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--contexts", type=int, default=20)
    parser.add_argument("--window", type=float, default=2.0, help="seconds until a page closes and is learnt")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="on the disk that is to be measured")
    parser.add_argument("--profile", action="store_true", help="print where the time of the first part goes")
    parser.add_argument("--no-http", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])  # for echo.py
    print(machine())
    for policy in options.policy or ["safe-draw", "kl-ucb-br"]:
        options.policy = policy
        print(policy)
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            asyncio.run(inside(options, Path(name)))
            if not options.no_http:
                with ServiceProcess(Path(name), **settings_of(options)) as service:
                    asyncio.run(over_http(options, service))
                    service.stop()
                echo = ServiceProcess(Path(name))
                echo.program = ["echo"]
                with echo:
                    asyncio.run(echoed(options, echo))


if __name__ == "__main__":
    main()
