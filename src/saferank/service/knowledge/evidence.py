"""The pairs that were compared, and those that a page turns round, for people; whatever evidence the policy keeps."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saferank.live.learner import Learner
from saferank.service.knowledge.certified import Certified
from saferank.verbs import Ints

Compared = list[tuple[str, str, int, int]]
"""Pairs (leading item, other, s, n)."""

_MOST_ASKED = 64
"""Without a table that can be searched, the pairs of so many items are asked for one by one."""


def compared(learner: Learner, most: int) -> Compared:
    """Pairs with comparisons, at most so many, the leading item first."""
    duels = _pairs(learner)
    wins = getattr(duels, "wins", None)
    if wins is not None and hasattr(duels, "low"):
        met = np.flatnonzero((duels.low >= 0) & (wins.sum(axis=1) > 0))[:most]
        numbers = list(zip(duels.low[met].tolist(), duels.high[met].tolist(), strict=True))
    elif wins is not None and wins.shape == (len(learner.items), len(learner.items)):
        low, high = np.nonzero(np.triu(wins + wins.T, 1))
        numbers = list(zip(low[:most].tolist(), high[:most].tolist(), strict=True))
    else:
        present = np.flatnonzero(learner.present)[:_MOST_ASKED].tolist()
        numbers = list(itertools.combinations(present, 2))
    pairs = [_leading_first(learner, i, j) for i, j in numbers]
    return [pair for pair in pairs if pair[3] > 0][:most]


def _leading_first(learner: Learner, i: int, j: int) -> tuple[str, str, int, int]:
    one, other = str(learner.items[i]), str(learner.items[j])
    s, n = learner.duel(learner.items[i], learner.items[j])
    return (one, other, s, n) if s >= 0 else (other, one, -s, n)


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
    """The race of one page size. It does not depend on the order in which the learner keeps its pairs."""
    low, high, first, second = _table(learner)
    n, s = first + second, np.abs(first - second)
    order = np.lexsort((n, n * (s / (n + 2)) ** 2))[::-1].tolist()
    for at in order:
        one, other = int(low[at]), int(high[at])
        if not certified.surely(one, other) and not certified.surely(other, one):
            return PairProgress(len(n), len(certified.pairs), int(s[at]), int(n[at]))
    return PairProgress(len(n), len(certified.pairs))


def joined(races: Iterable[PairProgress]) -> PairProgress:
    """The race of all page sizes of a context."""
    found = list(races)
    best = max(found, key=lambda race: (race.progress, race.comparisons), default=PairProgress())
    compared, decided = (sum(race[place] for race in found) for place in (0, 1))
    return PairProgress(compared, decided, best.lead, best.comparisons)


def _table(learner: Learner) -> tuple[Ints, Ints, Ints, Ints]:
    """The pairs with comparisons: both items, wins of the first, wins of the second."""
    duels = _pairs(learner)
    wins = getattr(duels, "wins", None)
    if wins is not None and hasattr(duels, "low"):
        rows = np.flatnonzero(wins.sum(axis=1))
        return duels.low[rows], duels.high[rows], wins[rows, 0], wins[rows, 1]
    if wins is not None and wins.shape == (len(learner.items), len(learner.items)):
        low, high = np.nonzero(np.triu(wins + wins.T, 1))
        return low, high, wins[low, high], wins[high, low]
    pairs = [(learner.index[a], learner.index[b], (n + s) // 2, (n - s) // 2) for a, b, s, n in compared(learner, 2000)]
    columns = np.array(pairs, np.int64).reshape(-1, 4)
    return columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3]


def _pairs(learner: Learner) -> Any:
    """The table of pairs; duels with a lifetime have it inside."""
    return getattr(learner.state.duels, "pairs", learner.state.duels)


def reversed_pairs(shown: Sequence[str], leader: Sequence[str]) -> int:
    """How many pairs of the leader are shown in the other order."""
    if tuple(shown) == tuple(leader):
        return 0
    place = {item: number for number, item in enumerate(leader)}
    above, found = 0, 0  # places of the items above, as bits
    for item in shown:
        if item in place:
            found += (above >> place[item]).bit_count()
            above |= 1 << place[item]
    return found
