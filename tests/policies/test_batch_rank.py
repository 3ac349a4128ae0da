"""BatchRank: what its stages do, beyond equality with the transcription."""

import math
from typing import Any

import numpy as np
import pytest

from saferank import Ranker
from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.verbs import new_impression
from tests.policies.at_work import AtWork

KIND = POLICIES["batch-rank"]


def played(n_items: int, n_positions: int, clicked: set[int], horizon: int, rounds: int) -> tuple[Any, list[Any]]:
    """The state after users who click on certain items always, and the batches by page as (start, end) pairs."""
    setup = Setup(n_items, n_positions, horizon=horizon)
    state = AtWork(KIND, setup)
    rng, impression, history = stream(3, "batches"), new_impression(n_positions, n_positions), []
    for _ in range(rounds):
        state.choose(rng, impression)
        history.append(sorted(set(zip(impression.start.tolist(), impression.end.tolist(), strict=True))))
        state.learn(impression, np.array([int(item in clicked) for item in impression.shown]))
    return state, history


def test_a_batch_is_split_when_every_item_has_been_observed_often_enough() -> None:
    """Of 4 items on 2 positions, each page observes 2: the first stage of n_0 observations takes 2 n_0 pages."""
    needed = math.ceil(16 * math.log(1000))
    state, history = played(4, 2, {3}, horizon=1000, rounds=2 * needed + 1)
    assert history[: 2 * needed] == [[(0, 2)]] * (2 * needed)
    assert history[-1] == [(0, 1), (1, 2)]
    assert state.leader()[0] == 3


def test_losers_are_dropped_when_nothing_can_be_split() -> None:
    """Two items are clicked equally, always; they stay together, and the other three leave after the first stage."""
    needed = math.ceil(16 * math.log(1000))
    state, history = played(5, 2, {1, 4}, horizon=1000, rounds=3 * needed)
    assert state.leader().tolist() == [1, 4]
    assert state.stage[0] == 1 and history[-1] == [(0, 2)]


def test_a_full_batch_that_cannot_be_split_goes_on_with_its_next_stage() -> None:
    needed = math.ceil(16 * math.log(100))
    state, _ = played(2, 2, {0, 1}, horizon=100, rounds=needed + 4 * needed + 1)
    assert state.stage[0] == 2


def test_pages_of_an_earlier_stage_are_ignored() -> None:
    ranker = Ranker("batch-rank", original=["a", "b"], rule="paper:0.3")
    late = ranker.rank()
    for _ in range(20):  # ceil(16 log(1 / 0.3)) observations end the first stage
        page = ranker.rank()
        ranker.feedback(page, page.items)
    state = ranker._plan
    assert state.stage[0] == 1
    ranker.feedback(late, ["a"])
    assert state.observed.sum() == 0


def test_another_set_of_items_begins_again() -> None:
    ranker = Ranker("batch-rank", original=["a", "b"], candidates=["x"], rule="paper:0.01")
    pages = [ranker.rank() for _ in range(3)]
    ranker.add("y")
    for page in pages:
        ranker.feedback(page, page.items)
    state = ranker._plan
    assert state.observed.sum() == 0 and ranker.items == ("a", "b", "x", "y")
    ranker.feedback(ranker.rank())
    assert state.observed.sum() == 2


@pytest.mark.parametrize("horizon", [1, 2])
def test_without_a_budget_nothing_is_ever_split(horizon: int) -> None:
    _, history = played(3, 2, {2}, horizon=horizon, rounds=200)
    assert history == [[(0, 2)]] * 200
