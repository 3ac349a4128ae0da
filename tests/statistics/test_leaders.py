"""Leader counts agree with a plain dictionary, whichever leaders come back and however the table grows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics.leaders import (
    enthrone,
    leaders_full,
    new_leader_counts,
    pages_under,
    with_more_leaders,
)

LEADERS = st.lists(st.permutations(range(4)).map(tuple), min_size=1, max_size=80)


@given(LEADERS)
@settings(deadline=None)
def test_counts_are_those_of_a_dictionary(reigns: list[tuple[int, ...]]) -> None:
    leaders, model, issued = new_leader_counts(4, capacity=2), dict[tuple[int, ...], int](), 0
    for pages, leader in enumerate(reigns):
        if leaders_full(leaders):
            current = leaders.current[0]
            leaders = with_more_leaders(leaders)
            assert leaders.current[0] == current
        enthrone(leaders, np.array(leader), issued)
        assert pages_under(leaders, issued) == model.get(leader, 0)
        issued += pages
        model[leader] = model.get(leader, 0) + pages
        assert pages_under(leaders, issued) == model[leader]
        assert tuple(leaders.keys[leaders.current[0]].tolist()) == leader
    enthrone(leaders, leaders.keys[leaders.current[0]], issued)  # what the last one has led is counted then
    known = [tuple(leader) for leader in leaders.keys[: leaders.size[0]].tolist()]
    assert dict(zip(known, leaders.counts.tolist(), strict=False)) == model
    assert known == list(model)  # in the order of their first appearance


def test_a_table_is_full_when_every_place_is_taken() -> None:
    leaders = new_leader_counts(1, capacity=4)
    for item in range(4):
        assert not leaders_full(leaders)
        enthrone(leaders, np.array([item]), 0)
        enthrone(leaders, np.array([item]), 0)
    assert leaders_full(leaders)
    enthrone(leaders, np.array([2]), 0)  # known leaders come back all the same
    assert leaders.current[0] == 2
    assert not leaders_full(with_more_leaders(leaders))
