"""The blocks of safe-blocks: neighbouring places of the leader that a page shuffles, paid for in possibly wrong pairs.

For i above j in the leader the pair is *open* when i does not surely beat j and the optimistic index of j over i is
positive. A block holds open pairs only. Of every place the state remembers its ``reach``: with how many of the places
right above it the item forms open pairs, one after the other. A block of places start..p-1 may then take in place p
exactly when p - start <= reach[p].

The reach of a place changes in three ways, and each is followed exactly:

* one of its pairs meets again: ``follow_duel`` looks at that pair;
* the budget of the index grows with the pages under this leader: open pairs stay open, a pair that only optimism
  closed may open again, at the earliest at the count ``wake``;
* a pair is decided, or the leader moves: ``wake`` is set to 0. When the count has reached ``wake``, everything is
  looked at again.
"""

import math
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words, below_from, load, store
from saferank.statistics.duels import wins_of
from saferank.statistics.kl import FIRST_BUDGET, budget_at, entropy, may_be_better_at, rounds_within
from saferank.verbs import NOBODY, Impression

LARGEST_BLOCK = 5
"""A block from the top has at most so many items. The challenger's block stops growing by coins instead."""

MOST_COINS = 63
"""So many stop coins come with the one word of a page; more are tossed with probability 2^-63, growing ends there."""

LOOK_AGAIN = 0
_NOT_AGAIN = 1 << 60
_TOP_BIT, _ONE = np.uint64(63), np.uint64(1)


@kernel
def pages_under_leader(state: Any) -> int:
    """The time of the index: how many pages were issued under exactly this leader."""
    return int(state.leaders.counts[state.leaders.current[0]])


@kernel
def _decided(policy: Any, won: int, lost: int) -> bool:
    """True when an item with this record against the item above it is surely the worse one."""
    return bool(lost - won >= policy.lead_needed[np.uint32(won + lost)])


@kernel
def is_open(policy: Any, state: Any, upper: int, lower: int, t: int) -> bool:
    """True when the lower item may be the better one: neither is the pair decided, nor has optimism given up."""
    won, lost = wins_of(state.duels, lower, upper), wins_of(state.duels, upper, lower)
    if won >= lost:
        return True
    return not _decided(policy, won, lost) and may_be_better_at(policy.budgets, won, lost, t)


@kernel
def opens_again(policy: Any, state: Any, upper: int, lower: int, t: int) -> int:
    """The earliest count at which a pair that is closed at t >= FIRST_BUDGET may be open, if no duel changes it."""
    won, lost = wins_of(state.duels, lower, upper), wins_of(state.duels, upper, lower)
    if _decided(policy, won, lost):
        return _NOT_AGAIN
    needed = entropy(float(won), float(lost)) + float(won + lost) * math.log(2.0)  # n kl(mu, 1/2)
    return t + 1 + rounds_within(t, budget_at(policy.budgets, t), needed)


@kernel
def _look(policy: Any, state: Any, upper: int, lower: int, t: int) -> bool:
    """True when the pair of two places of the leader is open; if not, see to it that it is looked at in time."""
    i, j = state.row[upper], state.row[lower]
    if is_open(policy, state, i, j, t):
        return True
    state.wake[0] = min(state.wake[0], opens_again(policy, state, i, j, t))
    return False


@kernel
def _stretch(policy: Any, state: Any, place: int, reach: int, t: int) -> None:
    """Note the reach of a place that is at least ``reach``."""
    while reach < place and _look(policy, state, place - reach - 1, place, t):
        reach += 1
    state.reach[place] = reach


@kernel
def look_at_leader(policy: Any, state: Any, t: int) -> None:
    """Find the reach of every place. Under the first budgets every index is 1: at the first real one, look again."""
    state.wake[0] = _NOT_AGAIN if t >= FIRST_BUDGET else FIRST_BUDGET
    for place in range(len(state.row) - 1):
        state.place[state.row[place]] = place
        _stretch(policy, state, place, 0, t)


