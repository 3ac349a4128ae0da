"""The closure over numbered items agrees with a plain search for paths."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics.closure import (
    BITS,
    Closure,
    certified_by,
    certify_over,
    closure_full,
    new_closure,
    recount,
    surely,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.verbs import Flags

Pair = tuple[int, int]


def reachable(edges: list[Pair], i: int) -> set[int]:
    """Everyone below i."""
    found: set[int] = set()
    waiting = [i]
    while waiting:
        upper = waiting.pop()
        for lower in (worse for better, worse in edges if better == upper and worse not in found):
            found.add(lower)
            waiting.append(lower)
    return found


def filled(n_items: int, edges: list[Pair], present: Flags) -> tuple[Closure, list[Pair]]:
    """The closure of those edges that are open when their turn comes, and these."""
    closure, kept = new_closure(n_items, BITS), []
    for i, j in edges:
        if i != j and not surely(closure, i, j) and not surely(closure, j, i):
            if closure_full(closure, 2):
                closure = with_more_numbers(closure)
            certify_over(closure, present, i, j)
            kept.append((i, j))
    return closure, kept


def agrees(closure: Closure, edges: list[Pair], present: Flags) -> bool:
    for i in range(len(present)):
        below = reachable(edges, i)
        if {j for j in range(len(present)) if surely(closure, i, j)} != below:
            return False
        if certified_by(closure, i) != sum(bool(present[j]) for j in below):
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 50), st.data())
def test_closure_is_that_of_a_search(n_items: int, data: st.DataObject) -> None:
    item = st.integers(0, n_items - 1)
    edges = data.draw(st.lists(st.tuples(item, item), max_size=80))
    present = np.array(data.draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items)))
    closure, kept = filled(n_items, edges, present)
    assert agrees(closure, kept, present)
    assert not any(surely(closure, i, i) for i in range(n_items))
    recount(closure, ~present)
    assert agrees(closure, kept, ~present)
    larger = with_more_unnumbered(with_more_numbers(closure), n_items + 3)
    assert agrees(larger, kept, np.append(~present, [True] * 3))


def test_a_closure_left_out_is_noticed() -> None:
    present, edges = np.ones(3, np.bool_), [(0, 1), (1, 2)]
    closure, _ = filled(3, edges, present)
    assert agrees(closure, edges, present)
    closure.worse[int(closure.number[0])] = 1 << int(closure.number[1])  # only what was certified itself
    assert not agrees(closure, edges, present)


def test_more_than_a_word_of_items_in_a_chain() -> None:
    n_items = 3 * BITS + 5
    closure, kept = filled(n_items, [(i, i + 1) for i in reversed(range(n_items - 1))], np.ones(n_items, np.bool_))
    assert len(kept) == n_items - 1
    assert [certified_by(closure, i) for i in range(n_items)] == list(reversed(range(n_items)))
