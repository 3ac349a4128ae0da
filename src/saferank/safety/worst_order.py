"""The worst order for a page: what every pair wants, what certificates take away, and a search of what is left.

``possible`` is what ``worst_case.py`` knows and its scratch memory. Nothing is remembered here.
"""

from typing import Any

import numpy as np

from saferank._kernel import kernel

_IMPOSSIBLE = -1
_HALF = 16
"""Two sets of members share a word."""


@kernel
def note_relations(possible: Any, code: int) -> None:
    """Fill in which items are below and above which on a page."""
    below, above = possible.below, possible.above
    every_seat, shown = (1 << len(below)) - 1, 0
    for seat in range(len(below)):
        below[seat], above[seat] = 0, -1
    for place in range(possible.limit[1]):
        seat = code >> (4 * place) & 15
        above[seat] = shown
        shown |= 1 << seat
        below[seat] = every_seat & ~shown
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
def all_seats(possible: Any) -> int:
    """The set of all seats."""
    return int((1 << len(possible.better)) - 1)


@kernel
def upper_bound(possible: Any, among: int) -> int:
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
def _note_wishes(possible: Any) -> None:
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
def _both_ways(possible: Any, loser: int, winner: int) -> int:
    """The seats that were below the loser and are above it, and were above the winner and are below it."""
    turned_loser = possible.above[loser] & possible.original_below[loser]
    return int(turned_loser & possible.below[winner] & possible.original_above[winner])


@kernel
def forced(possible: Any) -> int:
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
def _note_pulls(possible: Any) -> None:
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
def tangled(possible: Any) -> int:
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
            lost += upper_bound(possible, among) - _search(possible, size)
    return lost


@kernel
def _twin(possible: Any, number: int) -> int:
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
def _compress(possible: Any, size: int) -> int:
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
def _search(possible: Any, size: int) -> int:
    """The largest V(page) - V(original) among the first members, for the page whose relations are noted."""
    most, needs = possible.most, possible.needs
    before, all_members = _compress(possible, size), (1 << size) - 1
    for chosen in range(all_members + 1):
        most[chosen] = _IMPOSSIBLE
    most[0] = 0
    for chosen in range(all_members):
        so_far = most[chosen]
        if so_far == _IMPOSSIBLE:
            continue
        missing = all_members & ~chosen
        halves = chosen | missing << _HALF
        for x in range(size):
            if missing & needs[x, 0] == 1 << x:  # x is missing, and no item that comes before it is
                value = so_far + _bits(halves & needs[x, 1])
                most[chosen | 1 << x] = max(most[chosen | 1 << x], value)
    return int(most[all_members] - before)
