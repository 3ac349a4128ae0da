"""Pages without the comparisons that do not count, laid out for the compiled fold.

How a comparison is taken out depends on the law of its page:

* a page that was drawn names by place the exchanges that are learnt: the bits of the two places go;
* in groups a clicked item wins over every item of its group that was not clicked. An item of which no comparison is
  left gets a group of its own, which settles groups of two. If some comparisons of a larger group go and others stay,
  the page becomes one lesson for each clicked item, with those at the front that it still is compared with: within a
  group learning does not look at the order.

Which comparisons go depends on earlier pages of the visitor alone. To leave out a whole group would be wrong: whether
it holds a comparison that is known depends on which of its items was clicked, and so on the sign of the others.
"""

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank.live.replay import LEARNT, Pages
from saferank.service.knowledge.lessons import Laid, Lessons
from saferank.service.knowledge.visits.votes import VisitorComparisons, Votes, Words, marks_of
from saferank.verbs import Flags, Ints

_AT_ONCE = 1 << 20
"""Cells of a table of pages by pairs of places."""


def without_repeats(votes: Votes, laid: Laid, lessons: Lessons, items: Sequence[object]) -> Laid:
    """The operations without comparisons by visitors who have decided the pair before in this epoch."""
    pages, numbers = laid
    rows, visitors = _visits(pages, numbers, lessons)
    if not len(rows):
        return laid
    hashes = np.array([item_hash(str(item)) for item in items], np.uint64)
    compared = _compared(pages, rows, visitors, hashes)
    repeated = votes.repeated(compared)
    return _masked(laid, compared, repeated) if repeated.any() else laid


@functools.lru_cache(maxsize=1 << 16)
def item_hash(item: str) -> int:
    """What stands for an item in marks."""
    return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "little")


def _visits(pages: Pages, numbers: list[int], lessons: Lessons) -> tuple[Ints, Words]:
    """The rows to be learnt that have a known visitor, and who that is."""
    records = lessons.records
    known = records.has_source | records.has_visitor
    rows = np.flatnonzero(pages.operation == LEARNT)
    if not known.any():
        return rows[:0], records.visitor[:0]
    at = np.searchsorted(lessons.numbers, np.array(numbers, np.int64)[rows])
    keys = np.where(records.has_source, records.source, records.visitor)
    return rows[known[at]], keys[at][known[at]]


def _compared(pages: Pages, rows: Ints, visitors: Words, hashes: Words) -> VisitorComparisons:
    """The informative comparisons of pages."""
    step = max(1, _AT_ONCE // (pages.clicks.shape[1] * pages.ranking.shape[1]))
    found = []
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        at, clicked, other = np.nonzero(informative(pages, part))
        chosen = pages.ranking[part[at], clicked], pages.ranking[part[at], other]
        marks = marks_of(visitors[begin + at], hashes[chosen[0]] + hashes[chosen[1]])
        found.append(VisitorComparisons(part[at], clicked, other, marks))
    return VisitorComparisons(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def informative(pages: Pages, rows: Ints) -> Flags:
    """By page, place and place: the first was clicked, the second was not, and the page compares them."""
    clicks, width = pages.clicks[rows], pages.ranking.shape[1]
    size, place = clicks.shape[1], np.arange(width)
    clicked = np.zeros((len(rows), width), np.bool_)
    clicked[:, :size] = clicks
    differ = clicked[:, :size, None] & ~clicked[:, None, :] & (place < pages.places[rows, None])[:, None, :]
    start, end = pages.start[rows, :size, None], pages.end[rows, :size, None]
    grouped = (place >= start) & (place < end)
    drawn = pages.exchanges[rows, :size, None] >> np.minimum(place, 61) & 1 == 1
    return np.asarray(differ & np.where(pages.frozen[rows, None, None] == 1, drawn & (place < 62), grouped))


def _masked(laid: Laid, compared: VisitorComparisons, repeated: Flags) -> Laid:
    """A copy of the operations, without some comparisons."""
    pages, numbers = _chosen(laid[0], list(range(len(laid[1])))), laid[1]
    split: dict[int, dict[int, list[int]]] = {}  # by row and clicked place: what it is still compared with
    for row in np.unique(compared.row[repeated]).tolist():
        mine = slice(*np.searchsorted(compared.row, [row, row + 1]))
        triples = zip(compared.clicked[mine].tolist(), compared.other[mine].tolist(), repeated[mine], strict=True)
        if pages.frozen[row]:
            for clicked, other in [(a, b) for a, b, gone in triples if gone]:
                pages.exchanges[row, clicked] &= ~(1 << other)
                pages.exchanges[row, other] &= ~(1 << clicked)
        else:
            _trim(pages, row, list(triples), split)
    return _split(pages, numbers, split) if split else (pages, numbers)


def _chosen(pages: Pages, rows: list[int]) -> Pages:
    """A copy of some operations."""
    arrays: list[Any] = [array[rows] for array in pages]
    return Pages(*arrays)


def _trim(pages: Pages, row: int, triples: list[tuple[int, int, bool]], split: dict[int, dict[int, list[int]]]) -> None:
    """Take clicked items that are compared with nothing any more out of their groups; note what is left of others."""
    left: dict[int, list[int]] = {clicked: [] for clicked, _, _ in triples}
    before = dict.fromkeys(left, 0)
    for clicked, other, gone in triples:
        before[clicked] += 1
        left[clicked] += [] if gone else [other]
    for clicked, others in left.items():
        if not others:
            pages.start[row, clicked], pages.end[row, clicked] = clicked, clicked + 1
        elif len(others) < before[clicked]:
            split[row] = {winner: rest for winner, rest in left.items() if rest}


def _split(pages: Pages, numbers: list[int], split: dict[int, dict[int, list[int]]]) -> Laid:
    """Lessons of which a part is left become one lesson for each clicked item."""
    take = [row for row in range(len(numbers)) for _ in range(len(split.get(row, (0,))))]
    pages = _chosen(pages, take)
    at = np.searchsorted(take, sorted(split)).tolist()
    for first, row in zip(at, sorted(split), strict=True):
        for step, (winner, others) in enumerate(split[row].items()):
            _win(pages, first + step, winner, others)
    return pages, [numbers[row] for row in take]


def _win(pages: Pages, row: int, winner: int, others: list[int]) -> None:
    """A page on which one item was clicked, with those right behind it that it is compared with."""
    begin, end = int(pages.start[row, winner]), int(pages.end[row, winner])
    rest = [place for place in range(begin, end) if place != winner and place not in others]
    pages.ranking[row, begin:end] = pages.ranking[row, [winner, *others, *rest]]
    pages.clicks[row] = 0
    pages.clicks[row, begin] = 1
    pages.start[row, begin], pages.end[row, begin] = begin, begin + 1 + len(others)
