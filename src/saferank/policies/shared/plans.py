"""The plans of safe-order: rows of items cut into blocks, and how much worse than the leader their pages can be.

A plan is a row of K items, or of K + 1 of which the last place is hidden; inside its blocks it is shuffled for every
page. Its price is an upper bound of V(page) - V(leader) over all its pages, in possibly wrong pairs:

* two items of one block: 1;
* two items of different blocks, j above i: 0 when the leader has them so too, 1 when it does not; and when j surely
  beats i, 1 less than that if the leader has them the other way round, 0 otherwise;
* an unranked item that may be shown: 1 for every unranked item outside the row;
* a leader item outside the row: as if it stood below the row, less the cheapest place that may be hidden.

Why that is so: docs/policies/safe-order.md. The *level* says how loud the clicks must speak for a change that is not
certain; it is infinite as long as nothing counts.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.duels import compared_enough, surely_better, wins_of
from saferank.statistics.kl import FIRST_BUDGET, may_be_better
from saferank.statistics.tournament import CANDIDATE
from saferank.verbs import Flags, Ints, Items


class PagePlan(NamedTuple):
    """What the next pages are made of, and room to make another plan."""

    row: Items  # by place: the working order, then the challenger
    start: Ints  # by place: the first place of its block
    end: Ints  # by place: one past the last place of its block
    size: Ints  # [1] K, or K + 1 with a hidden place
    price: Ints  # [1]
    pages: Ints  # [1] how many more pages it serves
    working: Flags  # by item: stands in the working order
    waiting: Items  # scratch: unranked items of the plan before, and whom they replaced
    boundaries: Items  # scratch: the order in which blocks are merged


def new_plan(n_items: int, n_positions: int) -> PagePlan:
    """The original ranking, for no page: the first page makes a plan."""
    return PagePlan(
        row=np.arange(n_positions + 1, dtype=np.uint32),
        start=np.arange(n_positions + 1, dtype=np.int64),
        end=np.arange(1, n_positions + 2, dtype=np.int64),
        size=np.full(1, n_positions, np.int64),
        price=np.zeros(1, np.int64),
        pages=np.zeros(1, np.int64),
        working=np.arange(n_items) < n_positions,
        waiting=np.zeros(n_positions + 1, np.uint32),
        boundaries=np.zeros(n_positions, np.uint32),
    )


@kernel
def level_at(t: int) -> float:
    """How loud clicks must speak on page number t."""
    return 0.5 * math.log(t) if t >= FIRST_BUDGET else math.inf


@kernel
def settled(state: Any, i: int, j: int, level: float) -> bool:
    """True when the clicks speak for i over j: i leads, and n kl(mu, 1/2) has reached the level."""
    return not may_be_better(wins_of(state.duels, j, i), wins_of(state.duels, i, j), level)


@kernel
def undecided(policy: Any, state: Any, i: int, j: int) -> bool:
    """True when the two are still to be compared: neither item surely beats the other."""
    if compared_enough(state.duels, policy.lead_needed, i, j):
        return False
    return not compared_enough(state.duels, policy.lead_needed, j, i)


@kernel
def price_above(policy: Any, state: Any, upper: int, lower: int) -> int:
    """How many wrong pairs two items have at most, the first above the second, beyond what they have in the leader."""
    before = int(state.place[lower] < state.place[upper])  # the leader has them the other way round
    if surely_better(state.duels, policy.lead_needed, upper, lower):
        return -before
    return int(state.place[upper] >= state.place[lower])


@kernel
def _price_of_pairs(policy: Any, state: Any, size: int) -> int:
    """What the pairs of the row cost."""
    row, start, price = state.plan.row, state.plan.start, 0
    for lower in range(size):
        for upper in range(lower):
            if start[upper] == start[lower]:
                price += 1
            else:
                price += price_above(policy, state, row[upper], row[lower])
    return price


@kernel
def _price_of_unranked(state: Any, size: int, first: int) -> int:
    """What the unranked items of the row cost against those outside; from place ``first`` on one will be hidden."""
    n_positions, above, below = len(state.leader), 0, 0
    for place in range(size):
        unranked = int(state.place[state.plan.row[place]] == n_positions)
        if place < first:
            above += unranked
        else:
            below += unranked
    return int((above + min(below, n_positions - first)) * (state.account[2] - above - below))


@kernel
def _price_of_left_out(policy: Any, state: Any, item: int, size: int, first: int) -> int:
    """What a leader item outside the row costs."""
    price, least = 0, 1
    for place in range(size):
        here = price_above(policy, state, state.plan.row[place], item)
        price += here
        if place >= first:
            least = min(least, here)
    return price - least if size > len(state.leader) else price


@kernel
def price_of_plan(policy: Any, state: Any, size: int) -> int:
    """By how many wrong pairs a page of the row's first ``size`` places is worse than the leader at most."""
    plan, n_positions = state.plan, len(state.leader)
    first = plan.start[n_positions] if size > n_positions else n_positions
    price = _price_of_pairs(policy, state, size) + _price_of_unranked(state, size, first)
    for place in range(n_positions):
        item = state.leader[place]
        if not plan.working[item] and not (size > n_positions and plan.row[n_positions] == item):
            price += _price_of_left_out(policy, state, item, size, first)
    return int(price)


