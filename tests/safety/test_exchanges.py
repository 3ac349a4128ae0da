"""Which exchanges leave a page safe: what is remembered against what is worked out for each by itself."""

import numpy as np
import pytest

from saferank.safety.exchanges import exchange_is_safe, is_safe, safe_exchanges
from saferank.safety.worst_case import (
    MOST_SEATS,
    RECORD,
    Possible,
    certify_seats,
    change_certainty,
    new_possible,
    page_code,
    worst_case,
)


def random_possible(rng: np.random.Generator, n_seats: int, n_positions: int, limit: int) -> Possible:
    possible = new_possible(n_seats, n_positions, limit)
    for winner, loser in rng.integers(0, n_seats, (rng.integers(0, 6), 2)).tolist():
        if winner != loser and not (possible.better[winner] | possible.worse[winner]) >> loser & 1:
            certify_seats(possible, winner, loser)
    return possible


def one_by_one(possible: Possible, page: list[int], place: int) -> set[int]:
    """The seats of uncertain pairs with which a place may be exchanged, by the worst case of the page that results."""
    x, found = page[place], set()
    for z in range(len(possible.better)):
        swapped = [{x: z, z: x}.get(seat, seat) for seat in page]
        known = possible.better[x] | possible.worse[x]
        if z != x and not known >> z & 1 and worst_case(possible, page_code(np.array(swapped))) <= possible.limit[0]:
            found.add(z)
    return found


def as_set(bits: int) -> set[int]:
    return {seat for seat in range(MOST_SEATS) if bits >> seat & 1}


@pytest.mark.parametrize("seed", range(40))
def test_they_are_those_whose_page_is_safe(seed: int) -> None:
    """Asked twice: what is remembered is what was found. A certificate changes both."""
    rng = np.random.default_rng(seed)
    n_seats = int(rng.integers(2, 8))
    n_positions = int(rng.integers(1, n_seats + 1))
    possible = random_possible(rng, n_seats, n_positions, int(rng.integers(0, 5)))
    page = rng.permutation(n_seats)[:n_positions].tolist()
    code = page_code(np.array(page))
    for _ in range(2):
        for place in [*range(n_positions), *range(n_positions)]:
            assert as_set(safe_exchanges(possible, code, place)) == one_by_one(possible, page, place)
            assert is_safe(possible, code) == (worst_case(possible, code) <= possible.limit[0])
        open_pairs = [(x, z) for x in range(n_seats) for z in range(n_seats) if x != z]
        open_pairs = [(x, z) for x, z in open_pairs if not (possible.better[x] | possible.worse[x]) >> z & 1]
        if open_pairs:
            certify_seats(possible, *open_pairs[int(rng.integers(len(open_pairs)))])


def test_twelve_places_have_room_in_a_record() -> None:
    possible = new_possible(MOST_SEATS, MOST_SEATS, 6)
    page = [*range(1, MOST_SEATS), 0]
    code = page_code(np.array(page))
    for _ in range(2):
        assert not is_safe(possible, code)  # eleven pairs may be wrong
        for place in range(MOST_SEATS):
            assert as_set(safe_exchanges(possible, code, place)) == one_by_one(possible, page, place)
    original = page_code(np.arange(MOST_SEATS))
    assert is_safe(possible, original)
    assert as_set(safe_exchanges(possible, original, MOST_SEATS - 1)) == {8, 9, 10}


def test_pages_that_share_a_record_do_not_share_what_is_in_it() -> None:
    """Enough pages that some do, asked in turn."""
    possible, rng = new_possible(10, 5, 7), np.random.default_rng(1)
    pages = [page_code(rng.permutation(10)[:5]) for _ in range(400)]
    first = [(is_safe(possible, page), safe_exchanges(possible, page, 2)) for page in pages]
    assert [(is_safe(possible, page), safe_exchanges(possible, page, 2)) for page in pages] == first
    assert len(set(possible.records[::RECORD].tolist()) - {-1}) < len(set(pages)) - 10
    fresh = new_possible(10, 5, 7)
    for page, (safe, seats) in list(zip(pages, first, strict=True))[:50]:
        x = page >> 8 & 15
        shown = [page >> 4 * place & 15 for place in range(5)]
        places = {z: shown.index(z) if z in shown else 5 for z in range(10) if z != x}
        assert as_set(seats) == {z for z, k in places.items() if exchange_is_safe(fresh, page, x, z, (2, k))}
        assert safe == (worst_case(fresh, page) <= 7)


def test_they_are_forgotten_with_what_was_certain() -> None:
    possible, page = new_possible(4, 2, 3), page_code(np.array([3, 1]))
    certify_seats(possible, 3, 0)
    assert is_safe(possible, page)
    possible.version[0] = (1 << 15) - 1
    assert is_safe(possible, page)
    change_certainty(possible, fewer=True)
    assert possible.version[0] == 0 and (possible.records[::RECORD] == -1).all()
    assert not is_safe(possible, page)
