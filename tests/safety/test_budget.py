"""The price of a page, and the bound that it stands for."""

import itertools

import numpy as np
import pytest

from saferank.safety import Budget, Price, price_of_page, whole_allowance, wrong_pairs


def test_the_allowance_in_whole_pairs() -> None:
    assert [whole_allowance(10, k) for k in (1, 2, 5, 10)] == [9, 9, 7, 5]
    assert whole_allowance(1, 1) == 0


@pytest.mark.parametrize(
    ("blocks", "challenger", "price"),
    [
        (["a", "b", "c"], None, Price(0, 0)),
        (["ab", "c"], None, Price(0, 1)),
        (["cba"], None, Price(0, 3)),
        (["a", "b", "cx"], "x", Price(3, 0)),
        (["a", "b", "c", "x"], "x", Price(0, 0)),
        (["xcba"], "x", Price(3, 5)),
        (["ba", "xc"], "x", Price(3, 1)),
    ],
)
def test_prices_by_hand(blocks: list[str], challenger: str | None, price: Price) -> None:
    assert price_of_page("abc", blocks, challenger, n_items=6) == price


@pytest.mark.parametrize(
    ("blocks", "challenger", "n_items", "message"),
    [
        (["ac", "b"], None, 6, "is no block of"),
        (["ab"], None, 6, r"the blocks end before \['c'\]"),
        (["ab", "cx"], None, 6, "is no block of"),
        (["ab", "c", ""], None, 6, "is no block of"),
        (["aab", "c"], None, 6, "is no block of"),
        (["ab", "cb"], "b", 6, "are not different items"),
        (["ab", "cx"], "x", 3, "of a catalogue of 3"),
    ],
)
def test_a_page_of_another_form_has_no_price(
    blocks: list[str], challenger: str | None, n_items: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        price_of_page("abc", blocks, challenger, n_items)


def test_no_shuffle_and_no_truth_adds_more_than_the_price_and_some_add_all_of_it() -> None:
    """Leader 0 1 2, challenger 3, another unranked item 4: every cut into blocks, shuffle and strict order of items."""
    leader = np.arange(3, dtype=np.uint32)
    for cuts in itertools.product([False, True], repeat=3):
        ends = [place + 1 for place in range(3) if cuts[place]] + [4]
        blocks = [[*range(start, end)] for start, end in zip([0, *ends], ends, strict=False)]
        price, most = price_of_page([0, 1, 2], blocks, 3, 5).total, 0
        for grades in itertools.permutations(range(5)):
            grade = np.array(grades)
            for shuffled in itertools.product(*map(itertools.permutations, blocks)):
                page = np.array([*itertools.chain(*shuffled)][:3], np.uint32)
                most = max(most, wrong_pairs(grade, page) - wrong_pairs(grade, leader))
        assert most == price


def test_a_budget_in_words() -> None:
    budget = Budget(allowance=7, income=2, price=Price(5, 4))
    assert (budget.total, budget.covered) == (9, True)
    assert not Budget(allowance=7, income=1, price=Price(5, 4)).covered
    assert str(budget) == (
        "9 possibly wrong pairs a page: allowance 7, 2 certified swaps; this page spends 9: 5 on the challenger, "
        "4 on pairs in blocks"
    )
