"""CM, the cascade model: from the top, click the first item that attracts, then stop.

r(shown) = 1 - prod over k of (1 - attraction[shown[k]]): at most one click a page.

Craswell et al., "An experimental comparison of click position-bias models", WSDM 2008.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> round(float(expected_clicks(CM(np.array([0.5, 0.25])), np.array([1, 0], np.uint32))), 3)
0.625
"""

from typing import NamedTuple

from saferank._kernel import implements
from saferank.click_models.shapes import PerItem
from saferank.randomness import Words, as_uniform, following, load, output, store
from saferank.verbs import Ints, Items, click, expected_clicks


class CM(NamedTuple):
    """Users go down the page to the first attractive item, click it and leave."""

    attraction: PerItem


@implements(click, CM)
def _click(model: CM, shown: Items, rng: Words, clicks: Ints) -> None:
    """One uniform per position, also below the click: leaving the loop at a random place costs more than the draws."""
    looking, state = 1, load(rng)
    for k in range(len(clicks)):
        clicks[k] = looking & int(as_uniform(output(state)) < model.attraction[shown[k]])
        looking -= clicks[k]
        state = following(state)
    store(rng, state)


@implements(expected_clicks, CM)
def _expected_clicks(model: CM, shown: Items) -> float:
    unattracted = 1.0
    for k in range(len(shown)):
        unattracted *= 1.0 - model.attraction[shown[k]]
    return 1.0 - unattracted
