"""Shows the original ranking upside down and says that it is safe."""

from typing import NamedTuple

import numpy as np

from saferank.policies import register
from saferank.verbs import Floats, Ints, Items, choose, implements, learn


class Mine(NamedTuple):
    lead: int


class MineState(NamedTuple):
    round: Ints
    leader: Items
    clicks: Ints
    share: Floats


@implements(choose, Mine)
def _choose(policy, state, rng, impression):
    state.round[0] += 1
    impression.round[0], impression.places[0] = state.round[0], len(state.leader)
    for place in range(len(state.leader)):
        impression.ranking[place] = state.leader[len(state.leader) - 1 - place]
        impression.start[place], impression.end[place] = place, place + 1


@implements(learn, Mine)
def _learn(policy, state, impression, clicks):
    for place in range(len(clicks)):
        state.clicks[impression.ranking[place]] += clicks[place]
    state.share[0] = state.clicks[0] / (1.0 + state.clicks.sum())


def _start(setup):
    leader = np.arange(setup.n_positions, dtype=np.uint32)
    state = MineState(np.zeros(1, np.int64), leader, np.zeros(setup.n_items, np.int64), np.zeros(1))
    return Mine(lead=3), state


register("promises-too-much", Mine, start=_start, leader=lambda state: state.leader, safe=True)
