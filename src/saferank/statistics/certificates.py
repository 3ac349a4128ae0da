"""Certificates: which of two items was found to be the better one, until when, and what follows from those that hold.

A certificate ``(better, worse, expires)`` holds up to and including the round ``expires``; one that never ends has
``ENDLESS`` there. What follows from the certificates that hold is their transitive closure: i over j and j over k say
i over k, also by way of items that are absent. A matrix of all items would be too large, so items get a *number* when
they first occur in a certificate, and a matrix of bits over the numbered items holds the closure.

Certificates can contradict each other when the world has changed since the older ones were earned, or when one is
wrong:

* a later one replaces the opposite one of the same pair at once, if that expires earlier;
* if there is a circle, the ones on it that expire earlier than the others are dropped; if all expire in the same round,
  all are dropped. Each circle counts as an alarm. A certificate that was dropped is not given again with the same
  expiry: what spoke for it is void.

Nothing here knows clicks: the caller that certifies gives the end of the certificate.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, seldom
from saferank.verbs import NO_ITEM, Flags, Ints

ENDLESS = 1 << 60
"""The end of a certificate that never ends, and the pages of an epoch that never ends."""

NOTHING, ADDED, TAKEN = 0, 1, 2
"""What a certificate changed: nothing; it was added to those that hold; others do not hold any more."""

BITS = 32
"""Bits of a word of the matrix."""


class Certificates(NamedTuple):
    """All that were ever given, in their order. Those that hold are entries from ``first`` on with ``expires`` > 0."""

    better: Ints
    worse: Ints
    round: Ints  # of the page that decided the pair
    expires: Ints  # the last round in which it holds; 0: it holds no more; negative: it was dropped before that round
    given: Ints  # [1] how many
    first: Ints  # [1] the entries before this one hold no more
    alarms: Ints  # [1] how often certificates were dropped or withdrawn because something contradicted them


def new_certificates(capacity: int) -> Certificates:
    """No certificate yet."""
    better, worse, rounds, expires = np.zeros((4, capacity), np.int64)
    given, first, alarms = np.zeros((3, 1), np.int64)
    return Certificates(better, worse, rounds, expires, given, first, alarms)


def lasting_certificates(pairs: Ints) -> Certificates:
    """Certificates of these pairs [better, worse], which never end."""
    certificates = new_certificates(len(pairs))
    certificates.better[:], certificates.worse[:] = pairs.T
    certificates.expires[:], certificates.given[0] = ENDLESS, len(pairs)
    return certificates


def copy_certificates(old: Certificates, new: Certificates) -> None:
    """Put the certificates of one table into an empty one, which is at least as long."""
    size = int(old.given[0])
    for source, target in zip(old[:4], new[:4], strict=True):
        target[:size] = source[:size]
    for source, target in zip(old[4:], new[4:], strict=True):
        target[:] = source


@kernel
def list_full(certificates: Certificates, n_new: int) -> bool:
    """True when ``n_new`` more certificates might not fit."""
    return bool(certificates.given[0] + n_new > len(certificates.better))


def with_longer_list(certificates: Certificates) -> Certificates:
    """The same certificates with room for twice as many."""
    longer = new_certificates(2 * len(certificates.better))
    copy_certificates(certificates, longer)
    return longer


@kernel
def keep_certificate(certificates: Certificates, winner: int, loser: int, now: int, expires: int) -> None:
    """Append a certificate; there must be room for it."""
    entry = certificates.given[0]
    certificates.better[entry], certificates.worse[entry] = winner, loser
    certificates.round[entry], certificates.expires[entry] = now, expires
    certificates.given[0] += 1


def held(certificates: Certificates) -> list[tuple[int, int, int]]:
    """Those that hold: better and worse item, and the last round, in the order in which they were given."""
    entries = range(int(certificates.first[0]), int(certificates.given[0]))
    columns = (certificates.better, certificates.worse, certificates.expires)
    return [(int(a[e]), int(b[e]), int(c[e])) for e in entries for a, b, c in [columns] if c[e] > 0]


@kernel
def held_through(certificates: Certificates, better: int, worse: int, end: int) -> bool:
    """True when a pair has a certificate of its own that holds at least through a round."""
    for entry in range(certificates.first[0], certificates.given[0]):
        same = certificates.better[entry] == better and certificates.worse[entry] == worse
        if same and certificates.expires[entry] >= end:
            return True
    return False


class Closure(NamedTuple):
    """What follows from certificates."""

    number: Ints  # by item: its number, or NO_ITEM
    item: Ints  # by number; its length is the capacity
    worse: NDArray[np.uint32]  # a row of bits for each number: the numbers of items that are certified worse
    size: Ints  # [1] numbers in use
    way: Ints  # scratch: by number, the certificate by which a search came there
    queue: Ints  # scratch: numbers still to be searched


def new_closure(n_items: int, capacity: int = BITS) -> Closure:
    """No certificate; ``capacity`` is a multiple of 32."""
    return Closure(
        number=np.full(n_items, NO_ITEM, np.int64),
        item=np.zeros(capacity, np.int64),
        worse=np.zeros(capacity * (capacity // BITS), np.uint32),
        size=np.zeros(1, np.int64),
        way=np.zeros(capacity, np.int64),
        queue=np.zeros(capacity, np.int64),
    )


def closure_for(n_items: int) -> Closure:
    """No certificate, with room for all pairs of these items."""
    return new_closure(n_items, BITS * max(1, -(-n_items // BITS)))


@kernel
def _bit(closure: Closure, upper: int, lower: int) -> bool:
    """True when the item numbered ``upper`` is certified over the one numbered ``lower``."""
    word = closure.worse[upper * (len(closure.item) // BITS) + lower // BITS]
    return bool((int(word) >> (lower % BITS)) & 1)


@kernel
def surely(closure: Closure, i: int, j: int) -> bool:
    """True when it follows that i is better than j."""
    upper, lower = closure.number[i], closure.number[j]
    return min(upper, lower) != NO_ITEM and _bit(closure, upper, lower)


@kernel
def _number_of(closure: Closure, item: int) -> int:
    """The number of an item, which gets one if it has none."""
    if closure.number[item] == NO_ITEM:
        closure.number[item] = closure.size[0]
        closure.item[closure.size[0]] = item
        closure.size[0] += 1
    return int(closure.number[item])


@seldom
def certify_over(closure: Closure, i: int, j: int) -> None:
    """Certify i over j, and all that follows from it: everything from i upwards is over everything from j downwards."""
    upper, lower, words = _number_of(closure, i), _number_of(closure, j), len(closure.item) // BITS
    for above in range(closure.size[0]):
        if above == upper or _bit(closure, above, upper):
            for word in range(words):
                gained = int(closure.worse[lower * words + word])
                if word == lower // BITS:
                    gained |= 1 << (lower % BITS)
                closure.worse[above * words + word] = np.uint32(int(closure.worse[above * words + word]) | gained)


@seldom
def certify_further(closure: Closure, pairs: Ints, taken: Flags) -> None:
    """Certify pairs in turn, but none that follows already or contradicts the certified order; note which."""
    for entry in range(len(pairs)):
        better, worse = pairs[entry, 0], pairs[entry, 1]
        taken[entry] = not surely(closure, better, worse) and not surely(closure, worse, better)
        if taken[entry]:
            certify_over(closure, better, worse)


@kernel
def forget_closure(closure: Closure) -> None:
    """Nothing is certified any more."""
    for number in range(closure.size[0]):
        closure.number[closure.item[number]] = NO_ITEM
    for word in range(len(closure.worse)):
        closure.worse[word] = np.uint32(0)
    closure.size[0] = 0


@seldom
def close(certificates: Certificates, closure: Closure, least: int) -> None:
    """Work the closure out from nothing: of the certificates that hold at least through the round ``least``."""
    forget_closure(closure)
    for entry in range(certificates.first[0], certificates.given[0]):
        if certificates.expires[entry] >= max(1, least):
            certify_over(closure, certificates.better[entry], certificates.worse[entry])


@kernel
def _bits(word: int) -> int:
    """How many of 32 bits are set."""
    x = word - ((word >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return int((((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24) & 0xFF)


@seldom
def count_below(closure: Closure, present: Flags, below: Ints) -> None:
    """Fill in, by item that has a number, how many present items are certified to be worse."""
    words, here = len(closure.item) // BITS, closure.queue
    for word in range(words):
        here[word] = 0
    for number in range(closure.size[0]):
        here[number // BITS] |= int(present[closure.item[number]]) << (number % BITS)
    for number in range(closure.size[0]):
        worse = 0
        for word in range(words):
            worse += _bits(int(closure.worse[number * words + word]) & here[word])
        below[closure.item[number]] = worse


@kernel
def closure_full(closure: Closure, n_new: int) -> bool:
    """True when ``n_new`` more items might not fit."""
    return bool(closure.size[0] + n_new > len(closure.item))


def with_more_numbers(closure: Closure) -> Closure:
    """The same closure with room for twice as many numbered items."""
    before = len(closure.item)
    bigger = new_closure(len(closure.number), 2 * before)
    bigger.number[:], bigger.size[:] = closure.number, closure.size
    bigger.item[:before] = closure.item
    words = before // BITS
    bigger.worse.reshape(2 * before, 2 * words)[:before, :words] = closure.worse.reshape(before, words)
    return bigger


def with_more_unnumbered(closure: Closure, n_items: int) -> Closure:
    """The same closure for a catalogue of ``n_items`` items."""
    newcomers = np.full(n_items - len(closure.number), NO_ITEM, np.int64)
    return closure._replace(number=np.append(closure.number, newcomers)) if len(newcomers) else closure


@kernel
def _next_below(certificates: Certificates, closure: Closure, item: int, start: int) -> int:
    """The certificate that holds of an item over the first other item to which no search came yet, or NO_ITEM."""
    following = NO_ITEM
    for entry in range(certificates.first[0], certificates.given[0]):
        other = certificates.worse[entry]
        if certificates.expires[entry] > 0 and certificates.better[entry] == item and other != start:
            unseen = closure.way[closure.number[other]] == NO_ITEM
            if unseen and (following == NO_ITEM or other < certificates.worse[following]):
                following = entry
    return following


@kernel
def _find_way(certificates: Certificates, closure: Closure, start: int, goal: int) -> bool:
    """Search the certificates that hold from ``start`` down to ``goal``, breadth first; ``way`` tells the way back."""
    way, queue = closure.way, closure.queue
    for other in range(closure.size[0]):
        way[other] = NO_ITEM
    queue[0], searched, found = start, 0, 1
    while searched < found:
        entry = _next_below(certificates, closure, queue[searched], start)
        if entry == NO_ITEM:
            searched += 1
        else:
            queue[found] = certificates.worse[entry]
            way[closure.number[queue[found]]] = entry
            found += 1
    return bool(way[closure.number[goal]] != NO_ITEM)


@kernel
def _drop_circle(certificates: Certificates, closure: Closure, new: int) -> None:
    """Drop the older ones of a certificate and of the way from its worse to its better item; if there are none, all."""
    expires, better, worse = certificates.expires, certificates.better[new], certificates.worse[new]
    newest = oldest = expires[new]
    item = better
    while item != worse:
        entry = closure.way[closure.number[item]]
        newest, oldest = max(newest, expires[entry]), min(oldest, expires[entry])
        item = certificates.better[entry]
    item = better
    while item != worse:
        entry = closure.way[closure.number[item]]
        if expires[entry] < newest or oldest == newest:
            expires[entry] = -expires[entry]
        item = certificates.better[entry]
    if expires[new] < newest or oldest == newest:
        expires[new] = -expires[new]
    certificates.alarms[0] += 1


@seldom
def give(certificates: Certificates, closure: Closure, pair: tuple[int, int], expires: int, now: int) -> int:
    """Certify the first item of a pair over the second up to a round; returns what that changed."""
    better, worse = pair
    for entry in range(certificates.first[0], certificates.given[0]):
        same = certificates.better[entry] == better and certificates.worse[entry] == worse
        if same and abs(certificates.expires[entry]) >= expires:
            return NOTHING
    changed = ADDED
    for entry in range(certificates.first[0], certificates.given[0]):
        same = certificates.better[entry] == better and certificates.worse[entry] == worse
        opposite = certificates.better[entry] == worse and certificates.worse[entry] == better
        if (same or opposite) and 0 < certificates.expires[entry] < expires:
            certificates.expires[entry] = 0
            changed = TAKEN if opposite else changed
    contradicts, new = surely(closure, worse, better), certificates.given[0]
    keep_certificate(certificates, better, worse, now, expires)
    while contradicts and certificates.expires[new] > 0 and _find_way(certificates, closure, worse, better):
        _drop_circle(certificates, closure, new)
        changed = TAKEN
    if changed == TAKEN:
        close(certificates, closure, 1)
    else:
        certify_over(closure, better, worse)
    return changed


@kernel
def leads_from(certificates: Certificates, closure: Closure, entry: int, upper: int, lower: int) -> bool:
    """True when a certificate holds and is on a way from ``upper`` down to ``lower``."""
    better, worse = certificates.better[entry], certificates.worse[entry]
    begins = better == upper or surely(closure, upper, better)
    ends = worse == lower or surely(closure, worse, lower)
    return bool(certificates.expires[entry] > 0 and begins and ends)


@seldom
def expire(certificates: Certificates, now: int) -> bool:
    """Forget the certificates that do not hold in round ``now``; True when there were some. The closure stays."""
    gone = False
    for entry in range(certificates.first[0], certificates.given[0]):
        if 0 < certificates.expires[entry] < now:
            certificates.expires[entry] = 0
            gone = True
    while certificates.first[0] < certificates.given[0] and abs(certificates.expires[certificates.first[0]]) < now:
        certificates.first[0] += 1
    return gone
