"""r* = max over rankings of r(ranking): the reward that regret is measured against.

PBM has it in closed form (the largest attraction at the position examined most, and so on), CM as well (the K largest
attractions in any order). For every other model all L! / (L - K)! rankings are tried when they are at most a million;
beyond that the decreasing order of attraction is *assumed* to be best, and ``BestReward.assumed`` says so.

>>> from saferank.click_models import PBM
>>> best_reward(PBM(np.array([0.1, 0.2, 0.4]), np.array([0.5, 1.0])), n_positions=2)
BestReward(value=0.5, ranking=(1, 2), assumed=False)
"""

from math import perm
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, specialised
from saferank.click_models.cm import CM
from saferank.click_models.pbm import PBM
from saferank.verbs import Floats, Items, expected_clicks

MOST_RANKINGS = 10**6
"""Maximum number of rankings that are enumerated."""


class BestReward(NamedTuple):
    """The largest expected number of clicks, a ranking that has it, and whether that is assumed, not proved."""

    value: float
    ranking: tuple[int, ...]
    assumed: bool


def best_reward(model: Any, n_positions: int) -> BestReward:
    """The best expected reward of ``n_positions`` positions under a click model."""
    n_items = len(model.attraction)
    if not 1 <= n_positions <= n_items:
        raise ValueError(f"n_positions is {n_positions}, expected 1 to {n_items}, the number of items")
    if isinstance(model, PBM):
        return _reward_of(model, _paired_with_examination(model, n_positions))
    if isinstance(model, CM):
        return _reward_of(model, _by_attraction(model.attraction, n_positions))
    if perm(n_items, n_positions) <= MOST_RANKINGS:
        return _reward_of(model, _best_of_all(model, n_positions))
    return _reward_of(model, _by_attraction(model.attraction, n_positions), assumed=True)


def _reward_of(model: Any, ranking: Items, assumed: bool = False) -> BestReward:
    # The verb itself computes the value, so that showing the best ranking has a regret of exactly zero.
    return BestReward(float(expected_clicks(model, ranking)), tuple(ranking.tolist()), assumed)


def _by_attraction(attraction: Floats, n_positions: int) -> Items:
    """The most attractive items in decreasing order; of equal ones the first comes first."""
    return np.argsort(-attraction, kind="stable")[:n_positions].astype(np.uint32)


def _paired_with_examination(model: PBM, n_positions: int) -> Items:
    ranking = np.empty(n_positions, np.uint32)
    most_examined_first = np.argsort(-model.examination[:n_positions], kind="stable")
    ranking[most_examined_first] = _by_attraction(model.attraction, n_positions)
    return ranking


def _best_of_all(model: Any, n_positions: int) -> Items:
    order = np.arange(len(model.attraction), dtype=np.uint32)
    best = order[:n_positions].copy()
    specialised(_search, type(model))(model, order, best)
    return best


@kernel
def _search(model: Any, order: Items, best: Items) -> None:
    """Leave in ``best`` the first ranking, in lexicographic order, of the largest reward; ``order`` starts sorted."""
    shown = order[: len(best)]
    highest = expected_clicks(model, shown)
    while _next_ranking(order, len(best)):
        reward = expected_clicks(model, shown)
        if reward > highest:
            highest = reward
            for k in range(len(best)):  # a slice assignment would allocate
                best[k] = shown[k]


@kernel
def _next_ranking(order: Items, n_positions: int) -> bool:
    """Turn the front of ``order`` into the lexicographically next ranking; False after the last one."""
    _reverse(order, n_positions)  # the rest is now in its last order, so the next permutation changes the front
    place = len(order) - 2
    while place >= 0 and order[place] > order[place + 1]:
        place -= 1
    if place < 0:
        return False
    successor = len(order) - 1
    while order[successor] < order[place]:
        successor -= 1
    _swap(order, place, successor)
    _reverse(order, place + 1)
    return True


@kernel
def _reverse(order: Items, start: int) -> None:
    for step in range((len(order) - start) // 2):
        _swap(order, start + step, len(order) - 1 - step)


@kernel
def _swap(order: Items, one: int, other: int) -> None:
    held = order[one]
    order[one] = order[other]
    order[other] = held
