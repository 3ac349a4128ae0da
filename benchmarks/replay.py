"""A store of a million impressions: its size, a start from snapshots and tail, and a replay from the beginning.

    python benchmarks/replay.py [--pages 1000000] [--contexts 20] [--clicked 0.5]

Pages are issued by the engine itself with a clock that runs ahead, without HTTP and without waiting for the disk.
"""

import argparse
import asyncio
import random
import resource
import tempfile
import time
from pathlib import Path

from saferank.service.calls import FeedbackCall, RankCall
from saferank.service.engine import LOG_NAME, Engine
from saferank.service.replay import verify
from saferank.service.settings import Settings
from saferank.store.sqlite import ReadableStore

K, ITEMS = 10, 30


class Traffic:
    """Visitors who like later items better, over contexts that take turns."""

    def __init__(self, folder: Path, contexts: int, clicked: float, window_seconds: float) -> None:
        self.now = 1_800_000_000_000
        self.dice = random.Random(0)
        self.contexts, self.clicked = contexts, clicked
        self.items = [f"item-{number}" for number in range(ITEMS)]
        settings = Settings(store=folder, window_seconds=window_seconds, max_pending=10**9)
        self.engine = Engine(settings, folder / LOG_NAME, clock=lambda: self.now)

    async def visit(self, number: int) -> None:
        """One page, and with some probability its clicks."""
        self.now += 1
        call = RankCall(
            context=f"context {number % self.contexts}", base_ranking=self.items[:K], candidates=self.items[K:], k=K,
            session_id=f"session {number}",
        )  # fmt: skip
        page = self.engine.rank("default", call)
        if self.dice.random() < self.clicked:
            clicks = [self.dice.choice(page.ranking)]
            report = FeedbackCall(token=page.token, clicks=clicks, event_id=f"event {number}")
            self.engine._feedback._take("default", report, self.now)
        if number % 500 == 0:
            await self.engine._core.journal.until(self.engine._core.journal.seq)


async def fill(folder: Path, options: argparse.Namespace) -> None:
    """Write the store, and leave it as a crash would: the last snapshots are old."""
    traffic = Traffic(folder, options.contexts, options.clicked, options.window)
    await traffic.engine.start()
    start = time.perf_counter()
    for number in range(options.pages):
        await traffic.visit(number)
        if number % 100_000 == 99_999:
            print(f"  {number + 1} pages, {(time.perf_counter() - start) / (number + 1) * 1e6:.0f} us each")
    await traffic.engine._core.journal.until(traffic.engine._core.journal.seq)
    traffic.engine._release()


async def restart(folder: Path, options: argparse.Namespace, offset: int) -> float:
    """Seconds until the engine is ready again."""
    traffic = Traffic(folder, options.contexts, options.clicked, options.window)
    traffic.now += offset
    start = time.perf_counter()
    await traffic.engine.start()
    took = time.perf_counter() - start
    await traffic.engine.stop()
    return took


def main() -> None:
    """Fill, restart, replay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--contexts", type=int, default=20)
    parser.add_argument("--clicked", type=float, default=0.5)
    parser.add_argument("--window", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(fill(folder, options))
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        print(f"{options.pages} pages: {size:.0f} MB")
        print(f"start after a crash: {asyncio.run(restart(folder, options, options.pages)):.2f} s")
        print(f"start after a stop: {asyncio.run(restart(folder, options, options.pages)):.2f} s")
        start = time.perf_counter()
        report = verify(ReadableStore(folder / LOG_NAME))
        print(f"replay: {time.perf_counter() - start:.2f} s")
        print("\n".join(report.sentences()))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
