"""What the compiled pass over closed pages says of each is what its record says."""

import random

import numpy as np

from saferank.service.knowledge.arms import (
    ARMS,
    EXPLORE,
    HOLDOUT,
    LEARNING,
    PROVEN,
    REPEAT,
    UNCHANGED,
    Sums,
    counted_pages,
    takes_part,
)
from saferank.service.knowledge.visits import Visitors
from saferank.store.contract import PageRow
from saferank.store.page_record import OVER, PageRecord
from saferank.store.record_columns import ClosedPages
from tests.store.test_record_columns import RECORDS

START, WINDOW = 5_000_000, 1000


def traffic(dice: random.Random, size: int, at: int) -> list[tuple[PageRecord, int]]:
    """Records of all kinds, by few visitors, over a few windows."""
    found = list[tuple[PageRecord, int]]()
    for _ in range(size):
        at += dice.choice([0, 1, 90])
        record = dice.choice(RECORDS)
        record = record._replace(
            impression=at.to_bytes(6, "big") + dice.randbytes(10), window_ms=WINDOW, arm=dice.randrange(len(ARMS)),
            visitor=dice.choice([b"", b"visitor%d" % dice.randrange(5)]), share=dice.choice([0.0, 0.1]),
            used=dice.choice([0, 40, OVER]), is_leader=dice.random() < 0.5,
        )  # fmt: skip
        found.append((record, dice.randrange(1 << record.k)))
    return found


def change_of(record: PageRecord) -> int:
    if not record.base or record.chosen == record.base:
        return UNCHANGED
    return PROVEN if record.is_leader else LEARNING


def test_firsts_sums_and_columns_are_those_of_the_records() -> None:
    dice, visitors, seen = random.Random(3), Visitors(), set[tuple[int, bytes]]()
    sums = Sums(np.zeros((len(ARMS), 3), np.int64), np.zeros(4, np.int64))
    tallies, worst, checked, illegal, clicked = [[0, 0, 0] for _ in ARMS], 0, 0, 0, 0
    for at in range(START, START + 60_000, 3000):
        some, wanted = traffic(dice, 30, at), []
        pages = ClosedPages([PageRow(one.impression, 1, 0, one.packed(), clicks) for one, clicks in some])
        firsts = visitors.firsts(pages, START + 40)
        for (record, clicks), counts in zip(some, firsts.tolist(), strict=True):
            visit = record.issued_at // WINDOW, record.visitor
            part = takes_part(record.arm, record.share)
            assert counts == (part and record.issued_at > START + 40 and (not record.visitor or visit not in seen))
            seen |= {visit} if part and record.visitor and record.issued_at > START + 40 else set()
            tally, n = tallies[record.arm if counts or not part else REPEAT], clicks.bit_count()
            tally[:] = [tally[0] + 1, tally[1] + (n > 0), tally[2] + n]
            worst = max(worst, record.used) if record.arm == EXPLORE else worst
            checked, illegal, clicked = (
                checked + (record.arm == EXPLORE), illegal + (record.used == OVER), clicked + (n > 0),
            )  # fmt: skip
            if counts:
                arm = record.arm
                wanted.append((record.issued_at, arm != HOLDOUT, record.share, n, arm == EXPLORE, change_of(record)))
        columns = list(zip(*(column.tolist() for column in counted_pages(pages, firsts, sums)), strict=True))
        assert columns == wanted
    assert sums.tallies.tolist() == tallies
    assert sums.facts.tolist() == [worst, checked, illegal, clicked]
