"""Bets with known odds: fair or worse under equality, at every odds, and certain to notice odds that are not true."""

import math

import numpy as np
import pytest

from saferank._kernel import kernel
from saferank.randomness import Words, stream, uniform
from saferank.statistics.bets import (
    N_STAKES,
    ODDS,
    STAKES,
    BetTable,
    Book,
    DenseBets,
    HashedBets,
    bet_table,
    claim_row,
    evidence,
    has_won,
    new_bets,
    new_dense_bets,
    new_hashed_bets,
    settle_bet,
    with_more_items,
    with_more_rows,
)
from saferank.statistics.duels import wins_of
from saferank.verbs import Floats, Ints


@pytest.mark.parametrize("p0", [1 / 2, 1 / 3, 0.001, 0.97, 0.123456, 511.5 / 1024])
def test_the_expected_capital_never_grows_for_either_item(p0: float) -> None:
    """One bet under equality: i stands at the clicked place with probability p0, j with 1 - p0. Exact, no chance."""
    table, mean = bet_table(0.05), np.zeros((2, N_STAKES))
    for side, chance, odds in ((0, p0, p0), (1, 1 - p0, 1 - p0)):
        bets = new_dense_bets(2)
        settle_bet(table, bets.book, claim_row(bets, 0, 1), side, odds)
        mean += chance * np.exp(bets.book.capital[1])
    assert np.all(mean <= 1 + 1e-12)
    assert np.all(mean > 0.99)  # rounding the odds costs little


@pytest.mark.parametrize("side", [0, 1])
def test_even_odds_are_not_rounded(side: int) -> None:
    bets = new_dense_bets(2)
    settle_bet(bet_table(0.05), bets.book, 1, side, 0.5)
    for g, eta in enumerate(STAKES):
        assert bets.book.capital[1, side, g] == pytest.approx(eta - math.log(0.5 + 0.5 * math.exp(eta)), abs=1e-15)
        assert bets.book.capital[1, 1 - side, g] == pytest.approx(-math.log(0.5 + 0.5 * math.exp(eta)), abs=1e-15)
    assert bets.book.lead[1] == (0.5 if side == 0 else -0.5)
    assert bets.book.information[1] == 0.25


def test_a_pair_that_wins_all_its_even_bets_is_certified_after_thirty() -> None:
    """The mean over the stakes of (2 e^eta / (1 + e^eta))^n reaches 1e5 at n = 24; one win fewer is not enough."""
    table, bets, needed = bet_table(1e-5), new_dense_bets(2), 0
    while not has_won(table, bets.book, 1, 0):
        settle_bet(table, bets.book, 1, 0, 0.5)
        needed += 1
    by_hand = next(n for n in range(1, 99) if sum((2 / (1 + math.exp(-eta))) ** n for eta in STAKES) / N_STAKES >= 1e5)
    assert needed == by_hand


def test_it_says_that_an_item_has_won_exactly_when_its_mean_capital_has() -> None:
    """The quick answer, by the largest of the eight, never misses one."""
    table, bets, rng, times = bet_table(0.01), new_dense_bets(2), np.random.default_rng(3), 0
    for _ in range(2000):
        side = int(rng.random() < 0.2)
        said = settle_bet(table, bets.book, 1, side, float(rng.uniform(0.3, 0.7)))
        assert said == (np.exp(bets.book.capital[1, side]).mean() >= 100.0) == has_won(table, bets.book, 1, side)
        times += said
        if said:
            bets = new_dense_bets(2)
    assert times > 10


@kernel
def _play(table: BetTable, book: Book, rng: Words, claimed: Floats, true: Floats, pages: int, won: Ints) -> None:
    """Equal items: i stands at the clicked place with the true odds; bets are made at the claimed ones."""
    for pair in range(len(won)):
        for g in range(N_STAKES):
            book.capital[1, 0, g] = book.capital[1, 1, g] = 0.0
        for page in range(pages):
            at = page % len(true)
            first = uniform(rng) < true[at]
            side = 0 if first else 1
            may = settle_bet(table, book, 1, side, claimed[at] if first else 1.0 - claimed[at])
            if may and has_won(table, book, 1, side):
                won[pair] = 1
                break


