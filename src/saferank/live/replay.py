"""Replay: many pages of a log folded into a state in one compiled call.

The state of a live policy is the fold of two operations over its log: a page was issued, and the clicks of a page were
learnt. ``fold`` carries out a run of them and stops where a caller may want to look: after a learning that gave or
dropped a certificate, and when the state has no room. It works for every policy whose state has certificates.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies import advance, count_issued, has_room
from saferank.verbs import Floats, Impression, Ints, Items, learn

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
    weight: Floats  # [operation, place] of a page that was drawn
    exchanges: Ints  # [operation, place]
    frozen: Ints  # 1 when exchanges is filled in
    clicks: Ints  # [operation, position]


def new_pages(size: int, n_positions: int, n_places: int | None = None) -> Pages:
    """Room for ``size`` operations; without ``n_places`` a page compares the shown items and one hidden."""
    shape = (size, n_positions + 1 if n_places is None else n_places)
    return Pages(
        operation=np.zeros(size, np.int64),
        round=np.zeros(size, np.int64),
        ranking=np.zeros(shape, np.uint32),
        start=np.zeros(shape, np.int64),
        end=np.zeros(shape, np.int64),
        places=np.zeros(size, np.int64),
        challenger=np.zeros(size, np.int64),
        weight=np.zeros(shape),
        exchanges=np.zeros(shape, np.int64),
        frozen=np.zeros(size, np.int64),
        clicks=np.zeros((size, n_positions), np.int64),
    )


class Desk(NamedTuple):
    """Where one page at a time is laid out."""

    impression: Impression
    clicks: Ints


@kernel
def _lay_out(pages: Pages, number: int, desk: Desk) -> None:
    impression = desk.impression
    impression.round[0], impression.places[0] = pages.round[number], pages.places[number]
    impression.challenger[0], impression.frozen[0] = pages.challenger[number], pages.frozen[number]
    for place in range(pages.places[number]):
        impression.ranking[place] = pages.ranking[number, place]
        impression.start[place], impression.end[place] = pages.start[number, place], pages.end[number, place]
        impression.weight[place] = pages.weight[number, place]
        impression.exchanges[place] = pages.exchanges[number, place]
    for position in range(len(desk.clicks)):
        desk.clicks[position] = pages.clicks[number, position]


@kernel
def fold(policy: Any, state: Any, pages: Pages, desk: Desk, first: int) -> int:
    """Carry out the operations from ``first`` on; the number of the first one that was not carried out."""
    for number in range(first, len(pages.operation)):
        if pages.operation[number] == ISSUED:
            advance(policy, state)
            count_issued(policy, state, 1)
            continue
        if not has_room(policy, state):
            return number
        certificates = state.duels.certificates
        given, alarms = certificates.given[0], certificates.alarms[0]
        _lay_out(pages, number, desk)
        learn(policy, state, desk.impression, desk.clicks)
        if certificates.given[0] != given or certificates.alarms[0] != alarms:
            return number + 1
    return len(pages.operation)
