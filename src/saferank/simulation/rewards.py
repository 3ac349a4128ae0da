"""Rewards of a page by which regret is measured: clicks, DCG, or clicks with a weight for every position.

* ``clicks``: the expected number of clicks, as everywhere else.
* ``dcg``: sum over positions k = 1..K of attraction of the item at k / log2(k + 1). It does not ask how users browse.
* ``weights:W1,W2,...``: sum over positions of W_k times the probability of a click at k. In all our click models users
  go down the page, so that a click does not depend on what stands below it: the probability of a click at k is the
  difference between the expected clicks of the first k and of the first k - 1 positions.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations
from math import log2, perm
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.click_models.best import MOST_RANKINGS, best_reward
from saferank.errors import ArgumentError
from saferank.verbs import Floats, Items, expected_clicks

CLICKS = "clicks"
_CLICKS, _DCG, _WEIGHTED = 0, 1, 2


class Reward(NamedTuple):
    """A reward. One type for all of them: a loop that has been compiled for one serves the others too."""

    kind: int
    weights: Floats  # by position


@kernel
def reward(of: Reward, model: Any, shown: Items) -> float:
    """The expected reward of a page."""
    if of.kind == _CLICKS:
        return expected_clicks(model, shown)
    total, above = 0.0, 0.0
    for k in range(len(shown)):
        if of.kind == _DCG:
            total += of.weights[k] * model.attraction[shown[k]]
        else:
            clicks = expected_clicks(model, shown[: k + 1])
            total += of.weights[k] * (clicks - above)
            above = clicks
    return total


def reward_of(text: str, n_positions: int) -> Reward:
    """The reward that a text means."""
    if text == CLICKS:
        return Reward(_CLICKS, np.ones(n_positions))
    if text == "dcg":
        return Reward(_DCG, np.array([1.0 / log2(k + 2) for k in range(n_positions)]))
    name, _, rest = text.partition(":")
    if name != "weights":
        raise ArgumentError("world", f"reward: found {text!r}, expected clicks, dcg or weights:W1,W2,...")
    try:
        weights = [float(part) for part in rest.split(",")]
    except ValueError:
        weights = []
    if len(weights) != n_positions or not all(0 <= weight < float("inf") for weight in weights):
        expected = f"expected {n_positions} numbers that are not negative, one for each position"
        raise ArgumentError("world", f"reward: found {text!r}, {expected}")
    return Reward(_WEIGHTED, np.array(weights))


def value_of(of: Reward, model: Any, shown: Items) -> float:
    """The reward of a page, from Python; clicks need no kernel of their own there."""
    return float(expected_clicks(model, shown) if of.kind == _CLICKS else reward(of, model, shown))


def best_of(of: Reward, model: Any, n_positions: int) -> float:
    """The largest expected reward of a page.

    Clicks have it in ``click_models/best.py``; DCG is largest in decreasing order of attraction. For weighted clicks
    all rankings are tried when they are at most a million; beyond that the same order is assumed to be best.
    """
    if of.kind == _CLICKS:
        return best_reward(model, n_positions).value
    by_attraction = np.argsort(-model.attraction, kind="stable").astype(np.uint32)
    tried: Iterable[Sequence[int]] = [by_attraction[:n_positions].tolist()]
    if of.kind == _WEIGHTED and perm(len(by_attraction), n_positions) <= MOST_RANKINGS:
        tried = permutations(range(len(by_attraction)), n_positions)
    return max(value_of(of, model, np.array(shown, np.uint32)) for shown in tried)
