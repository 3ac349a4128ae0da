"""DBN, the dynamic Bayesian network: a clicked item satisfies with satisfaction[item], and the user stops.

A user who is not satisfied continues to the next position with ``continuation``, clicked or not. So
r(shown) = sum over k of reached[k] * a[k] with a[k] = attraction[shown[k]], where
reached[1] = 1 and reached[k+1] = reached[k] * (1 - a[k] * satisfaction[shown[k]]) * continuation.

Chapelle and Zhang, "A dynamic Bayesian network click model for web search ranking", WWW 2009.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> round(float(expected_clicks(DBN(np.array([0.5, 0.25]), np.array([0.4, 0.2]), 0.9), np.array([0, 1], np.uint32))), 3)
0.68
"""

from typing import NamedTuple

from saferank._kernel import implements
from saferank.click_models.shapes import PerItem, Probability
from saferank.randomness import Words, uniform
from saferank.verbs import Ints, Items, click, expected_clicks


class DBN(NamedTuple):
    """Users go down the page until an item satisfies them or they give up."""

    attraction: PerItem
    satisfaction: PerItem
    continuation: Probability


@implements(click, DBN)
def _click(model: DBN, shown: Items, rng: Words, clicks: Ints) -> None:
    """Uniforms per position reached: attraction; satisfaction if clicked; continuation unless satisfied."""
    clicks[:] = 0
    for k in range(len(clicks)):
        if uniform(rng) < model.attraction[shown[k]]:
            clicks[k] = 1
            if uniform(rng) < model.satisfaction[shown[k]]:
                return
        if uniform(rng) >= model.continuation:
            return


@implements(expected_clicks, DBN)
def _expected_clicks(model: DBN, shown: Items) -> float:
    total, reached = 0.0, 1.0
    for k in range(len(shown)):
        clicked = reached * model.attraction[shown[k]]
        total += clicked
        reached = (reached - clicked * model.satisfaction[shown[k]]) * model.continuation
    return total
