"""Served pages beside the holdout, as the fold of a context keeps them (docs/effect.md).

Counted pages are compared when a coin could have put them into the holdout. All of it is sums in the log's order, so a
replay and whoever takes over come to the same numbers, bit for bit.
"""

from typing import Any, NamedTuple

from saferank.statistics.effect import ArmComparison, from_numbers, merged, new_comparison, with_page

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


class ComparedArms:
    """The comparison of a context. Pages issued until ``since`` are not in it."""

    def __init__(self, most: int) -> None:
        self.most = most  # the largest outcome of a page
        self.now: Outcomes = NO_PAGES  # since the context was switched on again after a stop, or from the beginning
        self.earlier: Outcomes = NO_PAGES  # before, but since the whole tenant was switched on again
        self.since = 0
        self.days: dict[int, list[list[int]]] = {}  # by UTC day number: served and holdout [pages, clicked, clicks]
        self.differing = 0  # counted explored pages that are not production's page

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
        tally = self._tally(page.issued_at // DAY_MS)[0 if page.served else 1]
        tally[0] += 1
        tally[1] += page.clicks > 0
        tally[2] += page.clicks
        if page.issued_at > self.since and 0.0 < page.share <= 0.5:
            outcome = min(page.clicks, self.most)
            self.now = (
                with_page(self.now[0], served=page.served, outcome=outcome, share=page.share, most=self.most),
                with_page(self.now[1], served=page.served, outcome=min(outcome, 1), share=page.share),
            )

    def _tally(self, day: int) -> list[list[int]]:
        found = self.days.get(day)
        if found is None:
            found = self.days[day] = [[0, 0, 0], [0, 0, 0]]
            if len(self.days) > MOST_DAYS:
                del self.days[min(self.days)]
        return found

    def restart(self, at: int, whole: bool) -> None:
        """Begin again with pages issued after a time; ``whole``: the part in the tenant's comparison as well.

        The tenant's comparison keeps what a context had before its own restart: sums that are dropped at a moment that
        depends on them would make its evidence worthless.
        """
        self.earlier = NO_PAGES if whole else self.whole
        self.now, self.since = NO_PAGES, at

    def facts(self) -> dict[str, Any]:
        """For a publication; ``compared_arms`` gives it back exactly."""
        return {
            "most": self.most,
            "now": [state.numbers() for state in self.now],
            "earlier": [state.numbers() for state in self.earlier],
            "since": self.since,
            "days": [[day, *tallies] for day, tallies in sorted(self.days.items())],
            "differing": self.differing,
        }


def compared_arms(facts: dict[str, Any]) -> ComparedArms:
    """The comparison with these ``facts()``."""
    compared = ComparedArms(facts["most"])
    compared.now, compared.earlier = _outcomes(facts["now"]), _outcomes(facts["earlier"])
    compared.since, compared.differing = facts["since"], facts["differing"]
    compared.days = {day: tallies for day, *tallies in facts["days"]}
    return compared


def _outcomes(numbers: list[list[float]]) -> Outcomes:
    return from_numbers(numbers[0]), from_numbers(numbers[1])
