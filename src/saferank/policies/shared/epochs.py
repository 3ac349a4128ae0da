"""What a lifetime of certificates asks of a policy: begin epochs in time, and derive the leader from what is certain.

With a lifetime (``statistics/duels.py``) the leader is not moved step by step. Whenever a certificate is given,
replaced, dropped or expires, it is derived again from production's ranking and what follows from the certificates that
hold. Between two changes of the certificates it stands.
"""

import functools
from typing import Any

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.policies.shared.derivation import close_ranks, sort_pool
from saferank.statistics.duels import LifetimeDuels, begin_epoch
from saferank.statistics.tournament import ABSENT, CANDIDATE, RANKED
from saferank.verbs import Flags, Items


@functools.partial(verb, default=True)
def advance(policy: Any, state: Any) -> None:
    """Called before a page is issued: begin the epoch to which it belongs. Nothing for a policy without a lifetime."""


@functools.partial(verb, default=True)
def restart(policy: Any, state: Any) -> None:
    """A new epoch has begun: derive the leader, and forget what was learnt from the epoch before."""


@functools.partial(verb, default=True)
def turn_epoch(duels: Any, policy: Any, state: Any) -> None:
    """Begin the epoch of the next page. Nothing to do for duels that are never forgotten."""


@implements(turn_epoch, LifetimeDuels)
def _turn_epoch(duels: LifetimeDuels, policy: Any, state: Any) -> None:
    if begin_epoch(duels, state.round[0]):
        restart(policy, state)


@kernel
def _fill_pool(duels: LifetimeDuels, state: Any) -> int:
    """The reference, then all other present items in candidate order; returns how many."""
    size = len(duels.reference)
    for item in range(len(state.standing)):
        if state.standing[item] != ABSENT:
            state.standing[item] = CANDIDATE
    for place in range(size):
        duels.pool[place] = duels.reference[place]
        state.standing[duels.reference[place]] = RANKED
    for item in range(len(state.standing)):
        if state.standing[item] == CANDIDATE:
            duels.pool[size] = item
            size += 1
    return size


@kernel
def derive(duels: LifetimeDuels, state: Any, leader: Items) -> bool:
    """Derive the leader from the reference and what is certain; True when it is another one than before.

    Standings follow the leader. Distant pairs are exchanged too: of an item that rose through its neighbours only the
    certificate over its present neighbour is earned again.
    """
    n_positions, size, moved = len(duels.reference), _fill_pool(duels, state), False
    sort_pool(duels.closure, duels.pool, n_positions, size)
    duels.changed[0] = 0
    for place in range(size):
        state.standing[duels.pool[place]] = RANKED if place < n_positions else CANDIDATE
    for place in range(n_positions):
        moved |= leader[place] != duels.pool[place]
        leader[place] = duels.pool[place]
    return bool(moved)


def rebased(state: Any, present: Flags, base: Items | None = None) -> Items:
    """The leader for other items, or for another ranking of production's."""
    duels: LifetimeDuels = state.duels
    if base is not None:
        duels.base[:] = base
    duels.reference[:] = close_ranks(duels.base, present)
    here = state._replace(standing=np.where(present, CANDIDATE, ABSENT).astype(np.int64))
    leader = duels.reference.copy()
    derive(duels, here, leader)
    return leader