UNEVEN = np.array([0.5, 0.2, 0.8, 0.05, 0.35, 0.93])


def share_certified(alpha: float, claimed: Floats, true: Floats, pairs: int = 10_000, pages: int = 3000) -> float:
    won = np.zeros(pairs, np.int64)
    _play(bet_table(alpha), new_dense_bets(2).book, stream(5, "equal items"), claimed, true, pages, won)
    return float(won.mean())


@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-3])
def test_equal_items_are_certified_with_at_most_the_stated_probability(alpha: float) -> None:
    """At most alpha for either direction, so 2 alpha for a pair; the seed is fixed, so the verdict never changes.

    The true probability is about a third of the bound: at 10,000 pairs and alpha 1e-3 a share above 2e-3 would have a
    probability below 1e-4.
    """
    assert share_certified(alpha, UNEVEN, UNEVEN) <= 2 * alpha
    assert share_certified(alpha, np.full(1, 0.5), np.full(1, 0.5)) <= 2 * alpha


@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-3])
def test_even_odds_for_uneven_coins_would_certify_equal_items(alpha: float) -> None:
    lopsided = np.array([0.3, 0.35])
    assert share_certified(alpha, lopsided, lopsided) <= 2 * alpha
    assert share_certified(alpha, np.full(2, 0.5), lopsided, pairs=1000) > 0.9


def test_evidence_is_antisymmetric_and_grows_with_the_lead() -> None:
    bets, table = new_dense_bets(3), bet_table(1e-3)
    assert evidence(bets, 0, 2) == 0
    seen = []
    for _ in range(20):
        settle_bet(table, bets.book, claim_row(bets, 2, 0), 1, 0.4)
        seen.append(evidence(bets, 2, 0))
        assert evidence(bets, 0, 2) == -seen[-1]
    assert seen == sorted(seen) and seen[0] > 0
    assert evidence(bets, 0, 1) == 0


def test_near_even_leads_use_the_normal_approximation() -> None:
    bets, table = new_dense_bets(2), bet_table(1e-3)
    for side in [0, 1] * 50 + [0]:
        settle_bet(table, bets.book, 1, side, 0.5)
    assert evidence(bets, 0, 1) == pytest.approx(0.5**2 / (2 * 101 / 4))


def test_a_hash_table_holds_the_same_bets_and_grows() -> None:
    rng, table = np.random.default_rng(1), bet_table(1e-3)
    dense: DenseBets = new_dense_bets(40)
    hashed: HashedBets = new_hashed_bets(16)
    for _ in range(300):
        i, j = (int(item) for item in rng.choice(40, 2, replace=False))
        p0 = float(rng.uniform(0.1, 0.9))
        while 2 * (hashed.used[0] + 1) > len(hashed.low):
            hashed = with_more_rows(hashed)
        for bets in (dense, hashed):
            settle_bet(table, bets.book, claim_row(bets, i, j), int(i > j), p0)
    larger = with_more_items(dense, 100)
    assert isinstance(larger, HashedBets) and len(hashed.low) > 16
    for i in range(40):
        for j in range(40):
            if i != j:
                assert evidence(dense, i, j) == evidence(hashed, i, j) == evidence(larger, i, j)
                assert wins_of(dense, i, j) == wins_of(hashed, i, j) == wins_of(larger, i, j)


def test_small_catalogues_have_a_matrix() -> None:
    assert isinstance(new_bets(12), DenseBets) and isinstance(new_bets(1000), HashedBets)


def test_the_table_is_as_fine_as_it_says() -> None:
    table = bet_table(0.1)
    assert table.costs.shape == (ODDS + 1, N_STAKES)
    assert table.costs[0].tolist() == [0.0] * N_STAKES
    assert table.costs[-1] == pytest.approx(np.array(STAKES))
