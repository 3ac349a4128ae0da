"""The constraint: no page may have many more wrong pairs than the original ranking.

    V(shown) = number of pairs (b better, w worse) with w shown and b shown below it or not at all
    a page violates safety when  V(shown) > V(original) + L - K/2

Better means strictly larger attraction. With ``grade`` the number of strictly better items of all L,
V(shown) = sum of the grades of the shown items - number of shown pairs in the right order.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.verbs import Floats, Ints, Items


class Judge(NamedTuple):
    """Knows the truth of an instance."""

    grade: Ints  # by item: how many items are strictly better
    limit: float  # V(original) + L - K/2


def allowance(n_items: int, n_positions: int) -> float:
    """How many wrong pairs a page may have beyond the original's: L - K/2."""
    return n_items - n_positions / 2


def whole_allowance(n_items: int, n_positions: int) -> int:
    """The allowance in whole pairs, floor(L - K/2): a page has a whole number of wrong pairs.

    >>> whole_allowance(10, 5), whole_allowance(10, 4)
    (7, 8)
    """
    return math.floor(allowance(n_items, n_positions))


def judge_of(attraction: Floats, original: Items) -> Judge:
    """The judge of an instance with these attractions and this original ranking.

    >>> judge = judge_of(np.array([0.1, 0.3, 0.2]), np.array([0, 1], np.uint32))
    >>> judge.grade.tolist(), judge.limit
    ([2, 0, 1], 4.0)
    """
    ascending = np.sort(attraction)
    grade = len(attraction) - np.searchsorted(ascending, attraction, side="right")
    excess = allowance(len(attraction), len(original))
    return Judge(grade.astype(np.int64), float(wrong_pairs(grade.astype(np.int64), original)) + excess)


@kernel
def _right_pairs(grade: Ints, shown: Items) -> int:
    right = 0
    for lower in range(len(shown)):
        for upper in range(lower):
            right += int(grade[shown[upper]] < grade[shown[lower]])
    return right


@kernel
def _grades(grade: Ints, shown: Items) -> int:
    total = 0
    for place in range(len(shown)):
        total += grade[shown[place]]
    return total


@kernel
def wrong_pairs(grade: Ints, shown: Items) -> int:
    """V(shown)."""
    return _grades(grade, shown) - _right_pairs(grade, shown)


@kernel
def violates(judge: Judge, shown: Items) -> bool:
    """True when the page breaks the constraint. The sum of grades alone, an upper bound, settles most pages."""
    worst = _grades(judge.grade, shown)
    return worst > judge.limit and worst - _right_pairs(judge.grade, shown) > judge.limit
