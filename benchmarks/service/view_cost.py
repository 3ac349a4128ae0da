"""Processor time of a page, and of what a call adds that was not made before: a view with its plan and its proofs.

    python benchmarks/service/view_cost.py [--policy safe-draw]

A context of 12 and of 40 items, k = 10, has learnt from pages until many of its pairs are certified. Then come calls
with base rankings that were never seen: items of the usual page are exchanged. Of ten rounds the fastest counts.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from machine import machine

from saferank.service.identifiers import new_id
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.view import View
from saferank.store.contract import PageRow
from saferank.store.page_record import PageRecord

K, SIZES = 10, (12, 40)
PAGES, LEARNT_AT_ONCE = 24_000, 800
CALLS, ROUNDS = 400, 10


def learnt(policy: str, items: list[str], dice: random.Random) -> Knowledge:
    """The knowledge of a context in which every other item is good, the lower the better."""
    fold = Fold.opened(1, Terms(policy, "anytime:1e-5", 1000, 0, 0), K, bytes(16), (items, []))
    appeal = {item: (0.8 if place % 2 else 0.08) * 0.98**place for place, item in enumerate(reversed(items))}
    for _ in range(PAGES // LEARNT_AT_ONCE):
        view, rows = View(fold.knowledge, items, (), K), list[PageRow]()
        for _ in range(LEARNT_AT_ONCE):
            page = view.page(dice.randbytes(32))
            chances = [appeal[item] * 0.95**place for place, item in enumerate(page.shown)]
            clicks = sum((dice.random() < chance) << place for place, chance in enumerate(chances))
            page = page._replace(impression=new_id(1, len(rows).to_bytes(10, "big")), policy=policy, window_ms=1000)
            rows.append(PageRow(page.impression, 1, 0, page.packed(), clicks))
        fold.fold(rows, 0)
    return fold.knowledge


def unusual(items: list[str], dice: random.Random) -> list[str]:
    """The usual ranking with three pairs of items on the page exchanged."""
    changed = list(items)
    for _ in range(3):
        one, other = dice.sample(range(K), 2)
        changed[one], changed[other] = changed[other], changed[one]
    return changed


def _microseconds(work: Sequence[Callable[[], object]]) -> float:
    rounds, size = [], len(work) // ROUNDS
    for number in range(ROUNDS):
        began = time.thread_time()
        for each in work[number * size : (number + 1) * size]:
            each()
        rounds.append(1e6 * (time.thread_time() - began) / size)
    return min(rounds)


def _page(knowledge: Knowledge, base: Sequence[str], coins: bytes) -> PageRecord:
    return View(knowledge, base, (), K).page(coins)


def measured(policy: str = "safe-draw") -> list[dict[str, float]]:
    """Microseconds by number of items."""
    found = []
    for n_items in SIZES:
        dice, items = random.Random(n_items), [f"item-{number}" for number in range(n_items)]
        knowledge = learnt(policy, items, dice)
        bases, coins = [unusual(items, dice) for _ in range(CALLS)], [dice.randbytes(32) for _ in range(CALLS)]
        usual = View(knowledge, items, (), K)
        page = _microseconds([partial(usual.page, each) for each in coins])
        first = _microseconds([partial(_page, knowledge, *call) for call in zip(bases, coins, strict=True)])
        found.append(
            {
                "items": n_items,
                "certificates": len(knowledge.certified.pairs),
                "page_us": page,
                "remade_us": first - page,
            }
        )
    return found


def main() -> None:
    """A line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="safe-draw")
    print(machine())
    for row in measured(parser.parse_args().policy):
        print(
            f"{row['items']:g} items, {row['certificates']:g} certificates: a page {row['page_us']:.0f} us, "
            f"a view that was never made {row['remade_us']:.0f} us more"
        )


if __name__ == "__main__":
    main()
