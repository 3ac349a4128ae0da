"""Chances of the first place, against the law written out page by page."""

import itertools
import math

import pytest

from saferank.service.knowledge.propensities import first_place_chances
from saferank.store.page_record import NO_LAW, TARGET_BIT, Law, PageRecord
from tests.store.laws import drawn_law

EVERYTHING = PageRecord(
    impression=bytes(16), tenant="t", context="c", policy="p", arm=0, knowledge=1, round=1, window_ms=1, k=2,
    visitor=b"", catalogue=bytes(16), coins=bytes(32), row=("a", "b", "x", "y"),
)  # fmt: skip
WEIGHTS = {"a": 1.0, "b": 0.7, "x": 0.2, "y": 0.1}


def likelihood(page: tuple[str, ...]) -> float:
    """Plackett-Luce: item by item, among those that are left."""
    left, product = dict(WEIGHTS), 1.0
    for item in page:
        product *= left[item] / math.fsum(left.values())
        del left[item]
    return product


def drawn(exchanges: int) -> PageRecord:
    law = drawn_law(bytes(4), bytes([4] * 4), tuple(WEIGHTS.values()), (exchanges, 0, 0, 0))
    return EVERYTHING._replace(law=law)


@pytest.mark.parametrize("legal", list(itertools.product([False, True], repeat=3)))
def test_of_a_drawn_page_they_are_exact_given_its_class(legal: tuple[bool, ...]) -> None:
    row = list(EVERYTHING.row)
    pages: dict[int, tuple[str, ...]] = {0: ("a", "b")}
    for other, safe in enumerate(legal, 1):
        if safe:
            exchanged = row.copy()
            exchanged[0], exchanged[other] = row[other], row[0]
            pages[other] = tuple(exchanged[:2])
    total = math.fsum(likelihood(page) for page in pages.values())
    expected = [likelihood(pages[place]) / total if place in pages else 0.0 for place in range(4)]
    bits = sum(1 << other for other, safe in enumerate(legal, 1) if safe)
    assert first_place_chances(drawn(bits)) == pytest.approx(expected)


def test_of_a_page_that_renews_a_certificate_they_are_those_of_its_law() -> None:
    """After the draw the two items of the target, here b and x, are exchanged with probability .12."""

    def renewed(page: tuple[str, ...]) -> float:
        exchanged = tuple({"b": "x", "x": "b"}.get(item, item) for item in page)
        return 0.916 * likelihood(page) + 0.084 * likelihood(exchanged)

    marks = 1 << TARGET_BIT
    law = drawn_law(bytes(4), bytes([4] * 4), tuple(WEIGHTS.values()), (0b1110, marks, marks, 0))
    pages = [("a", "b"), ("b", "a"), ("x", "b"), ("y", "b")]
    total = math.fsum(map(renewed, pages))
    assert first_place_chances(EVERYTHING._replace(law=law)) == pytest.approx([renewed(page) / total for page in pages])


def test_another_group_cannot_be_first() -> None:
    law = drawn_law(bytes([0, 1, 0, 1]), bytes([3, 4, 3, 4]), (1.0, 5.0, 0.5, 5.0), (0b1110, 0, 0, 0))
    assert first_place_chances(EVERYTHING._replace(law=law)) == pytest.approx([2 / 3, 0, 1 / 3, 0])


def test_coins_are_fair_and_production_is_certain() -> None:
    pair = EVERYTHING._replace(row=("a", "b", "x"), law=Law(bytes([0, 0, 2]), bytes([2, 2, 3])))
    assert first_place_chances(pair) == [0.5, 0.5, 0.0]
    production = EVERYTHING._replace(row=(), instead=("b", "a"), law=NO_LAW)
    assert first_place_chances(production) == [1.0, 0.0]
