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
certificate keeps from it lower that bound (``_forced``). It is W, unless what the pairs want goes round in a circle,
and then only the items of a circle are searched (``_tangled``).
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.verbs import Ints

MOST_SEATS = 12
"""F has 2^L entries, and a page is a word of four bits a place, with its version above them."""

_MEMORY_BITS = 14
"""Room for 16,384 pages; a run with ten items asks for about 7,000."""

_RECORD_BITS = 11
RECORD = 4
"""Room for 2,048 records of pages that are shown, of four words each: see ``exchanges.py``."""

_VERSION_SHIFT = 4 * MOST_SEATS
_VERSIONS = 1 << 15
_IMPOSSIBLE = -1
_FAR = 1 << 14
"""W is between -_FAR and _FAR."""

_HALF = 16
"""Two sets of members share a word."""

NO_PAGE = -1
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


class Possible(NamedTuple):
    """What is certain about an original ranking and its candidates, and room to work out what follows."""

    better: Ints  # by seat: the seats certified to be better, transitively closed
    worse: Ints  # by seat: the seats certified to be worse
    original_below: Ints  # by seat: the seats below it, or hidden, in the original ranking
    original_above: Ints  # by seat: the seats of the original ranking that have it below, or hidden
    limit: Ints  # [2] floor(L - K/2), K
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


