"""Estimation of DCM: count positions up to the last click (all without one); the last click is where users stop.

attraction = (1 + clicks) / (2 + times shown not below the last click),
continuation[k] = (1 + clicks at k with another below) / (2 + clicks at k).

This is PyClick's estimator, one sweep. It takes everybody to have left at the last click. A user who went on and found
nothing looks the same, so it is not the maximum of the likelihood: attraction comes out too high and continuation too
low, the more so the likelier it is that nothing below a click attracts. The likelihood below it is exact all the same:
with belief = P(position k is examined | clicks above), P(click at k | clicks above) = belief * attraction.
"""

from saferank._kernel import implements
from saferank.click_models.dcm import DCM
from saferank.fitting.coins import Clicks, CoinCounts, add, count, last_click
from saferank.fitting.estimation import ITERATIONS, Fitted, count_once
from saferank.fitting.evaluation import foresee, still_looking
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction of every pair, continuation of every position; one sweep, whatever the number of ``iterations``."""
    return count_once(DCM, log)


@implements(count, DCM)
def _count(model: DCM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last = last_click(clicks)
    for k in range(len(items) if last < 0 else last + 1):
        add(tally, items[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            add(tally, len(model.attraction) + k, weight if k < last else 0.0, weight)


@implements(foresee, DCM)
def _foresee(model: DCM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        belief = model.continuation[k] if clicks[k] == 1 else still_looking(belief, attraction)
