"""DCM, the dependent click model: a cascade that continues after a click at position k with continuation[k].

r(shown) = sum over k of reached[k] * a[k] with a[k] = attraction[shown[k]], where
reached[1] = 1 and reached[k+1] = reached[k] * (1 - a[k] + a[k] * continuation[k]).

Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> round(float(expected_clicks(DCM(np.array([0.5, 0.25]), np.array([0.4, 0.0])), np.array([0, 1], np.uint32))), 3)
0.675
"""

from typing import NamedTuple

from saferank._kernel import implements
from saferank.click_models.shapes import PerItem, PerPosition
from saferank.randomness import Words, uniform
from saferank.verbs import Ints, Items, click, expected_clicks


class DCM(NamedTuple):
    """Users go down the page, click what attracts them, and may leave after each click."""

    attraction: PerItem
    continuation: PerPosition


@implements(click, DCM)
def _click(model: DCM, shown: Items, rng: Words, clicks: Ints) -> None:
    """One uniform per position reached; one more after a click, also at the last position."""
    clicks[:] = 0
    for k in range(len(clicks)):
        if uniform(rng) < model.attraction[shown[k]]:
            clicks[k] = 1
            if uniform(rng) >= model.continuation[k]:
                return


@implements(expected_clicks, DCM)
def _expected_clicks(model: DCM, shown: Items) -> float:
    total, reached = 0.0, 1.0
    for k in range(len(shown)):
        clicked = reached * model.attraction[shown[k]]
        total += clicked
        reached -= clicked * (1.0 - model.continuation[k])
    return total
