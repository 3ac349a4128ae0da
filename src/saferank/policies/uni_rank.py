r"""UniRank: an ordered partition of all items as the leader, its neighbouring parts merged while optimism allows.

With m = s/n and t the pages issued before under this leader, parts P_c and P_(c+1) are recommended as one while some
item j of the lower part has a positive optimistic index 2 f((1 + m(j,i))/2, n, t) - 1 against an item i of the upper
one; the part that reaches position K may take in one extra item from below. After t0 pages item i stays beside j in
the new leader unless

    m(i,j) + sqrt(log log(t0 + 3) / n(i,j)) < 0.

No horizon, no delta, no original ranking.

C.-S. Gauthier, R. Gaudel, E. Fromont: UniRank: Unimodal Bandit Algorithms for Online Ranking. ICML 2022.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.partition import (
    LARGEST_CATALOGUE,
    Partition,
    apart,
    new_partition,
    rebuild,
    row_of,
    shuffle_page,
    sizes_in_words,
    with_larger_matrix,
)
from saferank.policies.shared.room import has_room
from saferank.policies.shared.uni_rank_page import outdates, recommend_parts
from saferank.randomness import Words
from saferank.statistics.duels import Duels, fight, new_duels, record, with_more_items
from saferank.statistics.kl import first_budgets
from saferank.statistics.leaders import LeaderCounts, enthrone, leaders_full, new_leader_counts
from saferank.statistics.pairs import count_win, duel_of
from saferank.verbs import Flags, Floats, Impression, Ints, choose, learn


class UniRank(NamedTuple):
    """Hyper-parameters: only the budgets of the first counts, in a table: two logarithms a page would be slow."""

    budgets: Floats


class UniRankState(NamedTuple):
    """Duels, which items surely stand below which, and the parts that this makes."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    duels: Duels
    below: Flags  # [L, L]: the first item stands below the second, by the log log bound
    present: Flags  # by item
    parts: Partition
    part_of: Ints  # by item: where its part ends; the leader as a key
    leaders: LeaderCounts
    bound: Floats  # [3] log log(t0 + 3) lies between the first two while t0 is at most the third
    extra: Ints  # [3] place of the extra item, start of the part it is for, count at which to choose groups again
    wake: Floats  # [2] smallest m^2 n of a pair marked below, and the t0 at which the bound reaches it


@kernel
def _bound_at(t0: float) -> float:
    return math.log(math.log(t0 + 3.0))


@kernel
def _stands_below(state: UniRankState, i: int, j: int) -> bool:
    """Not ok(i, j): m(i,j) + sqrt(log log(t0 + 3) / n) < 0, the logarithms taken only when the case is close."""
    won, lost = duel_of(state.duels, i, j)
    wins, losses = float(won), float(lost)
    if losses <= wins:
        return False
    n = wins + losses
    strength = (losses - wins) * (losses - wins) / n
    if strength < state.bound[0] * (1.0 - 1e-12):
        return False
    close = strength < state.bound[1] * (1.0 + 1e-12)
    if close and (wins - losses) / n + math.sqrt(_bound_at(float(state.learned[0])) / n) >= 0:
        return False
    if strength < state.wake[0]:
        _wake_at(state, strength)
    return True


@kernel
def _wake_at(state: UniRankState, strength: float) -> None:
    """Remember when the growing bound will release the pair of this strength; a little early, never late."""
    state.wake[0] = strength
    state.wake[1] = math.exp(min(math.exp(min(strength, 6.0)), 600.0)) * (1.0 - 1e-9) - 5.0


@implements(record, UniRank)
def _record(policy: UniRank, state: UniRankState, winner: int, loser: int, now: int) -> bool:
    count_win(state.duels, winner, loser)
    if state.part_of[winner] != state.part_of[loser] and outdates(policy, state, winner, loser):
        state.extra[2] = 0
    up, down = _stands_below(state, winner, loser), _stands_below(state, loser, winner)
    changed = up != state.below[winner, loser] or down != state.below[loser, winner]
    state.below[winner, loser], state.below[loser, winner] = up, down
    return bool(changed)


