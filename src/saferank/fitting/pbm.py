"""Estimation of PBM: every position tosses the coin of its item and its own; a click needs both heads.

P(click at k | clicks above) = examination[k] * attraction[item at k].

EM as in PyClick: 50 iterations from 1/2, both kinds of coins updated together. Only products of an attraction and an
examination can be known from clicks; their common scale is where EM comes to rest.
"""

from saferank._kernel import implements
from saferank.click_models.pbm import PBM
from saferank.fitting.coins import Clicks, CoinCounts, count, toss_both
from saferank.fitting.estimation import ITERATIONS, Fitted, maximise
from saferank.fitting.evaluation import foresee
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction of every pair, examination of every position."""
    return maximise(PBM, log, iterations)


@implements(count, PBM)
def _count(model: PBM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    for k in range(len(items)):
        chances = model.attraction[items[k]], model.examination[k]
        toss_both(tally, (items[k], len(model.attraction) + k), chances, clicks[k] == 1, weight)


@implements(foresee, PBM)
def _foresee(model: PBM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    for k in range(len(items)):
        chances[k] = model.examination[k] * model.attraction[items[k]]
