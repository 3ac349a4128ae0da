"""The check of every page before it leaves, written without a look at the policies.

V counts wrong pairs: a shown item with a better one below it or hidden. A page is legal when V(page) is at most
V(base) + floor(L - K/2), whatever the truth is, as long as it agrees with the certificates. Two proofs are tried:

* by a leader: certified exchanges make the leader of the call's base ranking and earn m pairs; then pair by pair the
  page may add to the leader 0 (shown as on the leader), 0 or -1 (certified the way it is shown) or 1 (anything else),
  altogether at most floor(L - K/2) + m;
* for at most 12 items: the exact worst case over all orders that agree with the certificates.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saferank.safety import whole_allowance
from saferank.safety.worst_case import MOST_SEATS, at_most, certify_seats, new_possible, page_code
from saferank.service.knowledge.certified import Certified, Leader, leaders


class CheckedCall(NamedTuple):
    """What the check knows of a call, in item numbers."""

    base: tuple[int, ...]  # production's page
    present: int  # all items of the call, as bits
    certified: Certified


def fault_of(call: CheckedCall, page: Sequence[int]) -> str | None:
    """Why a page must not be served, or None."""
    if len(page) != len(call.base) or len(set(page)) != len(page):
        return f"{len(set(page))} different items on a page of {len(call.base)}"
    if any(item < 0 or not call.present >> item & 1 for item in page):
        return "an item on the page is not in the call"
    if tuple(page) == call.base:
        return None
    limit = whole_allowance(call.present.bit_count(), len(call.base))
    excess = []
    for leader in _proofs(call):
        added = _added(call, leader, page)
        if added <= limit + leader.earned:
            return None
        excess.append(added - leader.earned)
    if call.present.bit_count() <= MOST_SEATS and exactly_safe(call, page, limit):
        return None
    return f"it may have {min(excess)} wrong pairs more than production's page, of which {limit} are allowed"


def added_pairs(call: CheckedCall, leader: Leader, page: Sequence[int]) -> int:
    """An upper bound of V(page) - V(leader), pair by pair."""
    return _added(call, _seen(leader), page)


class _Seen(NamedTuple):
    """A leader as sets of items."""

    earned: int
    row: tuple[int, ...]
    everyone: int
    above: dict[int, int]  # by item: those that the leader has above it


def _seen(leader: Leader) -> _Seen:
    above, everyone = {}, 0
    for item in leader.row:
        above[item] = everyone
        everyone |= 1 << item
    return _Seen(leader.earned, leader.row, everyone, above)


class _Proofs:
    """The leaders of a call, made as far as they are asked for: a base ranking comes with thousands of pages."""

    def __init__(self, call: CheckedCall) -> None:
        self._made: list[_Seen] = []
        self._rest = leaders(call.certified, call.base, call.present)

    def __iter__(self) -> Iterator[_Seen]:
        yield from self._made
        for leader in self._rest:
            self._made.append(_seen(leader))
            yield self._made[-1]


_proofs = functools.lru_cache(maxsize=1024)(_Proofs)


def _added(call: CheckedCall, leader: _Seen, page: Sequence[int]) -> int:
    """Pairs (i, j) with i above j on the page: +1 when the leader has them otherwise, -1 if i is certified as better.

    Who is not on the page is below it. Two items that are both not in the leader add 1, unless certified, 0.
    """
    below, everyone, shown = call.certified.below, leader.everyone, 0
    for item in page:
        shown |= 1 << item
    hidden, rest, added = everyone & ~shown, call.present | everyone, 0
    for item in page:
        rest &= ~(1 << item)
        above, worse = leader.above.get(item), below(item)
        if above is None:
            above = everyone
            added += (rest & ~everyone & ~worse).bit_count()
        turned = rest & above
        added += turned.bit_count() - 2 * (turned & worse).bit_count()
    if hidden and call.certified.pairs:  # both hidden now: in the certified order they may have been wrong before
        added -= sum(
            (below(item) & hidden & leader.above[item]).bit_count() for item in leader.row if hidden >> item & 1
        )
    return added


def exactly_safe(call: CheckedCall, page: Sequence[int], limit: int) -> bool:
    """True when no order that agrees with the certificates gives the page more wrong pairs; for at most 12 items."""
    others = [item for item in range(call.present.bit_length()) if call.present >> item & 1 and item not in call.base]
    seats = {item: seat for seat, item in enumerate([*call.base, *others])}
    possible = new_possible(len(seats), len(call.base), limit)
    for better, x in seats.items():
        for worse, z in seats.items():
            if call.certified.surely(better, worse) and not possible.worse[x] >> z & 1:
                certify_seats(possible, x, z)
    return bool(at_most(possible, page_code(np.array([seats[item] for item in page], np.int64)), limit))
