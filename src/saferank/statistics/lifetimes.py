"""Duels whose certificates have a lifetime, for worlds that change.

Time is cut into epochs of D rounds. Evidence starts at zero in every epoch: wins are those of pages issued in this
one. A pair that the decision rule decides is certified until the end of the next epoch, so the certificate holds while
the pair is compared again, and never longer than 2 D rounds after the first page that spoke for it. What is certain is
what follows from the certificates that hold (``certificates.py``), not what the present wins say.

This store is a type of its own, and kernels are compiled for the types of their arguments: a policy without a lifetime
runs exactly the code that it would run if this file did not exist. Why it is right: docs/algorithms/drift.md.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.statistics.certificates import (
    NOTHING,
    Certificates,
    Closure,
    close,
    closure_full,
    expire,
    give,
    held_through,
    new_certificates,
    new_closure,
    surely,
    with_longer_list,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.statistics.duels import (
    DenseDuels,
    HashedDuels,
    add_win,
    compared_enough,
    count_win,
    crowded,
    forget_wins,
    most_fought,
    surely_better,
    wins_of,
    with_more_items,
    with_more_slots,
)
from saferank.statistics.duels import new_duels as new_lasting_duels
from saferank.verbs import Ints, Items


class LifetimeDuels(NamedTuple):
    """What this epoch says, and what is certified."""

    pairs: DenseDuels | HashedDuels  # wins in pages of this epoch
    epoch: Ints  # [2] pages issued before this epoch began, pages of an epoch
    changed: Ints  # [1] the certificates have changed since the leader was derived from them
    base: Items  # production's ranking
    reference: Items  # the same without absent items, closed up
    pool: Items  # scratch: present items
    certificates: Certificates  # all that were ever given, in every epoch again
    closure: Closure  # what follows from those that hold


def new_lifetime_duels(n_items: int, n_positions: int, lifetime: int) -> LifetimeDuels:
    """No duel fought yet; an epoch has ``lifetime`` pages, and the first items are production's ranking."""
    ranked = np.arange(n_positions, dtype=np.uint32)
    return LifetimeDuels(
        pairs=new_lasting_duels(n_items, n_positions),
        epoch=np.array([0, lifetime], np.int64),
        changed=np.zeros(1, np.int64),
        base=ranked,
        reference=ranked.copy(),
        pool=np.zeros(n_items, np.uint32),
        certificates=new_certificates(256),
        closure=new_closure(n_items),
    )


AnyDuels = DenseDuels | HashedDuels | LifetimeDuels


def new_duels(n_items: int, n_positions: int, lifetime: int | None) -> AnyDuels:
    """The store that suits the size of the catalogue and the lifetime of certificates, None for no end."""
    if lifetime is None:
        return new_lasting_duels(n_items, n_positions)
    return new_lifetime_duels(n_items, n_positions, lifetime)


@implements(wins_of, LifetimeDuels)
def _wins_of(duels: LifetimeDuels, i: int, j: int) -> int:
    return wins_of(duels.pairs, i, j)


@kernel
def end_of_certificates(duels: LifetimeDuels) -> int:
    """The last round in which a certificate of this epoch holds."""
    return int(duels.epoch[0] + 2 * duels.epoch[1])


@implements(surely_better, LifetimeDuels)
def _surely_better(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    return surely(duels.closure, i, j)


@implements(compared_enough, LifetimeDuels)
def _compared_enough(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    """A certificate of an epoch before has to be earned again, so only one of this epoch ends the comparison."""
    return surely(duels.closure, i, j) and held_through(duels.certificates, i, j, end_of_certificates(duels))


@implements(add_win, LifetimeDuels)
def _add_win(duels: LifetimeDuels, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    if now <= duels.epoch[0]:  # a page of an epoch before, answered late: it says nothing of this one
        return False
    losses = count_win(duels.pairs, winner, loser)
    wins = wins_of(duels.pairs, winner, loser)
    if wins - losses < lead_needed[np.uint32(wins + losses)]:
        return False
    if give(duels.certificates, duels.closure, (winner, loser), end_of_certificates(duels), now) == NOTHING:
        return False
    duels.changed[0] = 1
    return True


@kernel
def begin_epoch(duels: LifetimeDuels, issued: int) -> bool:
    """After ``issued`` pages: if the next one belongs to a later epoch, begin that; True when it does."""
    start, length = duels.epoch[0], duels.epoch[1]
    if issued < start + length:
        return False
    duels.epoch[0] += (issued - start) // length * length
    forget_wins(duels.pairs)
    if expire(duels.certificates, duels.epoch[0] + 1):
        close(duels.certificates, duels.closure, 1)
    duels.changed[0] = 1
    return True


@implements(crowded, LifetimeDuels)
def _crowded(duels: LifetimeDuels, n_new: int) -> bool:
    long = duels.certificates.given[0] + n_new > len(duels.certificates.better)
    return bool(crowded(duels.pairs, n_new) or long or closure_full(duels.closure, 2 * n_new))


@with_more_slots.register
def _with_more_room(duels: LifetimeDuels, n_new: int) -> LifetimeDuels:
    if crowded(duels.pairs, n_new):
        duels = duels._replace(pairs=with_more_slots(duels.pairs, n_new))
    if closure_full(duels.closure, 2 * n_new):
        return duels._replace(closure=with_more_numbers(duels.closure))
    return duels._replace(certificates=with_longer_list(duels.certificates))


@with_more_items.register
def _with_more_items(duels: LifetimeDuels, n_items: int) -> LifetimeDuels:
    if len(duels.pool) == n_items:
        return duels
    pairs, closure = with_more_items(duels.pairs, n_items), with_more_unnumbered(duels.closure, n_items)
    return duels._replace(pairs=pairs, closure=closure, pool=np.zeros(n_items, np.uint32))


@most_fought.register
def _most_fought(duels: LifetimeDuels) -> int:
    most: int = most_fought(duels.pairs)
    return most
