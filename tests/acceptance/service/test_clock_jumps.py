"""A real server whose clocks jump: it notices, serves production's ranking and measures the store's time again."""

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from service_process import ServiceProcess

from saferank.cli import main
from saferank.service.wire.calls import milliseconds
from tests.acceptance.service.jumping_clock import Skews

WINDOW = 60.0
CALL = {"context": "c", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, Skews]]:
    folder = tmp_path_factory.mktemp("service")
    service = ServiceProcess(folder, policy="kl-ucb-br", rule="paper:1e-5", window_seconds=WINDOW, freshness_seconds=5)
    service.program = ["tests.acceptance.service.jumping_clock", str(folder / "clock")]
    clock = Skews(folder / "clock")
    with service:
        yield service, clock
        assert service.stop() == 0
    assert main(["replay", str(service.store)]) == 0


def rank(service: ServiceProcess) -> Any:
    body = json.dumps(CALL).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.port}/v1/rank", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def seconds_ahead(page: Any) -> float:
    """How far the time of a page is ahead of the store's, which is this machine's."""
    return milliseconds(page["closes_at"]) / 1000 - WINDOW - time.time()


def wait_until_live(service: ServiceProcess) -> Any:
    until = time.monotonic() + 20
    while (page := rank(service))["mode"] != "live":
        assert time.monotonic() < until, "it never explored again"
        time.sleep(0.05)
    return page


@pytest.mark.parametrize("clock", ["monotonic", "wall"])
@pytest.mark.parametrize("jump", [86_400.0, 1.0, -1.0, -86_400.0])
def test_a_clock_that_jumps_is_noticed(served: tuple[ServiceProcess, Skews], clock: str, jump: float) -> None:
    service, skews = served
    wait_until_live(service)
    while True:  # a heartbeat may come between the jump and the call
        skews.jump(**{clock: jump})
        page = rank(service)
        assert abs(seconds_ahead(page)) < 3
        if page["mode"] == "off":
            break
    assert abs(seconds_ahead(wait_until_live(service))) < 3
    assert service.context("c")["open_pages"] > 0  # nothing was closed before its time


def test_a_machine_that_slept_is_noticed(served: tuple[ServiceProcess, Skews]) -> None:
    """Its monotonic clock stood still, so the lease seems to go on; only the wall clock went on."""
    service, skews = served
    wait_until_live(service)
    modes: list[str] = []
    while "off" not in modes:  # a heartbeat may come first when it wakes up
        assert len(modes) < 20
        service.pause()
        time.sleep(0.3)
        skews.jump(monotonic=-0.3)
        service.resume()
        modes.append(rank(service)["mode"])
    wait_until_live(service)
