"""What BubbleRank and KL-UCB-BR share: the coins of a page, and the pass that moves the leader.

They differ in one thing only, who challenges for the last position. Their states hold a *row* of K + 1 places: the
leader, and at the hidden place the challenger of the newest page.
"""

from typing import Any

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.policies.shared.derivation import CONTRADICTION, close_ranks, others_in_order, sort_pool
from saferank.policies.shared.epochs import derive, rebased
from saferank.randomness import Words, word
from saferank.statistics.certificates import close, closure_for, lasting_certificates
from saferank.statistics.duels import Duels, LifetimeDuels, compared_enough, surely_better, with_more_items
from saferank.statistics.tournament import ABSENT, CANDIDATE, RANKED
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items

STANDS, NEW_ORDER, NEW_BOTTOM = 0, 1, 2
"""What a pass did to the leader: nothing, moved items above the same bottom item, brought a new one."""

_LAST_BIT = np.uint64(63)


@kernel
def show_row(state: Any, challenger: int, rng: Words, impression: Impression) -> None:
    """Issue a page: the leader followed by the challenger, undecided pairs swapped with probability 1/2.

    In odd rounds the first place stands alone and the pairs are (2,3), (4,5), ...; in even rounds (1,2), (3,4), ...
    A pair whose upper item is surely the better one keeps its order. One random word serves 64 pairs, its highest bit
    first.
    """
    state.round[0] += 1
    row, now = state.row, state.round[0]
    places = len(row) - int(challenger == NOBODY)
    impression.round[0], impression.places[0], impression.challenger[0] = now, places, challenger
    _place_alone(impression, 0, row[0])
    coins, upper = np.uint64(0), now & 1
    while upper + 1 < places:
        if (upper >> 1) & 63 == 0:
            coins = word(rng)
        _place_pair(impression, upper, row[upper], row[upper + 1], np.int64(coins >> _LAST_BIT) & state.open[upper])
        coins <<= np.uint64(1)
        upper += 2
    if upper < places:
        _place_alone(impression, upper, row[upper])


@kernel
def _place_alone(impression: Impression, place: int, item: np.uint32) -> None:
    impression.ranking[place], impression.start[place], impression.end[place] = item, place, place + 1


@kernel
def _place_pair(impression: Impression, upper: int, i: np.uint32, j: np.uint32, swap: int) -> None:
    """Two places to compare, exchanged by arithmetic: a branch on a coin would be guessed wrong half the time."""
    change = (i ^ j) * swap
    impression.ranking[upper], impression.ranking[upper + 1] = i ^ change, j ^ change
    impression.start[upper], impression.start[upper + 1] = upper, upper
    impression.end[upper], impression.end[upper + 1] = upper + 2, upper + 2


@kernel
def mark_open(policy: Any, state: Any) -> None:
    """Note for every place of the leader whether its item and the next one are still to be compared both ways."""
    for place in range(len(state.row) - 2):
        decided = compared_enough(state.duels, policy.lead_needed, state.row[place], state.row[place + 1])
        state.open[place] = int(not decided)


@kernel
def _bubble_up(policy: Any, state: Any) -> int:
    """One pass down the leader, in place: an item that surely beats the one above moves up.

    Returns what it did to the leader.
    """
    row, moved = state.row, STANDS
    last = len(row) - 2
    for place in range(last):
        if surely_better(state.duels, policy.lead_needed, row[place + 1], row[place]):
            row[place], row[place + 1] = row[place + 1], row[place]
            moved = NEW_BOTTOM if place + 1 == last else max(moved, NEW_ORDER)
    return moved


@kernel
def _unseats(policy: Any, state: Any, challenger: int, bottom: int) -> bool:
    """True when the challenger of a page, if still unranked, surely beats the bottom item."""
    if challenger == NOBODY or not surely_better(state.duels, policy.lead_needed, challenger, bottom):
        return False
    return bool(state.standing[challenger] == CANDIDATE)


@verb
def follow_certainty(duels: Any, policy: Any, state: Any, challenger: int) -> int:
    """Move the leader to where certainty has it: the body of ``promote``, for every kind of duels."""
    raise NotImplementedError


