r"""Watch the orders on pages that were clicked: an alarm when an item stands higher more often than it was drawn to.

Whoever calls twice and keeps the page they like, or reports clicks for some pages only, makes the pages that come back
differ from those that were drawn. Clicks alone do that, too: a page with the better item on top is clicked more often.
So the test looks below the *first click* of a page only. Users look from the top down (position-based, cascade and
dependent click models), so a click does not depend on the order of two items further down. Given where the first click
was, two items at two places below it (the second may be hidden) stand as they do with probability

    p0 = Q(page) / (Q(page) + Q(page with the two exchanged)),

the odds that the page carries. Each item bets on standing higher, or lower, than that: for a shift t of the log-odds

    factor = e^t / (p e^t + 1 - p)  when it is the upper one,      1 / (p e^t + 1 - p)  when it is not,

where p is its chance to be the upper one. The product of factors over pages is a martingale with mean 1, and so is the
mean over the shifts. It exceeds ``MOST_ITEMS / ERROR`` for an item with probability ``ERROR / MOST_ITEMS`` at most, at
any time. One pair of places of a page is looked at, chosen by the page's id, which knows nothing of its order.
"""

import math
from collections.abc import Sequence

import numpy as np

from saferank.live.replay import LEARNT, Pages
from saferank.policies.safe_draw.draw import TARGET, odds_of_exchange
from saferank.service.knowledge.lessons import Laid, Lessons
from saferank.verbs import Floats, Impression, Ints

MOST_ITEMS = 256
"""Items of a context that are watched, those that came first."""
ERROR = 1e-6
"""The chance that honest reports ever raise an alarm in a context."""

SHIFTS = (-1.6, -0.8, -0.3, 0.3, 0.8, 1.6)
_GAINS = tuple(math.exp(shift) for shift in SHIFTS)
_LIMIT = math.log(MOST_ITEMS / ERROR)
_CLEAR = 1e-3
"""Orders with a chance below this, or above 1 minus this, are not bet on: they say next to nothing."""


class OrderWatch:
    """The bets of every item, as logarithms."""

    def __init__(self, bets: dict[str, list[float]] | None = None) -> None:
        self.bets: dict[str, list[float]] = {} if bets is None else bets

    def look_at(self, laid: Laid, lessons: Lessons, items: Sequence[object]) -> list[tuple[int, str]]:
        """Take in pages in display order; returns lessons and items that do not stand where they were drawn to."""
        (pages, numbers), found = laid, []
        rows, upper, lower = chosen_pairs(pages, numbers, lessons)
        chances = chances_of_orders(pages, rows, upper, lower)
        clear = (chances > _CLEAR) & (chances < 1.0 - _CLEAR)
        rows, upper, lower = rows[clear], upper[clear], lower[clear]
        higher, deeper = ([str(items[one]) for one in pages.ranking[rows, at].tolist()] for at in (upper, lower))
        won, lost = settled_bets(chances[clear])
        for row, *bets in zip(
            rows.tolist(), zip(higher, won, strict=True), zip(deeper, lost, strict=True), strict=True
        ):
            found += [(numbers[row], item) for item, change in bets if self._add(item, change)]
        return found

    def _add(self, item: str, change: list[float]) -> bool:
        """True when the bets of an item have won; they begin again then."""
        bets = self.bets.get(item)
        if bets is None:
            if len(self.bets) >= MOST_ITEMS:
                return False
            bets = self.bets[item] = [0.0] * len(SHIFTS)
        for number, log in enumerate(change):
            bets[number] += log
        top = max(bets)
        if top < _LIMIT:  # the mean is not above the largest
            return False
        won = top + math.log(sum(math.exp(bet - top) for bet in bets) / len(bets)) >= _LIMIT
        if won:
            self.bets[item] = [0.0] * len(SHIFTS)
        return won


def settled_bets(chances: Floats) -> tuple[list[list[float]], list[list[float]]]:
    """What the bets of the upper and of the lower item change by, as logarithms, on pages with these probabilities.

    Logarithms are those of ``math``, one by one: knowledge must not depend on how many are taken at once.
    """
    chance, gain = chances[:, None], np.array(_GAINS)
    won, lost = chance * gain + 1.0 - chance, (1.0 - chance) * gain + chance
    logs = [np.array(list(map(math.log, part.ravel().tolist()))).reshape(part.shape) for part in (won, lost)]
    return (np.array(SHIFTS) - logs[0]).tolist(), (-logs[1]).tolist()


def chosen_pairs(pages: Pages, numbers: list[int], lessons: Lessons) -> tuple[Ints, Ints, Ints]:
    """Rows of drawn pages, and two places below the first click that the draw could have exchanged, upper one first."""
    rows = np.flatnonzero((pages.operation == LEARNT) & (pages.frozen == 1))
    first, size, places = pages.clicks[rows].argmax(axis=1), pages.clicks.shape[1], pages.places[rows]
    enough = (first + 1 < size) & (first + 2 < places) & (pages.clicks[rows].any(axis=1))
    rows, first, places = rows[enough], first[enough], places[enough]
    at = np.searchsorted(lessons.numbers, np.array(numbers, np.int64)[rows])
    draw = lessons.records.last_of_ids[at]
    one = first + 1 + draw % (size - first - 1)
    other = first + 1 + (draw >> 8) % (places - first - 2)
    other += other >= one
    upper, lower = np.minimum(one, other), np.maximum(one, other)
    exchanged = (lower < 62) & (pages.exchanges[rows, upper] >> np.minimum(lower, 61) & 1 == 1)
    return rows[exchanged], upper[exchanged], lower[exchanged]


def chances_of_orders(pages: Pages, rows: Ints, upper: Ints, lower: Ints) -> Floats:
    """The probability of each page, given it or the page with the items of two places exchanged."""
    pairs = zip(rows.tolist(), upper.tolist(), lower.tolist(), strict=True)
    return np.array([chance_of_order(pages, *pair) for pair in pairs])


def chance_of_order(pages: Pages, row: int, upper: int, lower: int) -> float:
    """The probability of the page, given it or the page with the items of two places exchanged."""
    impression = Impression(
        round=pages.round[row : row + 1], ranking=pages.ranking[row], start=pages.start[row], end=pages.end[row],
        places=pages.places[row : row + 1], challenger=pages.challenger[row : row + 1], shown=pages.ranking[row],
        weight=pages.weight[row], exchanges=pages.exchanges[row], frozen=pages.frozen[row : row + 1],
    )  # fmt: skip
    has_target = bool(int(pages.exchanges[row].max()) & TARGET)
    return float(odds_of_exchange(impression, pages.clicks.shape[1], (upper, lower), has_target))
