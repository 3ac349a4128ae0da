"""Dense and hashed duels agree with a plain dictionary, whatever happens to them."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics.decision import decision_rule
from saferank.statistics.duels import (
    DENSE_LIMIT,
    DenseDuels,
    HashedDuels,
    certify,
    count_win,
    crowded,
    is_certified,
    most_fought,
    new_dense_duels,
    new_duels,
    new_hashed_duels,
    record_and_certify,
    surely_better,
    wins_of,
    with_more_items,
    with_more_slots,
)
from saferank.verbs import Ints

N_ITEMS = 9
Pair = tuple[int, int]
PAIRS = st.tuples(st.integers(0, N_ITEMS - 1), st.integers(0, N_ITEMS - 1)).filter(lambda pair: pair[0] != pair[1])
OPERATIONS = st.lists(st.tuples(st.sampled_from(["win", "win", "certify", "grow", "more items"]), PAIRS), max_size=60)


class Policy(NamedTuple):
    lead_needed: Ints


class State(NamedTuple):
    duels: DenseDuels | HashedDuels


def every_pair() -> list[Pair]:
    return [(i, j) for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j]


def grown(duels: DenseDuels | HashedDuels) -> DenseDuels | HashedDuels:
    return with_more_slots(duels, 1) if isinstance(duels, HashedDuels) else duels


@pytest.mark.parametrize("start", [lambda: new_dense_duels(N_ITEMS), lambda: new_hashed_duels(4)])
@given(operations=OPERATIONS)
@settings(max_examples=60, deadline=None)
def test_a_store_agrees_with_a_dictionary(start: object, operations: list[tuple[str, Pair]]) -> None:
    assert callable(start)
    duels, wins, certified, items = start(), Counter[Pair](), set[Pair](), N_ITEMS
    for what, (i, j) in operations:
        if what == "grow" or crowded(duels, 1):
            duels = grown(duels)
        if what == "win":
            wins[i, j] += 1
            assert count_win(duels, i, j) == wins[j, i]
        elif what == "certify":
            assert certify(duels, i, j) == ((i, j) not in certified)
            certified.add((i, j))
        elif what == "more items":
            items += 1
            duels = with_more_items(duels, items)
    assert {(i, j): wins_of(duels, i, j) for i, j in every_pair()} == {pair: wins[pair] for pair in every_pair()}
    assert {(i, j) for i, j in every_pair() if is_certified(duels, i, j)} == certified
    assert most_fought(duels) == max((wins[i, j] + wins[j, i] for i, j in every_pair()), default=0)


@pytest.mark.parametrize("start", [lambda: new_dense_duels(N_ITEMS), lambda: new_hashed_duels(256)])
@given(winners=st.lists(PAIRS, max_size=200), few=st.lists(st.booleans(), max_size=100))
@settings(max_examples=60, deadline=None)
def test_certificates_are_kept_once_with_the_round_in_which_a_pair_was_decided(
    start: object, winners: list[Pair], few: list[bool]
) -> None:
    """``few`` are duels of one pair, which gets decided, opens and is decided the other way."""
    assert callable(start)
    rule, state, wins, expected = decision_rule("paper:0.7"), State(start()), Counter[Pair](), dict[Pair, int]()
    policy = Policy(rule.table(300))

    def verdict(i: int, j: int) -> list[bool]:
        n, s = wins[i, j] + wins[j, i], wins[i, j] - wins[j, i]
        return [rule.decides(s, n), rule.decides(-s, n)]

    pairs = winners + [(0, 1) if side else (1, 0) for side in few]
    for now, (winner, loser) in enumerate(pairs, start=1):
        before = verdict(winner, loser)
        wins[winner, loser] += 1
        after = verdict(winner, loser)
        assert record_and_certify(policy, state, winner, loser, now) == (before != after)
        assert surely_better(state.duels, policy.lead_needed, winner, loser) == after[0]
        assert surely_better(state.duels, policy.lead_needed, loser, winner) == after[1]
        if after[0]:
            expected.setdefault((winner, loser), now)
    kept = state.duels.certificates
    entries = zip(kept.better.tolist(), kept.worse.tolist(), kept.round.tolist(), strict=True)
    assert list(entries)[: kept.given[0]] == [(i, j, now) for (i, j), now in expected.items()]


def test_certificates_and_duels_survive_the_way_from_a_matrix_to_a_table() -> None:
    rng, wins = np.random.default_rng(1), Counter[Pair]()
    state, policy = State(new_dense_duels(DENSE_LIMIT)), Policy(decision_rule("paper:0.7").table(300))
    for now in range(3000):
        i, j = sorted(rng.integers(0, DENSE_LIMIT, 2).tolist())
        if i != j:
            wins[i, j] += 1
            record_and_certify(policy, state, i, j, now)
            record_and_certify(policy, state, i, j, now)
    assert state.duels.certificates.given[0] > 100
    larger = with_more_items(state.duels, DENSE_LIMIT + 1)
    assert isinstance(larger, HashedDuels)
    assert all(wins_of(larger, i, j) == 2 * count and wins_of(larger, j, i) == 0 for (i, j), count in wins.items())
    assert all(is_certified(larger, i, j) == is_certified(state.duels, i, j) for i, j in wins)
    given_before = int(state.duels.certificates.given[0])
    assert larger.certificates.better[:given_before].tolist() == state.duels.certificates.better[:given_before].tolist()
    assert with_more_items(larger, DENSE_LIMIT + 2) is larger


def test_the_store_suits_the_size_of_the_catalogue() -> None:
    assert isinstance(new_duels(DENSE_LIMIT, 5), DenseDuels)
    hashed = new_duels(DENSE_LIMIT + 1, 5000)
    assert isinstance(hashed, HashedDuels)
    assert not crowded(hashed, 5001)
    assert most_fought(hashed) == 0
