"""Replay: many pages of a log folded into a state in one compiled call.

The state of a live policy is the fold of two operations over its log: a page was issued, and the clicks of a page were
learnt. ``fold`` carries out a run of them and stops where somebody wants to look: after a learning that moved the
leader or gave a certificate, and when the state has no room.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies import count_issued, has_room
from saferank.verbs import Impression, Ints, Items, learn

ISSUED, LEARNT = 0, 1


class Pages(NamedTuple):
    """Operations in the order of the log. Rows of ISSUED operations need nothing but the operation."""

    operation: Ints  # ISSUED or LEARNT
    round: Ints  # of the page
    ranking: Items  # [operation, place]
    start: Ints  # [operation, place] first place of the place's group
    end: Ints  # [operation, place] one past its last
    places: Ints  # how many places are in use
    challenger: Ints  # item or NOBODY
    clicks: Ints  # [operation, position]


def new_pages(size: int, n_positions: int) -> Pages:
    """Room for ``size`` operations of a policy that compares the shown items and one hidden."""
    shape = (size, n_positions + 1)
    return Pages(
        operation=np.zeros(size, np.int64),
        round=np.zeros(size, np.int64),
        ranking=np.zeros(shape, np.uint32),
        start=np.zeros(shape, np.int64),
        end=np.zeros(shape, np.int64),
        places=np.zeros(size, np.int64),
        challenger=np.zeros(size, np.int64),
        clicks=np.zeros((size, n_positions), np.int64),
    )


class Desk(NamedTuple):
    """Where one page at a time is laid out."""

    impression: Impression
    clicks: Ints
    leader: Ints  # as it was before the page


@kernel
def _lay_out(pages: Pages, number: int, desk: Desk) -> None:
    impression = desk.impression
    impression.round[0], impression.places[0] = pages.round[number], pages.places[number]
    impression.challenger[0] = pages.challenger[number]
    for place in range(pages.places[number]):
        impression.ranking[place] = pages.ranking[number, place]
        impression.start[place], impression.end[place] = pages.start[number, place], pages.end[number, place]
    for position in range(len(desk.clicks)):
        desk.clicks[position] = pages.clicks[number, position]


@kernel
def _learnt_something(state: Any, desk: Desk, certificates: int) -> bool:
    moved = state.duels.certificates.given[0] != certificates
    for position in range(len(desk.leader)):
        moved |= desk.leader[position] != state.row[position]
        desk.leader[position] = state.row[position]
    return bool(moved)


@kernel
def fold(policy: Any, state: Any, pages: Pages, desk: Desk, first: int) -> int:
    """Carry out the operations from ``first`` on; the number of the first one that was not carried out.

    ``desk.leader`` must hold the present leader.
    """
    for number in range(first, len(pages.operation)):
        if pages.operation[number] == ISSUED:
            count_issued(policy, state, 1)
            continue
        if not has_room(policy, state):
            return number
        certificates = state.duels.certificates.given[0]
        _lay_out(pages, number, desk)
        learn(policy, state, desk.impression, desk.clicks)
        if _learnt_something(state, desk, certificates):
            return number + 1
    return len(pages.operation)
