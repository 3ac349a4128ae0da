"""Duels whose certificates have a lifetime, for worlds that change.

Time is cut into epochs of D rounds. Evidence starts at zero in every epoch: ``wins`` are those of pages issued in this
one. A pair that the decision rule decides is certified until the end of the next epoch, so the certificate holds while
the pair is compared again, and never longer than 2 D rounds after the first page that spoke for it. What is certain is
what follows from the certificates that hold (``certificate_table.py``), not what the present wins say.

This store is a type of its own, and kernels are compiled for the types of their arguments: a policy without a lifetime
runs exactly the code that it would run if this file did not exist. Why it is right: docs/algorithms/drift.md.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.statistics.certificate_table import (
    CertificateTable,
    expire,
    give,
    holds,
    new_certificate_table,
    with_more_rows,
)
from saferank.statistics.duels import (
    DENSE_LIMIT,
    Certificates,
    DenseDuels,
    HashedDuels,
    add_win,
    compared_enough,
    copy_certificates,
    count_win,
    crowded,
    keep_certificate,
    most_fought,
    new_certificates,
    surely_better,
    wins_of,
    with_more_items,
    with_more_slots,
)
from saferank.statistics.duels import new_duels as new_lasting_duels
from saferank.verbs import Ints, Items

LARGEST_CATALOGUE = DENSE_LIMIT
"""What follows from certificates is kept for every pair, so more items than this are refused."""


class LifetimeDuels(NamedTuple):
    """Every pair in a matrix; what this epoch says, and what is certified."""

    wins: Ints  # [L, L] in pages of this epoch
    epoch: Ints  # [2] pages issued before this epoch began, pages of an epoch
    table: CertificateTable
    changed: Ints  # [1] the table has changed since the leader was derived from it
    base: Items  # production's ranking
    reference: Items  # the same without absent items, closed up
    pool: Items  # scratch: present items
    certificates: Certificates  # all that were ever given, in every epoch again


def new_lifetime_duels(n_items: int, n_positions: int, lifetime: int) -> LifetimeDuels:
    """No duel fought yet; an epoch has ``lifetime`` pages, and the first items are production's ranking."""
    if n_items > LARGEST_CATALOGUE:
        raise ValueError(f"{n_items} items: certificates with a lifetime are for at most {LARGEST_CATALOGUE}")
    ranked = np.arange(n_positions, dtype=np.uint32)
    return LifetimeDuels(
        wins=np.zeros((n_items, n_items), np.int64),
        epoch=np.array([0, lifetime], np.int64),
        table=new_certificate_table(n_items),
        changed=np.zeros(1, np.int64),
        base=ranked,
        reference=ranked.copy(),
        pool=np.zeros(n_items, np.uint32),
        certificates=new_certificates(max(64, n_items * n_items)),
    )


AnyDuels = DenseDuels | HashedDuels | LifetimeDuels


def new_duels(n_items: int, n_positions: int, lifetime: int | None) -> AnyDuels:
    """The store that suits the size of the catalogue and the lifetime of certificates, None for no end."""
    if lifetime is None:
        return new_lasting_duels(n_items, n_positions)
    return new_lifetime_duels(n_items, n_positions, lifetime)


@implements(wins_of, LifetimeDuels)
def _wins_of(duels: LifetimeDuels, i: int, j: int) -> int:
    return int(duels.wins[i, j])


@implements(count_win, LifetimeDuels)
def _count_win(duels: LifetimeDuels, i: int, j: int) -> int:
    duels.wins[i, j] += 1
    return int(duels.wins[j, i])


@kernel
def end_of_certificates(duels: LifetimeDuels) -> int:
    """The last round in which a certificate of this epoch holds."""
    return int(duels.epoch[0] + 2 * duels.epoch[1])


@implements(surely_better, LifetimeDuels)
def _surely_better(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    return holds(duels.table, i, j)


@implements(compared_enough, LifetimeDuels)
def _compared_enough(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    """A certificate of an epoch before has to be earned again, so only one of this epoch ends the comparison."""
    return bool(duels.table.expires[i, j] == end_of_certificates(duels))


@implements(add_win, LifetimeDuels)
def _add_win(duels: LifetimeDuels, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    if now <= duels.epoch[0]:  # a page of an epoch before, answered late: it says nothing of this one
        return False
    losses = count_win(duels, winner, loser)
    wins = wins_of(duels, winner, loser)
    if wins - losses < lead_needed[np.uint32(wins + losses)]:
        return False
    if not give(duels.table, winner, loser, end_of_certificates(duels)):
        return False
    keep_certificate(duels.certificates, winner, loser, now)
    duels.changed[0] = 1
    return True


@kernel
def begin_epoch(duels: LifetimeDuels, issued: int) -> bool:
    """After ``issued`` pages: if the next one belongs to a later epoch, begin that; True when it does."""
    start, length = duels.epoch[0], duels.epoch[1]
    if issued < start + length:
        return False
    duels.epoch[0] += (issued - start) // length * length
    for i in range(len(duels.pool)):
        for j in range(len(duels.pool)):
            duels.wins[i, j] = 0
    expire(duels.table, duels.epoch[0] + 1)
    duels.changed[0] = 1
    return True


@implements(crowded, LifetimeDuels)
def _crowded(duels: LifetimeDuels, n_new: int) -> bool:
    return bool(duels.certificates.given[0] + n_new > len(duels.certificates.better))


@with_more_slots.register
def _with_longer_list(duels: LifetimeDuels) -> LifetimeDuels:
    longer = new_certificates(2 * len(duels.certificates.better))
    copy_certificates(duels.certificates, longer)
    return duels._replace(certificates=longer)


@with_more_items.register
def _with_more_items(duels: LifetimeDuels, n_items: int) -> LifetimeDuels:
    before = len(duels.pool)
    if before == n_items:
        return duels
    bigger = new_lifetime_duels(n_items, len(duels.base), int(duels.epoch[1]))
    bigger.wins[:before, :before] = duels.wins
    copy_certificates(duels.certificates, bigger.certificates)
    return bigger._replace(
        epoch=duels.epoch,
        table=with_more_rows(duels.table, n_items),
        changed=duels.changed,
        base=duels.base,
        reference=duels.reference,
    )


@most_fought.register
def _most_fought(duels: LifetimeDuels) -> int:
    return int((duels.wins + duels.wins.T).max(initial=0))
