"""The pairs that were compared, for people; whatever evidence the policy keeps."""

from typing import NamedTuple

import numpy as np

from saferank.live.learner import Learner
from saferank.service.knowledge.certified import Certified
from saferank.statistics.pairs import items_of_rows, wins_by_row
from saferank.verbs import Ints

Compared = list[tuple[str, str, int, int]]
"""Pairs (leading item, other, s, n)."""


def compared(learner: Learner, most: int) -> Compared:
    """Pairs with comparisons, at most ``most``, the leading item first; in the order of the items' numbers."""
    low, high, first, second = (column[:most].tolist() for column in _table(learner))
    names = [(str(learner.items[i]), str(learner.items[j])) for i, j in zip(low, high, strict=True)]
    return [
        (one, other, a - b, a + b) if a >= b else (other, one, b - a, a + b)
        for (one, other), a, b in zip(names, first, second, strict=True)
    ]


class PairProgress(NamedTuple):
    """How far the pairs of a context have come, in numbers that a list of thousands of contexts can afford."""

    compared: int = 0  # pairs with comparisons
    decided: int = 0  # certificates that hold
    lead: int = 0  # of the undecided pair that is nearest to a decision ...
    comparisons: int = 0  # ... and how often it was compared; 0: no undecided pair was compared

    @property
    def progress(self) -> float:
        """How near that pair is. Leads grow like n and the lead that is needed like sqrt(n), so s^2 / n decides.

        Two more comparisons are assumed to be level: one lucky click is no lead.
        """
        return self.comparisons * (self.lead / (self.comparisons + 2)) ** 2


def race(learner: Learner, certified: Certified) -> PairProgress:
    """The race of a context. It does not depend on the order in which the learner keeps its pairs."""
    low, high, first, second = _table(learner)
    n, s = first + second, np.abs(first - second)
    order = np.lexsort((n, n * (s / (n + 2)) ** 2))[::-1].tolist()
    for at in order:
        one, other = int(low[at]), int(high[at])
        if not certified.surely(one, other) and not certified.surely(other, one):
            return PairProgress(len(n), len(certified.pairs), int(s[at]), int(n[at]))
    return PairProgress(len(n), len(certified.pairs))


def _table(learner: Learner) -> tuple[Ints, Ints, Ints, Ints]:
    """The pairs with comparisons, in the order of their items: both items, wins of the first, wins of the second."""
    duels = learner.evidence.duels
    rows = np.flatnonzero(wins_by_row(duels).any(axis=1))
    low, high = items_of_rows(duels, rows)
    order = np.lexsort((high, low))
    wins = wins_by_row(duels)[rows[order]]
    return low[order], high[order], wins[:, 0], wins[:, 1]
