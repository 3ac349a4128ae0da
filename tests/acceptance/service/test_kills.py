"""kill -9 at random points under load: no acknowledged feedback is lost, none counts twice, the log gives the state.

Two kills here, as many as SAFERANK_KILLS says in ``make soak`` (200). Visitors go on through all of them: what was not
acknowledged is sent again, to whichever process is there. Snapshots are written often, so that every replay compares
the states that processes had after they recovered with the fold of the whole log.
"""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

from service_process import ServiceProcess

from tests.acceptance.service.ledger import Ledger, ShownPage
from tests.acceptance.service.stories import check_replay, check_the_service, stories_of
from tests.acceptance.service.visitors import Visitors, some_clicks

KILLS = int(os.environ.get("SAFERANK_KILLS", "2"))
WINDOW = 6.0
VISITORS = 16
LONGEST_START = 5.0  # seconds of the processor: other work on the machine is not the service's fault
APPEAL = {f"{letter}{number}": 0.1 + 0.08 * number for letter in "abc" for number in range(9)}


def a_call(chance: random.Random, visit: str) -> dict[str, Any]:
    """A page of one of three contexts; every other visitor has a session, and comes back to it."""
    letter = chance.choice("abc")
    items = [f"{letter}{number}" for number in range(9)]
    call: dict[str, Any] = {"context": letter, "base_ranking": items[:6], "candidates": items[6:], "k": 4}
    return call | ({"session_id": visit} if chance.random() < 0.5 else {})


class Crowd:
    """Visitors who look and click until they are told to go home; some clicks come late and some twice."""

    def __init__(self, service: ServiceProcess, seed: int) -> None:
        self.ledger, self.chance = Ledger(), random.Random(seed)
        self.visitors = Visitors(service, self.ledger)
        self.open = True
        self._clicking: set[asyncio.Task[None]] = set()

    async def visit(self, number: int) -> None:
        visit = 0
        while self.open:
            visit += 1
            page = await self.visitors.shown(a_call(self.chance, f"{number}-{visit // 4}"))
            assert page is not None
            task = asyncio.create_task(self._click(page, f"{number}-{visit}"))
            self._clicking.add(task)
            task.add_done_callback(self._clicking.discard)
            await asyncio.sleep(self.chance.uniform(0.0, 0.08))
        while self._clicking:
            await asyncio.gather(*self._clicking)

    async def _click(self, page: ShownPage, name: str) -> None:
        clicks = sorted(some_clicks(page, APPEAL, self.chance))
        for number, item in enumerate(clicks):
            await asyncio.sleep(self.chance.choice([0.0, 0.02, 1.5]) * self.chance.random())
            event_id = f"{name}-{number}" if self.chance.random() < 0.5 else None
            for _ in range(self.chance.choice([1, 1, 2])):
                await self.visitors.click(page, [item], event_id)


async def kill_again_and_again(service: ServiceProcess, seed: int) -> list[float]:
    """All kills, then the reckoning; what each restart took of the processor."""
    crowd, took, waited = Crowd(service, seed), [], 0.0
    visits = [asyncio.create_task(crowd.visit(number)) for number in range(VISITORS)]
    for _ in range(KILLS):
        await asyncio.sleep(crowd.chance.uniform(0.05, 0.9))
        service.kill()
        crowd.visitors.present.clear()
        await asyncio.gather(asyncio.to_thread(check_replay, service), asyncio.to_thread(service.start))
        took.append(service.ready_processor_seconds)
        waited = max(waited, service.ready_seconds)
        crowd.visitors.present.set()
    crowd.open = False
    await asyncio.gather(*visits)
    assert crowd.visitors.wrong == []
    await asyncio.sleep(WINDOW + 1.0)
    stories = await stories_of(crowd.visitors.connections, crowd.ledger)
    check_the_service(service, crowd.ledger, stories)
    ledger = crowd.ledger
    assert ledger.acknowledged > 10 * KILLS, "too little load for a test"
    print(
        f"{KILLS} kills: {len(ledger.pages)} pages, {ledger.acknowledged} acknowledged, {ledger.late} late, "
        f"{len(ledger.pages) - len(stories)} pages without clicks lost, "
        f"ready after {waited:.1f} s at most (processor: {max(took):.1f} s)"
    )
    crowd.visitors.connections.close()
    return took


def test_nothing_acknowledged_is_lost_or_counted_twice(tmp_path: Path) -> None:
    settings = {"policy": "kl-ucb-br", "window_seconds": WINDOW, "rule": "anytime:0.001"}
    settings |= {"log_level": "warning", "max_lag_seconds": 60}  # no 503 when other tests keep the machine busy
    started = ServiceProcess(tmp_path, **settings)
    started.program = ["tests.limits", "snapshot_every=40"]
    with started as service:
        took = asyncio.run(kill_again_and_again(service, seed=KILLS))
        assert service.stop() == 0
        check_replay(service)
    assert max(took) < LONGEST_START
