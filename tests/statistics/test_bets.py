"""Bets with known odds: fair or worse under equality, at every odds, and certain to notice odds that are not true."""

import math

import numpy as np
import pytest

from saferank._kernel import kernel
from saferank.randomness import Words, stream, uniform
from saferank.saved_state import bytes_in_use
from saferank.statistics.bets import (
    DIRECT_ITEMS,
    N_STAKES,
    ODDS,
    SOFT,
    STAKES,
    Bets,
    BetTable,
    Levels,
    bet_table,
    budget,
    entry_of,
    evidence,
    evidence_of_gap,
    gap,
    has_won,
    new_bets,
    same_level,
    settle_bet,
    with_more_items,
    with_room,
)
from saferank.statistics.certificates import ENDLESS
from saferank.statistics.pairs import claim_row, duel_of, row_of
from saferank.verbs import Floats, Ints


@pytest.mark.parametrize("p0", [1 / 2, 1 / 3, 0.001, 0.97, 0.123456, 511.5 / 1024])
def test_the_expected_capital_never_grows_for_either_item(p0: float) -> None:
    """One bet under equality: i stands at the clicked place with probability p0, j with 1 - p0. Exact, no chance."""
    table, mean = bet_table(same_level(0.05)), np.zeros((2, N_STAKES))
    for side, chance, odds in ((0, p0, p0), (1, 1 - p0, 1 - p0)):
        bets = new_bets(2)
        settle_bet(table, bets, claim_row(bets, 0, 1), side, odds, 1)
        mean += chance * np.exp(bets.capital[2:4])
    assert np.all(mean <= 1 + 1e-12)
    assert np.all(mean > 0.99)  # rounding the odds costs little


@pytest.mark.parametrize("side", [0, 1])
def test_even_odds_are_not_rounded(side: int) -> None:
    bets = new_bets(2)
    settle_bet(bet_table(same_level(0.05)), bets, 1, side, 0.5, 1)
    for g, eta in enumerate(STAKES):
        assert bets.capital[2 + side, g] == pytest.approx(eta - math.log(0.5 + 0.5 * math.exp(eta)), abs=1e-15)
        assert bets.capital[3 - side, g] == pytest.approx(-math.log(0.5 + 0.5 * math.exp(eta)), abs=1e-15)
    assert bets.lead[1] == (0.5 if side == 0 else -0.5)
    assert bets.information[1] == 0.25


def test_a_pair_that_wins_all_its_even_bets_is_certified_after_thirty() -> None:
    """The mean over the stakes of (2 e^eta / (1 + e^eta))^n reaches 1e5 there; one win fewer is not enough."""
    table, bets, needed = bet_table(same_level(1e-5)), new_bets(2), 0
    while not has_won(table, bets, 1, SOFT, 0):
        settle_bet(table, bets, 1, 0, 0.5, 1)
        needed += 1
    growth = 2 / (1 + np.exp(-np.array(STAKES)))
    by_hand = next(n for n in range(1, 99) if np.mean(growth**n) >= 1e5)
    assert needed == by_hand


def test_it_says_that_an_item_has_won_exactly_when_its_mean_capital_has() -> None:
    """The quick answer, by the largest of the eight, never misses one."""
    table, bets, rng, times = bet_table(same_level(0.01)), new_bets(2), np.random.default_rng(3), 0
    for _ in range(2000):
        side = int(rng.random() < 0.2)
        said = settle_bet(table, bets, 1, side, float(rng.uniform(0.3, 0.7)), 1)
        assert said == (np.exp(bets.capital[2 + side]).mean() >= 100.0) == has_won(table, bets, 1, SOFT, side)
        times += said
        if said:
            bets = new_bets(2)
    assert times > 10


@kernel
def _play(table: BetTable, bets: Bets, rng: Words, claimed: Floats, true: Floats, pages: int, won: Ints) -> None:
    """Equal items: i stands at the clicked place with the true odds; bets are made at the claimed ones."""
    for pair in range(len(won)):
        for g in range(N_STAKES):
            bets.capital[2, g] = bets.capital[3, g] = 0.0
        for page in range(pages):
            at = page % len(true)
            first = uniform(rng) < true[at]
            side = 0 if first else 1
            may = settle_bet(table, bets, 1, side, claimed[at] if first else 1.0 - claimed[at], 1)
            if may and has_won(table, bets, 1, SOFT, side):
                won[pair] = 1
                break


UNEVEN = np.array([0.5, 0.2, 0.8, 0.05, 0.35, 0.93])


def share_certified(levels: Levels, claimed: Floats, true: Floats, pairs: int = 10_000, pages: int = 3000) -> float:
    won = np.zeros(pairs, np.int64)
    _play(bet_table(levels), new_bets(2), stream(5, "equal items"), claimed, true, pages, won)
    return float(won.mean())


@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-3])
def test_equal_items_are_certified_with_at_most_the_stated_probability(alpha: float) -> None:
    """At most alpha for either direction, so 2 alpha for a pair; the seed is fixed, so the verdict never changes.

    The true probability is about a third of the bound: at 10,000 pairs and alpha 1e-3 a share above 2e-3 would have a
    probability below 1e-4.
    """
    for levels in (same_level(alpha), budget(alpha, 1, 2)):
        assert share_certified(levels, UNEVEN, UNEVEN) <= 2 * alpha
        assert share_certified(levels, np.full(1, 0.5), np.full(1, 0.5)) <= 2 * alpha


