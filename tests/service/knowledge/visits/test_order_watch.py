"""The watch on the orders of clicked pages: honest users raise no alarm, callers that choose their page do."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.visits import SHIFTS, OrderWatch, _settle
from saferank.store.page_record import PageRecord
from tests.service.knowledge.worlds import laid_out
from tests.store.laws import drawn_law

K, ITEMS = 5, "abcdefgh"
WEIGHTS = dict(zip(ITEMS, (4.0, 3.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5), strict=True))
APPEAL = dict(zip(ITEMS, (0.1, 0.6, 0.2, 0.5, 0.3, 0.3, 0.4, 0.1), strict=True))
EXAMINED = (0.95, 0.8, 0.6, 0.5, 0.3)
ALL = (1 << len(ITEMS)) - 1


def drawn(dice: random.Random) -> tuple[str, ...]:
    """A page by Plackett-Luce, then the hidden items."""
    left, row = dict(WEIGHTS), []
    while left:
        item = dice.choices(list(left), list(left.values()))[0]
        row.append(item)
        del left[item]
    return tuple(row)


Lesson = tuple[PageRecord, int]


def position_based(dice: random.Random, row: tuple[str, ...]) -> int:
    return sum((dice.random() < EXAMINED[place] * APPEAL[row[place]]) << place for place in range(K))


def cascade(dice: random.Random, row: tuple[str, ...]) -> int:
    return next((1 << place for place in range(K) if dice.random() < APPEAL[row[place]]), 0)


def lesson(dice: random.Random, row: tuple[str, ...], clicks: int) -> Lesson:
    exchanges = tuple(ALL & ~(1 << place) if place < K else 0 for place in range(len(row)))
    law = drawn_law(bytes(len(row)), bytes([len(row)] * len(row)), tuple(WEIGHTS[item] for item in row), exchanges)
    record = PageRecord(
        impression=dice.randbytes(16), tenant="t", context="c", policy="safe-draw", arm=0, knowledge=1,
        round=1, window_ms=1000, k=K, visitor=b"", catalogue=bytes(16), coins=bytes(32), row=row, law=law,
        base=tuple(ITEMS[:K]),
    )  # fmt: skip
    return record, clicks


KNOWN = Knowledge(Terms("safe-draw", "anytime:1e-5", 1000, 0, 0), K, list(ITEMS))


def looked_at(orders: OrderWatch, lessons: list[Lesson]) -> set[str]:
    won = set[str]()
    for begin in range(0, len(lessons), 500):
        part = laid_out(KNOWN, lessons[begin : begin + 500], orders)
        won |= {orders.names[slot] for slot in part.room.won[: part.rows].ravel().tolist() if slot >= 0}
    return won


Clicks = Callable[[random.Random, tuple[str, ...]], int]


def alarmed(seed: int, pages: int, click: Clicks, liked: str | None = None) -> set[str]:
    """Items that raise an alarm; with a liked one the caller calls twice and keeps the page on which it is higher."""
    dice, watch = random.Random(seed), OrderWatch()
    lessons: list[Lesson] = []
    while len(lessons) < pages:
        row = drawn(dice)
        if liked is not None:
            row = min(row, drawn(dice), key=lambda one: one.index(liked))
        clicks = click(dice, row)
        if clicks:
            lessons.append(lesson(dice, row, clicks))
    return looked_at(watch, lessons)


@pytest.mark.parametrize("click", [position_based, cascade])
@pytest.mark.parametrize("seed", range(6))
def test_honest_reports_raise_no_alarm(click: Clicks, seed: int) -> None:
    """Although good items on top are clicked more often. Wrong with probability 1e-6 for each of the 12."""
    assert alarmed(seed, 3000, click) == set()


@pytest.mark.parametrize("click", [position_based, cascade])
@pytest.mark.parametrize("liked", ["b", "f"])
def test_a_caller_that_calls_twice_and_keeps_the_page_it_likes_is_found(click: Clicks, liked: str) -> None:
    assert liked in alarmed(1, 6000, click, liked)


def test_the_chance_of_an_order_is_that_of_the_draw() -> None:
    """Of the pages with the same items elsewhere."""
    dice = random.Random(2)
    row = drawn(dice)
    page = laid_out(KNOWN, [lesson(dice, row, 1)]).room.workspace.impression

    def chance(page: list[str]) -> float:
        product, left = 1.0, sum(WEIGHTS.values())
        for item in page[:K]:
            product *= WEIGHTS[item] / left
            left -= WEIGHTS[item]
        return product

    for upper, lower in ((1, 3), (2, 6)):
        other = list(row)
        other[upper], other[lower] = other[lower], other[upper]
        here, there = chance(list(row)), chance(other)
        assert odds_of_exchange(page, K, (upper, lower), has_target(page)) == pytest.approx(here / (here + there))


def test_a_bet_pays_what_a_martingale_may() -> None:
    """In the mean over the chance of the order a bet of either item stays what it is."""
    for chance in (0.01, 0.3, 0.5, 0.9):
        bets = np.zeros((4, len(SHIFTS)))
        pages = ((True, chance), (False, chance), (False, 1 - chance), (True, 1 - chance))
        for row, (is_upper, here) in zip(bets, pages, strict=True):
            assert not _settle(row, is_upper, here)
        one, other, one_below, other_above = np.exp(bets)
        assert chance * one + (1 - chance) * one_below == pytest.approx(np.ones(len(SHIFTS)))
        assert chance * other + (1 - chance) * other_above == pytest.approx(np.ones(len(SHIFTS)))


def test_a_page_is_looked_at_below_its_first_click_only() -> None:
    dice, watch = random.Random(3), OrderWatch()
    looked_at(watch, [lesson(dice, drawn(dice), 1 << (K - 1)) for _ in range(50)])
    assert watch.bets == {}
