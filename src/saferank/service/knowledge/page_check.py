"""The check of every page before it leaves: from the certificates and the call alone, whatever the policy did.

V counts wrong pairs: a shown item with a better one below it or hidden. A page is legal when V(page) is at most
V(base) + floor(L - K/2), whatever the truth is, as long as it agrees with the certificates. Two proofs are tried:

* by a leader: certified exchanges make the leader of the call's base ranking and earn m pairs; then pair by pair the
  page may add to the leader 0 (shown as on the leader), 0 or -1 (certified the way it is shown) or 1 (anything else),
  altogether at most floor(L - K/2) + m;
* for at most 12 items: the exact worst case over all orders that agree with the certificates.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.safety import whole_allowance
from saferank.safety.worst_case import MOST_SEATS, Possible, at_most, new_possible, note_better, page_code
from saferank.service.knowledge.certified import Certified, Leader, leaders
from saferank.verbs import Flags, Ints

Words = NDArray[np.uint64]

_MOST_SEATS = 64
"""Items of a call whose sets are words."""


class CheckedCall(NamedTuple):
    """What the check knows of a call, in item numbers."""

    base: tuple[int, ...]  # production's page
    present: int  # all items of the call, as bits
    certified: Certified


class Checked(NamedTuple):
    """What the check of a page found."""

    fault: str | None = None  # why it must not be served
    used: int = 0  # otherwise: percent of the allowed wrong pairs that it may have beyond production's page, at most


def checked(call: CheckedCall, page: Sequence[int]) -> Checked:
    """Whether a page may be served, and how much of what is allowed it may use."""
    if len(page) != len(call.base) or len(set(page)) != len(page):
        return Checked(f"{len(set(page))} different items on a page of {len(call.base)}")
    if min(page) < 0 or as_bits(page) & ~call.present:
        return Checked("an item on the page is not in the call")
    if tuple(page) == call.base:
        return Checked()
    proofs, excess = _proofs(call), []
    limit = proofs.limit
    for leader in proofs:
        excess.append(_added(leader, page, call.present) - leader.earned)
        if excess[-1] <= limit:
            return Checked(used=-(-100 * max(0, excess[-1]) // max(1, limit)))
    if call.present.bit_count() <= MOST_SEATS and exactly_safe(call, page, limit):
        return Checked(used=100)
    return Checked(f"it may have {min(excess)} wrong pairs more than production's page, of which {limit} are allowed")


def leader_of(call: CheckedCall) -> tuple[int, ...]:
    """What certified exchanges make of production's page: the first of the leaders that the check looks at."""
    return next(iter(_proofs(call))).row


def as_bits(items: Iterable[int]) -> int:
    """A set of items."""
    bits = 0
    for item in items:
        bits |= 1 << item
    return bits


def proven_legal(call: CheckedCall, pages: Ints) -> Flags:
    """By page, for many at once: True when a leader of the call proves that it is legal.

    ``pages`` are item numbers, a row for each page, or -1 for an unknown item. ``checked`` has the last word
    on the others. A call with more items than a word has bits is left to it altogether.
    """
    found = np.zeros(len(pages), np.bool_)
    present = [item for item in range(call.present.bit_length()) if call.present >> item & 1]
    if len(present) > _MOST_SEATS or pages.shape[1] != len(call.base) or not len(pages):
        return found
    seat_of = np.full(max(call.present.bit_length(), int(pages.max()) + 1) + 1, -1, np.int64)
    seat_of[present] = np.arange(len(present))  # the last entry is for an unknown item, -1
    seated = seat_of[pages]
    left = np.flatnonzero((seated >= 0).all(axis=1))
    left = left[
        _bits_in(np.bitwise_or.reduce(np.uint64(1) << seated[left].astype(np.uint64), axis=1)) == len(call.base)
    ]
    proofs = _proofs(call)
    for number, leader in enumerate(proofs):
        if not len(left):
            break
        same, everyone = proofs.in_words(number)
        added = _added(same, list(seated[left].astype(np.uint64).T), everyone, _bits_in)
        proven = np.asarray(added <= proofs.limit + leader.earned)
        found[left[proven]] = True
        left = left[~proven]
    return found


def _bits_in(words: Any) -> Ints:
    return np.asarray(np.bitwise_count(np.asarray(words, np.uint64)), np.int64)


class _Sets(dict[int, tuple[int, int, int]]):
    """What the check asks of an item beside a leader, worked out when it is first asked for, as three sets.

    Those that the leader has above it, or all of them for an item that it does not have; those of them that are
    certified to be worse; and for an item that it does not have, its likes, unless they are certified to be worse.
    """

    def __init__(self, leader: Leader, present: int, below: Callable[[int], int]) -> None:
        super().__init__()
        self.everyone, self._below, above = as_bits(leader.row), below, 0
        self._others = present & ~self.everyone
        for item in leader.row:
            self[item] = above, above & below(item), 0
            above |= 1 << item

    def __missing__(self, item: int) -> tuple[int, int, int]:
        worse = self._below(item)
        self[item] = found = self.everyone, self.everyone & worse, self._others & ~worse
        return found


