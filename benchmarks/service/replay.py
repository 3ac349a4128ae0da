"""A store of a million impressions: its size, a start from snapshots and tail, and a replay from the beginning.

    python benchmarks/service/replay.py [--pages 1000000] [--contexts 20] [--clicked 0.5]

Pages are issued by the server itself with a clock that runs ahead, without HTTP and without waiting for the disk.
"""

import argparse
import asyncio
import functools
import random
import resource
import tempfile
import time
from pathlib import Path

from saferank.service import limits
from saferank.service.calls.replay import verify
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankCall
from saferank.store.embedded.store import SqliteStore

K, ITEMS = 10, 30


class Traffic:
    """Visitors who click whatever they see, over contexts that take turns: all items are equal."""

    def __init__(self, folder: Path, contexts: int, clicked: float, window_seconds: float) -> None:
        self.now = 1_800_000_000_000
        self.dice = random.Random(0)
        self.contexts, self.clicked = contexts, clicked
        self.items = [f"item-{number}" for number in range(ITEMS)]
        limits.MAX_PENDING = 10**9  # time passes as quickly as pages are made
        settings = Settings(store=str(folder), window_seconds=window_seconds, freshness_seconds=3600)
        self.server = Server(settings, SqliteStore(folder, clock=lambda: self.now), self, name="alone")
        self._reports: list[FeedbackCall] = []

    def monotonic(self) -> float:
        """The server's clock."""
        return self.now / 1000

    def wall(self) -> float:
        """The same: no clock jumps here."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Time passes with the pages."""
        await asyncio.sleep(0)

    async def visit(self, number: int) -> None:
        """One page, and with some probability its clicks."""
        self.now += 1
        call = RankCall(
            context=f"context {number % self.contexts}", base_ranking=self.items[:K], candidates=self.items[K:], k=K,
            session_id=f"session {number}",
        )  # fmt: skip
        page = await self.server.rank("default", call)
        if self.dice.random() < self.clicked:
            clicks = [self.dice.choice(page.ranking)]
            self._reports.append(FeedbackCall(token=page.token, clicks=clicks, event_id=f"event {number}"))
        if number % 500 == 0:
            await self.write()

    async def write(self) -> None:
        """Report the clicks so far, write the pages, close what is due."""
        reports, self._reports = self._reports, []
        if reports:
            answer = asyncio.create_task(self.server.feedback("default", reports))
            await asyncio.sleep(0)
            await self.server.writer.flush()
            await answer
        await self.server.writer.flush()
        await self.server.closer.close_due()


async def fill(traffic: Traffic, pages: int) -> None:
    """Write the store, and leave it as a crash would: the newest publications are old."""
    await traffic.server.start(loops=False)
    start = time.perf_counter()
    for number in range(pages):
        await traffic.visit(number)
        if number % 100_000 == 99_999:
            print(f"  {number + 1} pages, {(time.perf_counter() - start) / (number + 1) * 1e6:.0f} us each", flush=True)
    await traffic.write()
    await traffic.server.store.close()


async def restart(traffic: Traffic, pages: int) -> float:
    """Seconds of processor time until the server is ready again."""
    traffic.now += pages
    began = time.process_time()
    await traffic.server.start(loops=False)
    took = time.process_time() - began
    await traffic.server.stop()
    return took


def measured(pages: int, contexts: int = 20, clicked: float = 0.5, window: float = 60.0) -> dict[str, float]:
    """Fill, restart, replay. Seconds are processor time, which other work on the machine changes little."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traffic = functools.partial(Traffic, folder, contexts, clicked, window)
        asyncio.run(fill(traffic(), pages))
        found = {"pages": pages, "store_mb": sum(file.stat().st_size for file in folder.iterdir()) / 1e6}
        found["start_after_a_crash_s"] = asyncio.run(restart(traffic(), pages))
        found["start_after_a_stop_s"] = asyncio.run(restart(traffic(), pages))
        began = time.process_time()
        report = asyncio.run(verify(SqliteStore(folder, readonly=True)))
        found["replay_s"] = time.process_time() - began
        print("\n".join(report.sentences()))
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--contexts", type=int, default=20)
    parser.add_argument("--clicked", type=float, default=0.5)
    parser.add_argument("--window", type=float, default=60.0)
    options = parser.parse_args()
    for name, value in measured(options.pages, options.contexts, options.clicked, options.window).items():
        print(f"{name:24s} {value:12,.2f}")


if __name__ == "__main__":
    main()
