"""What is done to the state of a live policy, one operation after the other, in one compiled call.

A page is chosen; a page of a log was issued; the clicks of a page are learnt; an epoch begins. ``carrying_out`` does a
run of them and stops where a caller may want to look: after a learning that gave or dropped a certificate, and when the
state has no room. Ranker, replay and service all do their work here: one kernel for each policy.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, specialised
from saferank.memory import bound, unpacked
from saferank.policies import advance, count_issued, freeze, has_room
from saferank.randomness import Words
from saferank.statistics.certificates import new_certificates
from saferank.verbs import Floats, Impression, Ints, Items, choose, learn, new_impression

ISSUED, ADVANCED, LEARNT, CHOSEN = range(4)


class Pages(NamedTuple):
    """Operations in the order of the log. Only rows of LEARNT operations need more than the operation."""

    operation: Ints
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
    """Where one page at a time is laid out, what it is drawn from, and how far the work is."""

    impression: Impression
    clicks: Ints
    words: Words  # from which pages are chosen
    done: Ints  # [2] operations that are done; 1 when there is room for another page


def new_desk(n_positions: int, n_places: int) -> Desk:
    """A desk with nothing on it."""
    page = new_impression(n_positions, n_places)
    return Desk(page, np.zeros(n_positions, np.int64), np.zeros(4, np.uint64), np.zeros(2, np.int64))


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
def _carry_out(policy: Any, state: Any, given: Ints, alarms: Ints, pages: Pages, desk: Desk) -> None:
    for number in range(desk.done[0], len(pages.operation)):
        operation = pages.operation[number]
        if operation == LEARNT and not has_room(policy, state):
            break
        desk.done[0] = number + 1
        if operation <= ADVANCED:  # or ISSUED
            advance(policy, state)
        if operation == ISSUED:
            count_issued(policy, state, 1)
        elif operation == CHOSEN:
            choose(policy, state, desk.words, desk.impression)
            freeze(policy, state, desk.impression)
        elif operation == LEARNT:
            certified, dropped = given[0], alarms[0]
            _lay_out(pages, number, desk)
            learn(policy, state, desk.impression, desk.clicks)
            if given[0] != certified or alarms[0] != dropped:
                break
    desk.done[1] = int(has_room(policy, state))


@kernel
def _carry_out_from(kinds: Any, table: Ints) -> None:
    policy, state, given, alarms, pages, desk = unpacked(kinds, table)
    _carry_out(policy, state, given, alarms, pages, desk)


_NO_CERTIFICATES = new_certificates(0)


def carrying_out(policy: Any, state: Any, pages: Pages, desk: Desk) -> Callable[[], None]:
    """A function that carries out the operations that are not done, whenever it is called, with little cost."""
    certificates = getattr(getattr(state, "duels", None), "certificates", _NO_CERTIFICATES)
    plain = specialised(_carry_out, type(policy), type(state))
    return bound(_carry_out_from, plain, policy, state, certificates.given, certificates.alarms, pages, desk)


class Worker:
    """Carries out one operation at a time on a state."""

    def __init__(self, policy: Any, state: Any, n_positions: int, n_places: int) -> None:
        self._policy, self._state, self._size = policy, state, (n_positions, n_places)
        self._pages, self._desk = new_pages(1, n_positions, n_places), new_desk(n_positions, n_places)
        self._carry_out = carrying_out(policy, state, self._pages, self._desk)

    def fits(self, policy: Any, state: Any, n_positions: int, n_places: int) -> bool:
        """True when it works on this very state, for pages of this size."""
        return policy is self._policy and state is self._state and self._size == (n_positions, n_places)

    def do(self, operation: int) -> None:
        """Carry out an operation."""
        self._pages.operation[0], self._desk.done[0] = operation, 0
        self._carry_out()

    def choose(self, rng: Words) -> Impression:
        """A page."""
        desk, page = self._desk, new_impression(*self._size)
        _copy_page(page, desk.impression)
        desk.words[:] = rng
        self.do(CHOSEN)
        rng[:] = desk.words
        _copy_page(desk.impression, page)
        return page

    def learn(self, impression: Impression, clicks: Ints) -> tuple[bool, bool]:
        """Learn the clicks of a page, if there is room: whether it was learnt, and if there is room for another."""
        for name in Impression._fields:
            if name != "shown":
                array = getattr(impression, name)
                getattr(self._pages, name).reshape(-1)[: len(array)] = array
        self._pages.clicks[0] = clicks
        self.do(LEARNT)
        return bool(self._desk.done[0]), bool(self._desk.done[1])


def _copy_page(source: Sequence[NDArray[Any]], target: Sequence[NDArray[Any]]) -> None:
    for mine, theirs in zip(target, source, strict=True):
        mine[...] = theirs
