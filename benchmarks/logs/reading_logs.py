"""How fast click logs are read, and in how much memory.

    python benchmarks/logs/reading_logs.py [--size MB] [--queries 100] [--distinct 20000000]

Writes a synthetic plain log of that size to a temporary folder, counts it (one pass, as `saferank logs summary` does),
reads the pages of its most frequent queries (two passes, as `saferank fit` does), and fills a table with as many
different queries as the full Kaggle log has.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from saferank._kernel import kernel
from saferank.logs import read_log, summarize_log, write_synthetic_log
from saferank.logs.formats.fields import Ids
from saferank.logs.synthetic.writing import planted_instances
from saferank.logs.tables.hashed_rows import HashedRows, add_row, heaviest, new_rows, with_room

FORMAT = "yandex-personalized"
BYTES_OF_A_SESSION = 334
STEP = 1 << 12


def timed(what: str, megabytes: float, work: Callable[[], object]) -> float:
    """MB a second of ``work``; prints it, and the peak memory of the process so far."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:42s} {seconds:8.2f} s {megabytes / seconds:8.0f} MB/s   peak so far {peak:6.0f} MB")
    return megabytes / seconds


@kernel
def add_all(table: HashedRows, keys: Ids, row: Ids) -> None:
    """Count every key once."""
    for number in range(len(keys)):
        row[0] = keys[number]
        add_row(table, row, 1)


def fill_table(n: int) -> None:
    """Count ``n`` different queries, growing as the first pass does, and select the most frequent ones."""
    table, row = new_rows(1, np.uint64), np.zeros(1, np.uint64)
    for first in range(0, n, STEP):
        table = with_room(table, STEP)
        add_all(table, np.arange(first, min(n, first + STEP), dtype=np.uint64) * np.uint64(2_654_435_761), row)
    heaviest(table, 100)


def measured(size: int = 300, queries: int = 100) -> dict[str, float]:
    """MB a second of writing, counting and reading a log of ``size`` MB, each the fastest of its laps."""
    with tempfile.TemporaryDirectory() as folder:
        small, log = Path(folder) / "small", Path(folder) / "log"
        instances = planted_instances(queries, "pbm")
        write_synthetic_log(small, instances, 100)  # compile, or load from the cache
        read_log(small, FORMAT)
        sessions = size * 10**6 // BYTES_OF_A_SESSION
        found = {"write": timed("write", size, lambda: write_synthetic_log(log, instances, sessions))}
        megabytes = log.stat().st_size / 1e6
        found["megabytes"] = megabytes
        found["count"] = max(timed("count (one pass)", megabytes, lambda: summarize_log(log, FORMAT)) for _ in range(3))
        found["read"] = timed("read (two passes)", megabytes, lambda: read_log(log, FORMAT, queries=queries))
    return found


def main() -> None:
    """Write, count, read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300, help="MB")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--distinct", type=int, default=20_000_000)
    options = parser.parse_args()
    measured(options.size, options.queries)
    timed(f"count {options.distinct:,} different queries", 0.0, lambda: fill_table(options.distinct))


if __name__ == "__main__":
    main()
