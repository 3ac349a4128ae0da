r"""safe-order: show what the clicks already say, as far as the safety allowance covers that they are wrong.

The leader moves only by certified swaps, as in safe-blocks, and a page may carry

    B = floor(L - K/2) + m

possibly wrong pairs beyond it after m of them. Pages are made from a *working order*: the leader, changed wherever the
clicks speak for it without being certain, and cut into blocks that are shuffled. Both cost possibly wrong pairs, and a
plan whose price is above B is not made. Ours, beyond the paper; the proof is in docs/policies/safe-order.md.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.policies.registry import OURS, Look, Outlook, Presentation, Setup, given_rule, register
from saferank.policies.shared.account import budget_of, new_account, rebased_leader, regrouped_leader
from saferank.policies.shared.blocks import shuffle_blocks
from saferank.policies.shared.bubble import first_standing, standing_of
from saferank.policies.shared.derivation import sort_pool
from saferank.policies.shared.epochs import advance, derive, restart, turn_epoch
from saferank.policies.shared.plans import (
    PagePlan,
    level_at,
    merge,
    new_plan,
    note_ends,
    settled,
    undecided,
    work_out_order,
)
from saferank.policies.shared.room import duels_have_room, has_room
from saferank.randomness import Words, shuffle_front, word
from saferank.safety import Price
from saferank.statistics.duels import (
    DenseDuels,
    HashedDuels,
    epoch_start,
    fight,
    record,
    record_and_certify,
    surely_better,
    wins_of,
    with_more_items,
)
from saferank.statistics.kl import entropy, optimistic
from saferank.statistics.lifetimes import LifetimeDuels, new_duels
from saferank.statistics.tournament import ABSENT, CANDIDATE, RANKED
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items, choose, learn

PAGES_OF_A_PLAN = 16
"""A plan serves so many pages, unless the leader moves before."""

_STALE = 0
_TOP_BIT, _TOP_TWO = np.uint64(63), np.uint64(62)


class SafeOrder(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n."""

    lead_needed: Ints


