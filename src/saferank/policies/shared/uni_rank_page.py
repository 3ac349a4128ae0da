"""What UniRank recommends: neighbouring parts merged while optimism allows, one extra item beside the last part.

The functions take UniRank's evidence and plan (``uni_rank.py``). A choice is kept, because most pages make it again:
the ends of the recommended groups, by place, in ``parts.blockers`` (after ``rebuild`` NO_ITEM stands there: nothing is
kept), and the extra item in ``extra``.

The budget grows with the count, so a positive index stays positive. For the other pairs it is known up to which budget
they cannot change the choice, unless they duel: on pages of the choice no others duel than those that ``_stands`` asks
about, and a page of a choice before lets choose again.
"""

import math
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.statistics.kl import (
    FIRST_BUDGET,
    budget_at,
    entropy,
    evidence,
    evidence_at_least,
    hopeless_until,
    may_be_better,
    optimistic,
    rounds_within,
)
from saferank.statistics.pairs import duel_of
from saferank.verbs import NO_ITEM, Impression


@kernel
def _hopeful_at(evidence: Any, plan: Any, start: int, end: int, first: int, allowed: float) -> float:
    """A budget up to which no item of the part that begins at ``first`` has a positive index against start..end-1.

    -1 when one has a positive index now.
    """
    order, earliest = plan.parts.order, np.inf
    for beside in range(start, end):
        for place in range(first, plan.parts.end[first]):
            won, lost = duel_of(evidence.duels, order[place], order[beside])
            if may_be_better(won, lost, allowed):
                return -1.0
            earliest = min(earliest, hopeless_until(won, lost, allowed))
    return float(earliest)


@kernel
def _reached_at(won: int, lost: int, x: float, q: float, log_q: float, allowed: float) -> float:
    """A budget up to which the index of a duel stays within q = 1 - exp(-x); -1 when it is larger under ``allowed``."""
    if won > (won + lost) * q:
        return -1.0
    at_least = evidence_at_least(float(won), float(lost), q)
    if at_least > 1.01 * allowed:
        return at_least
    needed = evidence(float(won), float(lost), x, log_q)
    return -1.0 if needed < allowed else needed


@kernel
def _best_of_part(evidence: Any, plan: Any, start: int, end: int, first: int, allowed: float) -> tuple[int, float]:
    """Of the part that begins at place ``first``, the place with the largest index against start..end-1.

    Some index must be positive. Returns the place, and a budget up to which no other item of the part passes it.
    """
    order = plan.parts.order
    found, against, x, q, log_q = NO_ITEM, NO_ITEM, 0.0, 0.5, 0.0
    best_won, best_lost = -1, -1
    for place in range(first, plan.parts.end[first]):
        for beside in range(start, end):
            won, lost = duel_of(evidence.duels, order[place], order[beside])
            if lost == 0:
                return place, np.inf
            if (won == best_won and lost == best_lost) or not may_be_better(won, lost, allowed):
                continue
            if found == NO_ITEM or _reached_at(won, lost, x, q, log_q, allowed) < 0.0:
                found, against, best_won, best_lost = place, beside, won, lost
                x = optimistic(float(won), float(lost), entropy(float(won), float(lost)), allowed)
                q, log_q = -math.expm1(-x), math.log1p(-math.exp(-x))
    return found, _passed_at(evidence, plan, start, end, found, against, x, allowed)


@kernel
def _passed_at(
    evidence: Any, plan: Any, start: int, end: int, found: int, against: int, x: float, allowed: float
) -> float:
    """A budget up to which no other item of that part passes the one at ``found``, which has its index x against one.

    An equal record has an equal index under every budget, and the first place keeps the lead.
    """
    order, earliest = plan.parts.order, np.inf
    q, log_q = -math.expm1(-x), math.log1p(-math.exp(-x))
    best_won, best_lost = duel_of(evidence.duels, order[found], order[against])
    for place in range(plan.parts.start[found], plan.parts.end[found]):
        for beside in range(start, end):
            won, lost = duel_of(evidence.duels, order[place], order[beside])
            if place != found and (won != best_won or lost != best_lost):
                earliest = min(earliest, _reached_at(won, lost, x, q, log_q, allowed))
    return earliest