@kernel
def _follow_bound(state: UniRankState) -> None:
    """Renew the bracket around log log(t0 + 3) when t0 has left it."""
    t0 = float(state.learned[0])
    if t0 > state.bound[2]:
        state.bound[2] = math.floor(t0 * 1.02)
        state.bound[0], state.bound[1] = _bound_at(t0), _bound_at(state.bound[2])


@kernel
def _review_all(state: UniRankState) -> bool:
    """Look at every pair again, because the bound has grown over one of them."""
    state.wake[0] = state.wake[1] = np.inf
    changed, n_items = False, len(state.present)
    for i in range(n_items):
        for j in range(n_items):
            stands = state.below[i, j] and _stands_below(state, i, j)
            changed |= stands != state.below[i, j]
            state.below[i, j] = stands
    return changed


@implements(learn, UniRank)
def _learn(policy: UniRank, state: UniRankState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    _follow_bound(state)
    changed = fight(policy, state, impression, clicks)
    if state.learned[0] >= state.wake[1]:
        changed |= _review_all(state)
    if changed:
        rebuild(state.parts, state.below, state.present)
        _enthrone_parts(state)


@kernel
def _enthrone_parts(state: UniRankState) -> None:
    for place in range(state.parts.size[0]):
        state.part_of[state.parts.order[place]] = state.parts.end[place]
    enthrone(state.leaders, state.part_of)
    state.extra[2] = 0


@implements(choose, UniRank)
def _choose(policy: UniRank, state: UniRankState, rng: Words, impression: Impression) -> None:
    leaders = state.leaders
    t = leaders.counts[leaders.current[0]]
    leaders.counts[leaders.current[0]] += 1
    state.round[0] += 1
    impression.round[0] = state.round[0]
    shuffle_page(impression, rng, recommend_parts(policy, state, t, impression))


@implements(has_room, UniRank)
def _has_room(policy: UniRank, state: UniRankState) -> bool:
    return not leaders_full(state.leaders)


def _start(setup: Setup) -> tuple[UniRank, UniRankState]:
    state = UniRankState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        duels=new_duels(setup.n_items, direct_items=LARGEST_CATALOGUE),
        below=np.zeros((setup.n_items, setup.n_items), np.bool_),
        present=np.ones(setup.n_items, np.bool_),
        parts=new_partition(setup.n_items),
        part_of=np.zeros(setup.n_items, np.int64),
        leaders=new_leader_counts(setup.n_items, 256),
        bound=np.array([-np.inf, -np.inf, -np.inf]),
        extra=np.zeros(3, np.int64),
        wake=np.array([np.inf, np.inf]),
    )
    rebuild(state.parts, state.below, state.present)
    _enthrone_parts(state)
    return UniRank(first_budgets()), state


def _regroup(policy: UniRank, state: UniRankState, present: Flags) -> UniRankState:
    """For other items. Another set of items has leaders of its own, so counts start again at 0."""
    n_items = len(present)
    state = state._replace(
        duels=with_more_items(state.duels, n_items, LARGEST_CATALOGUE),
        below=with_larger_matrix(state.below, n_items),
        present=present,
        parts=new_partition(n_items),
        part_of=np.zeros(n_items, np.int64),
        leaders=new_leader_counts(n_items, 256),
    )
    rebuild(state.parts, state.below, state.present)
    _enthrone_parts(state)
    return state


def _outlook(policy: UniRank, state: UniRankState) -> Outlook:
    return Outlook(f"shuffles and merges neighbouring parts of {sizes_in_words(state.parts)} items")


def _leader(state: Any) -> Ints:
    return row_of(state.parts)


register(
    "uni-rank",
    UniRank,
    start=_start,
    leader=_leader,
    compares_all=True,
    largest_catalogue=LARGEST_CATALOGUE,
    regroup=_regroup,
    outlook=_outlook,
    settled=lambda state, i, j: apart(state.parts, i, j),
    shown_as=Presentation(
        "UniRank",
        Look("#1b8a4a", "#4fc983", (0, (3, 1.2, 1, 1.2, 1, 1.2)), "D"),
        PAPER,
        order=4,
        about="merges neighbouring parts while optimism allows; not safe",
    ),
)
