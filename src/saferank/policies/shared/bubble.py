"""What BubbleRank and KL-UCB-BR share: the coins of a page, and the pass that moves the leader.

They differ in one thing only, who challenges for the last position. Their plans hold a *row* of K + 1 places: the
leader, and at the hidden place the challenger of the newest page.

A plan that is kept moves its leader after every page, by the paper's pass (``follow``). A plan that is made again
derives it from production's ranking and the certified order (``renew``), and so does every plan if certificates have a
lifetime.
"""

from typing import Any

import numpy as np

from saferank._kernel import implements, kernel, seldom, verb
from saferank.policies.shared.derivation import CONTRADICTION, sort_pool
from saferank.randomness import Words, word
from saferank.statistics.duels import Decided, Duels, LifetimeDuels, begin_epoch, compared_enough, surely_better
from saferank.statistics.tournament import ABSENT, CANDIDATE, RANKED
from saferank.verbs import NO_ITEM, Call, Impression, Ints

STANDS, NEW_ORDER, NEW_BOTTOM = 0, 1, 2
"""What a pass did to the leader: nothing, moved items above the same bottom item, brought a new one."""

_LAST_BIT = np.uint64(63)


def bubble_parts(call: Call, n_items: int) -> dict[str, Any]:
    """The fields that the plans of both have, for this call; ``renew_leader`` fills them in."""
    base = call.base
    return {
        "base": base,
        "candidates": call.candidates,
        "row": np.append(base, base[-1:]),
        "open": np.ones(len(base), np.int64),
        "standing": np.full(n_items, ABSENT, np.int64),
        "pool": np.zeros(len(base) + len(call.candidates), np.uint32),
        "known": np.zeros(1, np.int64),
        "unsettled": np.zeros(1, np.int64),
    }


@kernel
def show_row(plan: Any, challenger: int, rng: Words, impression: Impression) -> None:
    """Draw a page: the leader followed by the challenger, undecided pairs swapped with probability 1/2.

    In odd rounds the first place stands alone and the pairs are (2,3), (4,5), ...; in even rounds (1,2), (3,4), ...
    A pair whose upper item is surely the better one keeps its order. One random word serves 64 pairs, its highest bit
    first.
    """
    row = plan.row
    places = len(row) - int(challenger == NO_ITEM)
    impression.places[0], impression.challenger[0] = places, challenger
    _place_alone(impression, 0, row[0])
    coins, upper = np.uint64(0), impression.round[0] & 1
    while upper + 1 < places:
        if (upper >> 1) & 63 == 0:
            coins = word(rng)
        _place_pair(impression, upper, row[upper], row[upper + 1], np.int64(coins >> _LAST_BIT) & plan.open[upper])
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


# --- the leader moves ---


@kernel
def _mark_open(policy: Any, evidence: Any, plan: Any) -> None:
    """Note for every place of the leader whether its item and the next one are still to be compared both ways."""
    for place in range(len(plan.row) - 2):
        decided = compared_enough(evidence.duels, policy.lead_needed, plan.row[place], plan.row[place + 1])
        plan.open[place] = int(not decided)


@kernel
def _bubble_up(policy: Any, evidence: Any, plan: Any) -> int:
    """One pass down the leader, in place: an item that surely beats the one above moves up.

    Returns what it did to the leader.
    """
    row, moved = plan.row, STANDS
    last = len(row) - 2
    for place in range(last):
        if surely_better(evidence.duels, policy.lead_needed, row[place + 1], row[place]):
            row[place], row[place + 1] = row[place + 1], row[place]
            moved = NEW_BOTTOM if place + 1 == last else max(moved, NEW_ORDER)
    return moved


@kernel
def _unseats(policy: Any, evidence: Any, plan: Any, challenger: int, bottom: int) -> bool:
    """True when the challenger of a page, if still unranked, surely beats the bottom item."""
    if challenger == NO_ITEM or not surely_better(evidence.duels, policy.lead_needed, challenger, bottom):
        return False
    return bool(plan.standing[challenger] == CANDIDATE)


@verb
def follow_certainty(duels: Any, policy: Any, evidence: Any, plan: Any, challenger: int) -> int:
    """Move the leader to where certainty has it: the body of ``promote``, for every kind of duels."""
    raise NotImplementedError


@kernel
def promote(policy: Any, evidence: Any, plan: Any, challenger: int) -> int:
    """The pass over the leader followed by the challenger; returns STANDS, NEW_ORDER or NEW_BOTTOM."""
    if plan.known[0] != evidence.changes[0]:
        plan.known[0], plan.unsettled[0] = evidence.changes[0], 1
    return follow_certainty(evidence.duels, policy, evidence, plan, challenger)


