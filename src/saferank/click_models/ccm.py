"""CCM, the click chain model: whether the user continues depends on the click and on the relevance of what was clicked.

Without a click the user continues with ``continuation_no_click``; a clicked item was relevant with the probability a of
its attraction, and the user continues with ``continuation_click_relevant`` or ``continuation_click_nonrelevant``. So
r(shown) = sum over k of reached[k] * a[k] with a[k] = attraction[shown[k]], where reached[1] = 1 and
reached[k+1] = reached[k] * ((1 - a) * no_click + a * (a * click_relevant + (1 - a) * click_nonrelevant)), a = a[k].

Guo et al., "Click chain model in web search", WWW 2009.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> round(float(expected_clicks(CCM(np.array([0.5, 0.25]), 1.0, 0.8, 0.4), np.array([0, 1], np.uint32))), 3)
0.7
"""

from typing import NamedTuple

from saferank._kernel import implements
from saferank.click_models.shapes import PerItem, Probability
from saferank.randomness import Words, uniform
from saferank.verbs import Ints, Items, click, expected_clicks


class CCM(NamedTuple):
    """Users go down the page and are the likelier to leave the more relevant the item was that they clicked."""

    attraction: PerItem
    continuation_no_click: Probability
    continuation_click_nonrelevant: Probability
    continuation_click_relevant: Probability


@implements(click, CCM)
def _click(model: CCM, shown: Items, rng: Words, clicks: Ints) -> None:
    """Uniforms per position reached: attraction; relevance if clicked; continuation, also at the last position."""
    clicks[:] = 0
    for k in range(len(clicks)):
        attraction = model.attraction[shown[k]]
        continuation = model.continuation_no_click
        if uniform(rng) < attraction:
            clicks[k] = 1
            continuation = model.continuation_click_nonrelevant
            if uniform(rng) < attraction:
                continuation = model.continuation_click_relevant
        if uniform(rng) >= continuation:
            return


@implements(expected_clicks, CCM)
def _expected_clicks(model: CCM, shown: Items) -> float:
    total, reached = 0.0, 1.0
    for k in range(len(shown)):
        attraction = model.attraction[shown[k]]
        relevant = attraction * model.continuation_click_relevant
        after_click = relevant + (1.0 - attraction) * model.continuation_click_nonrelevant
        total += reached * attraction
        reached *= attraction * after_click + (1.0 - attraction) * model.continuation_no_click
    return total
