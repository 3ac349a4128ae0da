r"""How bad a page can be, exactly: the most wrong pairs beyond the original's, over all orders still possible.

    W(page) = max of V(page) - V(original) over all linear orders that agree with the certificates

A page with W(page) <= floor(L - K/2) meets the constraint whatever the truth is, as long as no certificate is wrong;
of a page with a larger W some possible truth breaks it. Ties in the truth change nothing: docs/policies/safe-draw.md.

Items are numbered by *seats* 0..L-1 here, sets of seats are bits of a word, and a page is a word of four bits a place.
With below(x) the seats that are shown below x or not at all (nothing, if x itself is not shown), V counts the pairs in
which a better item is in below(x). An order is built from the best item down; what x adds depends only on the set T of
items before it:

    F(T + x) = max over x whose certified-better items are all in T of F(T) + |T & below(x)| - |T & below_original(x)|

and W = F(all). Most pages need no such search. Each pair by itself at its worst gives an upper bound, and pairs that a
certificate keeps from it lower that bound (``forced``). It is W, unless what the pairs want goes round in a circle,
and then only the items of a circle are searched (``tangled``).
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.safety.worst_order import all_seats, forced, note_relations, tangled, upper_bound
from saferank.verbs import Ints

MOST_SEATS = 12
"""F has 2^L entries, and a page is a word of four bits a place, with its version above them."""

_MEMORY_BITS = 14
"""Room for 16,384 pages; a run with ten items asks for about 7,000."""

_RECORD_BITS = 11
RECORD = 4
"""Room for 2,048 records of pages that are shown, of four words each: see ``exchanges.py``."""

_FEWER = 5
"""Where a few pages are asked for, as of a page that is served, there are fewer by this power of two."""

_VERSION_SHIFT = 4 * MOST_SEATS
_VERSIONS = 1 << 15
_FAR = 1 << 14
"""W is between -_FAR and _FAR."""

NO_PAGE = -1
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


class Possible(NamedTuple):
    """The certified order of an original ranking and its candidates, and room to work out what follows."""

    better: Ints  # by seat: the seats certified to be better, transitively closed
    worse: Ints  # by seat: the seats certified to be worse
    original_below: Ints  # by seat: the seats below it, or hidden, in the original ranking
    original_above: Ints  # by seat: the seats of the original ranking that have it below, or hidden
    limit: Ints  # [3] floor(L - K/2), K, and 1 when exchanges of pairs that are certain need not be noted
    version: Ints  # [2] how often the certificates changed, and how often when they last became fewer
    below: Ints  # scratch: the same relations of a page
    above: Ints
    after: Ints  # scratch, by seat: the seats that come after it if the pair, which is not certain, is at its worst
    before: Ints  # scratch, by seat: those that come before it
    pulled: Ints  # scratch, by seat: the seats that are to come after it, also by way of others
    members: Ints  # scratch: the seats that are searched
    needs: Ints  # scratch, by member: itself and who comes before it; who is below it, and was not or the reverse
    most: Ints  # scratch: F by set of members
    memory: Ints  # [2 * slots], by hash: a page, then the version and what W was at least and at most under it
    records: Ints  # [4 * slots], by hash: a page with the version, then what ``exchanges.py`` notes of it


def new_possible(n_seats: int, n_positions: int, limit: int, few: bool = False) -> Possible:
    """Nothing is certain yet; the original ranking is the first ``n_positions`` seats. ``few``: for a few pages."""
    if n_seats > MOST_SEATS:
        raise ValueError(f"the worst case is worked out for at most {MOST_SEATS} items, not {n_seats}")
    by_seat = [np.zeros(n_seats, np.int64) for _ in range(10)]
    possible = Possible(
        better=by_seat[0],
        worse=by_seat[1],
        original_below=by_seat[2],
        original_above=by_seat[3],
        limit=np.array([limit, n_positions, int(not few)], np.int64),
        version=np.zeros(2, np.int64),
        below=by_seat[4],
        above=by_seat[5],
        after=by_seat[6],
        before=by_seat[7],
        pulled=by_seat[8],
        members=by_seat[9],
        needs=np.zeros((n_seats, 2), np.int64),
        most=np.zeros(1 << n_seats, np.int64),
        memory=_no_pages(2 << (_MEMORY_BITS - _FEWER if few else _MEMORY_BITS)),
        records=_no_pages(RECORD << (_RECORD_BITS - _FEWER if few else _RECORD_BITS)),
    )
    note_relations(possible, page_code(np.arange(n_positions)))
    possible.original_below[:], possible.original_above[:] = possible.below, possible.above
    return possible


def _no_pages(size: int) -> Ints:
    return np.full(size, NO_PAGE, np.int64)


def with_more_memory(possible: Possible) -> Possible:
    """The same for many pages, of which only what is learnt from them is to be noted; it remembers none yet."""
    many = possible._replace(memory=_no_pages(2 << _MEMORY_BITS), records=_no_pages(RECORD << _RECORD_BITS))
    many.limit[2] = 1
    return many


@kernel
def page_code(page: Ints) -> int:
    """A page, seats by place, as one word."""
    code = 0
    for place in range(len(page)):
        code |= page[place] << (4 * place)
    return code


@kernel
def note_better(possible: Possible, winner: int, loser: int) -> None:
    """Note that one seat is better than another, and what follows from it: the closure of certificates among seats."""
    winners = possible.better[winner] | 1 << winner
    losers = possible.worse[loser] | 1 << loser
    for seat in range(len(possible.better)):
        if losers >> seat & 1:
            possible.better[seat] |= winners
        if winners >> seat & 1:
            possible.worse[seat] |= losers


@kernel
def certify_seats(possible: Possible, winner: int, loser: int) -> None:
    """Certify one seat over another, which must not be certified already."""
    note_better(possible, winner, loser)
    possible.version[0] += 1


@kernel
def change_certainty(possible: Possible, fewer: bool) -> None:
    """Certificates changed, and the caller adds those that hold now; if there are fewer, all that was certain goes.

    What was remembered of pages under other certificates is not used again, but for upper bounds while there are more.
    """
    possible.version[0] += 1
    if fewer:
        for seat in range(len(possible.better)):
            possible.better[seat] = possible.worse[seat] = 0
        possible.version[1] = possible.version[0]
    if possible.version[0] >= _VERSIONS:  # version and page share a word; each certificate counts as well
        possible.version[0] = possible.version[1] = 0
        for slot in range(0, len(possible.memory), 2):
            possible.memory[slot] = NO_PAGE
        for slot in range(0, len(possible.records), RECORD):
            possible.records[slot] = NO_PAGE


@kernel
def is_certain(possible: Possible, x: int, z: int) -> bool:
    """True when it is certified, directly or by what follows, that x is better than z."""
    return bool(possible.worse[x] >> z & 1)


@kernel
def at_most(possible: Possible, code: int, most: int) -> bool:
    """True when W(page) <= most. What was found is remembered, and W can only fall with another certificate."""
    slot = _slot_of(possible, code)
    bounds = possible.memory[slot + 1]
    if _highest(bounds) <= most:
        return True
    if _lowest(bounds) > most:
        return False
    return _work_out(possible, code, most, slot)


@seldom
def is_within(possible: Possible, code: int, most: int) -> bool:
    """``at_most`` for certificates that are only supposed: nothing is remembered."""
    note_relations(possible, code)
    upper = upper_bound(possible, all_seats(possible))
    return bool(upper <= most or upper - forced(possible) <= most or upper - tangled(possible) <= most)


@seldom
def worst_case(possible: Possible, code: int) -> int:
    """W(page)."""
    slot = _slot_of(possible, code)
    bounds = possible.memory[slot + 1]
    if _lowest(bounds) < _highest(bounds):
        note_relations(possible, code)
        worst = upper_bound(possible, all_seats(possible)) - tangled(possible)
        possible.memory[slot + 1] = _bounds(possible, worst, worst)
        return worst
    return _lowest(bounds)


@kernel
def record_of(possible: Possible, code: int) -> int:
    """Where the record of a page is under the present certificates; an empty one, if there was none."""
    key = code | possible.version[0] << _VERSION_SHIFT
    hashed = np.int64((np.uint64(key) * _SCATTER) >> np.uint64(64 - _RECORD_BITS))
    record = RECORD * (hashed & (len(possible.records) // RECORD - 1))
    if possible.records[record] != key:
        possible.records[record] = key
        for word in range(1, RECORD):
            possible.records[record + word] = 0
    return int(record)


@kernel
def _slot_of(possible: Possible, code: int) -> int:
    """Where a page is remembered, with what is still true of it; what was there of another page is forgotten."""
    hashed = np.int64((np.uint64(code) * _SCATTER) >> np.uint64(64 - _MEMORY_BITS))
    slot = 2 * (hashed & (len(possible.memory) // 2 - 1))
    if possible.memory[slot] != code:
        possible.memory[slot], possible.memory[slot + 1] = code, _bounds(possible, -_FAR, _FAR)
    elif possible.memory[slot + 1] >> 32 != possible.version[0]:
        kept = possible.memory[slot + 1] >> 32 >= possible.version[1]
        highest = _highest(possible.memory[slot + 1]) if kept else _FAR
        possible.memory[slot + 1] = _bounds(possible, -_FAR, highest)
    return int(slot)


@kernel
def _bounds(possible: Possible, lowest: int, highest: int) -> int:
    """The version and two bounds of W as one word: it is fetched together with the page, in one cache line."""
    return int(possible.version[0] << 32 | (lowest + _FAR) << 16 | (highest + _FAR))


@kernel
def _lowest(bounds: int) -> int:
    return int((bounds >> 16 & 0xFFFF) - _FAR)


@kernel
def _highest(bounds: int) -> int:
    return int((bounds & 0xFFFF) - _FAR)


@seldom
def _work_out(possible: Possible, code: int, most: int, slot: int) -> bool:
    """Whether W(page) <= most, where what is remembered does not tell: by an upper bound, or else exactly."""
    note_relations(possible, code)
    upper, lowest = upper_bound(possible, all_seats(possible)), -_FAR
    highest = upper if upper <= most else upper - forced(possible)
    if highest > most:
        lowest = highest = upper - tangled(possible)
    possible.memory[slot + 1] = _bounds(possible, lowest, highest)
    return bool(highest <= most)
