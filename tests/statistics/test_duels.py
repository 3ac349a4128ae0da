"""Duels agree with a plain dictionary, whatever happens to them, whether rows are found by number or by hash."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics.decision import decision_rule
from saferank.statistics.duels import (
    DIRECT_DUELS,
    Duels,
    crowded,
    duels_for,
    is_certified,
    new_duels,
    new_lifetime_duels,
    record_and_certify,
    surely_better,
    with_more_items,
    with_room,
)
from saferank.statistics.pairs import all_rows, count_win, duel_of, items_of, items_of_rows, most_fought
from saferank.verbs import Ints

N_ITEMS = 9
Pair = tuple[int, int]
PAIRS = st.tuples(st.integers(0, N_ITEMS - 1), st.integers(0, N_ITEMS - 1)).filter(lambda pair: pair[0] != pair[1])
OPERATIONS = st.lists(st.tuples(st.sampled_from(["win", "win", "grow", "more items"]), PAIRS), max_size=60)


class Policy(NamedTuple):
    lead_needed: Ints


class State(NamedTuple):
    duels: Duels


def every_pair() -> list[Pair]:
    return [(i, j) for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j]


START = pytest.mark.parametrize("direct_items", [N_ITEMS, N_ITEMS + 2, 0], ids=["by number", "at first", "by hash"])


@START
@given(operations=OPERATIONS)
@settings(max_examples=60, deadline=None)
def test_a_table_of_pairs_agrees_with_a_dictionary(direct_items: int, operations: list[tuple[str, Pair]]) -> None:
    duels, wins, items = new_duels(N_ITEMS, 2, direct_items), Counter[Pair](), N_ITEMS
    for what, (i, j) in operations:
        if what == "grow" or crowded(duels, 1):
            duels = with_room(duels, 1)
        if what == "win":
            wins[i, j] += 1
            row = count_win(duels, i, j)
            assert items_of(duels, row) == (min(i, j), max(i, j))
        elif what == "more items":
            items += 1
            duels = with_more_items(duels, items, direct_items)
    assert {(i, j): duel_of(duels, i, j)[0] for i, j in every_pair()} == {pair: wins[pair] for pair in every_pair()}
    assert most_fought(duels) == max((wins[i, j] + wins[j, i] for i, j in every_pair()), default=0)
    rows = all_rows(duels)
    named = list(zip(*(column.tolist() for column in items_of_rows(duels, rows)), strict=True))
    assert named == [items_of(duels, row) for row in rows.tolist()]


@START
@given(winners=st.lists(PAIRS, max_size=200), few=st.lists(st.booleans(), max_size=100))
@settings(max_examples=60, deadline=None)
def test_certificates_are_kept_once_with_the_round_in_which_a_pair_was_decided(
    direct_items: int, winners: list[Pair], few: list[bool]
) -> None:
    """``few`` are duels of one pair, which gets decided, opens and is decided the other way."""
    rule, wins, expected = decision_rule("paper:0.7"), Counter[Pair](), dict[Pair, int]()
    state, policy = State(new_duels(N_ITEMS, 36, direct_items)), Policy(rule.table(300))

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
        assert is_certified(state.duels, winner, loser) == ((winner, loser) in expected or after[0])
        if after[0]:
            expected.setdefault((winner, loser), now)
    kept = state.duels.certificates
    entries = zip(kept.better.tolist(), kept.worse.tolist(), kept.round.tolist(), strict=True)
    assert list(entries)[: kept.given[0]] == [(i, j, now) for (i, j), now in expected.items()]


def test_certificates_and_duels_survive_the_way_from_numbers_to_hashes() -> None:
    rng, wins = np.random.default_rng(1), Counter[Pair]()
    state, policy = State(new_duels(DIRECT_DUELS)), Policy(decision_rule("paper:0.7").table(300))
    for now in range(3000):
        i, j = sorted(rng.integers(0, DIRECT_DUELS, 2).tolist())
        if i != j:
            wins[i, j] += 1
            record_and_certify(policy, state, i, j, now)
            record_and_certify(policy, state, i, j, now)
    assert state.duels.certificates.given[0] > 100
    larger = with_more_items(state.duels, DIRECT_DUELS + 1)
    assert len(larger.pairs.slots) > 0 == len(state.duels.pairs.slots)
    assert all(duel_of(larger, i, j) == (2 * count, 0) for (i, j), count in wins.items())
    assert all(is_certified(larger, i, j) == is_certified(state.duels, i, j) for i, j in wins)
    given_before = int(state.duels.certificates.given[0])
    assert larger.certificates.better[:given_before].tolist() == state.duels.certificates.better[:given_before].tolist()
    assert with_more_items(larger, DIRECT_DUELS + 2) is larger


@pytest.mark.parametrize("lifetime", [None, 50])
def test_large_catalogues_have_rows_for_what_is_compared(lifetime: int | None) -> None:
    assert len(duels_for(DIRECT_DUELS, lifetime).pairs.slots) == 0
    hashed = duels_for(DIRECT_DUELS + 1, lifetime)
    assert len(with_room(hashed, 5001).pairs.low) > 5001 and most_fought(hashed) == 0
    assert not crowded(with_room(hashed, 5001), 5001)


def test_duels_with_a_lifetime_grow_like_others() -> None:
    few = new_lifetime_duels(4, 100)
    count_win(few, 3, 1)
    more = with_more_items(few, 6)
    many = with_more_items(more, DIRECT_DUELS + 1)
    assert duel_of(few, 3, 1) == duel_of(more, 3, 1) == duel_of(many, 3, 1) == (1, 0)
    assert len(many.closure.number) == DIRECT_DUELS + 1 and len(many.pairs.slots) > 0 == len(more.pairs.slots)
