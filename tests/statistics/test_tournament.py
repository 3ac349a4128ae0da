"""The champion of the tournament equals the plain argmax over all candidates, whatever happened before."""

from typing import Any

import numpy as np
import pytest

from saferank.statistics.duels import new_duels
from saferank.statistics.kl import duel_index
from saferank.statistics.pairs import count_win, duel_of
from saferank.statistics.tournament import (
    ABSENT,
    CANDIDATE,
    RANKED,
    champion,
    new_opponent,
    new_record,
    new_tournament,
)
from saferank.verbs import NO_ITEM, Ints


def plain_argmax(duels: Any, standing: Ints, bottom: int, t: int) -> int:
    """The first candidate with the largest index."""
    best, best_index = NO_ITEM, -2.0
    for item in np.flatnonzero(standing == CANDIDATE).tolist():
        index = duel_index(*duel_of(duels, item, bottom), t)
        if index > best_index:
            best, best_index = item, index
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_champion_is_the_plain_argmax(seed: int) -> None:
    """Clocks run, stand still and jump; the bottom item and the candidates change."""
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(2, 30))
    duels = new_duels(n_items, direct_items=n_items * (seed % 2))
    standing, bottom, t = np.full(n_items, CANDIDATE), int(rng.integers(n_items)), 0
    standing[bottom] = RANKED
    chances, tournament = rng.random(n_items) * 0.5 + 0.2, new_tournament(n_items)
    for _ in range(300):
        found = champion(tournament, duels, standing, bottom, t)
        assert found == plain_argmax(duels, standing, bottom, t)
        if found != NO_ITEM and rng.random() < 0.5:
            won = rng.random() < chances[found]
            count_win(duels, found if won else bottom, bottom if won else found)
            new_record(tournament, duels, bottom, found)
        t += 1 if rng.random() < 0.9 else int(t * rng.random())
        if rng.random() < 0.01:
            t = int(rng.integers(0, t + 1))
            new_opponent(tournament)
        if rng.random() < 0.01:
            standing[bottom], bottom = CANDIDATE, int(rng.integers(n_items))
            standing[bottom] = RANKED
            new_opponent(tournament)
        if rng.random() < 0.005:
            standing[rng.integers(n_items)] = ABSENT
            standing[bottom] = RANKED
            new_opponent(tournament)


@pytest.mark.parametrize("n_items", [1, 2, 5])
def test_without_candidates_there_is_no_champion(n_items: int) -> None:
    tournament, duels = new_tournament(n_items), new_duels(n_items)
    for t in (0, 3, 100):
        assert champion(tournament, duels, np.full(n_items, RANKED), 0, t) == NO_ITEM


def test_equal_records_are_won_by_the_first_candidate() -> None:
    tournament, duels, standing = new_tournament(6), new_duels(6), np.full(6, CANDIDATE)
    standing[0] = RANKED
    for item in range(1, 6):
        for winner, loser in [(item, 0), (0, item), (0, item)]:
            count_win(duels, winner, loser)
    assert champion(tournament, duels, standing, 0, 50) == 1
    standing[1] = ABSENT
    new_opponent(tournament)
    assert champion(tournament, duels, standing, 0, 51) == 2
