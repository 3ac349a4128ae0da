"""UBM, the user browsing model: P(click at r) = examination[r, c] * attraction[item at r], c the last click above.

c = 0 stands for no click above, otherwise it is the position (from 1) of the last click above; r counts from 0. With
ahead[c] the expected number of clicks below position c when c was clicked, r(shown) = ahead[0] and, position by
position from the bottom of the page up to c + 1,
ahead[c] <- p * (1 + ahead[r + 1]) + (1 - p) * ahead[c], p = examination[r, c] * attraction[shown[r]], for r = K-1..c.

Dupret and Piwowarski, "A user browsing model to predict search engine click data from past observations", SIGIR 2008.

>>> import numpy as np
>>> from saferank.verbs import expected_clicks
>>> model = UBM(np.array([0.5, 0.25]), np.array([[1.0, 0.0], [0.4, 0.8]]))
>>> round(float(expected_clicks(model, np.array([0, 1], np.uint32))), 3)
0.65
"""

from typing import NamedTuple

from saferank._kernel import implements, kernel
from saferank.click_models.shapes import PerItem, Triangle
from saferank.randomness import Words, uniform
from saferank.verbs import Ints, Items, click, expected_clicks

Window = tuple[float, ...]

# Kernels must not allocate, and the recursion needs one number per position. A tuple lives in registers and on the
# stack. Its length is part of its type, so the usual page of up to ten results does not pay for the longest one.
_USUAL_PAGE: Window = (0.0,) * 10
_LONGEST_PAGE: Window = (0.0,) * 100


class UBM(NamedTuple):
    """Users look at a position with a probability that depends on it and on where they clicked last (up to 100)."""

    attraction: PerItem
    examination: Triangle


@implements(click, UBM)
def _click(model: UBM, shown: Items, rng: Words, clicks: Ints) -> None:
    """One uniform per position."""
    last = 0
    for r in range(len(clicks)):
        clicked = uniform(rng) < model.examination[r, last] * model.attraction[shown[r]]
        clicks[r] = clicked
        if clicked:
            last = r + 1


@kernel
def _ahead(model: UBM, shown: Items, c: int, below: Window) -> float:
    """Expected clicks below position c after a click there; below[i] is the same for position c + 1 + i."""
    ahead = 0.0
    for r in range(len(shown) - 1, c - 1, -1):
        p = model.examination[r, c] * model.attraction[shown[r]]
        ahead = p * (1.0 + below[r - c]) + (1.0 - p) * ahead
    return ahead


@kernel
def _from_the_bottom(model: UBM, shown: Items, below: Window) -> float:
    for c in range(len(shown), 0, -1):
        below = (_ahead(model, shown, c, below),) + below[:-1]  # noqa: RUF005 (numba cannot unpack here)
    return _ahead(model, shown, 0, below)


@implements(expected_clicks, UBM)
def _expected_clicks(model: UBM, shown: Items) -> float:
    if len(shown) <= len(_USUAL_PAGE):
        return _from_the_bottom(model, shown, _USUAL_PAGE)
    return _from_the_bottom(model, shown, _LONGEST_PAGE)