@implements(follow_certainty, Duels)
def _pass_over_leader(duels: Duels, policy: Any, evidence: Any, plan: Any, challenger: int) -> int:
    """A pass over a leader that the last pass left alone can only find something new when a pair was decided since.

    That is what ``unsettled`` remembers.
    """
    unsettled, moved = plan.unsettled[0], STANDS
    if unsettled:
        moved = _bubble_up(policy, evidence, plan)
    bottom = plan.row[-2]
    if _unseats(policy, evidence, plan, challenger, bottom):
        plan.row[-2] = challenger
        plan.standing[challenger], plan.standing[bottom] = RANKED, CANDIDATE
        moved = NEW_BOTTOM
    if unsettled or moved:
        _mark_open(policy, evidence, plan)
    plan.unsettled[0] = moved
    return moved


@implements(follow_certainty, LifetimeDuels)
def _follow_certificates(duels: LifetimeDuels, policy: Any, evidence: Any, plan: Any, challenger: int) -> int:
    """With a lifetime: derived again if the certificates have changed."""
    if plan.unsettled[0] == 0:
        return STANDS
    return renew_leader(policy, evidence, plan)


# --- the leader is derived ---


@verb
def sort_by_certainty(duels: Any, policy: Any, plan: Any) -> int:
    """Sort the pool of a plan as far as it is certain; see ``sort_pool``."""
    raise NotImplementedError


@implements(sort_by_certainty, Duels)
def _sort_by_wins(duels: Duels, policy: Any, plan: Any) -> int:
    return sort_pool(Decided(duels, policy.lead_needed), plan.pool, len(plan.base), len(plan.pool))


@implements(sort_by_certainty, LifetimeDuels)
def _sort_by_certificates(duels: LifetimeDuels, policy: Any, plan: Any) -> int:
    return sort_pool(duels.closure, plan.pool, len(plan.base), len(plan.pool))


@kernel
def _fill_pool(plan: Any) -> None:
    """Production's ranking, then the candidates in item order."""
    size = len(plan.base)
    for item in range(len(plan.standing)):
        plan.standing[item] = ABSENT
    for place in range(len(plan.candidates)):
        plan.standing[plan.candidates[place]] = CANDIDATE
    for place in range(size):
        plan.pool[place] = plan.base[place]
        plan.standing[plan.base[place]] = RANKED
    for item in range(len(plan.standing)):
        if plan.standing[item] == CANDIDATE:
            plan.pool[size] = item
            size += 1


@seldom
def renew_leader(policy: Any, evidence: Any, plan: Any) -> int:
    """Derive the leader from production's ranking and the certified order; returns what that did to the one before.

    Distant pairs are exchanged too: of an item that rose through its neighbours only the certificate over its present
    neighbour is earned again. If the certified order contradicts itself, production's ranking leads.
    """
    n_positions, bottom, moved = len(plan.base), plan.row[-2], STANDS
    plan.known[0], plan.unsettled[0] = evidence.changes[0], 0
    _fill_pool(plan)
    if sort_by_certainty(evidence.duels, policy, plan) == CONTRADICTION:
        _fill_pool(plan)
    for place in range(len(plan.pool)):
        plan.standing[plan.pool[place]] = RANKED if place < n_positions else CANDIDATE
    for place in range(n_positions):
        if plan.row[place] != plan.pool[place]:
            moved = NEW_ORDER
        plan.row[place] = plan.pool[place]
    _mark_open(policy, evidence, plan)
    return moved if plan.row[-2] == bottom else NEW_BOTTOM


def leader_of(evidence: Any, plan: Any) -> Ints:
    """The leader of a plan with a row."""
    return plan.row[:-1].astype(np.int64)  # type: ignore[no-any-return]


# --- epochs ---


@verb
def turn_epoch(duels: Any, evidence: Any, issued: int) -> bool:
    """Begin the epoch of the next page; True when another one began."""
    raise NotImplementedError


@implements(turn_epoch, Duels)
def _keep_all(duels: Duels, evidence: Any, issued: int) -> bool:
    """Duels that are never forgotten have no epochs."""
    return False


@implements(turn_epoch, LifetimeDuels)
def _turn_epoch(duels: LifetimeDuels, evidence: Any, issued: int) -> bool:
    before = duels.epoch[0]
    if not begin_epoch(duels, issued):
        return False
    evidence.changes[0] += (duels.epoch[0] - before) // duels.epoch[1]  # however many are begun at once
    return True


@verb
def pages_before(duels: Any) -> int:
    """The pages that were issued before the present epoch began."""
    raise NotImplementedError


@implements(pages_before, Duels)
def _none_before(duels: Duels) -> int:
    return 0


@implements(pages_before, LifetimeDuels)
def _before_epoch(duels: LifetimeDuels) -> int:
    return int(duels.epoch[0])
