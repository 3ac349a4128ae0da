"""Safety in clicks: expected clicks beside those of the original ranking, on the worst page and summed up early on.

The measures are those of the runs: ``worst_page`` is the smallest ratio of a single page, ``clicks_relative`` the ratio
of all pages so far. Violations count pairs that are the wrong way round; this says what they cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saferank.reporting.looks import policy_name
from saferank.reporting.runs import Key, measure_of
from saferank.simulation.runs import Runs
from saferank.verbs import Floats, Ints

PAGES = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Ratio:
    """Of all runs on all queries: the mean and the lowest."""

    mean: float
    lowest: float

    def __str__(self) -> str:
        """The mean, and the lowest in brackets.

        >>> str(Ratio(0.987, 0.5))
        '0.987 (0.500)'
        """
        return f"{self.mean:.3f} ({self.lowest:.3f})"


@dataclass(frozen=True)
class ClickRow:
    """One policy under one click model."""

    policy: str
    worst_page: Ratio
    after: list[Ratio]

    @property
    def name(self) -> str:
        """The policy's title."""
        return policy_name(self.policy)


@dataclass(frozen=True)
class ClickTable:
    """One click model: rows, and after how many pages the sums are taken."""

    model: str
    pages: list[int]
    rows: list[ClickRow]


def click_tables(runs: Mapping[Key, Runs], models: Sequence[str], policies: Sequence[str]) -> list[ClickTable]:
    """One table for each click model."""
    rounds = next(iter(runs.values())).rounds
    places = early_places(rounds)
    tables = []
    for model in models:
        found = {p: [own for (_, m, q), own in runs.items() if (m, q) == (model, p)] for p in policies}
        rows = [_row(policy, own, places) for policy, own in found.items() if own]
        tables.append(ClickTable(model, [int(rounds[place]) for place in places], rows))
    return tables


def early_places(rounds: Ints) -> list[int]:
    """The kept checkpoints nearest to 100, 1,000 and 10,000 pages that the run has, and the last one.

    >>> early_places(np.array([10, 121, 1000, 5000])), early_places(np.array([40]))
    ([1, 2, 3], [0])
    """
    wanted = [pages for pages in PAGES if pages <= rounds[-1]]
    nearest = [int(np.argmin(np.abs(np.log(rounds / pages)))) for pages in wanted]
    return list(dict.fromkeys([*nearest, len(rounds) - 1]))


def _row(policy: str, own: Sequence[Runs], places: Sequence[int]) -> ClickRow:
    worst = _together([measure_of(runs, "worst_page")[:, -1] for runs in own])
    sums = [_together([measure_of(runs, "clicks_relative")[:, place] for runs in own]) for place in places]
    return ClickRow(policy, worst, sums)


def _together(by_query: Sequence[Floats]) -> Ratio:
    """Queries weigh alike; all have the same number of runs."""
    values = np.concatenate(list(by_query))
    return Ratio(float(values.mean()), float(values.min()))
