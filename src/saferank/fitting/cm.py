"""Estimation of CM: count the positions up to the first click (all of them without one), and the clicks among them.

attraction = (1 + first clicks) / (2 + times looked at). P(click at k | clicks above) = attraction[item at k], and 0
below a click: to CM a page with two clicks is impossible, and its likelihood says so.

Nothing is hidden, so a single sweep is the whole estimation, as in PyClick.
"""

from saferank._kernel import implements
from saferank.click_models.cm import CM
from saferank.fitting.coins import Clicks, CoinCounts, add, count
from saferank.fitting.estimation import ITERATIONS, Fitted, count_once
from saferank.fitting.evaluation import foresee
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction of every pair; one sweep, whatever the number of ``iterations``."""
    return count_once(CM, log)


@implements(count, CM)
def _count(model: CM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    for k in range(len(items)):
        add(tally, items[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            return


@implements(foresee, CM)
def _foresee(model: CM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    looking = True
    for k in range(len(items)):
        chances[k] = model.attraction[items[k]] if looking else 0.0
        looking = looking and clicks[k] == 0
