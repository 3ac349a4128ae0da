"""Certificates that expire, replace each other and contradict each other; by hand and against a transcription."""

import numpy as np

from saferank.statistics.certificate_table import (
    CertificateTable,
    expire,
    give,
    holds,
    new_certificate_table,
    with_more_rows,
)
from tests.reference.lifetimes import Certified


def pairs_of(table: CertificateTable) -> dict[tuple[int, int], int]:
    return {(int(i), int(j)): int(table.expires[i, j]) for i, j in np.argwhere(table.expires)}


def closure_of(table: CertificateTable) -> set[tuple[int, int]]:
    n_items = len(table.queue)
    return {(i, j) for i in range(n_items) for j in range(n_items) if holds(table, i, j)}


def test_what_follows_is_the_transitive_closure() -> None:
    table = new_certificate_table(4)
    assert give(table, 2, 1, 20)
    assert give(table, 1, 0, 20)
    assert closure_of(table) == {(2, 1), (1, 0), (2, 0)}
    assert not give(table, 2, 1, 20)


def test_what_follows_ends_with_the_first_certificate_that_it_needs() -> None:
    table = new_certificate_table(3)
    give(table, 2, 1, 10)
    give(table, 1, 0, 20)
    assert not expire(table, 10)
    assert closure_of(table) == {(2, 1), (1, 0), (2, 0)}
    assert expire(table, 11)
    assert closure_of(table) == {(1, 0)}


def test_a_later_certificate_replaces_the_opposite_one_without_an_alarm() -> None:
    table = new_certificate_table(2)
    give(table, 0, 1, 10)
    assert give(table, 1, 0, 20)
    assert (pairs_of(table), table.alarms[0]) == ({(1, 0): 20}, 0)


def test_two_opposite_certificates_of_the_same_age_are_both_dropped() -> None:
    table = new_certificate_table(2)
    give(table, 0, 1, 10)
    assert give(table, 1, 0, 10)
    assert (pairs_of(table), closure_of(table), table.alarms[0]) == ({}, set(), 1)
    assert not give(table, 0, 1, 10)
    assert not give(table, 1, 0, 10)
    assert give(table, 0, 1, 20)


def test_of_a_circle_the_older_ones_are_dropped() -> None:
    table = new_certificate_table(4)
    for better, worse, expires in [(0, 1, 10), (1, 2, 20), (3, 0, 20), (2, 0, 20)]:
        give(table, better, worse, expires)
    assert pairs_of(table) == {(1, 2): 20, (3, 0): 20, (2, 0): 20}
    assert closure_of(table) == {(1, 2), (3, 0), (2, 0), (1, 0)}
    assert table.alarms[0] == 1


def test_of_a_circle_of_one_age_all_are_dropped() -> None:
    table = new_certificate_table(4)
    for better, worse in [(0, 1), (1, 2), (3, 0), (2, 0)]:
        give(table, better, worse, 20)
    assert pairs_of(table) == {(3, 0): 20}
    assert table.alarms[0] == 1


def test_random_histories_equal_the_transcription() -> None:
    circles = 0
    for seed in range(40):
        rng, table, slow = np.random.default_rng(seed), new_certificate_table(6), Certified()
        for now in range(1, 80):
            i, j = rng.choice(6, 2, replace=False).tolist()
            expires = now // 20 * 20 + 40
            assert give(table, i, j, expires) == slow.give(i, j, expires)
            if now % 20 == 0:
                expire(table, now + 1)
                slow.expire(now + 1)
            assert pairs_of(table) == slow.expires
            assert closure_of(table) == {(a, b) for a in range(6) for b in range(6) if slow.above(a, b)}
            assert table.alarms[0] == slow.alarms
        circles += slow.alarms
    assert circles > 100


def test_more_rows_hold_the_same() -> None:
    table = new_certificate_table(3)
    for better, worse in [(0, 1), (1, 2), (2, 0)]:
        give(table, better, worse, 20)
    give(table, 2, 1, 40)
    bigger = with_more_rows(table, 5)
    assert pairs_of(bigger) == pairs_of(table)
    assert closure_of(bigger) == closure_of(table)
    assert bigger.alarms[0] == table.alarms[0] == 1
    assert not give(bigger, 0, 1, 20)
