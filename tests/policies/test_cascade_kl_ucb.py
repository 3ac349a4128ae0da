"""CascadeKL-UCB: the order it keeps equals the plain argmax, for longer than the transcription can be played."""

import numpy as np
import pytest

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream, uniform
from saferank.statistics.kl import kl_index
from saferank.verbs import new_impression
from tests.policies.at_work import AtWork


def test_the_kept_order_equals_the_plain_argmax() -> None:
    """Near the end of 20,000 rounds the indices of rivals are close; the page is in the order of all of them."""
    kind, setup = POLICIES["cascade-kl-ucb"], Setup(9, 3)
    state = AtWork(kind, setup)
    rng, users, impression = stream(1, "policy"), stream(1, "users"), new_impression(3, 3)
    attraction = np.array([0.2, 0.2, 0.25, 0.1, 0.3, 0.02, 0.28, 0.22, 0.2])
    for number in range(1, 20_001):
        state.choose(rng, impression)
        if number % 7 == 0:
            rates = state.clicked / np.maximum(state.examined, 1)
            plain = np.array([kl_index(rate, n, number) for rate, n in zip(rates, state.examined, strict=True)])
            assert plain[impression.shown] == pytest.approx(np.sort(plain)[::-1][:3], rel=1e-12)
        state.learn(impression, np.array([int(uniform(users) < attraction[i]) for i in impression.shown]))


def test_clicks_below_the_first_are_not_looked_at() -> None:
    kind = POLICIES["cascade-kl-ucb"]
    state = AtWork(kind, Setup(4, 3))
    impression = new_impression(3, 3)
    state.choose(stream(0, "policy"), impression)
    state.learn(impression, np.array([0, 1, 1]))
    assert state.examined.tolist() == [1, 1, 0, 0] and state.clicked.tolist() == [0, 1, 0, 0]
    state.learn(impression, np.array([0, 0, 0]))
    assert state.examined.tolist() == [2, 2, 1, 0]
