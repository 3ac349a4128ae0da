"""Wrong pairs and violations equal the transcription, and have the bounds that the document names."""

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.safety import allowance, judge_of, violates, whole_allowance, wrong_pairs
from saferank.verbs import Floats, Items
from tests.reference import safety as reference

ATTRACTIONS = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]), min_size=1, max_size=9)


def rows(items: list[int]) -> Items:
    return np.array(items, np.uint32)


def test_the_allowance_in_whole_pairs() -> None:
    assert [whole_allowance(10, k) for k in (1, 2, 5, 10)] == [9, 9, 7, 5]
    assert whole_allowance(1, 1) == 0


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[float], list[int], list[int]]:
    """Attractions with ties, an original ranking, and a page of the same length."""
    attraction = draw(ATTRACTIONS)
    n_positions = draw(st.integers(1, len(attraction)))
    original, shown = (draw(st.permutations(range(len(attraction))))[:n_positions] for _ in range(2))
    return attraction, original, shown


@given(cases())
@settings(max_examples=400, deadline=None)
def test_wrong_pairs_and_violations_equal_the_reference(case: tuple[list[float], list[int], list[int]]) -> None:
    attraction, original, shown = case
    judge = judge_of(np.array(attraction), rows(original))
    assert wrong_pairs(judge.grade, rows(shown)) == reference.wrong_pairs(shown, attraction)
    assert violates(judge, rows(shown)) == reference.violates(shown, original, attraction)


def falling(n_items: int) -> Floats:
    return np.linspace(0.9, 0.1, n_items)


def test_ten_items_on_five_positions_may_have_seven_wrong_pairs_more() -> None:
    judge, rng, extra = judge_of(falling(10), rows([2, 0, 1, 3, 4])), np.random.default_rng(0), set[int]()
    for _ in range(2000):
        shown = rng.permutation(10)[:5].astype(np.uint32)
        beyond = wrong_pairs(judge.grade, shown) - 2
        assert violates(judge, shown) == (beyond > 7)
        extra.add(beyond)
    assert {7, 8} <= extra


def test_the_allowance_is_a_real_number() -> None:
    assert allowance(10, 5) == 7.5
    assert allowance(10, 4) == 8
    assert allowance(1, 1) == 0.5


@pytest.mark.parametrize(("n_items", "n_positions"), [(1, 1), (4, 1), (5, 3), (6, 6), (7, 2)])
def test_the_largest_number_of_wrong_pairs(n_items: int, n_positions: int) -> None:
    judge = judge_of(falling(n_items), rows(list(range(n_positions))))
    pages = permutations(range(n_items), n_positions)
    counts = [wrong_pairs(judge.grade, rows(list(page))) for page in pages]
    assert min(counts) == 0
    assert max(counts) == comb(n_items, 2) - comb(n_items - n_positions, 2)


def test_equal_items_are_never_in_the_wrong_order() -> None:
    judge = judge_of(np.full(5, 0.3), rows([0, 1]))
    assert wrong_pairs(judge.grade, rows([4, 2])) == 0
