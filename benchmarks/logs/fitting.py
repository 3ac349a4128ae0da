"""Estimation of every click model: seconds for 50 iterations on 40,000 pages, and for the standard errors.

    python benchmarks/logs/fitting.py [--pages 40000] [--iterations 50]

The pages are clicked by PBM users of 100 queries; rankings are random, so that nearly all pages are distinct and
weights save nothing. Each figure is the fastest of three laps after the kernels were compiled or loaded.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from saferank.fitting import ESTIMATORS
from saferank.fitting.bootstrap import REPLICATES, standard_errors
from saferank.logs.records import ClickLog, DistinctPages, LogSummary

QUERIES, ITEMS, POSITIONS, LAPS = 100, 20, 10, 3


def random_log(n_pages: int) -> ClickLog:
    """Random rankings of every query's items, clicked by position and attraction."""
    random = np.random.default_rng(0)
    query = random.integers(0, QUERIES, n_pages)
    shown = random.permuted(np.tile(np.arange(ITEMS), (n_pages, 1)), axis=1)[:, :POSITIONS]
    items = np.ascontiguousarray(query[:, None] * ITEMS + shown)
    attraction = random.beta(1, 3, QUERIES * ITEMS)
    clicks = random.random(items.shape) < attraction[items] / np.arange(1, POSITIONS + 1) ** 0.5
    pages = DistinctPages(query, items, clicks.astype(np.uint8), np.ones(n_pages, np.int64))
    pairs = tuple((pair // ITEMS, str(pair)) for pair in range(QUERIES * ITEMS))
    nothing = LogSummary("random", "sessions", 0, None, 0, 0, 0, 0, (), (), 0, 0, 0, ())
    return ClickLog(pages, tuple(map(str, range(QUERIES))), pairs, (None,) * QUERIES, nothing)


def seconds(work: Callable[[], object], laps: int = LAPS) -> float:
    """The fastest of some laps."""
    took = []
    for _ in range(laps):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def main() -> None:
    """Print a row for every model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--iterations", type=int, default=50)
    options = parser.parse_args()
    log, few = random_log(options.pages), random_log(10)
    print(f"{options.pages:,} pages, {options.iterations} iterations, {REPLICATES} replicates for the errors")
    print(f"{'model':6s} {'start-up s':>10s} {'fit s':>8s} {'errors s':>9s}")
    for name, fit in ESTIMATORS.items():
        start_up = seconds(partial(fit, few, 2), laps=1)
        alone = seconds(partial(fit, log, options.iterations))
        fitted = fit(log, options.iterations)
        errors = seconds(partial(standard_errors, fit, log, fitted, options.iterations), laps=1)
        print(f"{name:6s} {start_up:10.2f} {alone:8.3f} {errors:9.2f}")


if __name__ == "__main__":
    main()
