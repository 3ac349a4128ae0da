"""The item with the largest optimistic index against the present bottom item: a tournament that is kept, not replayed.

The argmax of KL-UCB-BR over the unranked items is where the time would go. Here the candidates are the leaves of a
binary tree in candidate order, every node holds the winner of its half, and with it the range of budgets over which
the winner is known to stay the winner:

* an item that never lost to the bottom item (also: never met it) has index 1. It wins against everything to its
  right, whatever the budget, so the right half is not even looked at;
* equal records have equal indices: the first in candidate order wins, whatever the budget;
* otherwise the loser passes the winner no earlier than at the budget ``evidence(loser, index of the winner)``, because
  the winner's own index only grows with the budget.

A duel outdates one path of the tree, a new bottom item outdates the whole of it by counting up ``generation``; what is
outdated is played again only when the answer depends on it. The result equals the plain argmax over all candidates,
ties going to the first in candidate order.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.kl import FIRST_BUDGET, budget, entropy, optimistic, rounds_within
from saferank.statistics.pairs import duel_of
from saferank.verbs import NO_ITEM, Floats, Ints

CANDIDATE, RANKED, ABSENT = 0, 1, 2
"""The standing of an item: may be explored, is in the leader, has been removed."""

_ALWAYS = np.inf


class Tournament(NamedTuple):
    """The tree. Node 1 is the root, node k has the children 2k and 2k+1, item i sits at node n_leaves + i."""

    winner: Ints  # by node
    since: Floats  # by node: smallest budget for which the winner is known to be right
    until: Floats  # by node: largest one
    played: Ints  # by node: generation in which it was last played; smaller means outdated
    wins: Ints  # by item, against the bottom item
    losses: Ints
    plain: Floats  # entropy(wins, losses)
    index_at: Floats  # budget for which the next three were computed, -1 for none
    index_x: Floats  # -log(1 - index)
    index_q: Floats  # the index itself
    index_log: Floats  # log(index)
    generation: Ints  # [1]
    good_until: Ints  # [1] the root needs no look while the leader's count is below this


def new_tournament(n_items: int) -> Tournament:
    """A tree in which nothing has been played."""
    n_leaves = 1 << max(0, n_items - 1).bit_length()
    return Tournament(
        winner=np.full(2 * n_leaves, NO_ITEM, np.int64),
        since=np.zeros(2 * n_leaves),
        until=np.zeros(2 * n_leaves),
        played=np.zeros(2 * n_leaves, np.int64),
        wins=np.zeros(n_items, np.int64),
        losses=np.zeros(n_items, np.int64),
        plain=np.zeros(n_items),
        index_at=np.full(n_items, -1.0),
        index_x=np.zeros(n_items),
        index_q=np.zeros(n_items),
        index_log=np.zeros(n_items),
        generation=np.ones(1, np.int64),
        good_until=np.zeros(1, np.int64),
    )


@kernel
def new_opponent(tournament: Tournament) -> None:
    """The leader, and so the bottom item, the candidates or the count, has changed: everything is outdated."""
    tournament.generation[0] += 1
    tournament.good_until[0] = 0


@kernel
def new_record(tournament: Tournament, duels: Any, bottom: int, item: int) -> None:
    """A duel between ``item`` and the bottom item may have been recorded: if so, its path is outdated."""
    wins, losses = duel_of(duels, item, bottom)
    if tournament.wins[item] == wins and tournament.losses[item] == losses:
        return
    node = len(tournament.winner) // 2 + item
    while node > 0:
        tournament.played[node] = 0
        node //= 2
    tournament.good_until[0] = 0


@kernel
def _seat(tournament: Tournament, duels: Any, standing: Ints, bottom: int, item: int) -> None:
    """Read a candidate's record against the bottom item into its leaf."""
    node = len(tournament.winner) // 2 + item
    tournament.played[node] = tournament.generation[0]
    tournament.since[node], tournament.until[node] = -_ALWAYS, _ALWAYS
    if item >= len(standing) or standing[item] != CANDIDATE:
        tournament.winner[node] = NO_ITEM
        return
    wins, losses = duel_of(duels, item, bottom)
    tournament.wins[item], tournament.losses[item] = wins, losses
    tournament.plain[item] = entropy(float(wins), float(losses))
    tournament.index_at[item] = -1.0
    tournament.winner[node] = item


