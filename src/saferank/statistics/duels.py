"""Duels: for every pair of items, how often each was clicked when the other, compared with it, was not.

With ``wins[i, j]`` such rounds for i over j, the paper's statistics are ``n = wins[i,j] + wins[j,i]`` and
``s[i,j] = wins[i,j] - wins[j,i]``. Two stores hold them: a dense matrix for small catalogues, and a hash table whose
memory grows with the pairs that were compared. Both also remember which pairs were ever *certified*, that is declared
decided by the rule, and in which round.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.statistics.certificates import (
    ENDLESS,
    Certificates,
    copy_certificates,
    keep_certificate,
    new_certificates,
)
from saferank.verbs import Flags, Impression, Ints

DENSE_LIMIT = 256
"""Up to this many items a matrix is faster and not larger than the hash table."""

_EMPTY = -1


class DenseDuels(NamedTuple):
    """Every pair in a matrix."""

    wins: Ints  # [L, L]
    beaten_by: Flags  # [L, L]: the first item was ever declared worse than the second
    certificates: Certificates


class HashedDuels(NamedTuple):
    """Only the pairs that met, by linear probing; at most half of the slots are used."""

    low: Ints  # smaller item of the pair, or -1
    high: Ints
    wins: Ints  # [capacity, 2]: of the smaller item, of the larger one
    certified: Flags  # [capacity, 2]
    certificates: Certificates
    used: Ints  # [1] slots in use


def new_dense_duels(n_items: int) -> DenseDuels:
    """No duel fought yet, room for all."""
    shape = (n_items, n_items)
    return DenseDuels(np.zeros(shape, np.int64), np.zeros(shape, np.bool_), new_certificates(n_items * (n_items - 1)))


def new_hashed_duels(capacity: int) -> HashedDuels:
    """No duel fought yet; ``capacity`` is a power of two."""
    return HashedDuels(
        low=np.full(capacity, _EMPTY, np.int64),
        high=np.full(capacity, _EMPTY, np.int64),
        wins=np.zeros((capacity, 2), np.int64),
        certified=np.zeros((capacity, 2), np.bool_),
        certificates=new_certificates(capacity),
        used=np.zeros(1, np.int64),
    )


def new_duels(n_items: int, n_positions: int) -> DenseDuels | HashedDuels:
    """The store that suits the size of the catalogue."""
    if n_items <= DENSE_LIMIT:
        return new_dense_duels(n_items)
    return new_hashed_duels(1 << max(12, (4 * n_positions).bit_length()))


@verb
def wins_of(duels: Any, i: int, j: int) -> int:
    """How often i was clicked when j, compared with it, was not."""
    raise NotImplementedError


@verb
def count_win(duels: Any, i: int, j: int) -> int:
    """Add a win of i over j; returns how often j has won over i."""
    raise NotImplementedError


@verb
def certify(duels: Any, i: int, j: int) -> bool:
    """Mark i as declared better than j; True when it was not marked before."""
    raise NotImplementedError


@verb
def is_certified(duels: Any, i: int, j: int) -> bool:
    """True when i was ever declared better than j."""
    raise NotImplementedError


@implements(wins_of, DenseDuels)
def _dense_wins_of(duels: DenseDuels, i: int, j: int) -> int:
    return int(duels.wins[i, j])


@implements(count_win, DenseDuels)
def _dense_count_win(duels: DenseDuels, i: int, j: int) -> int:
    duels.wins[i, j] += 1
    return int(duels.wins[j, i])


@implements(certify, DenseDuels)
def _dense_certify(duels: DenseDuels, i: int, j: int) -> bool:
    if duels.beaten_by[j, i]:
        return False
    duels.beaten_by[j, i] = True
    return True


@implements(is_certified, DenseDuels)
def _dense_is_certified(duels: DenseDuels, i: int, j: int) -> bool:
    return bool(duels.beaten_by[j, i])


@kernel
def _slot_of(duels: HashedDuels, i: int, j: int) -> int:
    """The slot that holds the pair, or the free slot where it belongs."""
    low, high = min(i, j), max(i, j)
    mask = len(duels.low) - 1
    mixed = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(high) * np.uint64(0xC2B2AE3D27D4EB4F)
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while duels.low[slot] != _EMPTY and (duels.low[slot] != low or duels.high[slot] != high):
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def _claim_slot(duels: HashedDuels, i: int, j: int) -> int:
    slot = _slot_of(duels, i, j)
    if duels.low[slot] == _EMPTY:
        duels.low[slot] = min(i, j)
        duels.high[slot] = max(i, j)
        duels.used[0] += 1
    return slot


@implements(wins_of, HashedDuels)
def _hashed_wins_of(duels: HashedDuels, i: int, j: int) -> int:
    return int(duels.wins[_slot_of(duels, i, j), int(i > j)])


@implements(count_win, HashedDuels)
def _hashed_count_win(duels: HashedDuels, i: int, j: int) -> int:
    slot = _claim_slot(duels, i, j)
    duels.wins[slot, int(i > j)] += 1
    return int(duels.wins[slot, int(i < j)])


@implements(certify, HashedDuels)
def _hashed_certify(duels: HashedDuels, i: int, j: int) -> bool:
    slot, side = _claim_slot(duels, i, j), int(i > j)
    if duels.certified[slot, side]:
        return False
    duels.certified[slot, side] = True
    return True


@implements(is_certified, HashedDuels)
def _hashed_is_certified(duels: HashedDuels, i: int, j: int) -> bool:
    return bool(duels.certified[_slot_of(duels, i, j), int(i > j)])


@verb
def surely_better(duels: Any, lead_needed: Ints, i: int, j: int) -> bool:
    """beats(i, j): i is certain to be better; false for a pair that never met."""
    raise NotImplementedError


@verb
def compared_enough(duels: Any, lead_needed: Ints, i: int, j: int) -> bool:
    """True when i is so certain to be better that the two need not be compared any more."""
    raise NotImplementedError


@kernel
def _decided_by_wins(duels: Any, lead_needed: Ints, i: int, j: int) -> bool:
    """The decision rule on the present statistics."""
    wins, losses = wins_of(duels, i, j), wins_of(duels, j, i)
    return bool(wins - losses >= lead_needed[np.uint32(wins + losses)])


for _kind in (DenseDuels, HashedDuels):
    implements(surely_better, _kind)(_decided_by_wins)
    implements(compared_enough, _kind)(_decided_by_wins)


@verb
def forget_wins(duels: Any) -> None:
    """Nothing was compared yet."""


@implements(forget_wins, DenseDuels)
def _forget_dense_wins(duels: DenseDuels) -> None:
    for i in range(len(duels.wins)):
        for j in range(len(duels.wins)):
            duels.wins[i, j] = 0


@implements(forget_wins, HashedDuels)
def _forget_hashed_wins(duels: HashedDuels) -> None:
    for slot in range(len(duels.wins)):
        duels.wins[slot, 0] = duels.wins[slot, 1] = 0


@verb
def record(policy: Any, state: Any, winner: int, loser: int, now: int) -> bool:
    """Count a win in round ``now``; True when it changes what the policy believes of the pair."""
    raise NotImplementedError


@verb
def add_win(duels: Any, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    """Count a win in round ``now``; when it leaves the pair decided keep the certificate.

    True when it changes what is certain.
    """
    raise NotImplementedError


@kernel
def _add_lasting_win(duels: Any, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    """True when the pair became decided by it, or open again."""
    losses = count_win(duels, winner, loser)
    wins = wins_of(duels, winner, loser)
    lead, n = wins - losses, np.uint32(wins + losses)
    if lead < lead_needed[n]:
        return bool(1 - lead >= lead_needed[n - 1] and -lead < lead_needed[n])
    if certify(duels, winner, loser):
        keep_certificate(duels.certificates, winner, loser, now, ENDLESS)
    return bool(lead - 1 < lead_needed[n - 1])


for _kind in (DenseDuels, HashedDuels):
    implements(add_win, _kind)(_add_lasting_win)


@kernel
def record_and_certify(policy: Any, state: Any, winner: int, loser: int, now: int) -> bool:
    """Count a win by the rule of the policy; True when it changes what is certain."""
    return add_win(state.duels, policy.lead_needed, winner, loser, now)


@kernel
def fight(policy: Any, state: Any, impression: Impression, clicks: Ints) -> bool:
    """Record every duel of a page: pairs of one group of which exactly one item was clicked.

    True when a record changed what the policy believes of a pair.
    """
    ranking, now = impression.ranking, impression.round[0]
    n_positions, changed = len(clicks), False
    for a in range(n_positions):
        if clicks[a]:
            for b in range(impression.start[a], impression.end[a]):
                if b >= n_positions or not clicks[b]:
                    changed |= record(policy, state, ranking[a], ranking[b], now)
    return changed


@verb
def crowded(duels: Any, n_new: int) -> bool:
    """True when ``n_new`` more pairs might not fit."""
    raise NotImplementedError


@implements(crowded, DenseDuels)
def _dense_crowded(duels: DenseDuels, n_new: int) -> bool:
    return False


@implements(crowded, HashedDuels)
def _hashed_crowded(duels: HashedDuels, n_new: int) -> bool:
    return bool(2 * (duels.used[0] + n_new) > len(duels.low))


@kernel
def _copy_slots(old: HashedDuels, new: HashedDuels) -> None:
    for slot in range(len(old.low)):
        if old.low[slot] != _EMPTY:
            target = _claim_slot(new, old.low[slot], old.high[slot])
            for side in range(2):
                new.wins[target, side] = old.wins[slot, side]
                new.certified[target, side] = old.certified[slot, side]


@functools.singledispatch
def with_more_slots(duels: Any, n_new: int) -> Any:
    """The same duels in larger tables, for stores that may be crowded by ``n_new`` more pairs."""
    raise TypeError(f"{type(duels).__name__} does not grow")


@with_more_slots.register
def _with_more_slots(duels: HashedDuels, n_new: int) -> HashedDuels:
    bigger = new_hashed_duels(2 * len(duels.low))
    _copy_slots(duels, bigger)
    copy_certificates(duels.certificates, bigger.certificates)
    return bigger


@functools.singledispatch
def with_more_items(duels: Any, n_items: int) -> Any:
    """The same duels with room for ``n_items`` items."""
    if isinstance(duels, HashedDuels) or len(duels.wins) == n_items:
        return duels
    return with_larger_matrix(duels, n_items) if n_items <= DENSE_LIMIT else _as_hashed(duels)


def with_larger_matrix(duels: DenseDuels, n_items: int) -> DenseDuels:
    """The same duels in a matrix for ``n_items`` items."""
    before, bigger = len(duels.wins), new_dense_duels(n_items)
    bigger.wins[:before, :before] = duels.wins
    bigger.beaten_by[:before, :before] = duels.beaten_by
    copy_certificates(duels.certificates, bigger.certificates)
    return bigger


def _as_hashed(duels: DenseDuels) -> HashedDuels:
    met = np.argwhere(np.triu(duels.wins + duels.wins.T))
    hashed = new_hashed_duels(1 << max(12, (4 * len(met)).bit_length()))
    for i, j in met:
        slot = _claim_slot(hashed, int(i), int(j))
        hashed.wins[slot] = duels.wins[i, j], duels.wins[j, i]
        hashed.certified[slot] = duels.beaten_by[j, i], duels.beaten_by[i, j]
    copy_certificates(duels.certificates, hashed.certificates)
    return hashed


@functools.singledispatch
def most_fought(duels: Any) -> int:
    """The largest n of any pair."""
    both = duels.wins + duels.wins.T if isinstance(duels, DenseDuels) else duels.wins.sum(axis=1)
    return int(both.max(initial=0))