@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-3])
def test_even_odds_for_uneven_coins_would_certify_equal_items(alpha: float) -> None:
    lopsided = np.array([0.3, 0.35])
    assert share_certified(same_level(alpha), lopsided, lopsided) <= 2 * alpha
    assert share_certified(same_level(alpha), np.full(2, 0.5), lopsided, pairs=1000) > 0.9


def test_evidence_is_antisymmetric_and_grows_with_the_lead() -> None:
    bets, table = new_bets(3), bet_table(same_level(1e-3))
    assert evidence(bets, 0, 2) == 0
    seen = []
    for _ in range(20):
        settle_bet(table, bets, claim_row(bets, 2, 0), 1, 0.4, 1)
        seen.append(evidence(bets, 2, 0))
        assert evidence(bets, 0, 2) == -seen[-1]
    assert seen == sorted(seen) and seen[0] > 0
    assert evidence(bets, 0, 1) == 0


def test_near_even_leads_use_the_normal_approximation() -> None:
    bets, table = new_bets(2), bet_table(same_level(1e-3))
    for side in [0, 1] * 50 + [0]:
        settle_bet(table, bets, 1, side, 0.5, 1)
    assert evidence(bets, 0, 1) == pytest.approx(0.5**2 / (2 * 101 / 4))


@pytest.mark.parametrize("lifetime", [None, 50])
def test_rows_by_number_and_by_hash_hold_the_same_bets_and_grow(lifetime: int | None) -> None:
    """A few items by number, then by hash when more come; and many by hash from the beginning."""
    rng, table = np.random.default_rng(1), bet_table(same_level(1e-3))
    direct, hashed = new_bets(12, lifetime), new_bets(40, lifetime, n_pairs=3)
    for number in range(300):
        if number == 150:
            direct = with_more_items(direct, 40)
        i, j = (int(item) for item in rng.choice(12 if number < 150 else 40, 2, replace=False))
        direct, hashed = with_room(direct, 2), with_room(hashed, 2)
        p0 = float(rng.uniform(0.1, 0.9))
        for bets in (direct, hashed):
            settle_bet(table, bets, claim_row(bets, i, j), int(i > j), p0, 1)
    assert len(hashed.pairs.low) > 100 and len(direct.pairs.slots) > 0
    for i in range(40):
        for j in range(40):
            if i != j:
                rows = row_of(direct, i, j), row_of(hashed, i, j)
                assert evidence(direct, i, j) == evidence(hashed, i, j)
                assert duel_of(direct, i, j) == duel_of(hashed, i, j)
                for kind in range(int(hashed.kinds[0])):
                    mine, other = (entry_of(b, r, kind, 0) for b, r in zip((direct, hashed), rows, strict=True))
                    assert direct.capital[mine : mine + 2].tolist() == hashed.capital[other : other + 2].tolist()


def test_pairs_that_were_never_compared_take_no_memory() -> None:
    """2,000 contexts of 40 items take at most 100 KB each, with epochs too, until they have compared many pairs."""
    for lifetime in (None, 10_000):
        bets = with_room(new_bets(40, lifetime, n_pairs=100), 13)
        assert bytes_in_use(bets) < 110_000
        assert len(bets.pairs.low) < 250
    assert len(new_bets(DIRECT_ITEMS).pairs.slots) == 0 < len(new_bets(DIRECT_ITEMS + 1).pairs.slots)


@pytest.mark.parametrize("p0", [0.5, 0.25])
def test_a_pair_wins_when_the_mean_of_capital_reaches_one_over_alpha(p0: float) -> None:
    table, bets = bet_table(same_level(1e-3)), new_bets(30)
    row, capital = claim_row(bets, 5, 2), np.ones(len(STAKES))
    for _ in range(40):
        settle_bet(table, bets, row, 1, p0, 1)
        capital *= [math.exp(eta) / (1 + p0 * math.expm1(eta)) for eta in STAKES]
        assert has_won(table, bets, row, SOFT, 1) == (capital.mean() >= 1e3)
    assert has_won(table, bets, row, SOFT, 1)
    assert not has_won(table, bets, row, SOFT, 0)


def test_evidence_of_a_gap_is_the_inverse() -> None:
    assert evidence_of_gap(0.0) == 0.0
    for size in (0.1, 1.0, 5.0, 20.0):
        assert gap(evidence_of_gap(size)) == pytest.approx(size, rel=1e-12)
    assert evidence_of_gap(1e9) == 30.0
    assert evidence_of_gap(5.0) == pytest.approx(3.06, abs=0.01)


def test_the_levels_of_an_epoch_grow_with_its_length() -> None:
    """The alarm and the largest gap; short epochs have 7 and 5, and endless ones neither."""
    levels = {pages: new_bets(5, pages).levels.tolist() for pages in (1000, 10**5, 10**7, ENDLESS, None)}
    assert levels[1000][0] == 7.0 and levels[1000][2] == 5.0
    assert levels[10**5][0] == pytest.approx(math.log(1e5 / 27)) and levels[10**5][2] == pytest.approx(math.log(500))
    assert levels[10**7][1] < 30.0
    assert levels[ENDLESS] == levels[None] == [math.inf, 30.0, 12.0]


def test_the_table_is_as_fine_as_it_says() -> None:
    table = bet_table(same_level(0.1))
    assert table.costs.shape == (ODDS + 1, N_STAKES)
    assert table.costs[0].tolist() == [0.0] * N_STAKES
    assert table.costs[-1] == pytest.approx(np.array(STAKES))
