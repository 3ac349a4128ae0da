r"""The plans of safe-draw for small catalogues: a working order, and from it the weights of the draw.

A plan serves 16 pages, or until a certificate. It begins at the reference R, the ranking with the smallest worst case
that certificates give, and follows the evidence E as far as the worst case W allows. Then every item gets a fall
lambda >= 0 below the first one, and the weight exp(-lambda):

    down the working order   lambda grows by max(0.5, gap(E(upper, lower)))
    an item outside          lambda of the last one, and max(0.8, gap(E(last, item)))

with gap(E) = log(Phi(z) / Phi(-z)), z = sqrt(2 E): a pair is shown in the unlikely order about as often as that order
is still likely. Where the limit of W stands in the way of what the evidence wants to try, half of the plans are *flat*:
they start from an order with reserve, and put one item from outside on a level with the last two. What is decided
here and why is in docs/policies/safe-draw.md.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.constants import (
    FLAT,
    FLAT_CERTAIN,
    FLAT_OUTSIDE,
    FLAT_SHARE,
    LEADS,
    PAGES_OF_A_PLAN,
    RATE_SHARE,
    RESERVE,
    RESERVE_SHARE,
    STEP,
    STEP_OUTSIDE,
)
from saferank.policies.safe_draw.draw import draw_one, sum_of
from saferank.policies.safe_draw.renewals import choose_target
from saferank.policies.safe_draw.trust import faded, prior_of
from saferank.randomness import Words, uniform
from saferank.safety.worst_case import Possible, at_most, is_certain, page_code, worst_case
from saferank.statistics.bets import evidence, gap
from saferank.statistics.epochs import has_epochs, is_settled
from saferank.statistics.rates import rate_evidence
from saferank.verbs import NOBODY, Floats, Ints


class DrawPlan(NamedTuple):
    """What the next pages are drawn from, and room to make another plan."""

    pages: Ints  # [1] how many more pages it serves
    flat: Ints  # [1] 1 for a flat plan
    order: Ints  # by place: the working order, in seats
    inside: Ints  # by seat: 1 in the working order
    fall: Floats  # by seat: lambda
    seats: Ints  # the seats in the order of their numbers in the draw: the working order, then the others
    items: Ints  # by number in the draw
    weight: Floats  # by number in the draw
    total: Floats  # [1] the sum of the weights
    left: Floats  # scratch, by number in the draw
    page: Ints  # the newest page, in seats
    trial: Ints  # scratch
    place: Ints  # scratch, by seat
    rival: Ints  # scratch: the places with which one is compared
    odds: Floats  # scratch: at which odds
    tails: Floats  # scratch
    evidence: Floats  # [seat, seat]
    prior: Floats  # [2] scratch: see ``trust.py``


def new_plan(n_seats: int, n_positions: int) -> DrawPlan:
    """For no page: the first page makes a plan."""
    return DrawPlan(
        pages=np.zeros(1, np.int64),
        flat=np.zeros(1, np.int64),
        order=np.arange(n_positions),
        inside=np.zeros(n_seats, np.int64),
        fall=np.zeros(n_seats),
        seats=np.arange(n_seats),
        items=np.zeros(n_seats, np.int64),
        weight=np.ones(n_seats),
        total=np.full(1, float(n_seats)),
        left=np.zeros(n_seats),
        page=np.arange(n_positions),
        trial=np.zeros(n_positions, np.int64),
        place=np.zeros(n_seats, np.int64),
        rival=np.zeros(n_seats, np.int64),
        odds=np.zeros(n_seats),
        tails=np.zeros(n_positions),
        evidence=np.zeros((n_seats, n_seats)),
        prior=np.array([0.5, 0.0]),
    )


class Board(NamedTuple):
    """What plans are made of besides evidence: a part of the state, the same whatever the form of the policy."""

    plan: DrawPlan
    possible: Possible
    item: Ints  # by seat
    reference: Ints  # by place, in seats: R
    worst: Ints  # [1] W(R)


@kernel
def board_of(state: Any) -> Board:
    """The board of a state. Kernels that take it are compiled once, and faster than those that take a whole state."""
    return Board(state.plan, state.possible, state.item, state.reference, state.worst)


@seldom
def _weigh_evidence(policy: Any, state: Any) -> None:
    """Fill in the evidence of every pair of seats: E, and the prior where production has an opinion of the two."""
    table, most, duels = state.plan.evidence, state.duels.levels[1], state.duels
    prior = prior_of(policy.trust, state.plan.prior)
    for x in range(len(state.item)):
        for z in range(x):
            i, j = state.item[x], state.item[z]
            if is_settled(duels, i, j):
                e = most
            elif is_settled(duels, j, i):
                e = -most
            else:
                e = evidence(duels, i, j) + RATE_SHARE * rate_evidence(state.rates, i, j)
                if z < len(state.base):  # seats are in production's order
                    e -= faded(prior, state.trust, i, j)
                e = min(most, max(-most, e))
            table[x, z], table[z, x] = e, -e


@kernel
def _enter(board: Board, x: int, most: int) -> int:
    """Let an outside seat replace the lowest one it leads; 1: done, 0: it leads none, -1: refused by the limit."""
    plan = board.plan
    for step in range(len(plan.order)):
        place = len(plan.order) - 1 - step
        other = plan.order[place]
        if plan.evidence[x, other] > LEADS:
            plan.order[place] = x
            if at_most(board.possible, page_code(plan.order), most):
                plan.inside[x], plan.inside[other] = 1, 0
                return 1
            plan.order[place] = other
            return -1
    return 0


@kernel
def _rise(board: Board, place: int, most: int) -> int:
    """Exchange a place and the next one if the lower one leads; 1: done, 0: it does not, -1: refused by the limit."""
    order = board.plan.order
    upper, lower = order[place], order[place + 1]
    if board.plan.evidence[lower, upper] <= LEADS:
        return 0
    order[place], order[place + 1] = lower, upper
    if at_most(board.possible, page_code(order), most):
        return 1
    order[place], order[place + 1] = upper, lower
    return -1


@seldom
def _work_out_order(board: Board, most: int) -> bool:
    """Follow the evidence from the reference on while W <= most, in at most K sweeps; True when something was refused.

    A sweep lets the outside seats enter in the order of their numbers, then goes down the places.
    """
    plan, refused = board.plan, False
    for seat in range(len(plan.inside)):
        plan.inside[seat] = 0
    for place in range(len(plan.order)):
        plan.order[place] = board.reference[place]
        plan.inside[plan.order[place]] = 1
    for _ in range(len(plan.order)):
        changed = False
        for seat in range(len(plan.inside)):
            outcome = 0 if plan.inside[seat] else _enter(board, seat, most)
            changed, refused = changed or outcome > 0, refused or outcome < 0
        for place in range(len(plan.order) - 1):
            outcome = _rise(board, place, most)
            changed, refused = changed or outcome > 0, refused or outcome < 0
        if not changed:
            break
    return refused


@kernel
def _refused_mass(board: Board) -> float:
    """How much of what the evidence would still try next is beyond the limit, at most 1.

    Tried next are the outside seats in the last place, and the exchanges of neighbours.
    """
    plan, limit, mass = board.plan, board.possible.limit[0], 0.0
    last, code = len(plan.order) - 1, page_code(plan.order)
    for x in range(len(plan.inside)):
        if not plan.inside[x] and not at_most(board.possible, code ^ ((x ^ plan.order[last]) << 4 * last), limit):
            mass += math.exp(-gap(plan.evidence[plan.order[last], x]))
    for place in range(last):
        upper, lower = plan.order[place], plan.order[place + 1]
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
def _fall_of_all(board: Board, hindered: bool) -> None:
    """An ordinary plan."""
    plan, order = board.plan, board.plan.order
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
def _flatten(board: Board, rng: Words) -> None:
    """Make the ordinary plan flat: the last two nearly equal, and one seat from outside equal to the better of them."""
    plan, order = board.plan, board.plan.order
    last = len(order) - 1
    if last > 0:
        upper, lower = order[last - 1], order[last]
        plan.fall[lower] = plan.fall[upper] + (FLAT_CERTAIN if is_certain(board.possible, upper, lower) else FLAT)
    for seat in range(len(plan.inside)):
        if not plan.inside[seat]:
            plan.fall[seat] = plan.fall[order[last]] + FLAT_OUTSIDE
    best = _best_outside(plan)
    if best < 0:
        return
    for seat in range(len(plan.inside)):
        plan.left[seat] = 0.0 if plan.inside[seat] else math.exp(-gap(plan.evidence[best, seat]))
    plan.fall[draw_one(rng, plan.left, len(plan.left))] = plan.fall[order[max(0, last - 1)]]


@kernel
def _note_weights(board: Board) -> None:
    """Number the seats for the draw, turn falls into weights and sum these."""
    plan, size = board.plan, len(board.plan.order)
    for place in range(size):
        plan.seats[place] = plan.order[place]
    for seat in range(len(plan.inside)):
        if not plan.inside[seat]:
            plan.seats[size] = seat
            size += 1
    for number in range(size):
        plan.items[number] = board.item[plan.seats[number]]
        plan.weight[number] = math.exp(-plan.fall[plan.seats[number]])
    plan.total[0] = sum_of(plan.weight, size)


@seldom
def make_plan(policy: Any, state: Any, rng: Words) -> None:
    """Work out the next plan from the evidence, and its target if certificates end."""
    renewal, duels = state.renewal, state.duels
    _weigh_evidence(policy, state)
    lay_plan(board_of(state), rng)
    renewal.target[0] = renewal.target[1] = NOBODY
    if has_epochs(duels) and not state.plan.flat[0]:
        choose_target(renewal, state.possible, state.seat, duels, page_code(state.plan.order), rng)


@seldom
def lay_plan(board: Board, rng: Words) -> None:
    """Work out the next plan from the table of evidence.

    Random numbers, in this order: one if some of what would be tried next is beyond the limit; one if the limit is in
    the way, for a flat plan, and another, for an order with reserve, if the plan is not flat but what would be tried
    next was refused by the first coin; in a flat plan one for the item from outside, if there is one.
    """
    plan, limit = board.plan, board.possible.limit[0]
    refused, flat = _work_out_order(board, limit), False
    mass = _refused_mass(board)
    starved = mass > 0.0 and uniform(rng) < mass
    hindered = refused or starved
    if hindered:
        flat = uniform(rng) < FLAT_SHARE
        if flat or (starved and uniform(rng) < RESERVE_SHARE):
            _work_out_order(board, max(board.worst[0], limit - RESERVE))
    _fall_of_all(board, hindered)
    if flat:
        _flatten(board, rng)
    _note_weights(board)
    plan.flat[0], plan.pages[0] = int(flat), PAGES_OF_A_PLAN


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