@kernel
def follow_duel(policy: Any, state: Any, winner: int, loser: int) -> None:
    """A duel was recorded: if both items are in the leader, see what that changes.

    A win of the upper item cannot open the pair, a win of the lower one cannot close it.
    """
    a, b = state.place[winner], state.place[loser]
    distance = abs(a - b)
    if state.row[a] != winner or state.row[b] != loser:
        return
    upper, lower = min(a, b), max(a, b)
    reach = state.reach[lower]
    if a == upper and reach >= distance and not _look(policy, state, upper, lower, pages_under_leader(state)):
        state.reach[lower] = distance - 1
    elif a == lower and reach == distance - 1:
        _stretch(policy, state, lower, reach, pages_under_leader(state))


@kernel
def _joins(policy: Any, state: Any, place: int, t: int) -> bool:
    """True when the item at ``place`` forms open pairs with everybody below it, down to the challenger."""
    last = len(state.row) - 1
    for lower in range(place + 1, last):
        if state.reach[lower] < lower - place:
            return False
    return is_open(policy, state, state.row[place], state.row[last], t)


@kernel
def _room_to_grow(policy: Any, state: Any, left: int, t: int) -> int:
    """How many items the challenger's block could take in from above, coins aside."""
    last, taken = len(state.row) - 1, 0
    while taken < min(last - 1, MOST_COINS):
        left -= taken + 2
        if left < 0 or not _joins(policy, state, last - taken - 2, t):
            break
        taken += 1
    return taken


@kernel
def _coins_before_stop(coins: np.uint64, most: int) -> int:
    """How many of the bits after the highest are 0 before the first 1, at most ``most``; without a branch on a coin."""
    taken, going = 0, 1
    for _ in range(most):
        coins <<= _ONE
        going &= 1 - int(np.int64(coins >> _TOP_BIT))
        taken += going
    return taken


@kernel
def _cut(state: Any, top: int, left: int, offset: int, impression: Impression) -> None:
    """Lay out the row: above ``top`` in blocks as large as their pairs, their price and the limit allow, then in one.

    By arithmetic: where a block ends hangs on coins, and a branch on a coin is guessed wrong half the time.
    """
    start, places = 0, impression.places[0]
    for place in range(places):
        size = place - start
        fits = int(size < LARGEST_BLOCK) & int(state.reach[place] >= size) & int(left >= size)
        joins = (fits & int(size > 0) & int(place < top) & (1 - (offset & int(place == 1)))) | int(place > top)
        left -= size * joins
        start += size * (1 - joins)
        impression.ranking[place], impression.start[place] = state.row[place], start
    end = places
    for step in range(places):
        place = places - 1 - step
        impression.end[place] = end
        end -= (end - place) * int(impression.start[place] == place)


@kernel
def show_blocks(
    policy: Any, state: Any, challenger: int, coins: np.uint64, t: int, rng: Words, impression: Impression
) -> None:
    """Issue a page: the leader followed by the challenger, shuffled inside blocks that the account can pay for."""
    n_positions = len(state.row) - 1
    left, top, places = state.account[0] + state.account[1], n_positions, n_positions
    if challenger != NOBODY:
        state.row[n_positions], places = challenger, n_positions + 1
        left -= state.account[2]
        taken = _coins_before_stop(coins, _room_to_grow(policy, state, left, t))
        top -= 1 + taken
        left -= taken * (taken + 3) // 2
    impression.places[0], impression.challenger[0] = places, challenger
    _cut(state, top, left, int(np.int64(coins >> _TOP_BIT)), impression)
    shuffle_blocks(impression, rng)


@kernel
def shuffle_blocks(impression: Impression, rng: Words) -> None:
    """Shuffle inside every block, from the top, as ``shuffle_front`` does; the state of the generator in registers."""
    draws, ranking = load(rng), impression.ranking
    for place in range(impression.places[0]):
        choices = impression.end[place] - place
        if choices > 1:
            step, draws = below_from(draws, choices)
            held, other = ranking[place], ranking[place + step]
            ranking[place], ranking[place + step] = other, held
    store(rng, draws)
