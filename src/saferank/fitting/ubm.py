"""Estimation of UBM: as PBM, with an examination coin for every position and every last click above it.

P(click at r | clicks above) = examination[r, c] * attraction[item at r], c the last click above (0: none).

EM as in PyClick: 50 iterations from 1/2. The clicks above are seen, so nothing but the two coins is hidden. Like PBM's,
attraction and examination share a scale that clicks cannot tell.
"""

from saferank._kernel import implements
from saferank.click_models.ubm import UBM
from saferank.fitting.coins import Clicks, CoinCounts, count, toss_both
from saferank.fitting.estimation import ITERATIONS, Fitted, maximise
from saferank.fitting.evaluation import foresee
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction of every pair, examination of every position after every last click."""
    return maximise(UBM, log, iterations)


@implements(count, UBM)
def _count(model: UBM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last = 0
    for r in range(len(items)):
        chances = model.attraction[items[r]], model.examination[r, last]
        coin = len(model.attraction) + r * (r + 1) // 2 + last  # row r of the triangle has r + 1 coins
        toss_both(tally, (items[r], coin), chances, clicks[r] == 1, weight)
        if clicks[r] == 1:
            last = r + 1


@implements(foresee, UBM)
def _foresee(model: UBM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    last = 0
    for r in range(len(items)):
        chances[r] = model.examination[r, last] * model.attraction[items[r]]
        if clicks[r] == 1:
            last = r + 1
