"""Swaps say what was planted: the exact test is Fisher's, and orders that are wrong are found to be wrong."""

from itertools import product
from math import comb, exp, inf, log

import numpy as np
import pytest
from scipy.stats import fisher_exact
from scipy.stats.contingency import odds_ratio
from swapped_pairs import Table, agreement_of, click_through, odds_of, significant, swaps_of

from saferank.fitting import ESTIMATORS
from saferank.logs import ClickLog
from tests.fitting.planted_pages import Page, log_of

EXAMINATION = (0.9, 0.6, 0.3)


def pages_of(items: tuple[int, ...], attraction: tuple[float, ...], count: int, seed: int) -> list[Page]:
    """So many pages clicked by position-based users."""
    chances = np.array(EXAMINATION) * np.array(attraction)[list(items)]
    clicks = np.random.default_rng(seed).random((count, len(items))) < chances
    return [(items, row.astype(int).tolist(), 1) for row in clicks]


@pytest.mark.parametrize("table", [(30, 10, 20, 20), (3, 8, 9, 2), (5, 0, 1, 4), (0, 6, 5, 2), (40, 41, 44, 39)])
def test_a_single_table_is_fishers_test(table: Table) -> None:
    aa, ab, ba, bb = table
    upper_lower = np.array([[aa, ab], [bb, ba]])
    known = odds_ratio(upper_lower)
    interval = known.confidence_interval(0.95)
    expected = known.statistic, interval.low, interval.high, fisher_exact(upper_lower).pvalue
    assert odds_of([table]) == pytest.approx(expected, rel=1e-4)


def test_several_tables_by_enumeration() -> None:
    """The law of the sum of first cells, given the margins of both tables, written out."""
    tables = [(4, 2, 3, 3), (5, 1, 2, 2)]
    turned = [(aa, ab, bb, ba) for aa, ab, ba, bb in tables]

    def weights(a: int, b: int, c: int, d: int) -> dict[int, int]:
        cells = range(max(0, a - d), min(a + b, a + c) + 1)
        return {x: comb(a + b, x) * comb(c + d, a + c - x) for x in cells}

    sums: dict[int, int] = {}
    for (x, wx), (y, wy) in product(*(weights(*table).items() for table in turned)):
        sums[x + y] = sums.get(x + y, 0) + wx * wy
    seen, total = sums[sum(table[0] for table in turned)], sum(sums.values())
    ratio, low, high, p_value = odds_of(tables)
    assert p_value == pytest.approx(sum(w for w in sums.values() if w <= seen) / total)
    mean = sum(w * x * exp(x * log(ratio)) for x, w in sums.items()) / sum(
        w * exp(x * log(ratio)) for x, w in sums.items()
    )
    assert mean == pytest.approx(9, abs=1e-4)
    assert low < 1 < high


def test_outcomes_that_point_one_way_or_nowhere() -> None:
    assert odds_of([(9, 0, 9, 0)])[::2] == (inf, inf)
    assert odds_of([(0, 9, 0, 9)])[:2] == (0, 0)
    nothing = odds_of([(0, 0, 4, 3)])
    assert np.isnan(nothing[0]) and nothing[1:] == (0, inf, 1)


def test_counts_by_hand() -> None:
    """Pages of one order only are no experiment; a page with both or neither clicked does not tell the two apart."""
    pages: list[Page] = [
        ((0, 1, 2), (1, 0, 0), 4),
        ((0, 1, 2), (0, 1, 1), 1),
        ((0, 1, 2), (1, 1, 0), 7),
        ((1, 0, 2), (1, 0, 0), 2),
        ((1, 0, 2), (0, 1, 0), 3),
        ((2, 0, 1), (0, 1, 0), 50),  # the pair at another position, never swapped there
    ]
    (swap,) = swaps_of(log_of(pages, 3), fewest=5)
    assert (swap.a, swap.b, swap.pages_ab, swap.pages_ba) == (0, 1, 12, 5)
    assert swap[5:9] == odds_of([(4, 1, 3, 2)])
    assert swaps_of(log_of(pages, 3), "upper", fewest=5)[0][5:9] == odds_of([(11, 1, 3, 2)])
    assert swaps_of(log_of(pages, 3), fewest=6) == []


def test_the_same_page_must_be_the_same_elsewhere() -> None:
    pages: list[Page] = [((0, 1, 2), (1, 0, 0), 30), ((1, 0, 3), (1, 0, 0), 30), ((1, 0, 2), (1, 0, 0), 25)]
    (swap,) = swaps_of(log_of(pages, 4), fewest=20, same_page=True)
    assert (swap.pages_ab, swap.pages_ba) == (30, 25)
    assert swaps_of(log_of(pages, 4), fewest=20)[0].pages_ba == 55


def planted_log() -> ClickLog:
    """Item 1 is better than 0, which production shows above it on most pages; 2 and 3 are equal."""
    attraction = (0.5, 0.6, 0.5, 0.5)
    shown = [((0, 1, 2), 4000), ((1, 0, 2), 800), ((0, 2, 3), 1200), ((0, 3, 2), 1200)]
    pages = [page for n, (items, count) in enumerate(shown) for page in pages_of(items, attraction, count, n)]
    return log_of(pages, 4)


def test_planted_attractions_are_found_behind_positions() -> None:
    """One fixed seed; the equal pair comes out significant with probability at most 0.05 over seeds."""
    log = planted_log()
    for reading in ("between", "upper"):
        swaps = swaps_of(log, reading)
        assert [(swap.a, swap.b, swap.sign) for swap in significant(swaps)] == [(0, 1, -1)]
        (clear,) = significant(swaps)
        assert clear.high < 1
        fitted = ESTIMATORS["pbm"](log, 50).model.attraction
        assert agreement_of([clear], fitted).agree == 1
        assert agreement_of([clear]).agree == 0  # production's usual order is the wrong one
        assert agreement_of([clear], click_through(log.pages, 4)).agree == 0  # it takes position for merit


def test_a_fitted_order_that_contradicts_the_swaps_is_found() -> None:
    """Beside item 1 item 0 is hardly clicked; on pages without item 1 it is. One attraction cannot say both."""
    beside, alone = (0.1, 0.5, 0.5, 0.5), (0.9, 0.5, 0.5, 0.5)
    shown = [((0, 1, 2), beside, 300), ((1, 0, 2), beside, 300), ((0, 2, 3), alone, 2000), ((2, 0, 3), alone, 2000)]
    pages = [
        page for n, (items, attraction, count) in enumerate(shown) for page in pages_of(items, attraction, count, n)
    ]
    log = log_of(pages, 4)
    clear = [swap for swap in significant(swaps_of(log)) if (swap.a, swap.b) == (0, 1)]
    assert [swap.sign for swap in clear] == [-1]
    found = agreement_of(clear, ESTIMATORS["pbm"](log, 50).model.attraction)
    assert (found.agree, found.pairs, found.low) == (0, 1, 0.0)
    assert found.high == pytest.approx(0.975)
