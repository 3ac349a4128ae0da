"""Certificates with a lifetime: which of two items is certified as the better one, until when, and what follows.

A certificate ``(better, worse, expires)`` holds up to and including the round ``expires``. What follows from the
certificates that hold is their transitive closure, ``holds``. Certificates can contradict each other when the world
has changed since the older ones were earned, or when one is wrong:

* a later one replaces the opposite one of the same pair at once, if that expires earlier;
* if there is a circle, the ones on it that expire earlier than the others are dropped; if all expire in the same round,
  all are dropped. Each circle counts as an alarm. A certificate that was dropped is not given again with the same
  expiry: what spoke for it is void.

The table knows no clicks: the caller that certifies gives the end of the certificate.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.verbs import Flags, Ints

_NOBODY = -1


class CertificateTable(NamedTuple):
    """Every pair of items, in matrices."""

    expires: Ints  # [better, worse]: the last round in which the certificate holds, 0 for none
    dropped: Ints  # [better, worse]: the largest expiry of a certificate that was dropped
    above: Flags  # [better, worse]: follows from the certificates that hold
    alarms: Ints  # [1] circles so far
    came_from: Ints  # scratch: by item, where a search came from
    queue: Ints  # scratch: items still to be searched


def new_certificate_table(n_items: int) -> CertificateTable:
    """No certificate."""
    shape = (n_items, n_items)
    return CertificateTable(
        expires=np.zeros(shape, np.int64),
        dropped=np.zeros(shape, np.int64),
        above=np.zeros(shape, np.bool_),
        alarms=np.zeros(1, np.int64),
        came_from=np.zeros(n_items, np.int64),
        queue=np.zeros(n_items, np.int64),
    )


@kernel
def holds(table: CertificateTable, better: int, worse: int) -> bool:
    """True when it follows from the certificates that hold."""
    return bool(table.above[better, worse])


@kernel
def _add_to_closure(table: CertificateTable, better: int, worse: int) -> None:
    """Let everything from ``better`` upwards be above everything from ``worse`` downwards."""
    n_items, above = len(table.queue), table.above
    if above[better, worse]:
        return
    for upper in range(n_items):
        if upper == better or above[upper, better]:
            for lower in range(n_items):
                if lower == worse or above[worse, lower]:
                    above[upper, lower] = True


@kernel
def close(table: CertificateTable) -> None:
    """Work out the closure from nothing: certificates were taken away."""
    n_items = len(table.queue)
    for i in range(n_items):
        for j in range(n_items):
            table.above[i, j] = False
    for i in range(n_items):
        for j in range(n_items):
            if table.expires[i, j] > 0:
                _add_to_closure(table, i, j)


@kernel
def _find_way(table: CertificateTable, start: int, goal: int) -> bool:
    """Search certificates from ``start`` down to ``goal``, breadth first; ``came_from`` tells the way back."""
    n_items, came_from, queue = len(table.queue), table.came_from, table.queue
    for item in range(n_items):
        came_from[item] = _NOBODY
    came_from[start], queue[0] = start, start
    searched, found = 0, 1
    while searched < found:
        item = queue[searched]
        searched += 1
        for other in range(n_items):
            if table.expires[item, other] > 0 and came_from[other] == _NOBODY:
                came_from[other], queue[found] = item, other
                found += 1
    return bool(came_from[goal] != _NOBODY)


@kernel
def _drop(table: CertificateTable, better: int, worse: int) -> None:
    table.dropped[better, worse] = table.expires[better, worse]
    table.expires[better, worse] = 0


@kernel
def _drop_circle(table: CertificateTable, better: int, worse: int) -> None:
    """Drop the older ones of the certificate and the way from ``worse`` to ``better``; if there are none, all."""
    newest = oldest = table.expires[better, worse]
    item = better
    while item != worse:
        expires = table.expires[table.came_from[item], item]
        newest, oldest = max(newest, expires), min(oldest, expires)
        item = table.came_from[item]
    item = better
    while item != worse:
        upper = table.came_from[item]
        if table.expires[upper, item] < newest or oldest == newest:
            _drop(table, upper, item)
        item = upper
    if table.expires[better, worse] < newest or oldest == newest:
        _drop(table, better, worse)
    table.alarms[0] += 1


@kernel
def give(table: CertificateTable, better: int, worse: int, expires: int) -> bool:
    """Certify a pair up to a round; True when that changed which certificates there are."""
    if expires <= max(table.expires[better, worse], table.dropped[better, worse]):
        return False
    replaced = 0 < table.expires[worse, better] < expires
    if replaced:
        table.expires[worse, better] = 0
    table.expires[better, worse] = expires
    alarms = table.alarms[0]
    while table.expires[better, worse] > 0 and _find_way(table, worse, better):
        _drop_circle(table, better, worse)
    if replaced or table.alarms[0] > alarms:
        close(table)
    else:
        _add_to_closure(table, better, worse)
    return True


@kernel
def leads_from(table: CertificateTable, better: int, worse: int, upper: int, lower: int) -> bool:
    """True when there is a certificate of ``better`` over ``worse``, on a way from ``upper`` down to ``lower``."""
    begins = better == upper or table.above[upper, better]
    ends = worse == lower or table.above[worse, lower]
    return bool(table.expires[better, worse] > 0 and begins and ends)


@kernel
def expire(table: CertificateTable, now: int) -> bool:
    """Forget the certificates that do not hold in round ``now``; True when there were some."""
    n_items, gone = len(table.queue), False
    for i in range(n_items):
        for j in range(n_items):
            if 0 < table.expires[i, j] < now:
                table.expires[i, j] = 0
                gone = True
    if gone:
        close(table)
    return gone


def with_more_rows(table: CertificateTable, n_items: int) -> CertificateTable:
    """The same certificates among ``n_items`` items."""
    before, bigger = len(table.queue), new_certificate_table(n_items)
    for old, new in zip(table[:3], bigger[:3], strict=True):
        new[:before, :before] = old
    bigger.alarms[0] = table.alarms[0]
    return bigger
