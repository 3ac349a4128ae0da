"""A live ranker over 100,000 items: time per rank + feedback, size of the saved state, peak memory.

    python benchmarks/policies/large_catalogue.py [--items 100000] [--pages 20000]

Every page is answered at once by users who click by position and attraction.
"""

import argparse
import resource
import time

import numpy as np

from saferank import Ranker

RULES = {"kl-ucb-br": "paper:1e-5", "bubble-rank": "paper:1e-5", "safe-draw": "anytime:1e-5"}
"""The policies that take large catalogues, and their rules."""


def measure(policy: str, n_items: int, n_positions: int, pages: int) -> dict[str, float]:
    """Play ``pages`` pages and time each of them."""
    random = np.random.default_rng(0)
    attraction = random.beta(1, 6, n_items)
    candidates = range(n_positions, n_items)
    ranker = Ranker(policy, original=range(n_positions), candidates=candidates, rule=RULES[policy], seed=1)
    examination = 1 / np.arange(1, n_positions + 1) ** 0.5
    ranker.feedback(ranker.rank())  # compile, or load from the cache
    took = np.zeros(pages)
    for page_number in range(pages):
        start = time.perf_counter()
        page = ranker.rank()
        middle = time.perf_counter()
        shown = np.array(page.items, np.int64)
        hits = random.random(n_positions) < np.multiply(examination, attraction[shown])
        clicked = [item for item, hit in zip(page.items, hits, strict=True) if hit]
        again = time.perf_counter()
        ranker.feedback(page, clicked)
        took[page_number] = middle - start + time.perf_counter() - again
    start = time.perf_counter()
    saved = ranker.save()
    return {
        "mean_us": took.mean() * 1e6,
        "p99_us": np.quantile(took, 0.99) * 1e6,
        "max_us": took.max() * 1e6,
        "save_s": time.perf_counter() - start,
        "saved_mb": len(saved) / 1e6,
    }


def main() -> None:
    """Print a row for every policy that takes large catalogues, at K = 10 and 50."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--policies", default=",".join(RULES))
    options = parser.parse_args()
    print(f"{'policy':15s} {'K':>3s} {'mean us':>9s} {'p99 us':>9s} {'max us':>9s} {'save s':>7s} {'MB':>6s}")
    for policy in options.policies.split(","):
        for n_positions in (10, 50):
            row = measure(policy, options.items, n_positions, options.pages)
            print(
                f"{policy:15s} {n_positions:3d} {row['mean_us']:9.1f} {row['p99_us']:9.1f} {row['max_us']:9.1f} "
                f"{row['save_s']:7.2f} {row['saved_mb']:6.2f}"
            )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