class SafeOrderState(NamedTuple):
    """The leader, the duels, the account, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    leader: Items  # by place
    place: Ints  # by item: its place in the leader, K for all others
    standing: Ints  # by item
    account: Ints  # [3] allowance floor(L - K/2), certified swaps since the reference, unranked items L - K
    pool: Items  # scratch: the leader, then the unranked items of a page
    plan: PagePlan
    duels: DenseDuels | HashedDuels | LifetimeDuels


@implements(record, SafeOrder)
def _record(policy: SafeOrder, state: SafeOrderState, winner: int, loser: int, now: int) -> bool:
    """True when the winner is surely better: whether it was before or not, the leader may have something to follow."""
    record_and_certify(policy, state, winner, loser, now)
    return surely_better(state.duels, policy.lead_needed, winner, loser)


@kernel
def _anchor(policy: SafeOrder, state: SafeOrderState, bottom: int) -> int:
    """The first leader item that the working order left out and whose pair with its bottom item is undecided."""
    for place in range(len(state.leader)):
        item = state.leader[place]
        if not state.plan.working[item] and undecided(policy, state, item, bottom):
            return int(item)
    return NOBODY


@kernel
def _champion(policy: SafeOrder, state: SafeOrderState, bottom: int, level: float) -> int:
    """The item outside the working order with the largest index over the bottom item, of those that may be better.

    An item that never lost to the bottom item has index 1: the first such item ends the search.
    """
    best, largest = NOBODY, 0.0
    for item in range(len(state.standing)):
        if state.plan.working[item] or state.standing[item] == ABSENT:
            continue
        wins, losses = wins_of(state.duels, item, bottom), wins_of(state.duels, bottom, item)
        if not undecided(policy, state, item, bottom) or settled(state, bottom, item, level):
            continue
        if losses == 0 or level == math.inf:
            return item
        x = optimistic(float(wins), float(losses), entropy(float(wins), float(losses)), level)
        if x > largest:
            best, largest = item, x
    return best


@kernel
def _challenger(policy: SafeOrder, state: SafeOrderState, level: float, rng: Words) -> int:
    """Whom the bottom item of the working order is compared with, or NOBODY. A coin for the anchor, if there is one."""
    bottom = state.plan.row[len(state.leader) - 1]
    anchor = _anchor(policy, state, bottom)
    if anchor != NOBODY and word(rng) >> _TOP_BIT:
        return anchor
    return _champion(policy, state, bottom, level)


@kernel
def _order_boundaries(state: SafeOrderState, count: int, rng: Words) -> None:
    """Mostly from the bottom up; by a word whose two highest bits are 0, at random."""
    boundaries, at_random = state.plan.boundaries, word(rng) >> _TOP_TWO == 0
    for step in range(count):
        boundaries[step] = step + 1 if at_random else count - step
    if at_random:
        shuffle_front(rng, boundaries, 0, count, count)


@kernel
def _plan_anew(policy: SafeOrder, state: SafeOrderState, rng: Words) -> None:
    """Work out the order, choose the challenger, and merge blocks as far as the account goes."""
    plan, n_positions = state.plan, len(state.leader)
    level = level_at(state.round[0] - epoch_start(state.duels))
    work_out_order(policy, state, level)
    challenger, boundaries = _challenger(policy, state, level, rng), n_positions - 1
    if challenger != NOBODY:
        plan.row[n_positions], boundaries = challenger, n_positions
    _order_boundaries(state, boundaries, rng)
    for step in range(boundaries):
        merge(policy, state, int(plan.boundaries[step]), level)
    note_ends(plan)
    plan.pages[0] = PAGES_OF_A_PLAN


@implements(choose, SafeOrder)
def _choose(policy: SafeOrder, state: SafeOrderState, rng: Words, impression: Impression) -> None:
    plan, n_positions = state.plan, len(state.leader)
    state.round[0] += 1
    if plan.pages[0] == _STALE:
        _plan_anew(policy, state, rng)
    plan.pages[0] -= 1
    impression.round[0], impression.places[0], impression.challenger[0] = state.round[0], plan.size[0], NOBODY
    if plan.size[0] > n_positions:
        impression.challenger[0] = plan.row[n_positions]
    for place in range(plan.size[0]):
        impression.ranking[place] = plan.row[place]
        impression.start[place], impression.end[place] = plan.start[place], plan.end[place]
    shuffle_blocks(impression, rng)


@kernel
def _fill_pool(state: SafeOrderState, impression: Impression) -> int:
    """The leader, then the items of the page that are unranked now; returns how many."""
    size = len(state.leader)
    for place in range(size):
        state.pool[place] = state.leader[place]
    for place in range(impression.places[0]):
        if state.standing[impression.ranking[place]] == CANDIDATE:
            state.pool[size] = impression.ranking[place]
            size += 1
    return size


@kernel
def _note_leader(state: SafeOrderState, pool: Items, size: int) -> None:
    """The pool is sorted: note leader, places and standings, and end the plan."""
    n_positions = len(state.leader)
    state.plan.pages[0] = _STALE
    for place in range(size):
        item = pool[place]
        state.place[item] = min(place, n_positions)
        state.standing[item] = RANKED if place < n_positions else CANDIDATE
        if place < n_positions:
            state.leader[place] = item


@verb
def _follow_certainty(
    duels: Any, policy: SafeOrder, state: SafeOrderState, impression: Impression, decided: bool
) -> None:
    """Move the leader after a page of which a pair was won by an item that is surely better, or not (``decided``)."""
    raise NotImplementedError


@kernel
def _sort_page(duels: Any, policy: SafeOrder, state: SafeOrderState, impression: Impression, decided: bool) -> None:
    if not decided:
        return
    size, n_positions = _fill_pool(state, impression), len(state.leader)
    swaps = sort_pool(duels, policy.lead_needed, state.pool, n_positions, size, distant=True)
    if swaps > 0:  # not: nothing to swap, nor a contradiction, which leaves the leader as it is
        state.account[1] += swaps
        _note_leader(state, state.pool, size)


for _kind in (DenseDuels, HashedDuels):
    implements(_follow_certainty, _kind)(_sort_page)


@implements(_follow_certainty, LifetimeDuels)
def _derive_leader(
    duels: LifetimeDuels, policy: SafeOrder, state: SafeOrderState, impression: Impression, decided: bool
) -> None:
    if duels.changed[0]:
        restart(policy, state)


@implements(restart, SafeOrder)
def _restart(policy: SafeOrder, state: SafeOrderState) -> None:
    derive_all(state.duels, policy, state)


@functools.partial(verb, default=True)
def derive_all(duels: Any, policy: SafeOrder, state: SafeOrderState) -> None:
    """Derive leader and income from what is certain; nothing to do without a lifetime."""


@implements(derive_all, LifetimeDuels)
def _derive_all(duels: LifetimeDuels, policy: SafeOrder, state: SafeOrderState) -> None:
    derive(duels, policy, state, state.leader)
    state.account[1] = duels.income[0]
    size = len(state.leader) + state.account[2]  # all present items
    _note_leader(state, duels.pool, size)


@implements(advance, SafeOrder)
def _advance(policy: SafeOrder, state: SafeOrderState) -> None:
    turn_epoch(state.duels, policy, state)


@implements(learn, SafeOrder)
def _learn(policy: SafeOrder, state: SafeOrderState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    decided = fight(policy, state, impression, clicks)
    _follow_certainty(state.duels, policy, state, impression, decided)


@implements(has_room, SafeOrder)
def _has_room(policy: SafeOrder, state: SafeOrderState) -> bool:
    return duels_have_room(state, len(state.leader) * (len(state.leader) + 1) // 2)


def _places(leader: Items, n_items: int) -> Ints:
    """By item its place in the leader, K for all others."""
    places = np.full(n_items, len(leader), np.int64)
    places[leader] = np.arange(len(leader))
    return places


def _start(setup: Setup) -> tuple[SafeOrder, SafeOrderState]:
    leader = np.arange(setup.n_positions, dtype=np.uint32)
    state = SafeOrderState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        horizon=np.zeros(1, np.int64),
        leader=leader,
        place=_places(leader, setup.n_items),
        standing=first_standing(setup.n_items, setup.n_positions),
        account=new_account(setup.n_items, setup.n_positions),
        pool=np.zeros(2 * setup.n_positions + 1, np.uint32),
        plan=new_plan(setup.n_items, setup.n_positions),
        duels=new_duels(setup.n_items, setup.n_positions, setup.lifetime),
    )
    return SafeOrder(setup.rule.table(0)), state


def _regroup(policy: SafeOrder, state: SafeOrderState, present: Flags) -> SafeOrderState:
    """For other items: leader and account as in safe-blocks, and a new plan on the next page."""
    plan = state.plan
    plan.pages[0] = _STALE
    newcomers = np.zeros(len(present) - len(plan.working), np.bool_)
    state = state._replace(duels=with_more_items(state.duels, len(present)))
    leader, account = regrouped_leader(policy, state, state.leader, present, distant=True)
    return state._replace(
        leader=leader,
        place=_places(leader, len(present)),
        standing=standing_of(leader, present),
        account=account,
        plan=plan._replace(working=np.append(plan.working, newcomers)),
    )


def _rebuild(policy: SafeOrder, state: SafeOrderState, base: Items) -> SafeOrderState:
    """For another ranking of production's: leader and account derived from it, and a new plan on the next page."""
    leader, account = rebased_leader(policy, state, base, distant=True)
    state.plan.pages[0] = _STALE
    present = state.standing != ABSENT
    return state._replace(
        leader=leader.copy(),
        place=_places(leader, len(present)),
        standing=standing_of(leader, present),
        account=account,
    )


