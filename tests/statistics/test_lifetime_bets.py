"""Tables of bets grow when items come: every pair keeps what it has, to the last bit, and the rest stays 0."""

from typing import Any

import numpy as np
import pytest

from saferank.statistics.lifetime_bets import LifetimeBets, new_lifetime_bets, with_more_pairs


def _tables(bets: LifetimeBets) -> list[Any]:
    return [*bets.book, bets.current, bets.previous, bets.surge]


@pytest.mark.parametrize("n_items", [1, 3, 40])
@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_every_pair_keeps_its_numbers(n_items: int, share: float) -> None:
    random, more = np.random.default_rng(n_items), n_items + 5
    bets = new_lifetime_bets(n_items, 1000)
    for table in _tables(bets):
        rows = np.flatnonzero(random.random(len(table)) < share)
        table[rows] = random.integers(1, 9, table[rows].shape)
    larger = with_more_pairs(bets, more)
    for old, new in zip(_tables(bets), _tables(larger), strict=True):
        pairs = new.reshape(more, more, *new.shape[1:])
        assert np.array_equal(pairs[:n_items, :n_items].reshape(old.shape), old)
        assert np.count_nonzero(new) == np.count_nonzero(old)


def test_a_number_that_equals_0_and_is_another_one_is_kept() -> None:
    bets = new_lifetime_bets(40, 1000)
    bets.previous[41, 1, 7] = -0.0
    assert np.signbit(with_more_pairs(bets, 41).previous[42, 1, 7])
