r"""Certificates that are held over from the epoch before, and pages that help to earn them again.

Such a certificate keeps R where it is, but it is no evidence: its pair has to be certified again before it ends, and
where the page needs it a plan helps. Let w be the working order. Go through the held-over certificates, the least clear
first, and take away every one without which W(w) is still within the limit. Those that are left *matter*. The clearest
of them is the *target* of the pages around w: its two items are exchanged in each draw with probability eps, before the
draw is checked. Every pair is bet on at the odds of this law (``draw.py``).
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.safety.worst_case import Possible, is_certain, is_within, note_better
from saferank.statistics.bets import Bets
from saferank.statistics.epochs import end_of_fresh
from saferank.statistics.pairs import row_of
from saferank.verbs import Floats, Ints


class Renewal(NamedTuple):
    """Room to find a target."""

    size: Ints  # [1] how many certificates are looked at
    matters: Ints  # their pairs of seats, better * n_seats + worse, the least clear first
    support: Floats  # scratch: how clear the pairs are that are still to be looked at
    item: Ints  # by seat
    direct: Ints  # scratch, by seat: bits of the seats over which it has a certificate
    held: Ints  # scratch, by seat: those of them that are held over
    certain: Ints  # scratch [2, seat]: the certified order, while something else is supposed


def new_renewal(item: Ints) -> Renewal:
    """For the items of these seats."""
    n_seats = len(item)
    return Renewal(
        size=np.zeros(1, np.int64),
        matters=np.zeros(n_seats * n_seats, np.int64),
        support=np.zeros(n_seats * n_seats),
        item=item,
        direct=np.zeros(n_seats, np.int64),
        held=np.zeros(n_seats, np.int64),
        certain=np.zeros((2, n_seats), np.int64),
    )


@kernel
def _clearness(bets: Bets, i: int, j: int) -> float:
    """How much better i looks than j, whatever the number of bets: the lead per information."""
    row = row_of(bets, i, j)
    lead = bets.lead[row] / (bets.information[row] + 1.0)
    return float(lead if i < j else -lead)


@kernel
def _note_certificates(renewal: Renewal, seat: Ints, bets: Bets) -> None:
    """Fill in ``direct``, and of the certificates that are held over the pair and how clear it is, by seats."""
    certificates, n_seats, size = bets.certificates, len(renewal.direct), 0
    for x in range(n_seats):
        renewal.direct[x] = renewal.held[x] = 0
    for entry in range(certificates.first[0], certificates.given[0]):
        x, z = seat[certificates.better[entry]], seat[certificates.worse[entry]]
        if certificates.expires[entry] > 0 and min(x, z) >= 0:
            renewal.direct[x] |= 1 << z
            renewal.held[x] |= int(certificates.expires[entry] < end_of_fresh(bets)) << z
    for x in range(n_seats):
        for z in range(n_seats):
            if renewal.held[x] >> z & 1:
                renewal.matters[size] = x * n_seats + z
                renewal.support[size] = _clearness(bets, renewal.item[x], renewal.item[z])
                size += 1
    renewal.size[0] = size


@kernel
def _least_clear(renewal: Renewal, first: int) -> None:
    """Put the pair that is least clear, the first of equals, at entry ``first``; the others keep their order."""
    least = first
    for entry in range(first + 1, renewal.size[0]):
        if renewal.support[entry] < renewal.support[least]:
            least = entry
    pair, support = renewal.matters[least], renewal.support[least]
    for step in range(least - first):
        entry = least - step
        renewal.matters[entry], renewal.support[entry] = renewal.matters[entry - 1], renewal.support[entry - 1]
    renewal.matters[first], renewal.support[first] = pair, support


@kernel
def _suppose(renewal: Renewal, possible: Possible) -> None:
    """Let exactly what follows from ``direct`` be certain."""
    n_seats = len(renewal.direct)
    for x in range(n_seats):
        possible.better[x] = possible.worse[x] = 0
    for x in range(n_seats):
        for z in range(n_seats):
            if renewal.direct[x] >> z & 1 and not is_certain(possible, x, z):
                note_better(possible, x, z)


@kernel
def _is_dispensable(renewal: Renewal, possible: Possible, entry: int, code: int) -> bool:
    """Take a certificate away; put it back unless the page is within the limit without it."""
    n_seats = len(renewal.direct)
    x, z = renewal.matters[entry] // n_seats, renewal.matters[entry] % n_seats
    renewal.direct[x] ^= 1 << z
    _suppose(renewal, possible)
    if is_within(possible, code, possible.limit[0]):
        return True
    renewal.direct[x] ^= 1 << z
    return False


@seldom
def find_target(renewal: Renewal, possible: Possible, seat: Ints, bets: Bets, code: int, target: Ints) -> None:
    """Fill in the clearest of the held-over certificates that matter for a page; nothing if none does."""
    n_seats = len(renewal.direct)
    _note_certificates(renewal, seat, bets)
    for x in range(n_seats):
        renewal.certain[0, x], renewal.certain[1, x] = possible.better[x], possible.worse[x]
    for entry in range(renewal.size[0]):
        _least_clear(renewal, entry)
        if not _is_dispensable(renewal, possible, entry, code):
            target[0], target[1] = renewal.matters[entry] // n_seats, renewal.matters[entry] % n_seats
    for x in range(n_seats):
        possible.better[x], possible.worse[x] = renewal.certain[0, x], renewal.certain[1, x]
