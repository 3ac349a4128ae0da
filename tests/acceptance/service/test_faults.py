"""Two servers on PostgreSQL, with kill -9 of either and of PostgreSQL, SIGSTOP, partitions and clocks that jump.

Nothing acknowledged is lost, nothing counts twice, no explored page is issued after a kill switch has returned, and a
replay of the log gives the state. ``SAFERANK_FAULTS`` says how many faults (``make soak``: 1,000), and
``SAFERANK_FAULT_SEED`` which ones.
"""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest
from service_process import ServiceProcess

from saferank.cli import main
from saferank.service.identifiers import impression_id
from saferank.store.page_record import issued_at
from tests.acceptance.service.cluster import KILL_PATIENCE, Cluster, Crowd, now
from tests.acceptance.service.ledger import Pairs, pairs_of
from tests.acceptance.service.stories import check_the_service, closed_view, stories_of
from tests.postgres_process import PostgresProcess

FAULTS = int(os.environ.get("SAFERANK_FAULTS", "1"))
SEED = int(os.environ.get("SAFERANK_FAULT_SEED", str(FAULTS)))
WINDOW, VISITORS = 5.0, 12
SLACK_MS = 25  # a server's measure of the store's time
APPEAL = {f"{letter}{number}": 0.1 + 0.08 * number for letter in "abc" for number in range(9)}


def a_call(chance: random.Random, visit: str) -> dict[str, Any]:
    letter = chance.choice("abc")
    items = [f"{letter}{number}" for number in range(9)]
    call: dict[str, Any] = {"context": letter, "base_ranking": items[:6], "candidates": items[6:], "k": 4}
    return call | ({"session_id": visit} if chance.random() < 0.5 else {})


class Operator:
    """Throws kill switches while faults happen, and notes between which times no page may be explored."""

    def __init__(self, cluster: Cluster, crowd: Crowd) -> None:
        self.cluster, self.crowd, self.chance = cluster, crowd, random.Random(5)
        self.off: list[tuple[str, int, int]] = []  # context, from, to (milliseconds)

    async def work(self) -> None:
        while {page.context for page in self.crowd.ledger.pages.values()} != set("abc"):
            await asyncio.sleep(0.1)
        while self.crowd.open:
            context = self.chance.choice("abc")
            if await self._switch(context, True):
                begin = now()
                await asyncio.sleep(self.chance.uniform(0.3, 1.5))
                self.off.append((context, begin, now()))
            while not await self._switch(context, False):
                pass
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))

    async def _switch(self, context: str, on: bool) -> bool:
        path, call = f"/v1/contexts/{context}/kill", {"on": on, "why": "a test"}
        return await self.cluster.post(path, call, self.chance.randrange(2), KILL_PATIENCE) is not None

    def check(self) -> None:
        """No page is live that was asked for and answered meanwhile, nor one whose id says that it was issued then.

        The time in an id is the store's, as its server measured it; the store's clock is this machine's. That
        measure is late by as much as the answer to a heartbeat took, on a busy machine much more than the slack. So a
        page that was asked for after the switch was to be ended again is not looked at, whatever its id says.

        Nor is one that was asked for before the switch returned and answered after it. A server looks at its switches
        and its lease, and writes the answer in the same turn of its loop, so it cannot acknowledge a switch in between;
        but it can stand still there until its lease has run out. Only the caller can notice that: by its time limit.
        """
        for page in self.crowd.ledger.pages.values():
            impression = impression_id(page.impression_id)
            assert impression is not None
            at = issued_at(impression)
            asked, answered = self.crowd.asked[page.impression_id]
            for context, begin, end in self.off:
                by_id = begin + SLACK_MS < at < end - SLACK_MS and asked <= end
                if page.context == context and (by_id or begin <= asked <= answered <= end):
                    times = [time - begin for time in (asked, at, answered, end)]
                    said = f"{page} asked for, issued, answered, switch ended, all in ms after the switch: {times}"
                    assert page.mode == "off", said


def known(server: ServiceProcess) -> list[Pairs]:
    """The statistics of all contexts, as a server knows them."""
    return [pairs_of(closed_view(server, name)) for name in "abc"]


async def break_again_and_again(cluster: Cluster, seed: int) -> Crowd:
    """All faults, one after the other, each kind as often as the others; then the reckoning."""
    crowd = Crowd(cluster, seed, APPEAL)
    operator = Operator(cluster, crowd)
    visits = [asyncio.create_task(crowd.visit(number, a_call)) for number in range(VISITORS)]
    visits.append(asyncio.create_task(operator.work()))
    kinds = cluster.faults()
    for number in range(FAULTS):
        await kinds[number % len(kinds)](crowd.chance)
        await asyncio.sleep(crowd.chance.random() * 0.5)
    while len(operator.off) < FAULTS // 4:  # during few faults few switches return; the test has a time limit
        await asyncio.sleep(0.1)
    crowd.open = False
    await asyncio.gather(*visits)
    await asyncio.sleep(WINDOW + 3.0)
    stories = await stories_of(cluster.connections[0], crowd.ledger)
    # In a thread: the proxy before the second server needs this one.
    await asyncio.to_thread(check_the_service, cluster.servers[0], crowd.ledger, stories)
    first, second = [await asyncio.to_thread(known, server) for server in cluster.servers]
    assert first == second, "a server does not know what the other has published"
    operator.check()
    ledger = crowd.ledger
    print(
        f"{FAULTS} faults: {len(ledger.pages)} pages, {ledger.acknowledged} acknowledged, {ledger.late} late, "
        f"{len(operator.off)} kill switches returned"
    )
    assert ledger.acknowledged > 10 * FAULTS, "too little load for a test"
    return crowd


@pytest.mark.timeout(900 + 60 * FAULTS)
def test_nothing_acknowledged_is_lost_and_switches_hold(tmp_path: Path) -> None:
    postgres = PostgresProcess()
    settings: dict[str, Any] = {
        "policy": "kl-ucb-br",
        "window_seconds": WINDOW,
        "rule": "anytime:0.001",
        "log_level": "warning",
    }
    settings |= {"max_lag_seconds": 60}  # no 503 when other tests keep the machine busy
    cluster = Cluster(tmp_path, postgres, "faults", **settings)

    async def everything() -> None:
        try:
            await cluster.start()
            await break_again_and_again(cluster, seed=SEED)
        finally:
            await cluster.stop()

    try:
        asyncio.run(everything())
        assert main(["replay", postgres.address("faults")]) == 0
    finally:
        postgres.stop()