class _SetsInWords:
    """The same for many items at a time, from tables by seat."""

    def __init__(self, tables: Sequence[Words]) -> None:
        self._tables = tables

    def __getitem__(self, seats: Any) -> list[Words]:
        return [table[seats] for table in self._tables]


class _Seen(NamedTuple):
    """A leader as sets of items."""

    earned: int
    row: tuple[int, ...]
    everyone: int
    sets: Any
    unjust: Sequence[tuple[int, int]]  # items of the leader that are certified over some above them, with those


def _seen(leader: Leader, present: int, below: Callable[[int], int]) -> _Seen:
    sets = _Sets(leader, present, below)
    unjust = [(item, sets[item][1]) for item in leader.row if sets[item][1]]
    return _Seen(leader.earned, leader.row, sets.everyone, sets, unjust)


class _Proofs:
    """The leaders of a call, made as far as they are asked for: a base ranking comes with thousands of pages."""

    def __init__(self, call: CheckedCall) -> None:
        self.limit = whole_allowance(call.present.bit_count(), len(call.base))
        self._made: list[_Seen] = []
        self._words: dict[int, tuple[_Seen, int]] = {}
        self._present, self._below = call.present, call.certified.below
        self._rest = leaders(call.certified, call.base, call.present)

    def __iter__(self) -> Iterator[_Seen]:
        yield from self._made
        for leader in self._rest:
            self._made.append(_seen(leader, self._present, self._below))
            yield self._made[-1]

    def in_words(self, number: int) -> tuple[_Seen, int]:
        """A leader, and all items, numbered by seats so that sets are words."""
        if number not in self._words:
            leader = self._made[number]
            present = [item for item in range(self._present.bit_length()) if self._present >> item & 1]

            def moved(bits: int) -> int:
                return sum(1 << seat for seat, item in enumerate(present) if bits >> item & 1)

            sets = [[moved(leader.sets[item][which]) for item in present] for which in range(3)]
            same = _Seen(
                earned=leader.earned,
                row=tuple(present.index(item) for item in leader.row),
                everyone=moved(leader.everyone),
                sets=_SetsInWords([np.array(table, np.uint64) for table in sets]),
                unjust=[(present.index(item), moved(certain)) for item, certain in leader.unjust],
            )
            self._words[number] = same, moved(self._present)
        return self._words[number]


_proofs = functools.lru_cache(maxsize=1024)(_Proofs)


def _added(leader: _Seen, page: Sequence[Any], present: int, count: Callable[[Any], Any] = int.bit_count) -> Any:
    """Pairs (i, j) with i above j on the page: +1 when the leader has them otherwise, -1 if i is certified as better.

    Who is not on the page is below it. Two items that are both not in the leader add 1, unless certified, 0.

    For many pages at once ``page`` has an array of items for each place, and sets are arrays of words.
    """
    rest, added = present | leader.everyone, 0
    for item in page:
        rest = rest & ~(1 << item)
        above, certain, likes = leader.sets[item]
        added += count(rest & above) - 2 * count(rest & certain) + count(rest & likes)
    hidden = rest & leader.everyone
    for item, certain in leader.unjust:  # both hidden now: in the certified order they may have been wrong before
        added -= count(hidden & certain) * count(hidden >> item & 1)
    return added


def exactly_safe(call: CheckedCall, page: Sequence[int], limit: int) -> bool:
    """True when no order that agrees with the certificates gives the page more wrong pairs; for at most 12 items."""
    seats, possible = _possible(call, limit)
    return bool(at_most(possible, page_code(np.array([seats[item] for item in page], np.int64)), limit))


@functools.lru_cache(maxsize=128)
def _possible(call: CheckedCall, limit: int) -> tuple[dict[int, int], Possible]:
    """The seats of a call's items, and which orders agree with the certificates; 50 KB."""
    others = [item for item in range(call.present.bit_length()) if call.present >> item & 1 and item not in call.base]
    seats = {item: seat for seat, item in enumerate([*call.base, *others])}
    possible = new_possible(len(seats), len(call.base), limit, few=True)
    for better, x in seats.items():
        for worse, z in seats.items():
            if call.certified.surely(better, worse):
                note_better(possible, x, z)
    return seats, possible


def warm_up_check() -> None:
    """Compile or load what a check may need."""
    call = CheckedCall((0, 1), 0b111, Certified([(2, 1)]).extended([(0, 1)]))
    list(leaders(call.certified, call.base, call.present))
    exactly_safe(call, (2, 0), limit=2)
