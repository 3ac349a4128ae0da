"""Served pages beside the holdout, as the fold of a context keeps them (docs/engineers/effect.md).

Counted pages are compared when a coin could have put them into the holdout. All of it is sums in the log's order, so a
replay and whoever takes over come to the same numbers, bit for bit.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from saferank.statistics.effect import ArmComparison, from_numbers, merged, new_comparison, with_page
from saferank.statistics.effect.comparison import expected_outcome

MOST_CLICKS = 10
"""Clicks of one page that are compared at most; those beyond are left out, in both arms alike.

The bound of the outcome is fixed for the life of a comparison, and evidence is paid for by it: with a bound of 100 a
loss of half of the clicks would be found several times later. Ten covers nearly all pages that people click on.
"""

MOST_DAYS = 400
DAY_MS = 86_400_000

Outcomes = tuple[ArmComparison, ArmComparison]
"""Clicks, and pages with a click."""

NO_PAGES: Outcomes = (new_comparison(), new_comparison())


class CountedPage(NamedTuple):
    """What is compared of a page."""

    issued_at: int
    served: bool  # False: it is in the holdout
    share: float  # its chance to be in the holdout when it was issued; 0: none
    clicks: int
    differs: bool | None = None  # from production's page; None: the policy did not choose it


@dataclass
class Day:
    """The counted pages of a UTC day: sums of those that were compared, and how often the policy's pages differed.

    ``estimates`` are weight times the mean clicks of a page, served and holdout: their ratio over any days and contexts
    is the estimate of ``relative_difference``. Plain means would compare pages that no coin has made comparable.
    """

    served: list[int] = field(default_factory=lambda: [0, 0, 0])  # compared: pages, those with clicks, clicks
    holdout: list[int] = field(default_factory=lambda: [0, 0, 0])
    estimates: list[float] = field(default_factory=lambda: [0.0, 0.0])
    chosen: list[int] = field(default_factory=lambda: [0, 0])  # by the policy: pages, those that are not production's

    def facts(self) -> tuple[list[int], list[int], list[float], list[int]]:
        """For a publication; ``Day(*facts)`` gives it back exactly."""
        return self.served, self.holdout, self.estimates, self.chosen

    def add(self, other: "Day") -> None:
        """Add the sums of another day."""
        self.served, self.holdout = _sums(self.served, other.served), _sums(self.holdout, other.holdout)
        self.estimates = _sums(self.estimates, other.estimates)
        self.chosen = _sums(self.chosen, other.chosen)

    def compare_again(self) -> None:
        """Forget what was compared."""
        self.served, self.holdout, self.estimates = [0, 0, 0], [0, 0, 0], [0.0, 0.0]

    @property
    def lift(self) -> float | None:
        """Clicks a page of the served relative to the holdout, minus 1; None while nothing can be said."""
        served, holdout = self.estimates
        return served / holdout - 1 if served > 0 and holdout > 0 else None


Number = TypeVar("Number", int, float)


def _sums(one: list[Number], other: list[Number]) -> list[Number]:
    return [mine + theirs for mine, theirs in zip(one, other, strict=True)]


class ComparedArms:
    """The comparison of a context. Pages issued until ``since`` are not in it."""

    def __init__(self, most: int) -> None:
        self.most = most  # the largest outcome of a page
        self.now: Outcomes = NO_PAGES  # since the context was switched on again after a stop, or from the beginning
        self.earlier: Outcomes = NO_PAGES  # before, but since the whole tenant was switched on again
        self.since = 0
        self.days: dict[int, Day] = {}  # by UTC day number; the oldest holds all before it

    @classmethod
    def of_page_size(cls, k: int) -> "ComparedArms":
        """The comparison of a context that was opened with pages of ``k`` items."""
        return cls(max(1, min(k, MOST_CLICKS)))

    @property
    def whole(self) -> Outcomes:
        """What the context adds to the comparison over all contexts of its tenant."""
        if self.earlier == NO_PAGES:
            return self.now
        return merged(self.earlier[0], self.now[0]), merged(self.earlier[1], self.now[1])

    def count(self, page: CountedPage) -> None:
        """Take a counted page in."""
        day = self._day(page.issued_at // DAY_MS)
        if page.differs is not None:
            day.chosen[0] += 1
            day.chosen[1] += page.differs
        if page.issued_at > self.since and 0.0 < page.share <= 0.5:
            self._compare(page, day)

    def count_chosen(self, issued_at: int, pages: int, differing: int) -> None:
        """Take in counted pages of one day that no coin could have put into the holdout: how many the policy chose."""
        day = self._day(issued_at // DAY_MS)
        day.chosen[0] += pages
        day.chosen[1] += differing

    def _compare(self, page: CountedPage, day: Day) -> None:
        outcome, share = min(page.clicks, self.most), page.share
        tally = day.served if page.served else day.holdout
        tally[0] += 1
        tally[1] += outcome > 0
        tally[2] += outcome
        mean = expected_outcome(self.now[0], self.most)  # as in with_page
        common = share * (1 - share) * mean
        day.estimates[0] += common + (share * (outcome - mean) if page.served else 0.0)
        day.estimates[1] += common + (0.0 if page.served else (1 - share) * (outcome - mean))
        self.now = (
            with_page(self.now[0], served=page.served, outcome=outcome, share=share, most=self.most),
            with_page(self.now[1], served=page.served, outcome=min(outcome, 1), share=share),
        )

    def _day(self, number: int) -> Day:
        found = self.days.get(number)
        if found is None:
            found = self.days[number] = Day()
            if len(self.days) > MOST_DAYS:
                oldest, next_oldest = sorted(self.days)[:2]
                self.days[next_oldest].add(self.days.pop(oldest))
                found = self.days[max(number, next_oldest)]
        return found

    def restart(self, at: int, whole: bool) -> None:
        """Begin again with pages issued after a time; ``whole``: the part in the tenant's comparison as well.

        The tenant's comparison keeps what a context had before its own restart: sums that are dropped at a moment that
        depends on them would make its evidence worthless. Days belong to the tenant's comparison.
        """
        for day in self.days.values() if whole else ():
            day.compare_again()
        self.earlier = NO_PAGES if whole else self.whole
        self.now, self.since = NO_PAGES, at

    def facts(self) -> dict[str, Any]:
        """For a publication; ``compared_arms`` gives it back exactly."""
        return {
            "most": self.most,
            "now": [state.numbers() for state in self.now],
            "earlier": [state.numbers() for state in self.earlier],
            "since": self.since,
            "days": [[number, *day.facts()] for number, day in sorted(self.days.items())],
        }


def compared_arms(facts: dict[str, Any]) -> ComparedArms:
    """The comparison with these ``facts()``."""
    compared = ComparedArms(facts["most"])
    compared.now, compared.earlier = _outcomes(facts["now"]), _outcomes(facts["earlier"])
    compared.since = facts["since"]
    compared.days = {number: Day(*day) for number, *day in facts["days"]}
    return compared


def _outcomes(numbers: list[list[float]]) -> Outcomes:
    return from_numbers(numbers[0]), from_numbers(numbers[1])
