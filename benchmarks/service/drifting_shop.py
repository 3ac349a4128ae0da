"""A shop of 500 queries on the server: clicks per page relative to production's, before and after a drift.

    python benchmarks/service/drifting_shop.py [--runs defaults,second-edition,endless] [--seeds 0,1,2]
        [--pages 108000] [--queries 500] [--items 200] [--out build/drifting-shop.json]

Traffic is Zipf over the queries. Every visitor is new. Visitors look at a page as a position-based model says, report
up to a quarter of an hour later, and one in ten has an ad blocker: their clicks never arrive. Items come and go (one of
the query's items at every 200th visit). Production is trained once a week: it ranks by the truth with noise, and a
tenth of the noise is new. Half-way, in the middle of an epoch of certificates, the true order of every query turns
round. Production knows that at once (or --notice days later): the service has to unlearn what production never knew.
The clocks of the server and of its store are turned by the benchmark; there is no HTTP. Pages are closed every six
hours instead of all the time: that makes learning a little later, and the benchmark quicker.

The runs of a seed are paired: the same visits to the same queries with the same items and the same rankings of
production, and the same dice for clicks. Only pages differ. A run is a choice of settings, see RUNS.

Printed for every run, for the queries with most traffic (head), for the others (tail) and for all: expected clicks of
all pages, those in the holdout included, relative to production's pages for the same calls, in the last lifetime
before the drift and in each lifetime after it. Lifetimes are those of --lifetime, also for certificates that never end.
Besides, over all queries:

    violations   pages with more wrong pairs than production's page and the allowance floor(L - K/2), by the truth of
                 the moment: before the drift / in each lifetime after it
    above        head queries that are served more clicks than production's in the last lifetime
    frozen       queries with at least 100 pages in the last lifetime, none of which differs from the leader:
                 such pages compare nothing
    stopped      stops of the guardrail; a stop of everything is one

--out keeps the numbers by day; drifting_shop_figure.py draws them and writes the table.
"""

import argparse
import asyncio
import heapq
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from drifting_world import EXAMINATION, RANKED, K, Query

from saferank.service import limits
from saferank.service.protocol import closer
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankAnswer, RankCall
from saferank.store.embedded.store import SqliteStore

MINUTE, DAY = 60_000, 86_400_000
BLOCKED, TURNOVER = 0.1, 0.005
LATEST_REPORT = 15 * MINUTE
TENDED, CLOSED = 10 * MINUTE, 360 * MINUTE
TRAINED_DAYS = 7
FEW_PAGES = 100
NEVER = 10**15
RUNS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "second-edition": {"trust": 0.5, "holdout_share": 0, "guardrail_drop": 0},
    "endless": {"certificate_days": 0},
}
"""By name of a run: settings that differ from the service's defaults. Version 0.2.0 had neither trust nor holdout."""
COLUMNS = ("pages", "production", "served", "best", "violations")


