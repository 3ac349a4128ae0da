"""The exact worst case against the enumeration of all orders, and its bounds against it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.safety import worst_order
from saferank.safety.worst_case import (
    _VERSIONS,
    MOST_SEATS,
    NO_PAGE,
    RECORD,
    Possible,
    at_most,
    certify_seats,
    change_certainty,
    new_possible,
    page_code,
    worst_case,
)
from tests.reference.worst_case import worst_case as enumerated


def certified(n_items: int, n_positions: int, pairs: list[tuple[int, int]]) -> tuple[Possible, set[tuple[int, int]]]:
    """What is possible after those of the pairs that do not contradict the ones before, and these."""
    possible, kept = new_possible(n_items, n_positions, 0), set()
    for winner, loser in pairs:
        known = possible.better[winner] | possible.worse[winner]
        if winner != loser and not known >> loser & 1:
            certify_seats(possible, winner, loser)
            kept.add((winner, loser))
    return possible, kept


def random_case(seed: int) -> tuple[Possible, set[tuple[int, int]], list[int], int]:
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(1, 7))
    n_positions = int(rng.integers(1, n_items + 1))
    pairs = [(int(i), int(j)) for i, j in rng.integers(0, n_items, (rng.integers(0, 9), 2))]
    possible, kept = certified(n_items, n_positions, pairs)
    return possible, kept, rng.permutation(n_items)[:n_positions].tolist(), n_positions


@pytest.mark.parametrize("seed", range(400))
def test_it_equals_the_enumeration_of_all_orders(seed: int) -> None:
    possible, kept, page, n_positions = random_case(seed)
    expected = enumerated(len(possible.better), kept, list(range(n_positions)), page)
    assert worst_case(possible, page_code(np.array(page))) == expected


@pytest.mark.parametrize("seed", range(100))
def test_the_quick_answer_is_the_same_for_every_limit(seed: int) -> None:
    """A fresh copy each time, so that what is remembered of another limit does not help; then with the memory."""
    possible, _, page, _ = random_case(seed)
    code = page_code(np.array(page))
    worst = worst_case(possible, code)
    for most in range(worst - 4, worst + 5):
        fresh = Possible(*(part.copy() for part in possible))
        fresh.memory[::2] = -1
        assert at_most(fresh, code, most) == (worst <= most)
        assert at_most(possible, code, most) == (worst <= most)


@pytest.mark.parametrize("seed", range(200))
def test_the_upper_bounds_are_not_below_it(seed: int) -> None:
    possible, _, page, _ = random_case(seed)
    code = page_code(np.array(page))
    worst_order.note_relations(possible, code)
    upper = worst_order.upper_bound(possible, worst_order.all_seats(possible))
    assert worst_case(possible, code) <= upper - worst_order.forced(possible) <= upper


def searched(possible: Possible, page: list[int]) -> int:
    """W by the recursion over all sets of seats, without anything that makes it faster."""
    worst_order.note_relations(possible, page_code(np.array(page)))
    n_seats = len(possible.better)
    below, original = possible.below.tolist(), possible.original_below.tolist()
    most = {0: 0}
    for chosen in range((1 << n_seats) - 1):
        for x in range(n_seats):
            if chosen in most and not chosen >> x & 1 and not possible.better[x] & ~chosen:
                value = most[chosen] + (chosen & below[x]).bit_count() - (chosen & original[x]).bit_count()
                most[chosen | 1 << x] = max(most.get(chosen | 1 << x, value), value)
    return most[(1 << n_seats) - 1]


def larger_case(seed: int) -> tuple[Possible, list[list[int]]]:
    """Eight items: enough for several classes of tangled items, and for circles that share pairs."""
    rng = np.random.default_rng(seed)
    pairs = [(int(i), int(j)) for i, j in rng.integers(0, 8, (rng.integers(1, 12), 2))]
    return certified(8, 4, pairs)[0], [rng.permutation(8)[:4].tolist() for _ in range(4)]


@pytest.mark.parametrize("seed", range(60))
def test_eight_items_against_the_plain_recursion(seed: int) -> None:
    possible, pages = larger_case(seed)
    for page in pages:
        expected = searched(possible, page)
        upper = worst_order.upper_bound(possible, worst_order.all_seats(possible))
        assert expected <= upper - worst_order.forced(possible) <= upper
        assert worst_case(possible, page_code(np.array(page))) == expected


def test_these_cases_have_circles_that_are_forced_and_others() -> None:
    forced, others = 0, 0
    for seed in range(60):
        possible, pages = larger_case(seed)
        for page in pages:
            worst_order.note_relations(possible, page_code(np.array(page)))
            least = worst_order.forced(possible)
            forced += least > 0
            others += worst_order.tangled(possible) > least
    assert forced > 50 and others > 5


@pytest.mark.parametrize("seed", range(40))
def test_what_is_remembered_stays_true_while_certificates_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    possible = new_possible(6, 3, 4)
    pages = [rng.permutation(6)[:3].tolist() for _ in range(4)]
    for _ in range(12):
        for page in pages:
            code, most = page_code(np.array(page)), int(rng.integers(-6, 10))
            assert at_most(possible, code, most) == (searched(possible, page) <= most)
        winner, loser = (int(seat) for seat in rng.choice(6, 2, replace=False))
        if rng.random() < 0.15:
            change_certainty(possible, fewer=True)
        elif not (possible.better[winner] | possible.worse[winner]) >> loser & 1:
            certify_seats(possible, winner, loser)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_certificates_are_closed_transitively(pairs: list[tuple[int, int]]) -> None:
    possible, kept = certified(7, 3, pairs)
    reached = set(kept)
    while more := {(a, d) for a, b in reached for c, d in reached if b == c} - reached:
        reached |= more
    assert {(x, z) for x in range(7) for z in range(7) if possible.worse[x] >> z & 1} == reached
    assert {(x, z) for x in range(7) for z in range(7) if possible.better[z] >> x & 1} == reached


def test_without_the_closure_the_worst_case_is_another() -> None:
    """The comparison with the enumeration can see that: 2 over 1 and 1 over 0 say something about 2 and 0."""
    possible, kept = certified(3, 1, [(2, 1), (1, 0)])
    possible.better[:], possible.worse[:] = 0, 0
    for winner, loser in kept:
        possible.better[loser] |= 1 << winner
        possible.worse[winner] |= 1 << loser
    code = page_code(np.array([2]))
    worst_order.note_relations(possible, code)
    assert enumerated(3, kept, [0], [2]) == -2
    assert worst_order.upper_bound(possible, worst_order.all_seats(possible)) > -2  # the pair of 2 and 0 looks open


def test_the_original_ranking_has_nothing_to_lose_and_the_reverse_everything() -> None:
    possible = new_possible(10, 5, 7)
    assert worst_case(possible, page_code(np.arange(5))) == 0
    assert worst_case(possible, page_code(np.array([9, 8, 7, 6, 5]))) == 35  # C(10,2) - C(5,2)
    assert worst_case(possible, page_code(np.array([0, 1, 2, 3, 9]))) == 5  # L - K


def test_a_full_catalogue_of_twelve() -> None:
    possible = new_possible(MOST_SEATS, MOST_SEATS, 6)
    reverse = np.arange(MOST_SEATS)[::-1].copy()
    assert worst_case(possible, page_code(reverse)) == 66
    for winner, loser in itertools.pairwise(reverse.tolist()):
        certify_seats(possible, winner, loser)
    assert worst_case(possible, page_code(reverse)) == -66


def test_more_items_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 12 items, not 13"):
        new_possible(13, 5, 10)


def test_what_is_remembered_ends_with_the_next_certificate() -> None:
    possible, page = new_possible(4, 2, 3), page_code(np.array([3, 0]))
    before = worst_case(possible, page)
    certify_seats(possible, 3, 0)
    assert worst_case(possible, page) < before


def test_versions_begin_again_also_when_a_certificate_has_used_up_the_last_one() -> None:
    """Version and page share a word: a version that only grew would one day be taken for another one."""
    possible = new_possible(4, 2, 0)
    possible.version[0] = _VERSIONS - 1
    certify_seats(possible, 3, 0)
    assert not at_most(possible, page_code(np.array([1, 2])), -9)
    change_certainty(possible, fewer=True)
    assert possible.version.tolist() == [0, 0]
    assert (possible.memory[::2] == NO_PAGE).all() and (possible.records[::RECORD] == NO_PAGE).all()