@kernel
def _extra(evidence: Any, plan: Any, start: int, end: int, allowed: float) -> tuple[int, float]:
    """The place of the item to try beside the part start..end-1, or NO_ITEM, and a budget up to which it stays.

    It is the best of the first part below that has an item with a positive index. Alone in its part it needs no index,
    and before FIRST_BUDGET, when the budget is infinite, all indices are 1.
    """
    first, until = end, np.inf
    while first < plan.parts.size[0]:
        hopeful = _hopeful_at(evidence, plan, start, end, first, allowed)
        if hopeful < 0.0:
            if plan.parts.end[first] == first + 1 or allowed == np.inf:
                return first, until
            found, passed = _best_of_part(evidence, plan, start, end, first, allowed)
            return found, min(until, passed)
        until = min(until, hopeful)
        first = plan.parts.end[first]
    return NO_ITEM, until


@kernel
def _group(plan: Any, start: int, stop: int) -> bool:
    """Recommend the places start..stop-1 as one group; True when that is new."""
    new = False
    for place in range(start, stop):
        new |= plan.parts.blockers[place] != stop
        plan.parts.blockers[place] = stop
    return bool(new)


@kernel
def _choose_groups(evidence: Any, plan: Any, n_positions: int, t: int, allowed: float) -> bool:
    """Choose the groups and the extra item, and note until when the choice stands; True when it is another one."""
    start, end, extra, until, new = 0, plan.parts.end[0], NO_ITEM, np.inf, False
    while start < n_positions and end < n_positions:
        hopeful = _hopeful_at(evidence, plan, start, end, end, allowed)
        stop = plan.parts.end[end] if hopeful < 0.0 else end
        until = until if hopeful < 0.0 else min(until, hopeful)
        new |= _group(plan, start, stop)
        start = stop
        end = plan.parts.end[start] if start < n_positions else start
    if start < n_positions:
        extra, last = _extra(evidence, plan, start, end, allowed)
        until = min(until, last)
        new |= _group(plan, start, end + int(extra != NO_ITEM))
    new |= extra != plan.extra[0]
    plan.extra[0], plan.extra[1] = extra, start
    plan.extra[2] = t + 1 + rounds_within(t, allowed, until) if t >= FIRST_BUDGET else 0
    plan.extra[3], plan.allowed[0] = _losses_of_extra(evidence, plan), allowed
    return bool(new)


@kernel
def _losses_of_extra(evidence: Any, plan: Any) -> int:
    """How often the extra item lost against the part that it is for."""
    order, losses = plan.parts.order, 0
    if plan.extra[0] != NO_ITEM:
        for beside in range(plan.extra[1], plan.parts.end[plan.extra[1]]):
            losses += duel_of(evidence.duels, order[plan.extra[0]], order[beside])[1]
    return int(losses)


@kernel
def _stands(evidence: Any, plan: Any, n_positions: int) -> bool:
    """True while duels between items of two parts, on pages of this choice, cannot have changed it.

    A merged pair stays merged while an item of the lower part may be better, and an extra item that is alone in its
    part is the choice while it may be. Another extra item has the largest index of its part: that only grows until it
    loses. The budget is that of the choice, since a larger one takes no item's hope.
    """
    parts, extra, last, start = plan.parts, plan.extra[0], plan.extra[1], 0
    while start < min(last, n_positions):
        end, stop = parts.end[start], parts.blockers[start]
        if stop > end and _hopeful_at(evidence, plan, start, end, end, plan.allowed[0]) >= 0.0:
            return False
        start = stop
    if extra == NO_ITEM:
        return True
    if parts.end[extra] == parts.start[extra] + 1:
        return bool(_hopeful_at(evidence, plan, last, parts.end[last], extra, plan.allowed[0]) < 0.0)
    return bool(_losses_of_extra(evidence, plan) == plan.extra[3])


@kernel
def recommend_parts(policy: Any, evidence: Any, plan: Any, t: int, impression: Impression) -> int:
    """Lay out the recommended groups; returns how many places they take."""
    ends, order, n_positions = plan.parts.blockers, plan.parts.order, len(impression.shown)
    if t >= plan.extra[2] or ends[0] == NO_ITEM or not _stands(evidence, plan, n_positions):
        new = _choose_groups(evidence, plan, n_positions, t, budget_at(policy.budgets, t))
        plan.extra[4] = impression.round[0] if new else plan.extra[4]
    start, end, places = 0, ends[0], ends[n_positions - 1]
    for place in range(places):
        if place == end:
            start, end = place, ends[place]
        impression.ranking[place] = order[place]
        impression.start[place], impression.end[place] = start, end
    if plan.extra[0] != NO_ITEM:
        impression.ranking[places - 1] = order[plan.extra[0]]
    return int(places)