def _leader(state: SafeOrderState) -> Ints:
    return state.leader.astype(np.int64)


def _price(state: SafeOrderState) -> Price:
    """Of the newest page: what its blocks cost, and what its order does."""
    plan = state.plan
    blocks = int((np.arange(plan.size[0]) - plan.start[: plan.size[0]]).sum())
    return Price(0, blocks, order=int(plan.price[0]) - blocks)


def _outlook(policy: SafeOrder, state: SafeOrderState) -> Outlook:
    plan, n_positions = state.plan, len(state.leader)
    if plan.pages[0] == _STALE:
        return Outlook("makes a new plan for the next page")
    moved = int((plan.row[:n_positions] != state.leader).sum())
    note = f"shuffles blocks of a working order that differs from the leader at {moved} of {n_positions} positions"
    if plan.size[0] == n_positions:
        return Outlook(note)
    return Outlook(note, int(plan.row[n_positions]), against=int(plan.row[n_positions - 1]))


register(
    "safe-order",
    SafeOrder,
    start=_start,
    leader=_leader,
    certifies=True,
    safe=True,
    rule=given_rule,
    regroup=_regroup,
    rebuild=_rebuild,
    outlook=_outlook,
    caches=("plan", "pool"),
    budget=budget_of,
    price=_price,
    compares_blocks=True,
    lifetimes=True,
    shown_as=Presentation(
        "SafeOrder",
        Look("#4343c4", "#9d9dff", (0, (9, 2, 2, 2)), "<"),
        OURS,
        order=12,
        about="follows the clicks before they are certain, as far as the budget covers the worst case",
    ),
)