@kernel
def _affordable(policy: Any, state: Any, size: int) -> bool:
    """True when the account covers the price of the plan, which is then noted."""
    price = price_of_plan(policy, state, size)
    if price > state.account[0] + state.account[1]:
        return False
    state.plan.price[0] = price
    return True


@kernel
def back_to_leader(state: Any) -> int:
    """Make the leader the working order; returns how many items of the plan before wait, because they are unranked."""
    plan, n_waiting, n_positions = state.plan, 0, len(state.leader)
    for place in range(plan.size[0]):
        if state.standing[plan.row[place]] == CANDIDATE:
            plan.waiting[n_waiting] = plan.row[place]
            n_waiting += 1
    for place in range(n_positions):
        plan.working[plan.row[place]] = False
    for place in range(n_positions):
        plan.row[place] = state.leader[place]
        plan.working[plan.row[place]] = True
    for place in range(n_positions + 1):
        plan.start[place] = place
    plan.size[0], plan.price[0] = n_positions, 0
    return n_waiting


@kernel
def _enter(policy: Any, state: Any, seat: int, level: float) -> bool:
    """Let a waiting item replace the lowest item against which the clicks speak for it, if the account covers that."""
    plan, item = state.plan, state.plan.waiting[seat]
    for step in range(len(state.leader)):
        place = len(state.leader) - 1 - step
        other = plan.row[place]
        if settled(state, item, other, level):
            plan.row[place], plan.working[item], plan.working[other] = item, True, False
            if _affordable(policy, state, len(state.leader)):
                plan.waiting[seat] = other
                return True
            plan.row[place], plan.working[item], plan.working[other] = other, False, True
    return False


@kernel
def _rise(policy: Any, state: Any, place: int, level: float) -> bool:
    """Exchange the items of a place and the next one if the clicks speak for that and the account covers it."""
    row = state.plan.row
    upper, lower = row[place], row[place + 1]
    if not settled(state, lower, upper, level):
        return False
    row[place], row[place + 1] = lower, upper
    if _affordable(policy, state, len(state.leader)):
        return True
    row[place], row[place + 1] = upper, lower
    return False


@kernel
def work_out_order(policy: Any, state: Any, level: float) -> None:
    """Change the leader where the clicks speak for it and the account covers the worst case; at most K sweeps."""
    n_waiting = back_to_leader(state)
    for _ in range(len(state.leader)):
        changed = False
        for seat in range(n_waiting):
            changed |= _enter(policy, state, seat, level)
        for place in range(len(state.leader) - 1):
            changed |= _rise(policy, state, place, level)
        if not changed:
            break


@kernel
def _mergeable(policy: Any, state: Any, boundary: int, end: int, level: float) -> bool:
    """True when all pairs across the boundary are undecided, and the clicks do not speak for the upper item.

    They may where the leader has the pair the other way round: its price is spent anyway.
    """
    row = state.plan.row
    for upper in range(state.plan.start[boundary - 1], boundary):
        for lower in range(boundary, end):
            i, j = row[upper], row[lower]
            if not undecided(policy, state, i, j):
                return False
            if state.place[j] >= state.place[i] and settled(state, i, j, level):
                return False
    return True


@kernel
def merge(policy: Any, state: Any, boundary: int, level: float) -> None:
    """Join the blocks on both sides of a boundary if they may be joined and the account covers it."""
    plan = state.plan
    size = max(plan.size[0], boundary + 1)  # below the last shown place the challenger waits
    end = boundary + 1
    while end < size and plan.start[end] == boundary:
        end += 1
    if not _mergeable(policy, state, boundary, end, level):
        return
    start = plan.start[boundary - 1]
    for place in range(boundary, end):
        plan.start[place] = start
    if _affordable(policy, state, size):
        plan.size[0] = size
        return
    for place in range(boundary, end):
        plan.start[place] = boundary


@kernel
def note_ends(plan: PagePlan) -> None:
    """Fill in where blocks end, from where they start."""
    end = plan.size[0]
    for step in range(plan.size[0]):
        place = plan.size[0] - 1 - step
        plan.end[place] = end
        if plan.start[place] == place:
            end = place