def new_possible(n_seats: int, n_positions: int, limit: int) -> Possible:
    """Nothing is certain yet; the original ranking is the first ``n_positions`` seats."""
    if n_seats > MOST_SEATS:
        raise ValueError(f"the worst case is worked out for at most {MOST_SEATS} items, not {n_seats}")
    by_seat = [np.zeros(n_seats, np.int64) for _ in range(10)]
    possible = Possible(
        better=by_seat[0],
        worse=by_seat[1],
        original_below=by_seat[2],
        original_above=by_seat[3],
        limit=np.array([limit, n_positions], np.int64),
        version=np.zeros(2, np.int64),
        below=by_seat[4],
        above=by_seat[5],
        after=by_seat[6],
        before=by_seat[7],
        pulled=by_seat[8],
        members=by_seat[9],
        needs=np.zeros((n_seats, 2), np.int64),
        most=np.zeros(1 << n_seats, np.int64),
        memory=np.full(2 << _MEMORY_BITS, NO_PAGE, np.int64),
        records=np.full(RECORD << _RECORD_BITS, NO_PAGE, np.int64),
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
    possible.version[1] = possible.version[0]
    if possible.version[0] == _VERSIONS:  # version and page share a word
        possible.version[1] = 0
        possible.version[0] = 0
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
    _note_relations(possible, code)
    upper = _upper_bound(possible, _everybody(possible))
    return bool(upper <= most or upper - _forced(possible) <= most or upper - _tangled(possible) <= most)


@seldom
def worst_case(possible: Possible, code: int) -> int:
    """W(page)."""
    slot = _slot_of(possible, code)
    bounds = possible.memory[slot + 1]
    if _lowest(bounds) < _highest(bounds):
        _note_relations(possible, code)
        worst = _upper_bound(possible, _everybody(possible)) - _tangled(possible)
        possible.memory[slot + 1] = _bounds(possible, worst, worst)
        return worst
    return _lowest(bounds)


@kernel
def record_of(possible: Possible, code: int) -> int:
    """Where the record of a page is under the present certificates; an empty one, if there was none."""
    key = code | possible.version[0] << _VERSION_SHIFT
    record = RECORD * np.int64((np.uint64(key) * _SCATTER) >> np.uint64(64 - _RECORD_BITS))
    if possible.records[record] != key:
        possible.records[record] = key
        for word in range(1, RECORD):
            possible.records[record + word] = 0
    return int(record)


@kernel
def _slot_of(possible: Possible, code: int) -> int:
    """Where a page is remembered, with what is still true of it; what was there of another page is forgotten."""
    slot = 2 * np.int64((np.uint64(code) * _SCATTER) >> np.uint64(64 - _MEMORY_BITS))
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
    _note_relations(possible, code)
    upper, lowest = _upper_bound(possible, _everybody(possible)), -_FAR
    highest = upper if upper <= most else upper - _forced(possible)
    if highest > most:
        lowest = highest = upper - _tangled(possible)
    possible.memory[slot + 1] = _bounds(possible, lowest, highest)
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
def number_of_lowest(word: int) -> int:
    """The number of the lowest bit that is set."""
    return _bits((word & -word) - 1)


@kernel
def _everybody(possible: Possible) -> int:
    """The set of all seats."""
    return int((1 << len(possible.better)) - 1)


@kernel
def _upper_bound(possible: Possible, among: int) -> int:
    """Every pair of a set of seats at its worst, on the page whose relations are noted.

    Each pair is met from both sides.
    """
    twice = 0
    for x in range(len(possible.better)):
        if not among >> x & 1:
            continue
        better, worse = possible.better[x] & among, possible.worse[x] & among
        below, above = possible.below[x] & among, possible.above[x] & among
        below_before, above_before = possible.original_below[x], possible.original_above[x]
        if_worse, if_better = below & ~below_before, above & ~above_before  # wrong now, and not before
        twice += _bits((if_worse | if_better) & ~(better | worse))
        twice += _bits(if_worse & better) - _bits(below_before & ~below & better)
        twice += _bits(if_better & worse) - _bits(above_before & ~above & worse)
    return twice // 2


@kernel
def _note_wishes(possible: Possible) -> None:
    """Fill in who comes before and after whom if every pair that is not certain is at its worst.

    Pairs that the page and the original ranking show alike do not care.
    """
    for x in range(len(possible.better)):
        open_seats = ~(possible.better[x] | possible.worse[x])
        below, above = possible.below[x], possible.above[x]
        below_before, above_before = possible.original_below[x], possible.original_above[x]
        possible.after[x] = (above & ~above_before | below_before & ~below) & open_seats
        possible.before[x] = (below & ~below_before | above_before & ~above) & open_seats


@kernel
def _both_ways(possible: Possible, loser: int, winner: int) -> int:
    """The seats that were below the loser and are above it, and were above the winner and are below it."""
    turned_loser = possible.above[loser] & possible.original_below[loser]
    return int(turned_loser & possible.below[winner] & possible.original_above[winner])


@kernel
def _forced(possible: Possible) -> int:
    """W is below the upper bound by at least this, for the page whose relations are noted.

    If w is certified over l, and the pairs {l, m} and {m, w} want l before m and m before w, one of them does not get
    it. No pair is counted in two such circles.
    """
    _note_wishes(possible)
    after, before, lost = possible.after, possible.before, 0
    for winner in range(len(possible.better)):
        losers = possible.worse[winner]
        while losers:
            loser = number_of_lowest(losers)
            losers &= losers - 1
            between = after[loser] & before[winner]
            lost += _bits(between) + _bits(between & _both_ways(possible, loser, winner))
            after[loser] &= ~between
            before[winner] &= ~between
            while between:
                middle = number_of_lowest(between)
                between &= between - 1
                before[middle] &= ~(1 << loser)
                after[middle] &= ~(1 << winner)
    return lost


@kernel
def _note_pulls(possible: Possible) -> None:
    """Fill in who is to come after whom for every pair to be at its worst, and what follows from that."""
    n_seats, pulled = len(possible.better), possible.pulled
    _note_wishes(possible)
    for x in range(n_seats):
        pulled[x] = possible.worse[x] | possible.after[x]
    for middle in range(n_seats):
        further = pulled[middle]
        for x in range(n_seats):
            pulled[x] |= further & -(pulled[x] >> middle & 1)


@kernel
def _tangled(possible: Possible) -> int:
    """By how much W is below the upper bound, for the page whose relations are noted.

    Call two seats *tangled* if each is to come after the other, by way of others. The classes of tangled seats can be
    lined up so that every pair of two classes is at its worst and no certificate is broken. What is lost is lost within
    the classes, and each can be searched by itself.
    """
    _note_pulls(possible)
    lost, done = 0, 0
    for x in range(len(possible.better)):
        if possible.pulled[x] >> x & 1 and not done >> x & 1:
            among, size = 0, 0
            for z in range(x, len(possible.better)):
                if possible.pulled[x] >> z & 1 and possible.pulled[z] >> x & 1:
                    possible.members[size] = z
                    among |= 1 << z
                    size += 1
            done |= among
            lost += _upper_bound(possible, among) - _search(possible, size)
    return lost


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
def _compress(possible: Possible, size: int) -> int:
    """The relations between the members, as bits of their numbers; returns how many pairs were wrong only before.

    What counts for a member is who is below it now and was not, in the lower half of a word, and who was and is not, in
    the upper half: among those before it, the latter are as many as there are, less those that are not before it.
    """
    before = 0
    for number in range(size):
        x = possible.members[number]
        wants, counts = _twin(possible, number) | 1 << number, 0
        for other in range(size):
            z = possible.members[other]
            wants |= (possible.better[x] >> z & 1) << other
            counts |= ((possible.below[x] & ~possible.original_below[x]) >> z & 1) << other
            counts |= ((possible.original_below[x] & ~possible.below[x]) >> z & 1) << (other + _HALF)
        possible.needs[number, 0], possible.needs[number, 1] = wants, counts
        before += _bits(counts >> _HALF)
    return before


@kernel
def _search(possible: Possible, size: int) -> int:
    """The largest V(page) - V(original) among the first so many members, for the page whose relations are noted."""
    most, needs = possible.most, possible.needs
    before, everybody = _compress(possible, size), (1 << size) - 1
    for chosen in range(everybody + 1):
        most[chosen] = _IMPOSSIBLE
    most[0] = 0
    for chosen in range(everybody):
        so_far = most[chosen]
        if so_far == _IMPOSSIBLE:
            continue
        missing = everybody & ~chosen
        halves = chosen | missing << _HALF
        for x in range(size):
            if missing & needs[x, 0] == 1 << x:  # x is missing, and nobody who comes before it is
                value = so_far + _bits(halves & needs[x, 1])
                most[chosen | 1 << x] = max(most[chosen | 1 << x], value)
    return int(most[everybody] - before)
