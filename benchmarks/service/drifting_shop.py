"""A shop of 500 queries on the engine: what visitors get relative to production's pages, before and after a drift.

    python benchmarks/service/drifting_shop.py [--policies safe-draw,safe-order,kl-ucb-br] [--days 0,7]
        [--pages 100000] [--items 200]

Traffic is Zipf over the queries. Production's rankings are noisy versions of the truth, and items come and go.
Visitors click as a position-based model says, report late, and one in ten has an ad blocker: their clicks never arrive.
Half-way the true order of every query is reversed, and production's ranking becomes a noisy version of the new truth a
quarter of the time later. The clocks of the engine and of its store are turned by the benchmark; there is no HTTP.

Printed for every policy and ``certificate_days``: expected clicks of the pages served relative to production's pages
for the same calls, by eighths of the time (the drift comes after the fourth), alarms, and versions before and after
the drift: a context that is frozen makes none.
"""

import argparse
import asyncio
import heapq
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from saferank.service.engine import Engine
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankCall
from saferank.store.embedded.store import SqliteStore

DAY = 86_400_000
K, QUERIES = 10, 500
EXAMINATION = [0.9**place for place in range(K)]
BLOCKED = 0.1
EIGHTHS = 8
TENDED_MS = 600_000


@dataclass
class Query:
    """The truth about one query, and what production makes of it."""

    name: str
    dice: random.Random
    items: int
    appeal: dict[str, float] = field(default_factory=dict)
    ranking: list[str] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        for _ in range(self.items):
            self.add()
        self.rank_again()

    def add(self) -> None:
        """One more item."""
        self.appeal[f"{self.name}-{self.made}"] = self.dice.uniform(0.02, 0.5)
        self.made += 1

    def rank_again(self) -> None:
        """Production learns the truth, with noise."""
        noisy = {item: appeal + self.dice.gauss(0, 0.15) for item, appeal in self.appeal.items()}
        self.ranking = sorted(noisy, key=lambda item: -noisy[item])

    def turn_over(self) -> None:
        """An item leaves and another comes; production puts it at the end."""
        gone = self.ranking.pop(self.dice.randrange(len(self.ranking)))
        del self.appeal[gone]
        self.add()
        self.ranking.append(list(self.appeal)[-1])

    def reverse(self) -> None:
        """The best item becomes the worst, and so on."""
        order = sorted(self.appeal, key=lambda item: self.appeal[item])
        self.appeal = dict(zip(order, sorted(self.appeal.values(), reverse=True), strict=True))

    def clicks(self, shown: list[str]) -> float:
        """Expected clicks of a page."""
        return sum(seen * self.appeal[item] for seen, item in zip(EXAMINATION, shown, strict=True))


class Shop:
    """The visitors of one run."""

    def __init__(self, folder: Path, policy: str, days: float, options: argparse.Namespace) -> None:
        self.now, self.options, self.dice = 1_800_000_000_000, options, random.Random(options.seed)
        settings = Settings(
            store=str(folder),
            policy=policy,
            rule="anytime:1e-5",
            certificate_days=days,
            max_pending=10**9,
            freshness_seconds=3600,
            log_level="error",
        )
        self.engine = Engine(settings, SqliteStore(folder, clock=lambda: self.now), self, name="alone")
        self.tended = self.now
        self.queries = [Query(f"q{number}", random.Random(number), options.items) for number in range(options.queries)]
        weights = [1 / (rank + 1) for rank in range(options.queries)]
        self.visited = self.dice.choices(self.queries, weights, k=options.pages)
        self.served, self.production = [0.0] * EIGHTHS, [0.0] * EIGHTHS
        self.late: list[tuple[int, int, FeedbackCall]] = []
        self.versions_before_drift = 0

    def monotonic(self) -> float:
        """Seconds, for the engine."""
        return self.now / 1000

    def wall(self) -> float:
        """The same: no clock jumps here."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """The engine's loops are driven by ``tend``. The writer's must not spin while the store works."""
        await asyncio.sleep(min(seconds, 0.001))

    async def tend(self) -> None:
        """What a running server does all the time: write, renew its leases, close what is due."""
        if self.now - self.tended >= TENDED_MS:
            self.tended = self.now
            await self.engine.flush()
            await self.engine.beat()
            await self.engine.server.closer.close_due()

    async def run(self) -> float:
        """All visits; returns the processor's microseconds of a page, with everything that is done for it."""
        await self.engine.start(loops=False)
        writing = asyncio.create_task(self.engine.server.writer.run())
        step, began = self.options.span * DAY // self.options.pages, time.process_time()
        for number, query in enumerate(self.visited):
            self.now += step
            eighth = number * EIGHTHS // self.options.pages
            if number * 2 == self.options.pages:
                self.versions_before_drift = self.engine.server.closer.versions
                for each in self.queries:
                    each.reverse()
            if number * 4 == 3 * self.options.pages:
                for each in self.queries:
                    each.rank_again()
            await self.visit(number, query, eighth)
        spent = time.process_time() - began
        writing.cancel()
        await self.engine.stop()
        pages: int = self.options.pages
        return 1e6 * spent / pages

    async def visit(self, number: int, query: Query, eighth: int) -> None:
        """One page, and its clicks, which are reported up to twenty minutes later."""
        if self.dice.random() < 0.005:
            query.turn_over()
        call = RankCall(
            context=query.name, base_ranking=query.ranking[: 2 * K], candidates=query.ranking[2 * K :], k=K,
            session_id=str(number),
        )  # fmt: skip
        await self.tend()
        page = await self.engine.rank("default", call)
        self.served[eighth] += query.clicks(page.ranking)
        self.production[eighth] += query.clicks(query.ranking[:K])
        clicked = [
            item
            for seen, item in zip(EXAMINATION, page.ranking, strict=True)
            if self.dice.random() < seen * query.appeal[item]
        ]
        if clicked and self.dice.random() > BLOCKED:
            due = self.now + self.dice.randrange(20 * 60_000)
            heapq.heappush(self.late, (due, number, FeedbackCall(token=page.token, clicks=clicked)))
        reports = []
        while self.late and self.late[0][0] <= self.now:
            reports.append(heapq.heappop(self.late)[2])
        if reports:
            await self.engine.feedback("default", reports[:1000])

    def shares(self) -> list[float]:
        """By eighth of the time: clicks of the pages served beyond those of production's pages, relative to them."""
        return [served / base - 1 for served, base in zip(self.served, self.production, strict=True)]

    def line(self) -> str:
        """What came out."""
        closer, before = self.engine.server.closer, self.versions_before_drift
        told = " ".join(f"{share:+7.2%}" for share in self.shares())
        return (
            f"{told}  alarms {closer.alarms}, versions {before} before the drift and {closer.versions - before} after"
        )


def main() -> None:
    """Run every combination."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="safe-draw,safe-order,kl-ucb-br")
    parser.add_argument("--days", default="0,7", help="values of certificate_days")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--items", type=int, default=200, help="items of a query, 20 of which are production's ranking")
    parser.add_argument("--span", type=int, default=56, help="days that the visits take")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for policy in options.policies.split(","):
        for days in map(float, options.days.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                shop = Shop(Path(folder), policy, days, options)
                spent = asyncio.run(shop.run())
                print(f"{policy:12} days {days:4g}: {shop.line()}, {spent:.0f} us a page", flush=True)


if __name__ == "__main__":
    main()