@kernel
def _compute_index(tournament: Tournament, item: int, allowed: float) -> None:
    if tournament.index_at[item] == allowed:
        return
    wins, losses = float(tournament.wins[item]), float(tournament.losses[item])
    x = optimistic(wins, losses, tournament.plain[item], allowed)
    tournament.index_at[item], tournament.index_x[item] = allowed, x
    tournament.index_q[item], tournament.index_log[item] = -np.expm1(-x), np.log1p(-np.exp(-x))


@kernel
def _passes_at(tournament: Tournament, item: int, leading: int) -> float:
    """The budget at which the index of ``item`` reaches the one computed for ``leading``: n kl(mu, index)."""
    gained = tournament.wins[item] * tournament.index_log[leading]
    return float(tournament.plain[item] + tournament.losses[item] * tournament.index_x[leading] - gained)


@kernel
def _exceeds(tournament: Tournament, item: int, leading: int, allowed: float) -> bool:
    """True when the index of ``item`` is larger than the one computed for ``leading``."""
    if tournament.wins[item] > (tournament.wins[item] + tournament.losses[item]) * tournament.index_q[leading]:
        return True
    return _passes_at(tournament, item, leading) < allowed


@kernel
def _advance(tournament: Tournament, node: int, child: int) -> None:
    """Let the winner of ``child`` win the node too, for all budgets for which it wins there."""
    tournament.played[node] = tournament.generation[0]
    tournament.winner[node] = tournament.winner[child]
    tournament.since[node], tournament.until[node] = tournament.since[child], tournament.until[child]


@kernel
def _decide(tournament: Tournament, node: int, allowed: float) -> None:
    """Play the winner on the left, whose index is below 1 or who is absent, against the one on the right."""
    left, right = tournament.winner[2 * node], tournament.winner[2 * node + 1]
    if right == NO_ITEM:
        _advance(tournament, node, 2 * node)
        return
    _advance(tournament, node, 2 * node + 1)
    if left == NO_ITEM or tournament.losses[right] == 0:
        return
    tournament.since[node] = max(tournament.since[2 * node], tournament.since[2 * node + 1])
    tournament.until[node] = min(tournament.until[2 * node], tournament.until[2 * node + 1])
    if tournament.wins[left] == tournament.wins[right] and tournament.losses[left] == tournament.losses[right]:
        tournament.winner[node] = left
        return
    winner, loser = left, right
    _compute_index(tournament, left, allowed)
    if _exceeds(tournament, right, left, allowed):
        winner, loser = right, left
        _compute_index(tournament, right, allowed)
    tournament.winner[node] = winner
    tournament.since[node] = allowed
    tournament.until[node] = min(tournament.until[node], _passes_at(tournament, loser, winner))


@kernel
def _known(tournament: Tournament, node: int, allowed: float) -> bool:
    fresh = tournament.played[node] == tournament.generation[0]
    return bool(fresh and tournament.since[node] <= allowed <= tournament.until[node])


@kernel
def _play(tournament: Tournament, duels: Any, standing: Ints, bottom: int, allowed: float) -> None:
    """Bring the root up to date for this budget, visiting only nodes on which its winner depends.

    A walk without recursion, which would copy the whole state at each step: down to the leftmost unknown node, then up,
    turning into the right half wherever the left winner's index is below 1.
    """
    n_leaves = len(tournament.winner) // 2
    node = 1
    while True:
        while not _known(tournament, node, allowed):
            if node >= n_leaves:
                _seat(tournament, duels, standing, bottom, node - n_leaves)
            else:
                node *= 2
        while node > 1 and node % 2 == 1:
            node //= 2
            _decide(tournament, node, allowed)
        if node == 1:
            return
        left = tournament.winner[node]
        if left != NO_ITEM and tournament.losses[left] == 0:
            _advance(tournament, node // 2, node)
            node //= 2
        else:
            node += 1


@kernel
def _first_candidate(standing: Ints) -> int:
    for item in range(len(standing)):
        if standing[item] == CANDIDATE:
            return item
    return NO_ITEM


@kernel
def champion(tournament: Tournament, duels: Any, standing: Ints, bottom: int, t: int) -> int:
    """The candidate with the largest index against ``bottom`` at time ``t``; NO_ITEM when no item takes part."""
    if t < tournament.good_until[0]:
        return int(tournament.winner[1])
    if t < FIRST_BUDGET:
        return _first_candidate(standing)
    allowed = budget(t)
    _play(tournament, duels, standing, bottom, allowed)
    tournament.good_until[0] = t + 1 + rounds_within(t, allowed, tournament.until[1])
    return int(tournament.winner[1])
