"""What UniRank recommends: neighbouring parts merged while optimism allows, one extra item beside the last part.

The functions take UniRank's state (``uni_rank.py``). Its field ``extra`` remembers the extra item and the count until
which the choice stands, because most pages ask for it again.
"""

import math
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.kl import FIRST_BUDGET, budget_at, entropy, evidence, may_be_better, optimistic, rounds_within
from saferank.verbs import NOBODY, Impression

_LOG_2 = math.log(2.0)


@kernel
def _merges(state: Any, start: int, end: int, allowed: float) -> bool:
    """True when some item of the next part may be better than some item of the part start..end-1."""
    order, wins = state.parts.order, state.duels.wins
    for a in range(start, end):
        for b in range(end, state.parts.end[end]):
            i, j = order[a], order[b]
            if may_be_better(wins[j, i], wins[i, j], allowed):
                return True
    return False


@kernel
def _best_of_part(state: Any, start: int, end: int, first: int, allowed: float) -> tuple[int, float]:
    """Of the part that begins at place ``first``, the place with the largest positive index against start..end-1.

    Returns that place, or NOBODY, and its index as x = -log(1 - q); infinite for an index of 1.
    """
    order, wins = state.parts.order, state.duels.wins
    found, x, log_q, mean_needed = NOBODY, 0.0, 0.0, 0.5
    best_won, best_lost = -1, -1
    for place in range(first, state.parts.end[first]):
        for beside in range(start, end):
            won, lost = wins[order[place], order[beside]], wins[order[beside], order[place]]
            if lost == 0:
                return place, np.inf
            if (won == best_won and lost == best_lost) or not may_be_better(won, lost, allowed):
                continue
            larger = won > (won + lost) * mean_needed or evidence(float(won), float(lost), x, log_q) < allowed
            if found == NOBODY or larger:
                found, best_won, best_lost = place, won, lost
                x = optimistic(float(won), float(lost), entropy(float(won), float(lost)), allowed)
                log_q, mean_needed = math.log1p(-math.exp(-x)), -math.expm1(-x)
    return found, x


@kernel
def _passed_at(state: Any, start: int, end: int, found: int, x: float) -> float:
    """The budget up to which no other item of that part reaches the index x of the item at place ``found``."""
    order, wins = state.parts.order, state.duels.wins
    log_q, earliest = math.log1p(-math.exp(-x)), np.inf
    for place in range(state.parts.start[found], state.parts.end[found]):
        for beside in range(start, end):
            won, lost = float(wins[order[place], order[beside]]), float(wins[order[beside], order[place]])
            if place != found:
                earliest = min(earliest, evidence(won, lost, x, log_q))
    return earliest


@kernel
def _hopeful_at(state: Any, start: int, end: int, first: int) -> float:
    """The budget up to which no item of the part that begins at ``first`` has a positive index."""
    order, wins, earliest = state.parts.order, state.duels.wins, np.inf
    for place in range(first, state.parts.end[first]):
        for beside in range(start, end):
            won, lost = float(wins[order[place], order[beside]]), float(wins[order[beside], order[place]])
            earliest = min(earliest, evidence(won, lost, _LOG_2, -_LOG_2))
    return earliest


@kernel
def _extra(state: Any, start: int, end: int, t: int, allowed: float) -> int:
    """The place of the item to try beside the last part: the best of the first part below that has one, or NOBODY.

    The choice stands while the budget stays below what would change it, no duel across parts is recorded and the
    leader stays: ``extra`` remembers it, because most pages ask again.
    """
    if state.extra[1] == start and t < state.extra[2]:
        return int(state.extra[0])
    if t < FIRST_BUDGET:
        return end if end < state.parts.size[0] else NOBODY
    first, found, until = end, NOBODY, np.inf
    while first < state.parts.size[0] and found == NOBODY:
        found, x = _best_of_part(state, start, end, first, allowed)
        if found == NOBODY:
            until = min(until, _hopeful_at(state, start, end, first))
        elif x < np.inf:
            until = min(until, _passed_at(state, start, end, found, x))
        first = state.parts.end[first]
    state.extra[0], state.extra[1], state.extra[2] = found, start, t + 1 + rounds_within(t, allowed, until)
    return found


@kernel
def _recommend(state: Any, start: int, stop: int, extra: int, impression: Impression) -> None:
    """Lay out the places start..stop-1 of the leader as one group; with an extra item, it takes the last of them."""
    for place in range(start, stop):
        impression.ranking[place] = state.parts.order[place]
        impression.start[place], impression.end[place] = start, stop
    if extra != NOBODY:
        impression.ranking[stop - 1] = state.parts.order[extra]


@kernel
def recommend_parts(policy: Any, state: Any, t: int, impression: Impression) -> int:
    """Lay out the recommended parts; returns how many places they take."""
    n_positions, allowed = len(impression.shown), budget_at(policy.budgets, t)
    start, end = 0, state.parts.end[0]
    while end < n_positions:
        stop = state.parts.end[end] if _merges(state, start, end, allowed) else end
        _recommend(state, start, stop, NOBODY, impression)
        start = stop
        if start >= n_positions:
            return int(start)
        end = state.parts.end[start]
    extra = _extra(state, start, end, t, allowed)
    stop = end + int(extra != NOBODY)
    _recommend(state, start, stop, extra, impression)
    return int(stop)
