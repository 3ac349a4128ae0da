"""Which items are certified over which, through others too, in a large catalogue.

Certificates close transitively: i over j and j over k certify i over k. A matrix of all items would be too large, so
items get a *number* when they first occur in a certificate, and a matrix of bits over the numbered items holds the
closure exactly. It never holds a cycle, because a pair that is certified in either direction is not certified again.

Certificates of absent items stay: if i is better than an absent item that is better than j, i is better than j. Only
``below`` counts the items that are present.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.verbs import NOBODY, Flags, Ints

BITS = 32
"""Bits of a word of the matrix."""


class Closure(NamedTuple):
    """The closure of the certificates given so far."""

    number: Ints  # by item: its number, or NOBODY
    item: Ints  # by number; its length is the capacity
    worse: NDArray[np.uint32]  # a row of bits for each number: the numbers of items that are certified worse
    below: Ints  # by number: how many present items are certified worse
    size: Ints  # [1] numbers in use


def new_closure(n_items: int, capacity: int) -> Closure:
    """No certificate; ``capacity`` is a multiple of 32."""
    return Closure(
        number=np.full(n_items, NOBODY, np.int64),
        item=np.zeros(capacity, np.int64),
        worse=np.zeros(capacity * (capacity // BITS), np.uint32),
        below=np.zeros(capacity, np.int64),
        size=np.zeros(1, np.int64),
    )


@kernel
def _bit(closure: Closure, upper: int, lower: int) -> bool:
    """True when the item numbered ``upper`` is certified over the one numbered ``lower``."""
    word = closure.worse[upper * (len(closure.item) // BITS) + lower // BITS]
    return bool((int(word) >> (lower % BITS)) & 1)


@kernel
def surely(closure: Closure, i: int, j: int) -> bool:
    """True when i is certified over j."""
    upper, lower = closure.number[i], closure.number[j]
    return min(upper, lower) != NOBODY and _bit(closure, upper, lower)


@kernel
def certified_by(closure: Closure, i: int) -> int:
    """How many present items i is certified over."""
    number = closure.number[i]
    return 0 if number == NOBODY else int(closure.below[number])


@kernel
def _number_of(closure: Closure, item: int) -> int:
    """The number of an item, which gets one if it has none."""
    if closure.number[item] == NOBODY:
        closure.number[item] = closure.size[0]
        closure.item[closure.size[0]] = item
        closure.size[0] += 1
    return int(closure.number[item])


@kernel
def _put_over(closure: Closure, present: Flags, upper: int, lower: int) -> None:
    """The item numbered ``upper`` is better than ``lower`` and all that ``lower`` is better than."""
    for number in range(closure.size[0]):
        if (number == lower or _bit(closure, lower, number)) and not _bit(closure, upper, number):
            word = upper * (len(closure.item) // BITS) + number // BITS
            closure.worse[word] = np.uint32(int(closure.worse[word]) | (1 << (number % BITS)))
            closure.below[upper] += int(present[closure.item[number]])


@kernel
def certify_over(closure: Closure, present: Flags, i: int, j: int) -> None:
    """Certify i over j, a pair that is not certified in either direction, and all that follows from it."""
    upper, lower = _number_of(closure, i), _number_of(closure, j)
    for number in range(closure.size[0]):
        if number == upper or _bit(closure, number, upper):
            _put_over(closure, present, number, lower)


@kernel
def recount(closure: Closure, present: Flags) -> None:
    """Fill ``below``: other items are present now."""
    for upper in range(closure.size[0]):
        closure.below[upper] = 0
        for lower in range(closure.size[0]):
            closure.below[upper] += int(_bit(closure, upper, lower) and present[closure.item[lower]])


@kernel
def forget_closure(closure: Closure) -> None:
    """Nothing is certified any more."""
    for number in range(closure.size[0]):
        closure.number[closure.item[number]] = NOBODY
        closure.below[number] = 0
    for word in range(len(closure.worse)):
        closure.worse[word] = np.uint32(0)
    closure.size[0] = 0


@kernel
def closure_full(closure: Closure, n_new: int) -> bool:
    """True when ``n_new`` more items might not fit."""
    return bool(closure.size[0] + n_new > len(closure.item))


def with_more_numbers(closure: Closure) -> Closure:
    """The same closure with room for twice as many numbered items."""
    before = len(closure.item)
    bigger = new_closure(len(closure.number), 2 * before)
    bigger.number[:], bigger.size[:] = closure.number, closure.size
    bigger.item[:before], bigger.below[:before] = closure.item, closure.below
    words = before // BITS
    bigger.worse.reshape(2 * before, 2 * words)[:before, :words] = closure.worse.reshape(before, words)
    return bigger


def with_more_unnumbered(closure: Closure, n_items: int) -> Closure:
    """The same closure for a catalogue of ``n_items`` items."""
    newcomers = np.full(n_items - len(closure.number), NOBODY, np.int64)
    return closure._replace(number=np.append(closure.number, newcomers))
