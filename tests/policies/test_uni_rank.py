"""UniRank: what is kept from page to page is what would be chosen afresh."""

from collections import deque

import numpy as np
import pytest

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.statistics.leaders import pages_under
from saferank.verbs import Ints, new_impression
from tests.policies.at_work import AtWork

KIND = POLICIES["uni-rank"]


def pages(size: tuple[int, int], late: int, seed: int, keeps: bool) -> tuple[list[list[int]], int]:
    """The groups of 1,500 pages and their items, and on how many of them a choice was kept.

    Clicks are learnt ``late`` pages later. With ``keeps`` false the choice is forgotten before every page.
    """
    setup = Setup(*size)
    state = AtWork(KIND, setup)
    rng, users = stream(seed, "policy"), np.random.default_rng(seed)
    attraction, history, kept = users.uniform(0.1, 0.6, size[0]), [], 0
    waiting = deque(new_impression(size[1], size[0]) for _ in range(late + 1))
    arrived: list[Ints] = []
    for _ in range(1500):
        count = pages_under(state.leaders, state.issued)
        kept += int(count < state.extra[2] and state.parts.blockers[0] >= 0)
        state.extra[2] *= int(keeps)
        impression = waiting[0]
        waiting.rotate(-1)
        state.choose(rng, impression)
        places = int(impression.places[0])
        history.append([*impression.ranking[:places].tolist(), *impression.end[:places].tolist()])
        arrived.append((users.random(size[1]) < attraction[impression.shown]).astype(np.int64))
        if len(arrived) > late:
            state.learn(waiting[0], arrived[-1 - late])
    return history, kept


@pytest.mark.parametrize("late", [0, 5])
@pytest.mark.parametrize("size", [(10, 5), (6, 1), (7, 7), (12, 3)], ids=str)
def test_a_choice_that_is_kept_is_the_one_that_would_be_made(size: tuple[int, int], late: int) -> None:
    for seed in range(2):
        kept, how_often = pages(size, late, seed, keeps=True)
        afresh, _ = pages(size, late, seed, keeps=False)
        assert kept == afresh
        assert how_often > 500
