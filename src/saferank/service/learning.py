"""Logged operations made ready for the compiled fold, and the evidence for what they changed."""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saferank.folding import ISSUED, LEARNT, Pages, new_pages
from saferank.learner import Learner
from saferank.service.pages import OpenPage, comparison
from saferank.statistics.duels import DENSE_LIMIT, HashedDuels, with_more_slots
from saferank.verbs import NOBODY

_MOST_EVIDENCE = 100

Evidence = list[tuple[str, str, int, int]]
"""Pairs (better, worse, s, n)."""


class Operation(NamedTuple):
    """A page that was issued (ISSUED) or whose clicks are to be learnt (LEARNT), and by which event."""

    kind: int
    page: OpenPage
    seq: int
    at: int


def as_pages(operations: Sequence[Operation], n_positions: int) -> Pages:
    """The operations as the fold takes them."""
    pages = new_pages(len(operations), n_positions)
    rows = [number for number, operation in enumerate(operations) if operation.kind == LEARNT]
    if rows:
        learnt = [operations[number].page for number in rows]
        _lay_out(pages, slice(None) if len(rows) == len(operations) else rows, learnt)
    return pages


def _lay_out(pages: Pages, rows: list[int] | slice, learnt: list[OpenPage]) -> None:
    """Put the pages to be learnt into their rows, all at once: a replay lays out a million."""
    width, n_positions = pages.ranking.shape[1], pages.clicks.shape[1]
    compared = [comparison(page.body) for page in learnt]
    extents = [_extents(page.group_ends, width) for page in compared]
    pages.operation[rows] = LEARNT
    pages.round[rows] = [page.round for page in compared]
    pages.places[rows] = [len(page.numbers) for page in compared]
    pages.ranking[rows] = [page.numbers + (0,) * (width - len(page.numbers)) for page in compared]
    pages.start[rows] = [starts for starts, _ in extents]
    pages.end[rows] = [ends for _, ends in extents]
    pages.challenger[rows] = [page.challenger for page in compared]
    size = (n_positions + 7) // 8
    bits = np.frombuffer(b"".join(page.clicks.to_bytes(size, "little") for page in learnt), np.uint8)
    pages.clicks[rows] = np.unpackbits(bits.reshape(-1, size), axis=1, count=n_positions, bitorder="little")


@functools.lru_cache(maxsize=1024)
def _extents(group_ends: bytes, width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first place and one past the last place of the group of every place."""
    starts, ends, start = [0] * width, [0] * width, 0
    for end in group_ends:
        starts[start:end], ends[start:end] = [start] * (end - start), [end] * (end - start)
        start = end
    return tuple(starts), tuple(ends)


def evidence(learner: Learner, old: Sequence[str], new: Sequence[str]) -> Evidence:
    """The decided pairs that are ordered one way in the old ranking and the other way in the new one."""
    places = {item: place for place, item in enumerate(old)}
    below = len(old)
    dropped = [item for item in old if item not in new]
    turned = [
        (better, worse)
        for better, worse in itertools.combinations([*new, *dropped], 2)
        if places.get(worse, below) < places.get(better, below) and learner.decided(better, worse)
    ]
    return [(better, worse, *learner.duel(better, worse)) for better, worse in turned[:_MOST_EVIDENCE]]


def certificates_given(learner: Learner) -> int:
    """How many pairs were declared decided so far."""
    return int(learner.state.duels.certificates.given[0])


def compared(learner: Learner, most: int) -> Evidence:
    """Pairs with comparisons, at most so many, the leading item first."""
    duels = learner.state.duels
    if isinstance(duels, HashedDuels):
        met = np.flatnonzero((duels.low >= 0) & (duels.wins.sum(axis=1) > 0))[:most]
        low, high, wins = duels.low[met], duels.high[met], duels.wins[met]
    else:
        low, high = (places[:most] for places in np.nonzero(np.triu(duels.wins + duels.wins.T, 1)))
        wins = np.stack([duels.wins[low, high], duels.wins[high, low]], axis=1)
    items = learner.items
    return [
        (str(items[i]), str(items[j]), won - lost, won + lost)
        if won >= lost
        else (str(items[j]), str(items[i]), lost - won, won + lost)
        for i, j, (won, lost) in zip(low.tolist(), high.tolist(), wins.tolist(), strict=True)
    ]


def random_words(coins: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """The random words of a page, from its 32 bytes."""
    return np.frombuffer(coins, np.uint64).copy()


def warm_up(policy: str, rule: str) -> None:
    """Compile or load every kernel that a call may need, for small catalogues and large ones: no caller waits for it.

    The learner is thrown away.
    """
    learner = Learner(policy, original=["a", "b"], candidates=["x"], rule=rule)
    _go_through(learner)
    learner.rebase(["b", "a"], [str(number) for number in range(DENSE_LIMIT)])
    _go_through(learner)
    with_more_slots(learner.state.duels)


def _go_through(learner: Learner) -> None:
    """A page, its clicks, another base ranking, and the questions that the dashboard asks."""
    learner.preview(random_words(bytes(range(32))))
    learner.issue(random_words(bytes(range(32))))
    pages = new_pages(2, 2)
    pages.operation[0] = ISSUED
    pages.operation[1], pages.round[1], pages.places[1], pages.clicks[1, 0] = LEARNT, 1, 2, 1
    pages.ranking[1, :2] = (0, 1)
    pages.end[1, :2], pages.challenger[1] = 2, NOBODY
    learner.fold(pages, 0)
    learner.rebase(["b", "a"], ["x"])
    learner.explain()
    learner.decided("a", "b")
