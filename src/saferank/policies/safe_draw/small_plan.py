r"""The plans of safe-draw for small catalogues: a working order, and from it the weights of the draw.

A plan is made of the evidence, without coins: again for every 16 pages that were learnt, and after a certificate. Its
working order begins at the reference R, the ranking with the smallest worst case that certificates give, and follows
the evidence E as far as the worst case W allows. Then every item gets a fall lambda >= 0 below the first one, and the
weight exp(-lambda):

    down the working order   lambda grows by max(0.5, gap(E(upper, lower)))
    an item outside          lambda of the last one, and max(0.8, gap(E(last, item)))

with gap(E) = log(Phi(z) / Phi(-z)), z = sqrt(2 E): a pair is shown in the unlikely order about as often as that order
is still likely. Where the limit of W stands in the way of what the evidence wants to try, half of the pages are *flat*:
they start from an order with reserve, and put one item from outside on a level with the last two. So a plan has up to
four *variants*, each with its weights and with the chance that a page is drawn from it: that is the page's first coin.
What is decided here and why is in docs/policies/safe-draw.md.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.appeal import appeal_evidence
from saferank.policies.safe_draw.constants import (
    FLAT,
    FLAT_CERTAIN,
    FLAT_OUTSIDE,
    FLAT_SHARE,
    LEADS,
    RATE_SHARE,
    RESERVE,
    RESERVE_SHARE,
    STEP,
    STEP_OUTSIDE,
)
from saferank.policies.safe_draw.draw import sum_of
from saferank.policies.safe_draw.renewals import find_target
from saferank.policies.safe_draw.trust import faded, prior_of
from saferank.safety.worst_case import Possible, at_most, is_certain, page_code, worst_case
from saferank.statistics.bets import evidence, gap
from saferank.statistics.epochs import has_epochs, is_settled
from saferank.verbs import NO_ITEM, Floats, Ints

ORDINARY, HINDERED, RESERVED, LEVEL = 0, 1, 2, 3
"""The variants of a plan. The last two are around the working order with reserve, and the last one is flat."""


class DrawPlan(NamedTuple):
    """What the next pages are drawn from, and room to make another plan and to draw."""

    order: Ints  # [2, place] the working order and the one with reserve, in seats
    chance: Floats  # [4] of a page to be drawn from a variant
    seats: Ints  # [2, number] by working order, the seats by their number in the draw: the order, then the others
    items: Ints  # [2, number] their items
    weight: Floats  # [4, number] by variant
    total: Floats  # [4] the sum of the weights
    level: Floats  # [number + 1] the chances of items outside to be the level one of a flat page, then its weight
    target: Ints  # [2] the seats of the pair that is exchanged now and then, NO_ITEM for none
    inside: Ints  # scratch, by seat: 1 in the working order
    fall: Floats  # scratch, by seat: lambda
    drawn: Floats  # [number] scratch: the weights of a flat page
    left: Floats  # scratch, by number
    page: Ints  # scratch: the newest page
    trial: Ints  # scratch
    place: Ints  # scratch, by seat
    evidence: Floats  # [seat, seat]
    prior: Floats  # [2] scratch: see ``trust.py``


def new_plan(n_seats: int, n_positions: int) -> DrawPlan:
    """For no page: the first page makes a plan."""
    return DrawPlan(
        order=np.tile(np.arange(n_positions), (2, 1)),
        chance=np.array([1.0, 0.0, 0.0, 0.0]),
        seats=np.tile(np.arange(n_seats), (2, 1)),
        items=np.zeros((2, n_seats), np.int64),
        weight=np.ones((4, n_seats)),
        total=np.full(4, float(n_seats)),
        level=np.zeros(n_seats + 1),
        target=np.full(2, NO_ITEM, np.int64),
        inside=np.zeros(n_seats, np.int64),
        fall=np.zeros(n_seats),
        drawn=np.zeros(n_seats),
        left=np.zeros(n_seats),
        page=np.arange(n_positions),
        trial=np.zeros(n_positions, np.int64),
        place=np.zeros(n_seats, np.int64),
        evidence=np.zeros((n_seats, n_seats)),
        prior=np.array([0.5, 0.0]),
    )


class Board(NamedTuple):
    """What the working orders are made of: a part of a plan."""

    plan: DrawPlan
    possible: Possible
    item: Ints  # by seat
    reference: Ints  # by place, in seats: R
    worst: Ints  # [1] W(R)


@kernel
def board_of(plan: Any) -> Board:
    """The board of a plan. Kernels that take it are compiled faster than those that take everything."""
    return Board(plan.draw, plan.possible, plan.item, plan.reference, plan.worst)


@seldom
def _weigh_evidence(policy: Any, known: Any, plan: Any) -> None:
    """Fill in the evidence of every pair of seats: E, and the prior where production has an opinion of the two."""
    table, most, duels = plan.draw.evidence, known.duels.levels[1], known.duels
    prior, since, left = prior_of(policy.trust, plan.draw.prior), -1, 0.0
    for x in range(len(plan.item)):
        for z in range(x):
            i, j = plan.item[x], plan.item[z]
            if is_settled(duels, i, j):
                e = most
            elif is_settled(duels, j, i):
                e = -most
            else:
                e = evidence(duels, i, j) + RATE_SHARE * appeal_evidence(known.appeal, i, j)
                if z < len(plan.base):  # seats are in production's order
                    came = max(known.trust.came[i], known.trust.came[j])
                    if came != since:  # of most pairs it is the same, and exponentials are slow
                        since, left = came, faded(prior, known.trust, i, j)
                    e -= left
                e = min(most, max(-most, e))
            table[x, z], table[z, x] = e, -e


@kernel
def _enter(board: Board, order: Ints, x: int, most: int) -> int:
    """Let an outside seat replace the lowest one it leads; 1: done, 0: it leads none, -1: refused by the limit."""
    plan = board.plan
    for step in range(len(order)):
        place = len(order) - 1 - step
        other = order[place]
        if plan.evidence[x, other] > LEADS:
            order[place] = x
            if at_most(board.possible, page_code(order), most):
                plan.inside[x], plan.inside[other] = 1, 0
                return 1
            order[place] = other
            return -1
    return 0


@kernel
def _rise(board: Board, order: Ints, place: int, most: int) -> int:
    """Exchange a place and the next one if the lower one leads; 1: done, 0: it does not, -1: refused by the limit."""
    upper, lower = order[place], order[place + 1]
    if board.plan.evidence[lower, upper] <= LEADS:
        return 0
    order[place], order[place + 1] = lower, upper
    if at_most(board.possible, page_code(order), most):
        return 1
    order[place], order[place + 1] = upper, lower
    return -1


@seldom
def _work_out_order(board: Board, order: Ints, most: int) -> bool:
    """Follow the evidence from the reference on while W <= most, in at most K sweeps; True when something was refused.

    A sweep lets the outside seats enter in the order of their numbers, then goes down the places.
    """
    inside, refused = board.plan.inside, False
    for seat in range(len(inside)):
        inside[seat] = 0
    for place in range(len(order)):
        order[place] = board.reference[place]
        inside[order[place]] = 1
    for _ in range(len(order)):
        changed = False
        for seat in range(len(inside)):
            outcome = 0 if inside[seat] else _enter(board, order, seat, most)
            changed, refused = changed or outcome > 0, refused or outcome < 0
        for place in range(len(order) - 1):
            outcome = _rise(board, order, place, most)
            changed, refused = changed or outcome > 0, refused or outcome < 0
        if not changed:
            break
    return refused


@kernel
def _refused_mass(board: Board, order: Ints) -> float:
    """How much of what the evidence would still try next is beyond the limit, at most 1.

    Tried next are the outside seats in the last place, and the exchanges of neighbours.
    """
    plan, limit, mass = board.plan, board.possible.limit[0], 0.0
    last, code = len(order) - 1, page_code(order)
    for x in range(len(plan.inside)):
        if not plan.inside[x] and not at_most(board.possible, code ^ ((x ^ order[last]) << 4 * last), limit):
            mass += math.exp(-gap(plan.evidence[order[last], x]))
    for place in range(last):
        upper, lower = order[place], order[place + 1]
        if not at_most(board.possible, code ^ (upper ^ lower) * 17 << 4 * place, limit):
            mass += math.exp(-gap(plan.evidence[upper, lower]))
    return min(1.0, mass)


@kernel
def place_in(ranking: Ints, seat: int) -> int:
    """The place of a seat in a ranking, or the number of places."""
    for place in range(len(ranking)):
        if ranking[place] == seat:
            return place
    return len(ranking)


@kernel
def _has_above(board: Board, upper: int, lower: int) -> bool:
    """True when the reference has the first seat above the second, which may be hidden."""
    return place_in(board.reference, upper) < place_in(board.reference, lower)


@kernel
def _fall_within(board: Board, upper: int, lower: int, hindered: bool) -> float:
    """The fall between neighbours of the working order.

    Where the limit is in the way, a pair that the reference has the other way round is kept in play: what it costs is
    spent anyway.
    """
    fall = max(STEP, gap(board.plan.evidence[upper, lower]))
    kept_in_play = hindered and not _has_above(board, upper, lower) and not is_certain(board.possible, upper, lower)
    return min(fall, STEP_OUTSIDE) if kept_in_play else fall


@kernel
def _fall_outside(board: Board, last: int, seat: int, hindered: bool) -> float:
    """The fall from the last item of the working order to an item outside."""
    kept_in_play = hindered and _has_above(board, seat, last) and not is_certain(board.possible, last, seat)
    return STEP_OUTSIDE if kept_in_play else max(STEP_OUTSIDE, gap(board.plan.evidence[last, seat]))


@kernel
def _fall_of_all(board: Board, order: Ints, hindered: bool) -> None:
    """The falls of a variant that is not flat."""
    plan = board.plan
    last = order[len(order) - 1]
    plan.fall[order[0]] = 0.0
    for place in range(len(order) - 1):
        upper, lower = order[place], order[place + 1]
        plan.fall[lower] = plan.fall[upper] + _fall_within(board, upper, lower, hindered)
    for seat in range(len(plan.inside)):
        if not plan.inside[seat]:
            plan.fall[seat] = plan.fall[last] + _fall_outside(board, last, seat, hindered)


@kernel
def _best_outside(plan: DrawPlan) -> int:
    """The outside seat with the largest sum of evidence against all others, the first of equals; -1 without one."""
    best, largest = -1, -math.inf
    for x in range(len(plan.inside)):
        if plan.inside[x]:
            continue
        total = 0.0
        for z in range(len(plan.inside)):
            total += plan.evidence[x, z]
        if total > largest:
            best, largest = x, total
    return best


@kernel
def _flatten(board: Board, order: Ints) -> None:
    """Make the falls flat: the last two nearly equal. One seat from outside will be level with the better of them."""
    plan, last = board.plan, len(order) - 1
    if last > 0:
        upper, lower = order[last - 1], order[last]
        plan.fall[lower] = plan.fall[upper] + (FLAT_CERTAIN if is_certain(board.possible, upper, lower) else FLAT)
    for seat in range(len(plan.inside)):
        if not plan.inside[seat]:
            plan.fall[seat] = plan.fall[order[last]] + FLAT_OUTSIDE


@kernel
def _note_level(plan: DrawPlan, order: Ints) -> None:
    """How likely each number from outside is the level one of a flat page, and the weight that it gets."""
    best, size = _best_outside(plan), len(plan.inside)
    for number in range(size):
        seat = plan.seats[1, number]
        plan.level[number] = 0.0 if plan.inside[seat] else math.exp(-gap(plan.evidence[best, seat]))
    plan.level[size] = math.exp(-plan.fall[order[max(0, len(order) - 2)]])


@kernel
def _note_weights(board: Board, order: Ints, variant: int) -> None:
    """Number the seats for the draw, turn the falls into the weights of a variant and sum these."""
    plan, row, size = board.plan, variant // 2, len(order)
    for place in range(size):
        plan.seats[row, place] = order[place]
    for seat in range(len(plan.inside)):
        if not plan.inside[seat]:
            plan.seats[row, size] = seat
            size += 1
    for number in range(size):
        plan.items[row, number] = board.item[plan.seats[row, number]]
        plan.weight[variant, number] = math.exp(-plan.fall[plan.seats[row, number]])
    plan.total[variant] = sum_of(plan.weight[variant], size)


@seldom
def make_plan(policy: Any, known: Any, plan: Any) -> None:
    """Work out weights from the evidence, and the target if certificates end."""
    draw, duels = plan.draw, known.duels
    _weigh_evidence(policy, known, plan)
    _lay_plan(board_of(plan))
    draw.target[0] = draw.target[1] = NO_ITEM
    if has_epochs(duels):
        find_target(plan.renewal, plan.possible, plan.seat, duels, page_code(draw.order[0]), draw.target)


@seldom
def _lay_plan(board: Board) -> None:
    """Work out the variants of the next plan, and their chances, from the table of evidence.

    A page is *starved* with a probability, the mass of what would be tried next and is beyond the limit. It is hindered
    if it is starved or something was refused. Half of the hindered pages are flat; a quarter of the others, if starved,
    have reserve.
    """
    plan, limit, order = board.plan, board.possible.limit[0], board.plan.order[0]
    refused = _work_out_order(board, order, limit)
    starved = _refused_mass(board, order)
    hindered = 1.0 if refused else starved
    plan.chance[LEVEL] = hindered * FLAT_SHARE
    plan.chance[RESERVED] = starved * (1.0 - FLAT_SHARE) * RESERVE_SHARE
    plan.chance[HINDERED] = hindered - plan.chance[LEVEL] - plan.chance[RESERVED]
    plan.chance[ORDINARY] = 1.0 - hindered
    _fall_of_all(board, order, False)
    _note_weights(board, order, ORDINARY)
    if hindered > 0.0:
        _fall_of_all(board, order, True)
        _note_weights(board, order, HINDERED)
        order = plan.order[1]
        _work_out_order(board, order, max(board.worst[0], limit - RESERVE))
        _fall_of_all(board, order, True)
        _note_weights(board, order, RESERVED)
        _flatten(board, order)
        _note_weights(board, order, LEVEL)
        if len(order) < len(plan.inside):
            _note_level(plan, order)


@seldom
def _moved(board: Board, winner: int, loser: int, move: int) -> bool:
    """Write into ``trial`` the reference with a certified pair put right; False where the move does not apply.

    The moves: the winner directly above the loser; the two exchanged; the loser directly below the winner.
    """
    trial, size = board.plan.trial, len(board.reference)
    here, there = place_in(board.reference, winner), place_in(board.reference, loser)
    if there >= here or (move == 2 and here == size):
        return False
    for place in range(size):
        trial[place] = board.reference[place]
    if move == 0:
        for step in range(min(here, size - 1) - there):
            place = min(here, size - 1) - step
            trial[place] = trial[place - 1]
    elif move == 1 and here < size:
        trial[here] = loser
    elif move == 2:
        for place in range(there, here):
            trial[place] = trial[place + 1]
        trial[here] = loser
    if move < 2:
        trial[there] = winner
    return True


@seldom
def improve_reference(board: Board) -> None:
    """Lower W(R) by putting certified pairs right, pair by pair and move by move, until nothing helps any more."""
    possible, n_seats, improved = board.possible, len(board.possible.better), True
    board.worst[0] = worst_case(possible, page_code(board.reference))
    while improved:
        improved = False
        for pair in range(n_seats * n_seats):
            winner, loser = pair // n_seats, pair % n_seats
            if not is_certain(possible, winner, loser):
                continue
            for move in range(3):
                if not _moved(board, winner, loser, move):
                    continue
                worst = worst_case(possible, page_code(board.plan.trial))
                if worst < board.worst[0]:
                    improved, board.worst[0] = True, worst
                    for place in range(len(board.reference)):
                        board.reference[place] = board.plan.trial[place]
