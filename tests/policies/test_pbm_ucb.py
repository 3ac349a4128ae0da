"""PBM-UCB and PBM-TS: where the largest value is placed, and what is known of the positions."""

import numpy as np
import pytest

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.verbs import new_impression
from tests.policies.at_work import AtWork

PBM = pytest.mark.parametrize("name", ["pbm-ucb", "pbm-ts"])


@PBM
def test_the_best_item_stands_where_most_users_look(name: str) -> None:
    """Item 2 is clicked whenever it is shown: after 200 pages it is at the second position, the one with kappa 1."""
    kind = POLICIES[name]
    state = AtWork(kind, Setup(4, 3, examination=(0.5, 1.0, 0.25)))
    rng, impression = stream(0, "policy"), new_impression(3, 3)
    for _ in range(200):
        state.choose(rng, impression)
        state.learn(impression, np.array([int(item == 2) for item in impression.shown]))
    assert impression.shown[1] == 2 and state.leader()[1] == 2


@PBM
def test_without_examination_it_does_not_start(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs the examination probability of every position"):
        POLICIES[name].start(Setup(4, 3))


def test_the_bound_is_the_formula() -> None:
    """Two displays at kappa 0.5, so M = 1, and one click, at t = 3."""
    state = AtWork(POLICIES["pbm-ucb"], Setup(2, 1, examination=(0.5,)))
    impression = new_impression(1, 1)
    for clicks in (1, 0):
        state.choose(stream(0, "policy"), impression)
        impression.ranking[0] = 0
        state.learn(impression, np.array([clicks]))
    state.choose(stream(0, "policy"), impression)
    assert impression.shown[0] == 1  # never shown: infinite
    assert state.value[0] == pytest.approx(1 / 1.0 + np.sqrt(2 / 1.0) * np.sqrt(np.log(3) / 2.0), rel=1e-14)
