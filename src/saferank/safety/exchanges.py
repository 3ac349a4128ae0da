"""Which exchanges of two items leave a page safe, remembered by page.

Every click asks this of all items that were not clicked. So what was found for a place of a page is kept as one word
of bits, until the next certificate. A pair whose order is certain for good is not open: it is not bet on any more.

A record is the page with the version of the certificates, then three words with sixteen bits for each of up to twelve
places: the seats with which the item of that place may be exchanged, and whether they have been worked out. One more
bit of the first place says that the page itself is safe.
"""

from saferank._kernel import kernel, seldom
from saferank.safety.worst_case import MOST_SEATS, Possible, at_most, record_of

_SEATS = (1 << MOST_SEATS) - 1
_SAFE = 1 << MOST_SEATS
_WORKED_OUT = 2 << MOST_SEATS
_PLACES_OF_A_WORD = 4
_BITS_OF_A_PLACE = 16


@kernel
def exchange_is_safe(possible: Possible, code: int, x: int, z: int, places: tuple[int, int]) -> bool:
    """True when the page with the items of two places exchanged is safe; the first place is shown."""
    change = x ^ z
    code ^= change << (4 * places[0])
    if places[1] < possible.limit[1]:
        code ^= change << (4 * places[1])
    return at_most(possible, code, possible.limit[0])


@kernel
def is_safe(possible: Possible, code: int) -> bool:
    """True when W(page) is within the limit."""
    word = record_of(possible, code) + 1
    return bool(possible.records[word] & _SAFE) or _found_safe(possible, code, word)


@seldom
def _found_safe(possible: Possible, code: int, word: int) -> bool:
    safe = at_most(possible, code, possible.limit[0])
    if safe:
        possible.records[word] |= _SAFE
    return safe


@kernel
def safe_exchanges(possible: Possible, code: int, place: int) -> int:
    """As bits, the seats whose exchange with that of a shown place is safe, and whose order with it is open."""
    word = record_of(possible, code) + 1 + place // _PLACES_OF_A_WORD
    shift = _BITS_OF_A_PLACE * (place % _PLACES_OF_A_WORD)
    if not possible.records[word] >> shift & _WORKED_OUT:
        possible.records[word] |= (_WORKED_OUT | _work_out_exchanges(possible, code, place)) << shift
    return int(possible.records[word] >> shift & _SEATS)


@seldom
def _work_out_exchanges(possible: Possible, code: int, place: int) -> int:
    x, seats, shown = code >> 4 * place & 15, 0, 0
    known = (possible.better[x] | possible.worse[x]) * possible.limit[2] | 1 << x
    for other in range(possible.limit[1]):
        z = code >> 4 * other & 15
        shown |= 1 << z
        if not known >> z & 1 and exchange_is_safe(possible, code, x, z, (place, other)):
            seats |= 1 << z
    for z in range(len(possible.better)):
        if not (known | shown) >> z & 1 and exchange_is_safe(possible, code, x, z, (place, possible.limit[1])):
            seats |= 1 << z
    return seats
