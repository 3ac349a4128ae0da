"""PBM, the position-based model: P(click at k) = examination[k] * attraction[item at k], independently.

r(shown) = sum over k of examination[k] * attraction[shown[k]].

Richardson, Dominowska and Ragno, "Predicting clicks", WWW 2007; Craswell et al., "An experimental comparison of click
position-bias models", WSDM 2008.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> round(float(expected_clicks(PBM(np.array([0.5, 0.25]), np.array([1.0, 0.5])), np.array([1, 0], np.uint32))), 3)
0.5
"""

from typing import NamedTuple

from saferank._kernel import implements
from saferank.click_models.shapes import PerItem, PerPosition
from saferank.randomness import Words, as_uniform, following, load, output, store
from saferank.verbs import Ints, Items, click, expected_clicks


class PBM(NamedTuple):
    """Users look at each position with its own probability and click what attracts them."""

    attraction: PerItem
    examination: PerPosition


@implements(click, PBM)
def _click(model: PBM, shown: Items, rng: Words, clicks: Ints) -> None:
    """One uniform per position."""
    state = load(rng)
    for k in range(len(clicks)):
        clicks[k] = as_uniform(output(state)) < model.examination[k] * model.attraction[shown[k]]
        state = following(state)
    store(rng, state)


@implements(expected_clicks, PBM)
def _expected_clicks(model: PBM, shown: Items) -> float:
    total = 0.0
    for k in range(len(shown)):
        total += model.examination[k] * model.attraction[shown[k]]
    return total
