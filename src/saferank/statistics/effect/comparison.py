r"""The comparison of served pages with a holdout, as sums that a fold of the log can keep.

A counted page t has the outcome x (0 <= x <= most), was put into the holdout with probability h <= 1/2 by a coin of its
own, and is expected to have the outcome m, the mean of the counted pages folded before it, at most most/2. It adds

    weight    h (1 - h)            score of its arm    u (x - m)        with u = 1 - h in the holdout, h among served
    expected  h (1 - h) m          square of its arm   u^2 (x - m)^2

(expected + score of an arm) / weight estimates the mean outcome that all counted pages would have had in that arm,
without bias, whatever the pages before it were, because its expectation is taken over the page's own coin. Every page
is weighted by its own h (1 - h): the share may change, and comparisons with different shares may be merged.
"""

import math
from typing import NamedTuple

from saferank.errors import ArgumentError

LARGEST_OUTCOME = 100.0


class Arm(NamedTuple):
    """Sums over the counted pages of one arm."""

    pages: int = 0
    total: float = 0.0  # of the outcomes: clicks, or pages with a click
    score: float = 0.0
    square: float = 0.0

    @property
    def mean(self) -> float:
        """The plain mean, for display; nan without pages."""
        return self.total / self.pages if self.pages else math.nan


class ArmComparison(NamedTuple):
    """Two arms and what their pages have in common. Made by ``new_comparison``, ``with_page`` and ``merged``."""

    holdout: Arm = Arm()
    served: Arm = Arm()
    weight: float = 0.0
    expected: float = 0.0

    def numbers(self) -> tuple[float, ...]:
        """The state as ten numbers, for a snapshot; ``from_numbers`` gives it back exactly."""
        return (*self.holdout, *self.served, self.weight, self.expected)


def new_comparison() -> ArmComparison:
    """No page yet."""
    return ArmComparison()


def from_numbers(numbers: tuple[float, ...] | list[float]) -> ArmComparison:
    """The comparison with these ``numbers()``.

    >>> state = with_page(new_comparison(), served=True, outcome=1, share=0.1)
    >>> from_numbers(state.numbers()) == state
    True
    """
    if len(numbers) != 10:
        raise ArgumentError("numbers", f"found {len(numbers)}, expected the 10 of a comparison")
    return ArmComparison(_arm(numbers[:4]), _arm(numbers[4:8]), float(numbers[8]), float(numbers[9]))


def _arm(numbers: tuple[float, ...] | list[float]) -> Arm:
    pages, total, score, square = numbers
    return Arm(int(pages), float(total), float(score), float(square))


def with_page(state: ArmComparison, *, served: bool, outcome: float, share: float, most: float = 1.0) -> ArmComparison:
    """The comparison with one more counted page.

    ``share`` is the probability with which *this* page was put into the holdout when it was issued; ``most`` is the
    largest outcome that a page can have: 1 for pages with a click, the page length for clicks per page. Keep one
    comparison per context and outcome: the mean that a page is compared with is that of its own comparison.
    """
    check_most(most)
    if not 0 < share <= 0.5:
        raise ArgumentError("share", f"found {share:g}, expected a holdout share above 0 and at most 1/2")
    if not 0 <= outcome <= most:
        raise ArgumentError("outcome", f"found {outcome:g}, expected a number from 0 to {most:g}")
    weight, mean = share * (1 - share), expected_outcome(state, most)
    return ArmComparison(
        state.holdout if served else _with(state.holdout, outcome, (1 - share) * (outcome - mean)),
        _with(state.served, outcome, share * (outcome - mean)) if served else state.served,
        state.weight + weight,
        state.expected + weight * mean,
    )


def _with(arm: Arm, outcome: float, score: float) -> Arm:
    return Arm(arm.pages + 1, arm.total + outcome, arm.score + score, arm.square + score * score)


def expected_outcome(state: ArmComparison, most: float) -> float:
    """What is expected of the next page: the mean so far, half a click at first, at most half of the largest."""
    pages, total = state.holdout.pages + state.served.pages, state.holdout.total + state.served.total
    return min((total + 0.5) / (pages + 1), most / 2)


def check_most(most: float) -> None:
    """An ``ArgumentError`` for a largest outcome that cannot be used."""
    if not 1 <= most <= LARGEST_OUTCOME:
        raise ArgumentError("most", f"found {most:g}, expected the largest outcome of a page, from 1 to 100")


def merged(*states: ArmComparison) -> ArmComparison:
    """All contexts together: sums add up, because every page has its own coin and was centred in its own context."""
    columns = zip(*(state.numbers() for state in states), strict=True)
    return from_numbers([math.fsum(column) for column in columns]) if states else ArmComparison()
