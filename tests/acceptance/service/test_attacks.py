"""What was done to the first edition, done to a real server: what needs a process of its own.

Times are those of a machine that does other work as well; what is asserted of processor time does not depend on it.
"""

import asyncio
import hashlib
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from http_load import Answer, Connections, get, post
from service_process import ServiceProcess

from tests.service.http.service_in_process import Service

T = TypeVar("T")
SETTINGS = {"policy": "kl-ucb-br", "rule": "paper:1e-5", "log_level": "error"}
CALL = {"context": "c", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2}


def hashed(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


@asynccontextmanager
async def connected(service: ServiceProcess, most: int = 4) -> AsyncIterator[Connections]:
    connections = Connections(lambda: service.port, most)
    try:
        yield connections
    finally:
        connections.close()
        await asyncio.sleep(0)  # they are closed in the next step of the loop


async def with_connections(
    service: ServiceProcess, work: Callable[[ServiceProcess, Connections], Awaitable[T]], most: int = 8
) -> T:
    async with connected(service, most) as connections:
        return await work(service, connections)


async def visit(service: ServiceProcess) -> tuple[str, int]:
    async with connected(service) as connections:
        return await acknowledged(connections, 0)


async def acknowledged(connections: Connections, number: int) -> tuple[str, int]:
    """A page with a click: its id, and what the report was answered."""
    page = (await connections.post("/v1/rank", {**CALL, "session_id": str(number)})).json()
    report = {"token": page["token"], "clicks": page["ranking"][:1]}
    return page["impression_id"], (await connections.post("/v1/feedback", report)).status


@pytest.mark.parametrize("name", ["log.sqlite3", "log.sqlite3-wal"])
def test_a_file_of_the_store_that_is_deleted_ends_acknowledgements_and_loses_none(tmp_path: Path, name: str) -> None:
    """Whatever was acknowledged is there after kill -9; a main file that somebody deleted is put back for that."""

    async def clicks(service: ServiceProcess, connections: Connections) -> list[str]:
        path = service.store / name
        found = [await acknowledged(connections, number) for number in range(20)]
        kept = path.with_suffix(".kept")
        kept.hardlink_to(path)
        path.unlink()
        late = [await acknowledged(connections, number) for number in range(20, 40)]
        assert (await connections.send(get("/readyz"))).status == 503
        if name == "log.sqlite3":
            kept.rename(path)
        assert {status for _, status in found} == {200} and {status for _, status in late} == {503}
        return [impression for impression, _ in found]

    with ServiceProcess(tmp_path, **SETTINGS) as service:
        impressions = asyncio.run(with_connections(service, clicks))
        service.kill()
        service.start()
        for impression in impressions:
            assert len(service.read(f"/v1/impressions/{impression}")["clicks"]) == 1


def test_an_endless_header_costs_no_memory_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, **SETTINGS) as service:
        before = service.usage().resident_mb
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            with pytest.raises(OSError):
                for _ in range(5000):
                    connection.sendall(b"a" * 16_384)
        assert service.usage().resident_mb < before + 20
        assert asyncio.run(visit(service))[1] == 200


def test_malformed_megabytes_with_a_feedback_key_are_refused_unread(tmp_path: Path) -> None:
    tenants = {
        "shop": {"rank": [hashed("r")], "feedback": [hashed("f")], "read": [hashed("l")]},
        "other": {"rank": [hashed("o")]},
    }
    limits = {"tenants": json.dumps(tenants), "tenant_rate": 10, "tenant_burst": 20, "max_lag_seconds": 60}
    request = post("/v1/feedback", b'{"token": "' + b"[" * 1_000_000, "f")
    statuses: Counter[int] = Counter()

    async def attack(service: ServiceProcess, connections: Connections) -> float:
        async def send(_: int) -> None:
            for _ in range(25):
                statuses[(await connections.send(request)).status] += 1

        before = service.usage()
        await asyncio.gather(*map(send, range(8)))
        after = service.usage()
        answer = await connections.post("/v1/rank", CALL, "o")
        assert answer.status == 200, "another tenant is not charged for it"
        return after.user_seconds + after.system_seconds - before.user_seconds - before.system_seconds

    with ServiceProcess(tmp_path, **SETTINGS, **limits) as service:
        service.key = "l"
        used = asyncio.run(with_connections(service, attack))
        assert set(statuses) == {413, 429} and statuses[429] > statuses[413], statuses
        assert used / statuses.total() < 0.01, "seconds of processor time for a megabyte"


