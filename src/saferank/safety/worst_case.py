r"""How bad a page can be, exactly: the most wrong pairs beyond the original's, over all orders still possible.

    W(page) = max of V(page) - V(original) over all linear orders that agree with the certificates

A page with W(page) <= floor(L - K/2) meets the constraint whatever the truth is, as long as no certificate is wrong;
of a page with a larger W some possible truth breaks it. Ties in the truth change nothing: docs/policies/safe-draw.md.

Items are numbered by *seats* 0..L-1 here, sets of seats are bits of a word, and a page is a word of four bits a place.
With below(x) the seats that are shown below x or not at all (nothing, if x itself is not shown), V counts the pairs in
which a better item is in below(x). An order is built from the best item down; what x adds depends only on the set T of
items before it:

    F(T + x) = max over x whose certified-better items are all in T of F(T) + |T & below(x)| - |T & below_original(x)|

and W = F(all). Most pages need no such search, because two quicker numbers enclose W: each pair by itself at its worst
is an upper bound, and the order that a greedy adversary builds is a lower one.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.verbs import Ints

MOST_SEATS = 12
"""F has 2^L entries, and a page is a word of four bits a place, with its version above them."""

_MEMORY_BITS = 15
"""Room for 32,768 pages: five of ten items make 30,240, and a page that is worked out again costs more than a round."""

_VERSION_SHIFT = 4 * MOST_SEATS
_VERSIONS = 1 << 15
_IMPOSSIBLE = -(1 << 14)
_FAR = 1 << 14
_UNKNOWN = 2 * _FAR
"""The bounds -_FAR and _FAR, as ``_bounds`` writes them."""

_NO_PAGE = -1
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


class Possible(NamedTuple):
    """What is certain about an original ranking and its candidates, and room to work out what follows."""

    better: Ints  # by seat: the seats certified to be better, transitively closed
    worse: Ints  # by seat: the seats certified to be worse
    original_below: Ints  # by seat: the seats below it, or hidden, in the original ranking
    original_above: Ints  # by seat: the seats of the original ranking that have it below, or hidden
    limit: Ints  # [2] floor(L - K/2), K
    version: Ints  # [1] how often the certificates changed
    below: Ints  # scratch: the same relations of a page
    above: Ints
    members: Ints  # scratch: the seats that matter for a page
    needs: Ints  # scratch, by member: who comes before it, who is below it, who was
    most: Ints  # scratch: F by set of members
    memory: Ints  # [2 * slots], by hash: a page with the version, then what W of it is at least and at most


def new_possible(n_seats: int, n_positions: int, limit: int) -> Possible:
    """Nothing is certain yet; the original ranking is the first ``n_positions`` seats."""
    if n_seats > MOST_SEATS:
        raise ValueError(f"the worst case is worked out for at most {MOST_SEATS} items, not {n_seats}")
    by_seat = [np.zeros(n_seats, np.int64) for _ in range(7)]
    possible = Possible(
        better=by_seat[0],
        worse=by_seat[1],
        original_below=by_seat[2],
        original_above=by_seat[3],
        limit=np.array([limit, n_positions], np.int64),
        version=np.zeros(1, np.int64),
        below=by_seat[4],
        above=by_seat[5],
        members=by_seat[6],
        needs=np.zeros((n_seats, 3), np.int64),
        most=np.zeros(1 << n_seats, np.int64),
        memory=np.full(2 << _MEMORY_BITS, _NO_PAGE, np.int64),
    )
    _note_relations(possible, page_code(np.arange(n_positions)))
    possible.original_below[:], possible.original_above[:] = possible.below, possible.above
    return possible


@kernel
def page_code(page: Ints) -> int:
    """A page, seats by place, as one word."""
    code = 0
    for place in range(len(page)):
        code |= page[place] << (4 * place)
    return code


@kernel
def certify_seats(possible: Possible, winner: int, loser: int) -> None:
    """Note that one seat is better than another, and what follows from it. They must not be certified already."""
    winners = possible.better[winner] | 1 << winner
    losers = possible.worse[loser] | 1 << loser
    for seat in range(len(possible.better)):
        if losers >> seat & 1:
            possible.better[seat] |= winners
        if winners >> seat & 1:
            possible.worse[seat] |= losers
    possible.version[0] += 1


@kernel
def forget_certainty(possible: Possible) -> None:
    """Drop all certainty; the caller adds what is certain. What was remembered of pages is not used again."""
    for seat in range(len(possible.better)):
        possible.better[seat] = possible.worse[seat] = 0
    possible.version[0] += 1
    if possible.version[0] == _VERSIONS:  # version and page share a word
        possible.version[0] = 0
        for slot in range(0, len(possible.memory), 2):
            possible.memory[slot] = _NO_PAGE


@kernel
def is_certain(possible: Possible, x: int, z: int) -> bool:
    """True when it is certified, directly or by what follows, that x is better than z."""
    return bool(possible.worse[x] >> z & 1)


@kernel
def at_most(possible: Possible, code: int, most: int) -> bool:
    """True when W(page) <= most. What was found is remembered until the next certificate."""
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
    _note_relations(possible, code)
    if _upper_bound(possible) <= most:
        return True
    return bool(_lower_bound(possible) <= most and _search(possible) <= most)


@seldom
def worst_case(possible: Possible, code: int) -> int:
    """W(page)."""
    slot = _slot_of(possible, code)
    bounds = possible.memory[slot + 1]
    if _lowest(bounds) < _highest(bounds):
        _note_relations(possible, code)
        worst = _search(possible)
        possible.memory[slot + 1] = _bounds(worst, worst)
        return worst
    return _lowest(bounds)


@kernel
def _slot_of(possible: Possible, code: int) -> int:
    """Where a page is remembered under the present certificates; what was there before is forgotten."""
    key = code | possible.version[0] << _VERSION_SHIFT
    slot = 2 * np.int64((np.uint64(key) * _SCATTER) >> np.uint64(64 - _MEMORY_BITS))
    if possible.memory[slot] != key:
        possible.memory[slot], possible.memory[slot + 1] = key, _UNKNOWN
    return int(slot)


@kernel
def _bounds(lowest: int, highest: int) -> int:
    """Two bounds of W as one word: page and bounds are fetched together, since they share a cache line."""
    return (lowest + _FAR) << 16 | (highest + _FAR)


@kernel
def _lowest(bounds: int) -> int:
    return int((bounds >> 16) - _FAR)


@kernel
def _highest(bounds: int) -> int:
    return int((bounds & 0xFFFF) - _FAR)


@seldom
def _work_out(possible: Possible, code: int, most: int, slot: int) -> bool:
    """Whether W(page) <= most, where what is remembered does not tell: by the bounds, or else by the search."""
    _note_relations(possible, code)
    bounds = possible.memory[slot + 1]
    lowest, highest = _lowest(bounds), _highest(bounds)
    if highest == _FAR:
        highest = _upper_bound(possible)
        lowest = min(highest, _lower_bound(possible))
    if lowest <= most < highest:
        lowest = highest = _search(possible)
    possible.memory[slot + 1] = _bounds(lowest, highest)
    return bool(highest <= most)


@kernel
def _note_relations(possible: Possible, code: int) -> None:
    """Fill in which items are below and above which on a page."""
    below, above = possible.below, possible.above
    everybody, shown = (1 << len(below)) - 1, 0
    for seat in range(len(below)):
        below[seat], above[seat] = 0, -1
    for place in range(possible.limit[1]):
        seat = code >> (4 * place) & 15
        above[seat] = shown
        shown |= 1 << seat
        below[seat] = everybody & ~shown
    for seat in range(len(below)):
        if above[seat] < 0:
            above[seat] = shown


@kernel
def _bits(word: int) -> int:
    """How many bits of a word are set; the compiler knows this formula."""
    x = np.uint64(word)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def _upper_bound(possible: Possible) -> int:
    """Every pair at its worst, for the page whose relations are noted. Each pair is met from both sides."""
    twice = 0
    for x in range(len(possible.better)):
        better, worse = possible.better[x], possible.worse[x]
        below, above = possible.below[x], possible.above[x]
        below_before, above_before = possible.original_below[x], possible.original_above[x]
        if_worse, if_better = below & ~below_before, above & ~above_before  # wrong now, and not before
        twice += _bits((if_worse | if_better) & ~(better | worse))
        twice += _bits(if_worse & better) - _bits(below_before & ~below & better)
        twice += _bits(if_better & worse) - _bits(above_before & ~above & worse)
    return twice // 2


@kernel
def _lower_bound(possible: Possible) -> int:
    """What one possible order gives: from the best down, always the item that would gain least by coming later."""
    n_seats, value, chosen = len(possible.better), 0, 0
    for _ in range(n_seats):
        least, best = 1 << 20, 0
        for x in range(n_seats):
            if chosen >> x & 1 or possible.better[x] & ~chosen:
                continue
            later = _bits(possible.below[x] & ~chosen) - _bits(possible.original_below[x] & ~chosen)
            if later < least:
                least, best = later, x
        value += _bits(possible.below[best] & chosen) - _bits(possible.original_below[best] & chosen)
        chosen |= 1 << best
    return value


@kernel
def _gather(possible: Possible) -> int:
    """Collect the seats of which some pair is not shown as in the original ranking; returns how many.

    The others add nothing, and since certificates are transitively closed they forbid no order of the collected ones.
    """
    size = 0
    for x in range(len(possible.better)):
        changed = possible.below[x] ^ possible.original_below[x] | possible.above[x] ^ possible.original_above[x]
        if changed:
            possible.members[size] = x
            size += 1
    return size


@kernel
def _twin(possible: Possible, number: int) -> int:
    """The bit of an earlier member that no page and no certificate tells from this one, or 0.

    Two members that are hidden on the page and in the original ranking, with the same certificates, may exchange their
    names in any order, so it suffices to try the orders that have the earlier one first.
    """
    x = possible.members[number]
    if possible.below[x] | possible.original_below[x]:
        return 0
    for step in range(number):
        z = possible.members[number - 1 - step]
        hidden = possible.below[z] | possible.original_below[z] == 0
        if hidden and possible.better[x] == possible.better[z] and possible.worse[x] == possible.worse[z]:
            return 1 << (number - 1 - step)
    return 0


@kernel
def _compress(possible: Possible, size: int) -> None:
    """The relations between the members, as bits of their numbers."""
    for number in range(size):
        x = possible.members[number]
        needs, below, below_before = _twin(possible, number), 0, 0
        for other in range(size):
            z = possible.members[other]
            needs |= (possible.better[x] >> z & 1) << other
            below |= (possible.below[x] >> z & 1) << other
            below_before |= (possible.original_below[x] >> z & 1) << other
        possible.needs[number, 0] = needs
        possible.needs[number, 1] = below
        possible.needs[number, 2] = below_before


@kernel
def _search(possible: Possible) -> int:
    """W of the page whose relations are noted."""
    size, most, needs = _gather(possible), possible.most, possible.needs
    _compress(possible, size)
    everybody = (1 << size) - 1
    for chosen in range(everybody + 1):
        most[chosen] = _IMPOSSIBLE
    most[0] = 0
    for chosen in range(everybody):
        so_far = most[chosen]
        if so_far == _IMPOSSIBLE:
            continue
        for x in range(size):
            if chosen >> x & 1 or needs[x, 0] & ~chosen:
                continue
            value = so_far + _bits(chosen & needs[x, 1]) - _bits(chosen & needs[x, 2])
            most[chosen | 1 << x] = max(most[chosen | 1 << x], value)
    return int(most[everybody])
