"""A store with many impressions: ready soon after a crash, and replayed quickly.

20,000 impressions here; ``make soak`` asks for 1,000,000 (SAFERANK_IMPRESSIONS). The promises are 5 s each for
1,000,000. Other tests run at the same time and are not the service's fault: asserted are seconds of the processor, and
both those and the clock's are printed.
"""

import asyncio
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from service_process import ServiceProcess

from saferank.service import limits
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankAnswer, RankCall
from saferank.store.embedded.store import SqliteStore
from tests.acceptance.service.stories import check_replay

IMPRESSIONS = int(os.environ.get("SAFERANK_IMPRESSIONS", "20000"))
CONTEXTS, K = 20, 10
LONGEST_START, LONGEST_REPLAY = 5.0, 5.0
ANSWERED = 0.4
"""Share of pages with a click."""


class Playback:
    """A service without HTTP whose time passes as quickly as it can work: a millisecond for each page."""

    def __init__(self, folder: Path, policy: str, window_seconds: float) -> None:
        folder.mkdir()
        self.now = time.time_ns() // 1_000_000 - IMPRESSIONS  # so that the last page is of now
        asked: dict[str, Any] = {
            "window_seconds": window_seconds,
            "freshness_seconds": 3600,
            "holdout_share": 0,
            "guardrail_drop": 0,
        }
        limits.MAX_PENDING = 10**9
        settings = Settings(store=str(folder), policy=policy, **asked)
        self.server = Server(settings, SqliteStore(folder, clock=lambda: self.now), self, name="alone")
        self._chance = random.Random(1)
        names = [[f"{context}-{item}" for item in range(30)] for context in range(CONTEXTS)]
        self._calls = [
            RankCall(context=f"shelf-{number}", base_ranking=items[:20], candidates=items[20:], k=K)
            for number, items in enumerate(names)
        ]

    # --- the clock of the server ---

    def monotonic(self) -> float:
        return self.now / 1000

    def wall(self) -> float:
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def fill(self, pages: int, at_once: int = 500) -> None:
        """Issue pages, report a click for some of them, and close what is due."""
        writing = asyncio.create_task(self.server.writer.run())
        for _ in range(pages // at_once):
            answers = [await self._page() for _ in range(at_once)]
            reports = [self._report(answer) for answer in answers if self._chance.random() < ANSWERED]
            await self.server.feedback("default", reports)
            await self.server.writer.flush()
            await self.server.heartbeat.attempt()
            await self.server.closer.close_due()
        writing.cancel()

    async def _page(self) -> RankAnswer:
        self.now += 1
        return await self.server.rank("default", self._chance.choice(self._calls))

    def _report(self, page: RankAnswer) -> FeedbackCall:
        weights = [1 / (1 + place + int(item.rpartition("-")[2]) % 7) for place, item in enumerate(page.ranking)]
        return FeedbackCall(token=page.token, clicks=self._chance.choices(page.ranking, weights))


async def filled_and_crashed(folder: Path, crashed: Path, policy: str, window_seconds: float) -> None:
    """The store as it is on disk while the server runs, as a crash would leave it."""
    playback = Playback(folder, policy, window_seconds)
    await playback.server.start(loops=False)
    await playback.fill(IMPRESSIONS)
    shutil.copytree(folder, crashed)
    await playback.server.stop()


@pytest.mark.parametrize("policy", ["safe-draw", "kl-ucb-br"])
@pytest.mark.parametrize("window_seconds", [10.0, 1800.0], ids=["most pages closed", "pages of half an hour open"])
def test_ready_soon_after_a_crash_and_replayed_quickly(
    tmp_path: Path, policy: str, window_seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    service = ServiceProcess(tmp_path, policy=policy, log_level="warning")
    asyncio.run(filled_and_crashed(tmp_path / "filled", service.store, policy, window_seconds))
    began, used = time.perf_counter(), time.process_time()
    check_replay(service)
    assert f"folded {IMPRESSIONS} pages of {CONTEXTS} contexts" in capsys.readouterr().out
    replayed, replay_used = time.perf_counter() - began, time.process_time() - used
    with service:
        size = sum(file.stat().st_size for file in service.store.iterdir()) / 1e6
        contexts = service.read("/v1/contexts")["contexts"]
        print(
            f"{policy}, {IMPRESSIONS} impressions ({size:.0f} MB): "
            f"ready after {service.ready_seconds:.1f} s (processor: "
            f"{service.ready_processor_seconds:.1f} s), replayed in {replayed:.1f} s (processor: {replay_used:.1f} s), "
            f"{service.usage().resident_mb:.0f} MB of memory"
        )
        assert service.stop() == 0
    assert len(contexts) == CONTEXTS
    assert service.ready_processor_seconds < LONGEST_START
    assert replay_used < LONGEST_REPLAY