def test_the_kill_switch_and_health_are_never_refused(tmp_path: Path) -> None:
    """While everybody else is: three times as many callers as may be answered at a time."""
    refused: Counter[int] = Counter()

    async def storm(service: ServiceProcess, first: Connections) -> tuple[list[Answer], list[Answer]]:
        await first.post("/v1/rank", CALL)
        until = time.monotonic() + 3.0

        async def flood() -> None:
            async with connected(service, 1) as connections:
                while time.monotonic() < until:
                    refused[(await connections.post("/v1/rank", CALL)).status] += 1

        async def calls(path: str, contents: list[Any]) -> list[Answer]:
            answers = []
            for content in contents:
                request = get(path) if content is None else post(path, json.dumps(content).encode())
                answers.append(await first.send(request))
                await asyncio.sleep(0.05)
            return answers

        flooding = [asyncio.create_task(flood()) for _ in range(48)]
        await asyncio.sleep(0.3)
        switch = [{"on": on, "why": "a storm"} for on in (True, False, True)]
        answers = await asyncio.gather(calls("/v1/contexts/c/kill", switch), calls("/healthz", [None] * 10))
        await asyncio.gather(*flooding)
        return answers[0], answers[1]

    started = ServiceProcess(tmp_path, **SETTINGS)
    started.program = ["tests.limits", "max_in_flight=4"]
    with started as service:
        killed, healthy = asyncio.run(with_connections(service, storm))
        assert refused[503] > refused[200] / 10, refused
        assert [answer.status for answer in killed] == [200] * 3
        assert [answer.status for answer in healthy] == [200] * 10
        assert service.context("c")["killed"]["on"]


PAGES: dict[str, Callable[[str], dict[str, Any]]] = {
    "/v1/rank": lambda visitor: {**CALL, "session_id": visitor},
    "/ubi_rank": lambda visitor: {
        "user_query": CALL["context"],
        "client_id": visitor,
        "query_response_hit_ids": CALL["base_ranking"],
        "query_attributes": {"k": CALL["k"], "candidates": CALL["candidates"]},
    },
}
"""A call of every route that can show a page."""


def test_no_explored_page_leaves_by_any_route_after_a_kill_switch_returned(tmp_path: Path) -> None:
    """Visitors call all routes all the time; what they ask for after the switch has returned is production's page."""
    showing = {one.path for one in Service().app.endpoints if one.who == "rank" and one.method == "POST"}
    assert showing == PAGES.keys()
    changed: Counter[tuple[str, bool]] = Counter()  # by route, and whether it was asked for after the switch
    asked: Counter[tuple[str, bool]] = Counter()

    async def storm(service: ServiceProcess, operator: Connections) -> None:
        returned, until = asyncio.Event(), asyncio.Event()

        async def visit(path: str, number: int) -> None:
            async with connected(service, 1) as connections:
                while not until.is_set():
                    after, visitor = returned.is_set(), f"{number}-{asked.total()}"
                    page = (await connections.post(path, PAGES[path](visitor))).json()
                    ranking = page.get("ranking") or page["query_response_hit_ids"]
                    asked[path, after] += 1
                    changed[path, after] += ranking != CALL["base_ranking"][: CALL["k"]]  # type: ignore[index]

        visitors = [asyncio.create_task(visit(path, number)) for path in PAGES for number in range(3)]
        while min(changed[path, False] for path in PAGES) < 5:
            await asyncio.sleep(0.02)
        await operator.post("/v1/contexts/c/kill", {"on": True, "why": "a test"})
        returned.set()
        while min(asked[path, True] for path in PAGES) < 50:
            await asyncio.sleep(0.02)
        until.set()
        await asyncio.gather(*visitors)

    with ServiceProcess(tmp_path, **SETTINGS) as service:
        asyncio.run(asyncio.wait_for(with_connections(service, storm), 120))
    assert not any(changed[path, True] for path in PAGES), (asked, changed)