class Shop:
    """The visitors of one run."""

    def __init__(self, folder: Path, run: str, seed: int, options: argparse.Namespace) -> None:
        self.options, self.dice = options, random.Random(seed)
        self.now = self.began = self.tended = self.closed = 1_800_000_000_000
        limits.MAX_PENDING = 10**9  # time passes as quickly as pages are made
        settings = Settings(store=str(folder), freshness_seconds=3600, log_level="error", **RUNS[run])
        self.server = Server(settings, SqliteStore(folder, clock=lambda: self.now), self, name="alone")
        seeds = random.Random(f"queries of {seed}")
        self.queries = [Query(f"q{n}", random.Random(seeds.random()), options.items) for n in range(options.queries)]
        self.weights = [1 / (rank + 1) for rank in range(options.queries)]
        self.days: dict[tuple[int, int], list[float]] = {}  # by query and day: see COLUMNS
        self.comparing: Counter[int] = Counter()  # by query: pages of the last lifetime that differ from the leader
        self.late: list[tuple[int, int, FeedbackCall]] = []
        self.lost = 0  # reports that the service did not accept
        self.cost = 0.0  # processor seconds of the service, everything that is done for a page

    # --- the server's clock ---

    def monotonic(self) -> float:
        """Seconds, for the server."""
        return self.now / 1000

    def wall(self) -> float:
        """The same: no clock jumps here."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """The server's loops are driven by ``tend``. The writer's must not spin while the store works."""
        await asyncio.sleep(min(seconds, 0.001))

    # --- time passes ---

    @property
    def day(self) -> int:
        """Days since the beginning."""
        return (self.now - self.began) // DAY

    async def run(self, progress: bool) -> None:
        """All visits."""
        await self.server.start(loops=False)
        writing = asyncio.create_task(self.server.writer.run())
        pages, span = self.options.pages, self.options.span
        for number in range(pages):
            before, self.now = self.day, self.began + number * span * DAY // pages
            if self.day > before:
                self.begin_day()
                if progress:
                    print(f"\rday {self.day} of {span} ", end="", file=sys.stderr, flush=True)
            await self.tend()
            (query,) = self.dice.choices(range(len(self.queries)), self.weights)
            await self.visit(number, query)
        writing.cancel()
        await self.server.stop()

    def begin_day(self) -> None:
        """The truth drifts half-way; production is trained once a week, and when it notices."""
        drift = self.options.span // 2
        noticed = drift + self.options.notice
        if self.day == drift:
            for query in self.queries:
                query.reverse()
        unaware = drift <= self.day < noticed
        if (self.day % TRAINED_DAYS == 0 and not unaware) or self.day == noticed:
            for query in self.queries:
                query.train()

    async def tend(self) -> None:
        """What a running server does all the time: write, renew its leases, close what is due."""
        if self.now - self.tended < TENDED:
            return
        self.tended, began = self.now, time.process_time()
        reports = []
        while self.late and self.late[0][0] <= self.now:
            reports.append(heapq.heappop(self.late)[2])
        for first in range(0, len(reports), 1000):
            answers = await self.server.feedback("default", reports[first : first + 1000])
            self.lost += sum(not getattr(answer, "accepted", False) for answer in answers)
        await self.server.writer.flush()
        await self.server.heartbeat.attempt()
        if self.now - self.closed >= CLOSED:
            self.closed = self.now
            await self.server.closer.close_due()
        self.cost += time.process_time() - began

    # --- visitors ---

    async def visit(self, number: int, which: int) -> None:
        """One page, and its clicks."""
        query = self.queries[which]
        if self.dice.random() < TURNOVER:
            query.turn_over()
        base, candidates = query.ranking[:RANKED], query.ranking[RANKED:]
        call = RankCall(context=query.name, base_ranking=base, candidates=candidates, k=K, session_id=str(number))
        began = time.process_time()
        page = await self.server.rank("default", call)
        self.cost += time.process_time() - began
        self.note(which, page)
        looks = zip(EXAMINATION, page.ranking, strict=True)
        clicked = [item for seen, item in looks if self.dice.random() < seen * query.appeal[item]]
        reported, due = self.dice.random() > BLOCKED, self.now + self.dice.randrange(LATEST_REPORT)
        if reported and clicked:  # dice are thrown all the same, so that the next visitor has the same ones
            heapq.heappush(self.late, (due, number, FeedbackCall(token=page.token, clicks=clicked)))

    def note(self, which: int, page: RankAnswer) -> None:
        """Count a page."""
        query, row = self.queries[which], self.days.setdefault((which, self.day), [0.0] * len(COLUMNS))
        production, served = query.clicks(query.ranking[:K]), query.clicks(page.ranking)
        counted = (1, production, served, query.best_clicks(), query.is_violated_by(page.ranking))
        for column, value in enumerate(counted):
            row[column] += value
        if self.day >= self.options.span - self.options.lifetime:
            self.comparing[which] += bool(page.safety.swaps or page.safety.explored)

    # --- what came out ---

    def total(self, column: str, queries: range, first: int, end: int) -> float:
        """A column of these queries and days."""
        at = COLUMNS.index(column)
        return sum(row[at] for (query, day), row in self.days.items() if query in queries and first <= day < end)

    def gain(self, queries: range, first: int, end: int, column: str = "served") -> float:
        """Clicks beyond those of production's pages, relative to them."""
        production = self.total("production", queries, first, end)
        return self.total(column, queries, first, end) / production - 1 if production else 0.0

    def stretches(self) -> list[tuple[int, int]]:
        """The last lifetime before the drift, and those after it; the last one may be shorter."""
        drift, lifetime, span = self.options.span // 2, self.options.lifetime, self.options.span
        after = [(first, min(first + lifetime, span)) for first in range(drift, span, lifetime)]
        return [(max(0, drift - lifetime), drift), *after]

    def summary(self) -> dict[str, Any]:
        """All figures."""
        head, everything = self.options.head, range(self.options.queries)
        groups = {"head": range(head), "tail": range(head, len(everything)), "all": everything}
        last, span, made = self.options.span - self.options.lifetime, self.options.span, self.server.closer
        busy = [q for q in everything if self.total("pages", range(q, q + 1), last, span) >= FEW_PAGES]
        stretches = self.stretches()
        before = [(0, self.options.span // 2), *stretches[1:]]
        return {
            "gains": {name: [self.gain(queries, *days) for days in stretches] for name, queries in groups.items()},
            "best": [self.gain(everything, *days, column="best") for days in stretches],
            "violations": [int(self.total("violations", everything, *days)) for days in before],
            "above": sum(self.gain(range(query, query + 1), last, span) > 0 for query in groups["head"]),
            "frozen": sum(self.comparing[query] == 0 for query in busy),
            "busy": len(busy),
            "stopped": self.server.guard.stops,
            "versions": made.versions,
            "alarms": made.alarms,
            "not_accepted": self.lost,
            "microseconds": round(1e6 * self.cost / self.options.pages),
        }


def lines(name: str, seed: int, summary: dict[str, Any], head: int) -> str:
    """A run for people."""
    rows = [f"{name}, seed {seed}"]
    for group, gains in [*summary["gains"].items(), ("best page", summary["best"])]:
        before, *after = (f"{gain:+7.1%}" for gain in gains)
        rows.append(f"  {group:10} before {before}   after {' '.join(after)}")
    before, *after = summary["violations"]
    rows.append(
        f"  violations {before} before, {' '.join(map(str, after))} after; above {summary['above']} of {head};"
        f" frozen {summary['frozen']} of {summary['busy']}; stopped {summary['stopped']};"
        f" versions {summary['versions']}; alarms {summary['alarms']};"
        f" not accepted {summary['not_accepted']}; {summary['microseconds']} us of CPU time a page"
    )
    return "\n".join(rows)


def play(run: str, seed: int, options: argparse.Namespace, progress: bool = False) -> Shop:
    """One run. Its store is in memory where that is possible: waiting for a disk is not what is measured."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        shop = Shop(Path(folder), run, seed, options)
        usual, closer.PUBLISH_MS = closer.PUBLISH_MS, NEVER  # no other server needs what changes no certificate
        try:
            asyncio.run(shop.run(progress))
        finally:
            closer.PUBLISH_MS = usual
    return shop


def parser() -> argparse.ArgumentParser:
    """The options of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="defaults,second-edition,endless", help=f"of {', '.join(RUNS)}")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--pages", type=int, default=108_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--head", type=int, default=10, help="number of queries with most traffic that are shown apart")
    parser.add_argument("--items", type=int, default=200, help="items of a query, 20 of which are the base ranking")
    parser.add_argument("--span", type=int, default=98, help="days that the visits take; the drift comes half-way")
    parser.add_argument("--lifetime", type=int, default=14, help="days of a column")
    parser.add_argument("--notice", type=int, default=0, help="days after which production notices the drift")
    parser.add_argument("--out", type=Path, help="a JSON file that gets the numbers by query and day")
    return parser


def main() -> None:
    """Run every combination."""
    options = parser().parse_args()
    runs = []
    for seed in map(int, options.seeds.split(",")):
        for run in options.runs.split(","):
            shop = play(run, seed, options, progress=sys.stderr.isatty())
            summary = shop.summary()
            print(lines(run, seed, summary, options.head), flush=True)
            by_day = [[query, day, *row] for (query, day), row in shop.days.items()]
            runs.append({"run": run, "seed": seed, "summary": summary, "by_day": by_day})
            if options.out:  # after every run: what is there is not lost when a later one is interrupted
                options.out.parent.mkdir(parents=True, exist_ok=True)
                facts = {key: str(value) for key, value in vars(options).items()}
                options.out.write_text(json.dumps({"options": facts, "columns": COLUMNS, "runs": runs}))


if __name__ == "__main__":
    main()
