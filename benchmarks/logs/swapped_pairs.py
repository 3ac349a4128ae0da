"""Neighbouring results that production showed in both orders, as a natural experiment on a log.

A pair of items (a, b) of a query stood at positions k, k + 1 on some pages and in the other order at the same positions
on others. Position is then not what tells the two apart. Two readings of such pages:

- ``between``: pages on which exactly one of the two was clicked. Was it the upper one more often when a was above?
- ``upper``: clicks at the upper position alone. Was it clicked more often when a stood there?

Each reading gives one 2 x 2 table for each stratum (order against outcome), and all strata of a pair share an odds
ratio: above 1 it speaks for a. If a and b are equally attractive and the same kind of users saw both orders, it is 1
whatever positions are worth: under every click model here for ``upper``, and for ``between`` under all but DBN, in
which items differ in satisfaction too. A stratum is a position; or, when ``same_page`` is asked for, a position and
everything else on the page, so that the two pages differ by the swap alone. The test is Fisher's, over all strata
together (conditional on the margins of every table), and the interval comes from its inversion.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import binomtest

from saferank.experiments.comparisons import holm
from saferank.logs import ClickLog, DistinctPages
from saferank.verbs import Floats

READINGS = ("between", "upper")
LARGEST = 30.0  # of log odds ratios that are looked at

Table = tuple[int, int, int, int]
"""a above: outcome for a, for b; b above: outcome for a, for b."""


class Swap(NamedTuple):
    """What the pages of one pair say; a and b are places in ``ClickLog.pairs``, a the smaller one."""

    query: int
    a: int
    b: int
    pages_ab: int  # with a directly above b, in strata that have both orders
    pages_ba: int
    odds_ratio: float  # in favour of a; 0 or inf where all outcomes point one way, nan where there are none
    low: float  # 95 % interval
    high: float
    p_value: float
    p_holm: float

    @property
    def sign(self) -> int:
        """1 if the swaps speak for a, -1 for b, 0 for neither."""
        return 0 if math.isnan(self.odds_ratio) else int(np.sign(self.odds_ratio - 1))


def swaps_of(log: ClickLog, reading: str = "between", *, fewest: int = 20, same_page: bool = False) -> list[Swap]:
    """All pairs with at least ``fewest`` pages in each order, the most significant first; p-values adjusted by Holm."""
    displays, outcomes = _counted(log.pages, reading, same_page)
    found = []
    for (query, a, b), strata in displays.items():
        both = [stratum for stratum, orders in strata.items() if all(orders)]
        ab, ba = (sum(strata[stratum][order] for stratum in both) for order in (0, 1))
        if min(ab, ba) >= fewest:
            tables = [_table(outcomes[query, a, b].get(stratum)) for stratum in both]
            ratio, low, high, p_value = odds_of(tables)
            found.append(Swap(query, a, b, ab, ba, ratio, low, high, p_value, p_holm=math.nan))
    adjusted = holm([swap.p_value for swap in found])
    found = [swap._replace(p_holm=p) for swap, p in zip(found, adjusted, strict=True)]
    return sorted(found, key=lambda swap: swap.p_value)


def _table(counts: Counter[tuple[int, int]] | None) -> Table:
    counts = counts or Counter()
    return counts[0, 0], counts[0, 1], counts[1, 0], counts[1, 1]


def _counted(pages: DistinctPages, reading: str, same_page: bool) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """By pair and stratum: pages in both orders, and outcomes by (order, for a or for b)."""
    outcome_of = {"between": _between, "upper": _upper}[reading]
    displays: dict[Any, Any] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    outcomes: dict[Any, Any] = defaultdict(lambda: defaultdict(Counter))
    rows = zip(pages.query.tolist(), pages.items.tolist(), pages.clicks.tolist(), pages.weight.tolist(), strict=True)
    for query, items, clicks, weight in rows:
        for k in range(len(items) - 1):
            first, second = items[k : k + 2]
            if second < 0:  # the end of a shorter page
                break
            order = int(first > second)
            pair = query, min(first, second), max(first, second)
            stratum = (k, *items[:k], *items[k + 2 :]) if same_page else k
            displays[pair][stratum][order] += weight
            winner = outcome_of(order, clicks[k], clicks[k + 1])
            if winner is not None:
                outcomes[pair][stratum][order, winner] += weight
    return displays, outcomes


def _between(order: int, upper: int, lower: int) -> int | None:
    """0 if a alone was clicked, 1 if b alone, None if both or none."""
    return None if upper == lower else (order if upper else 1 - order)


def _upper(order: int, upper: int, lower: int) -> int:
    """As ``_between``, for the upper position: a click speaks for the item there, no click against it."""
    return order if upper else 1 - order


def odds_of(tables: Sequence[Table], level: float = 0.95) -> tuple[float, float, float, float]:
    """The common odds ratio in favour of a (maximum of the conditional likelihood), its exact interval, p-value of 1.

    A table is (a above: for a, for b; b above: for a, for b). With the position's share of the outcomes taken out, the
    odds of "upper" among pages with a above, divided by those with b above, are what favours a.

    >>> [round(x, 3) for x in odds_of([(30, 10, 20, 20)])]
    [2.957, 1.06, 8.705, 0.037]
    """
    # The upper item is a in the first order and b in the second: the columns of the second order change places.
    turned = [(aa, ab, bb, ba) for aa, ab, ba, bb in tables]
    seen, laws = _conditional(turned)
    if len(laws(0.0)) == 1:  # the margins leave nothing open
        return math.nan, 0.0, math.inf, 1.0
    chances = laws(0.0)
    p_value = float(min(1.0, chances[chances <= chances[seen] * (1 + 1e-7)].sum()))
    tail = (1 - level) / 2
    values = np.arange(len(chances))
    middle = _crossing(lambda log_odds: float(laws(log_odds) @ values) - seen, seen, len(chances))
    low = -math.inf if seen == 0 else _root(lambda log_odds: float(laws(log_odds)[seen:].sum()) - tail)
    last = seen == len(chances) - 1
    high = math.inf if last else _root(lambda log_odds: tail - float(laws(log_odds)[: seen + 1].sum()))
    return math.exp(middle), math.exp(low), math.exp(high), p_value


def _conditional(tables: Sequence[Table]) -> tuple[int, Callable[[float], Floats]]:
    """The sum of the first cells above its smallest value, and its law given all margins, by log odds ratio."""
    weights, seen = [], 0
    for a, b, c, d in tables:
        n1, n2, first = a + b, c + d, a + c
        x = np.arange(max(0, first - n2), min(n1, first) + 1)
        seen += a - int(x[0])
        weights.append(_log_choose(n1, x) + _log_choose(n2, first - x))

    def law(log_odds: float) -> Floats:
        return reduce(np.convolve, [_normalised(w + log_odds * np.arange(len(w))) for w in weights], np.ones(1))

    return seen, law


def _log_choose(n: int, x: Any) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1))


def _normalised(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _crossing(function: Callable[[float], float], seen: int, size: int) -> float:
    if seen in (0, size - 1):  # all outcomes point one way
        return -math.inf if seen == 0 else math.inf
    return _root(function)


def _root(function: Callable[[float], float]) -> float:
    return float(brentq(function, -LARGEST, LARGEST, xtol=1e-6))


@dataclass(frozen=True)
class Agreement:
    """How often an order of items agrees with the swaps, with an exact 95 % interval for a binomial share."""

    agree: int
    pairs: int
    low: float
    high: float


def agreement_of(swaps: Sequence[Swap], score: Floats | None = None) -> Agreement:
    """Of the swaps that speak for one of the two: how often that item has the higher score. Equal scores disagree.

    Without a score: how often it is the item that production showed above the other on more pages.
    """
    decided = [swap for swap in swaps if swap.sign]
    agree = sum(_preferred(swap, score) == swap.sign for swap in decided)
    if not decided:
        return Agreement(0, 0, 0.0, 1.0)
    interval = binomtest(agree, len(decided)).proportion_ci(method="exact")
    return Agreement(agree, len(decided), float(interval.low), float(interval.high))


def _preferred(swap: Swap, score: Floats | None) -> int:
    difference = swap.pages_ab - swap.pages_ba if score is None else score[swap.a] - score[swap.b]
    return int(np.sign(difference))


def significant(swaps: Sequence[Swap], alpha: float = 0.05) -> list[Swap]:
    """Those whose adjusted p-value is at most ``alpha``: with that probability at most is any of them a chance."""
    return [swap for swap in swaps if swap.p_holm <= alpha]


def click_through(pages: DistinctPages, size: int) -> Floats:
    """Clicks of each of ``size`` pairs divided by its displays, positions ignored: a score without a click model."""
    there = pages.items >= 0
    weight = np.broadcast_to(pages.weight[:, None], there.shape)[there]
    shown = np.bincount(pages.items[there], weights=weight, minlength=size)
    clicked = np.bincount(pages.items[there], weights=weight * pages.clicks[there], minlength=size)
    return np.asarray(clicked / np.maximum(shown, 1))
