"""What BubbleRank and KL-UCB-BR share: coins on adjacent pairs, and the pass that moves the leader.

They differ in one thing only, who challenges for the last position.
"""

from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words, word
from saferank.statistics.duels import surely_better
from saferank.statistics.tournament import CANDIDATE, RANKED
from saferank.verbs import NOBODY, Impression, Ints

STANDS, NEW_ORDER, NEW_BOTTOM = 0, 1, 2
"""What a pass did to the leader: nothing, moved items above the same bottom item, brought a new one."""

_LAST_BIT = np.uint64(63)


@kernel
def show_leader(policy: Any, state: Any, challenger: int, rng: Words, impression: Impression) -> None:
    """Issue a page: the leader followed by the challenger, undecided pairs swapped with probability 1/2.

    In odd rounds the first place stands alone and the pairs are (2,3), (4,5), ...; in even rounds (1,2), (3,4), ...
    A pair whose upper item is surely the better one keeps its order.
    """
    state.round[0] += 1
    places = len(state.leader) + np.int64(challenger != NOBODY)
    impression.round[0], impression.places[0], impression.challenger[0] = state.round[0], places, challenger
    parity = state.round[0] & 1
    _put(state, challenger, 0, impression)
    coins, tossed = np.uint64(0), 0
    for upper in range(parity, places - 1, 2):
        if tossed & 63 == 0:
            coins = word(rng)
        _put_pair(policy, state, challenger, upper, coins >> _LAST_BIT, impression)
        coins <<= np.uint64(1)
        tossed += 1
    if (places - parity) & 1:
        _put(state, challenger, places - 1, impression)


@kernel
def _item_at(state: Any, challenger: int, place: int) -> np.uint32:
    return state.leader[place] if place < len(state.leader) else np.uint32(challenger)  # type: ignore[no-any-return]


@kernel
def _put(state: Any, challenger: int, place: int, impression: Impression) -> None:
    """A place that stands alone."""
    impression.ranking[place] = _item_at(state, challenger, place)
    impression.start[place], impression.end[place] = place, place + 1


@kernel
def _put_pair(policy: Any, state: Any, challenger: int, upper: int, coin: np.uint64, impression: Impression) -> None:
    """Two places that are compared, exchanged by arithmetic: a branch on a coin would be guessed wrong half the time."""
    i, j = _item_at(state, challenger, upper), _item_at(state, challenger, upper + 1)
    undecided = not surely_better(state.duels, policy.lead_needed, i, j)
    change = (i ^ j) * np.uint32(np.uint32(coin) & np.uint32(undecided))
    impression.ranking[upper], impression.ranking[upper + 1] = i ^ change, j ^ change
    impression.start[upper], impression.start[upper + 1] = upper, upper
    impression.end[upper], impression.end[upper + 1] = upper + 2, upper + 2


@kernel
def _bubble_up(policy: Any, state: Any) -> int:
    """One pass down the leader, in place: whoever surely beats the item above moves up."""
    leader, moved = state.leader, 0
    last = len(leader) - 1
    for place in range(last):
        if surely_better(state.duels, policy.lead_needed, leader[place + 1], leader[place]):
            leader[place], leader[place + 1] = leader[place + 1], leader[place]
            moved = NEW_BOTTOM if place + 1 == last else max(moved, NEW_ORDER)
    return moved


@kernel
def promote(policy: Any, state: Any, challenger: int) -> int:
    """The pass over the leader followed by the challenger. Returns STANDS, NEW_ORDER or NEW_BOTTOM.

    A pass over a leader that the last pass left alone can only find something new when a pair was decided since:
    that is what ``unsettled`` remembers.
    """
    moved = _bubble_up(policy, state) if state.unsettled[0] else STANDS
    bottom = state.leader[-1]
    if challenger != NOBODY and surely_better(state.duels, policy.lead_needed, challenger, bottom):
        if state.standing[challenger] == CANDIDATE:
            state.leader[-1] = challenger
            state.standing[challenger], state.standing[bottom] = RANKED, CANDIDATE
            moved = NEW_BOTTOM
    state.unsettled[0] = moved
    return moved


def first_standing(n_items: int, n_positions: int) -> Ints:
    """The first ``n_positions`` items are ranked, the others candidates."""
    standing = np.full(n_items, CANDIDATE, np.int64)
    standing[:n_positions] = RANKED
    return standing