@kernel
def promote(policy: Any, state: Any, challenger: int) -> int:
    """The pass over the leader followed by the challenger; returns STANDS, NEW_ORDER or NEW_BOTTOM."""
    return follow_certainty(state.duels, policy, state, challenger)


@implements(follow_certainty, Duels)
def _pass_over_leader(duels: Duels, policy: Any, state: Any, challenger: int) -> int:
    """A pass over a leader that the last pass left alone can only find something new when a pair was decided since.

    That is what ``unsettled`` remembers.
    """
    unsettled, moved = state.unsettled[0], STANDS
    if unsettled:
        moved = _bubble_up(policy, state)
    bottom = state.row[-2]
    if _unseats(policy, state, challenger, bottom):
        state.row[-2] = challenger
        state.standing[challenger], state.standing[bottom] = RANKED, CANDIDATE
        moved = NEW_BOTTOM
    if unsettled or moved:
        mark_open(policy, state)
    state.unsettled[0] = moved
    return moved


@implements(follow_certainty, LifetimeDuels)
def _derive_leader(duels: LifetimeDuels, policy: Any, state: Any, challenger: int) -> int:
    """With a lifetime: derived again if the certificates have changed."""
    state.unsettled[0] = 0
    if duels.changed[0] == 0:
        return STANDS
    bottom, moved = state.row[-2], STANDS
    if derive(duels, state, state.row):
        moved = NEW_ORDER if state.row[-2] == bottom else NEW_BOTTOM
    mark_open(policy, state)
    return moved


class ContradictionError(ValueError):
    """Certificates that cannot all be right: each of some items is surely better than the next, in a circle."""


def rebuild_row(policy: Any, state: Any, base: Items) -> Any:
    """The state with the leader that certified swaps make of ``base``; challengers are as they were."""
    present = state.standing != ABSENT
    if isinstance(state.duels, LifetimeDuels):
        return with_leader(policy, state, rebased(state, present, base), present)
    kept = state.duels.certificates
    given = np.stack([kept.better, kept.worse], axis=1)[: kept.given[0]]
    decided = [pair for pair in given.tolist() if surely_better(state.duels, policy.lead_needed, *pair)]
    closure = closure_for(len(present))
    close(lasting_certificates(np.array(decided, np.int64).reshape(-1, 2)), closure, 1)
    pool = np.append(base, others_in_order(base, present)).astype(np.uint32)
    if sort_pool(closure, pool, len(base), len(pool)) == CONTRADICTION:
        raise ContradictionError("certificates contradict each other: no leader follows from them")
    return with_leader(policy, state, pool[: len(base)], present)


def first_row(n_positions: int) -> Items:
    """The original ranking, and no item yet at the hidden place."""
    return np.arange(n_positions + 1, dtype=np.uint32)


def first_standing(n_items: int, n_positions: int) -> Ints:
    """The first ``n_positions`` items are ranked, the others candidates."""
    return standing_of(np.arange(n_positions), np.ones(n_items, np.bool_))


def standing_of(leader: Ints | Items, present: Flags) -> Ints:
    """Where every item stands, given the leader and the items that are present."""
    standing = np.where(present, CANDIDATE, ABSENT).astype(np.int64)
    standing[leader] = RANKED
    return standing


def regroup_row(policy: Any, state: Any, present: Flags) -> Any:
    """The state of a bubble policy for another set of items, apart from what it knows of its challengers."""
    state = state._replace(duels=with_more_items(state.duels, len(present)))
    if isinstance(state.duels, LifetimeDuels):
        return with_leader(policy, state, rebased(state, present), present)
    return with_leader(policy, state, close_ranks(state.row[:-1], present), present)


def with_leader(policy: Any, state: Any, leader: Items, present: Flags) -> Any:
    """The state with this leader of the present items; there is no challenger until the next page."""
    state = state._replace(row=np.append(leader, leader[-1:]), standing=standing_of(leader, present))
    state.unsettled[0] = 1
    mark_open(policy, state)
    return state


def leader_of(state: Any) -> Ints:
    """The leader of a state with a row."""
    return state.row[:-1].astype(np.int64)  # type: ignore[no-any-return]
