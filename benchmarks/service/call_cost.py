"""Processor time of one rank call and of one report: inside a process, and all in over HTTP.

    python benchmarks/service/call_cost.py [--policy safe-draw] [--calls 5000] [--contexts 20] [--profile] [--no-http]

A call has 40 items (20 ranked, 20 candidates), k = 10, a session of its own; one base ranking in twenty differs from
the usual one of its context. Half of the calls come after something was learnt. Processor time is that of the whole
server process, its writer thread included, so other work on the machine changes it little; latencies are not looked at
here (``service_load.py`` does).
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import random
import tempfile
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from echo import EchoProcess
from http_load import Connections, post
from machine import machine
from service_process import ServiceProcess, Usage

from saferank.service.server import Server, new_server
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


def settings_of(policy: str, window: float) -> dict[str, Any]:
    """What both kinds of run have in common."""
    common = {"policy": policy, "window_seconds": window, "log_level": "warning"}
    return common | {"max_lag_seconds": 60}  # nothing is refused because others use the machine


async def inside(options: argparse.Namespace, policy: str, folder: Path) -> None:
    """The server alone: rank, then the reports, in rounds, so that pages close in between."""
    server = new_server(Settings(store=str(folder / "inside"), **settings_of(policy, options.window)))
    await server.start()
    calls = Calls(options.contexts)
    await _round(server, calls, 500, Costs())
    costs, profile = Costs(), cProfile.Profile(time.thread_time)  # not wall time: others use the machine
    if options.profile:
        profile.enable()
    began = time.perf_counter()
    for _ in range(10):
        await _round(server, calls, options.calls // 10, costs)
        await asyncio.sleep(0.3)
    profile.disable()
    print(f"in process: {costs.sentence(options.calls)}; {time.perf_counter() - began:.1f} s of wall time")
    await server.stop()
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


async def _round(server: Server, calls: Calls, size: int, costs: Costs) -> None:
    questions = [msgspec.convert(calls.rank(), RankCall) for _ in range(size)]
    began = time.process_time()
    pages: list[RankAnswer] = []
    for number, question in enumerate(questions):
        pages.append(await server.rank("default", question))
        if number % 10 == 0:
            await asyncio.sleep(0)
    costs.rank += time.process_time() - began
    reports = [msgspec.convert(calls.click(page.token, page.ranking), FeedbackCall) for page in pages]
    began = time.process_time()
    for start in range(0, size, 20):
        await asyncio.gather(*(server.feedback("default", [report]) for report in reports[start : start + 20]))
    costs.feedback += time.process_time() - began


async def over_http(service: ServiceProcess, echo: EchoProcess, calls: Calls, count: int) -> dict[str, float]:
    """Microseconds of a server's processor time: rank calls, then their reports, each beside as many bare echoes."""
    asked = Connections(lambda: service.port, WORKERS)
    bare = Connections(lambda: echo.port, WORKERS)
    await ask(asked, calls, 500)
    used = dict.fromkeys(("rank", "feedback", "echo_rank", "echo_feedback"), 0.0)
    for _ in range(5):
        questions = [calls.rank() for _ in range(count // 5)]
        answers = await _timed(used, "rank", service, _sent(asked, "/v1/rank", iter(questions)))
        await _timed(used, "echo_rank", echo, _sent(bare, f"/{len(answers[0])}", iter(questions)))
        pages = [json.loads(answer) for answer in answers]
        reports = [calls.click(page["token"], page["ranking"]) for page in pages]
        told = await _timed(used, "feedback", service, _sent(asked, "/v1/feedback", iter(reports)))
        await _timed(used, "echo_feedback", echo, _sent(bare, f"/{len(told[0])}", iter(reports)))
    asked.close()
    bare.close()
    longest = service.metrics().get("saferank_event_loop_longest_lag_seconds", 0.0)
    return {**{f"{name}_us": 1e6 * seconds / count for name, seconds in used.items()}, "stall_ms": 1000 * longest}


async def _timed(
    used: dict[str, float], name: str, process: ServiceProcess, work: Awaitable[list[bytes]]
) -> list[bytes]:
    before = process.usage()
    answers = await work
    used[name] += _seconds(before, process.usage())
    return answers


async def ask(connections: Connections, calls: Calls, count: int) -> list[dict[str, Any]]:
    """The answers to ``count`` rank calls, sixteen at a time."""
    answers = await _sent(connections, "/v1/rank", (calls.rank() for _ in range(count)))
    return [json.loads(body) for body in answers]


async def _sent(connections: Connections, path: str, bodies: Iterator[dict[str, object]]) -> list[bytes]:
    answers = list[bytes]()

    async def worker() -> None:
        for body in bodies:
            answer = await connections.send(post(path, json.dumps(body).encode()))
            assert answer.status == 200, answer.body
            answers.append(answer.body)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return answers


def _seconds(before: Usage, after: Usage) -> float:
    return after.user_seconds + after.system_seconds - before.user_seconds - before.system_seconds


def measured(
    policy: str = "safe-draw", calls: int = 5000, contexts: int = 20, window: float = 2.0, folder: Path = Path("build")
) -> dict[str, float]:
    """Microseconds of processor time over HTTP, all in, beside the bare echo."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        service = ServiceProcess(Path(name), **settings_of(policy, window))
        with service, EchoProcess(Path(name) / "echo") as echo:
            found = asyncio.run(over_http(service, echo, Calls(contexts), calls))
            service.stop()
            echo.stop()
    return found


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
    print(machine())
    for policy in options.policy or ["safe-draw", "kl-ucb-br"]:
        print(policy)
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            asyncio.run(inside(options, policy, Path(name)))
        if not options.no_http:
            found = measured(policy, options.calls, options.contexts, options.window, options.folder)
            for kind in ("rank", "feedback"):
                own, echo = found[f"{kind}_us"], found[f"echo_{kind}_us"]
                print(f"over HTTP, all in: {kind} {own:.0f} us of the server, {own / echo:.1f} times a bare echo")
            print(f"longest stall of the event loop {found['stall_ms']:.0f} ms")


if __name__ == "__main__":
    main()
