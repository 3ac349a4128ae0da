"""Certificates that expire, replace each other and contradict each other; by hand and against a transcription.

And their closure over numbered items, which agrees with a plain search for paths.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics import certificates as module
from saferank.statistics.certificates import (
    BITS,
    ENDLESS,
    NOTHING,
    Certificates,
    Closure,
    certify_over,
    close,
    closure_full,
    count_below,
    held,
    held_through,
    new_certificates,
    new_closure,
    surely,
    with_longer_list,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.verbs import Flags
from tests.reference.lifetimes import Certified

Pair = tuple[int, int]


class Table(NamedTuple):
    """Certificates and what follows from them."""

    certificates: Certificates
    closure: Closure


def new_table(n_items: int) -> Table:
    return Table(new_certificates(1000), new_closure(n_items))


def give(table: Table, better: int, worse: int, expires: int) -> bool:
    return bool(module.give(table.certificates, table.closure, (better, worse), expires, 1) != NOTHING)


def expire(table: Table, now: int) -> bool:
    gone = module.expire(table.certificates, now)
    if gone:
        close(table.certificates, table.closure, 1)
    return bool(gone)


def pairs_of(table: Table) -> dict[Pair, int]:
    return {(i, j): end for i, j, end in held(table.certificates)}


def closure_of(table: Table) -> set[Pair]:
    n_items = range(len(table.closure.number))
    return {(i, j) for i in n_items for j in n_items if surely(table.closure, i, j)}


def test_what_follows_is_the_transitive_closure() -> None:
    table = new_table(4)
    assert give(table, 2, 1, 20)
    assert give(table, 1, 0, 20)
    assert closure_of(table) == {(2, 1), (1, 0), (2, 0)}
    assert not give(table, 2, 1, 20)


def test_what_follows_ends_with_the_first_certificate_that_it_needs() -> None:
    table = new_table(3)
    give(table, 2, 1, 10)
    give(table, 1, 0, 20)
    assert not expire(table, 10)
    assert closure_of(table) == {(2, 1), (1, 0), (2, 0)}
    assert expire(table, 11)
    assert closure_of(table) == {(1, 0)}


def test_a_later_certificate_replaces_the_opposite_one_without_an_alarm() -> None:
    table = new_table(2)
    give(table, 0, 1, 10)
    assert give(table, 1, 0, 20)
    assert (pairs_of(table), table.certificates.alarms[0]) == ({(1, 0): 20}, 0)


def test_two_opposite_certificates_of_the_same_age_are_both_dropped() -> None:
    table = new_table(2)
    give(table, 0, 1, 10)
    assert give(table, 1, 0, 10)
    assert (pairs_of(table), closure_of(table), table.certificates.alarms[0]) == ({}, set(), 1)
    assert not give(table, 0, 1, 10)
    assert not give(table, 1, 0, 10)
    assert give(table, 0, 1, 20)


def test_of_a_circle_the_older_ones_are_dropped() -> None:
    table = new_table(4)
    for better, worse, expires in [(0, 1, 10), (1, 2, 20), (3, 0, 20), (2, 0, 20)]:
        give(table, better, worse, expires)
    assert pairs_of(table) == {(1, 2): 20, (3, 0): 20, (2, 0): 20}
    assert closure_of(table) == {(1, 2), (3, 0), (2, 0), (1, 0)}
    assert table.certificates.alarms[0] == 1


def test_of_a_circle_of_one_age_all_are_dropped() -> None:
    table = new_table(4)
    for better, worse in [(0, 1), (1, 2), (3, 0), (2, 0)]:
        give(table, better, worse, 20)
    assert pairs_of(table) == {(3, 0): 20}
    assert table.certificates.alarms[0] == 1


def test_random_histories_equal_the_transcription() -> None:
    circles = 0
    for seed in range(40):
        rng, table, slow = np.random.default_rng(seed), new_table(6), Certified()
        for now in range(1, 80):
            i, j = rng.choice(6, 2, replace=False).tolist()
            expires = now // 20 * 20 + 40
            assert give(table, i, j, expires) == slow.give(i, j, expires)
            if now % 20 == 0:
                expire(table, now + 1)
                slow.expire(now + 1)
            assert pairs_of(table) == slow.expires
            assert closure_of(table) == {(a, b) for a in range(6) for b in range(6) if slow.above(a, b)}
            assert table.certificates.alarms[0] == slow.alarms
        circles += slow.alarms
    assert circles > 100


def test_a_longer_list_holds_the_same() -> None:
    table = new_table(3)
    for better, worse in [(0, 1), (1, 2), (2, 0)]:
        give(table, better, worse, 20)
    give(table, 2, 1, 40)
    longer = Table(with_longer_list(table.certificates), with_more_unnumbered(table.closure, 5))
    assert pairs_of(longer) == pairs_of(table)
    assert closure_of(longer) == closure_of(table)
    assert longer.certificates.alarms[0] == table.certificates.alarms[0] == 1
    assert not give(longer, 0, 1, 20)


def test_certificates_of_a_later_epoch_close_by_themselves() -> None:
    table, fresh = new_table(4), new_closure(4)
    for better, worse, expires in [(0, 1, 10), (1, 2, 20), (2, 3, 20)]:
        give(table, better, worse, expires)
    close(table.certificates, fresh, 20)
    assert closure_of(Table(table.certificates, fresh)) == {(1, 2), (2, 3), (1, 3)}
    assert held_through(table.certificates, 1, 2, 20) and not held_through(table.certificates, 0, 1, 20)


def test_entries_that_hold_no_more_are_passed_over() -> None:
    table = new_table(5)
    for epoch in range(1, 30):
        for better in range(4):
            give(table, better, better + 1, 10 * epoch)
        expire(table, 10 * epoch + 1)
        assert table.certificates.first[0] == table.certificates.given[0] and not closure_of(table)


# --- the closure ---


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


def filled(n_items: int, edges: list[Pair]) -> tuple[Closure, list[Pair]]:
    """The closure of those edges that are open when their turn comes, and these."""
    closure, kept = new_closure(n_items, BITS), []
    for i, j in edges:
        if i != j and not surely(closure, i, j) and not surely(closure, j, i):
            if closure_full(closure, 2):
                closure = with_more_numbers(closure)
            certify_over(closure, i, j)
            kept.append((i, j))
    return closure, kept


def agrees(closure: Closure, edges: list[Pair], present: Flags) -> bool:
    below = np.zeros(len(closure.number), np.int64)
    count_below(closure, present, below)
    for i in range(len(present)):
        worse = reachable(edges, i)
        if {j for j in range(len(present)) if surely(closure, i, j)} != worse:
            return False
        if closure.number[i] >= 0 and below[i] != sum(bool(present[j]) for j in worse):
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 50), st.data())
def test_closure_is_that_of_a_search(n_items: int, data: st.DataObject) -> None:
    item = st.integers(0, n_items - 1)
    edges = data.draw(st.lists(st.tuples(item, item), max_size=80))
    present = np.array(data.draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items)))
    closure, kept = filled(n_items, edges)
    assert agrees(closure, kept, present)
    assert not any(surely(closure, i, i) for i in range(n_items))
    larger = with_more_unnumbered(with_more_numbers(closure), n_items + 3)
    assert agrees(larger, kept, np.append(~present, [True] * 3))


def test_a_closure_left_out_is_noticed() -> None:
    present, edges = np.ones(3, np.bool_), [(0, 1), (1, 2)]
    closure, _ = filled(3, edges)
    assert agrees(closure, edges, present)
    closure.worse[int(closure.number[0])] = 1 << int(closure.number[1])  # only what was certified itself
    assert not agrees(closure, edges, present)


def test_more_than_a_word_of_items_in_a_chain() -> None:
    n_items = 3 * BITS + 5
    closure, kept = filled(n_items, [(i, i + 1) for i in reversed(range(n_items - 1))])
    assert len(kept) == n_items - 1 and ENDLESS > 10**18
    assert agrees(closure, kept, np.ones(n_items, np.bool_))
