"""Weights of the stakes."""

import math

import numpy as np
import pytest

from saferank.statistics.bets import (
    EVEN_WEIGHTS,
    SLOT_WEIGHTS,
    STAKES,
    bet_table,
    claim_row,
    has_won,
    new_hashed_bets,
    row_of,
    settle_bet,
    with_more_rows,
)


@pytest.mark.parametrize("weights", [EVEN_WEIGHTS, SLOT_WEIGHTS])
@pytest.mark.parametrize("p0", [0.5, 0.25])
def test_a_pair_wins_when_the_weighted_mean_of_capital_reaches_one_over_alpha(
    weights: tuple[float, ...], p0: float
) -> None:
    table, bets = bet_table(1e-3, weights), new_hashed_bets(16)
    row, capital = claim_row(bets, 5, 2), np.ones(len(STAKES))
    for _ in range(40):
        settle_bet(table, bets.book, row, 1, p0)
        capital *= [math.exp(eta) / (1 + p0 * math.expm1(eta)) for eta in STAKES]
        assert has_won(table, bets.book, row, 1) == (float(capital @ weights) >= 1e3)
    assert has_won(table, bets.book, row, 1)
    assert not has_won(table, bets.book, row, 0)


def test_weights_that_are_no_mean_are_refused() -> None:
    for weights in [(1.0,), (0.5,) * 8, (2.0, -1.0, *(0.0,) * 6)]:
        with pytest.raises(ValueError, match="weights of the stakes"):
            bet_table(1e-3, weights)


def test_a_larger_table_holds_the_same_bets() -> None:
    table, bets = bet_table(1e-2), new_hashed_bets(16)
    for i, j in [(1, 2), (3, 1), (7, 9)]:
        settle_bet(table, bets.book, claim_row(bets, i, j), int(i > j), 0.3)
    bigger = with_more_rows(bets)
    assert (len(bigger.low), int(bigger.used[0])) == (32, 3)
    for i, j in [(1, 2), (3, 1), (7, 9), (4, 5)]:
        for old, new in zip(bets.book, bigger.book, strict=True):
            np.testing.assert_array_equal(old[row_of(bets, i, j)], new[row_of(bigger, i, j)])
