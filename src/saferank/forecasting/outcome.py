"""What a forecast says: numbers by policy and by query, as an object, a file and a page, and how sure they are.

A band is made from runs on the fitted model and on models of drawn logs:

    centre = 2 mean(F) - mean(G)
    width  = t * sqrt(var(G) (1 + 1/B) + 4 var(F) / R),     t: the 95 % point of Student's t, B - 1 degrees of freedom

F are R runs on the model fitted to the log, G one run on each of B models fitted to logs drawn from it (Poisson
bootstrap). A noisy fit finds differences between items that are not there and promises more than it can keep; fits to
drawn logs are noisier again by as much, so mean(G) - mean(F) estimates that promise, and the centre takes it back.
var(G) holds both the error of the fit and the variation from run to run, the rest is the error of the two means.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from saferank.errors import UsageError, writing
from saferank.files import write_atomically
from saferank.forecasting.playing import FATES, ForecastRuns, weekly
from saferank.forecasting.worlds import DAYS, DEADLINES
from saferank.verbs import Floats

COVERAGE = 0.9


class Band(NamedTuple):
    """An estimate and the band in which the outcome lies in 90 of 100 such logs, if the model holds."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        estimate, low, high = (f"{round(value):+,}" for value in self)  # whole numbers have no -0
        return f"{estimate} ({low} to {high})"

    def scaled(self, factor: float) -> "Band":
        """In another unit."""
        return Band(self.estimate * factor, self.low * factor, self.high * factor)


def bands_of(fitted: Floats, drawn: Floats) -> list[Band]:
    """A band for each column of ``fitted`` [run, column] and ``drawn`` [drawn log, column]."""
    runs, logs = len(fitted), len(drawn)
    centre = 2 * fitted.mean(axis=0) - drawn.mean(axis=0)
    variance = drawn.var(axis=0, ddof=1) * (1 + 1 / logs) + 4 * fitted.var(axis=0, ddof=1) / runs
    width = student.ppf((1 + COVERAGE) / 2, logs - 1) * np.sqrt(variance)
    return [Band(float(c), float(c - w), float(c + w)) for c, w in zip(centre, width, strict=True)]


DATA, PAGE = "forecast.json", "forecast.html"
NEARLY_BEST = 0.01
"""A query is already right when no ranking has more than 1 % more expected clicks than production's."""


@dataclass(frozen=True)
class ForecastQuery:
    """One query: its traffic, and under the fitted model production's clicks and the best there are."""

    id: str
    pages_a_day: float
    production_clicks: float  # expected on a page
    best_clicks: float
    played_pages: int  # of a run; fewer than its pages until the last day where there are very many

    @property
    def is_right(self) -> bool:
        """True when production's ranking is as good as the best, or nearly."""
        return self.best_clicks <= (1 + NEARLY_BEST) * self.production_clicks


@dataclass(frozen=True)
class Count:
    """A number of queries: the mean over runs on the fitted model, and 5 and 95 % of the runs on drawn logs."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class PolicyForecast:
    """One policy on all queries."""

    policy: str
    rule: str
    weeks: list[Band]  # extra clicks a day in each week
    whole: Band  # extra clicks a day over all weeks
    decided: dict[int, dict[str, Count]]  # by deadline in days: queries that are changed, confirmed, open
    worst_page: float  # smallest expected clicks of a page relative to production's, in any run on the fitted model
    worst_query: str
    right_cost: Band | None  # extra clicks on queries that are right, as a share of production's there; None: no such
    by_query: dict[str, Band]  # extra clicks a day in the last week


@dataclass(frozen=True)
class Forecast:
    """Extra clicks, decisions and costs of safe policies on a team's own queries, before anything is switched on."""

    log: str
    pages_a_day: float
    covered: float  # share of all pages that the queries have
    model: str
    log_likelihoods: dict[str, float]  # of a held-out page by click model; empty when the model was given
    queries: list[ForecastQuery]
    policies: list[PolicyForecast]
    replicates: int
    certificate_days: float  # length of an epoch of certificates; 0: they never end
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def production_clicks_a_day(self) -> float:
        """Expected clicks a day of production's rankings, on the pages of the queries."""
        return sum(query.pages_a_day * query.production_clicks for query in self.queries)

    @property
    def right(self) -> list[ForecastQuery]:
        """Queries of which production's ranking is already right."""
        return [query for query in self.queries if query.is_right]

    @property
    def headline(self) -> str:
        """The first policy in one sentence."""
        first, base = self.policies[0], self.production_clicks_a_day
        last = first.weeks[-1]
        return (
            f"With {first.policy}, {round(last.estimate):+,} clicks a day after {DAYS} days "
            f"({100 * last.estimate / base:+.1f} %; {COVERAGE:.0%} band {round(last.low):+,} to {round(last.high):+,})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        content = asdict(self)
        for policy, found in zip(content["policies"], self.policies, strict=True):
            policy["weeks"] = [band._asdict() for band in found.weeks]
            policy["whole"] = found.whole._asdict()
            policy["right_cost"] = None if found.right_cost is None else found.right_cost._asdict()
            policy["by_query"] = {query: band._asdict() for query, band in found.by_query.items()}
        totals = {"production_clicks_a_day": self.production_clicks_a_day, "band": COVERAGE, "days": DAYS}
        return {"provenance": content.pop("provenance"), **totals, **content}

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``forecast.json`` and ``forecast.html`` with its figures.

        Args:
            folder: The folder; it is made if it is not there.

        Returns:
            Both files.

        Raises:
            UsageError: matplotlib or jinja2, which the page needs, are missing; the numbers are written.
            OutputError: A file cannot be written.

        """
        from saferank.reporting.report import missing_for_a_report

        home = Path(folder)
        with writing(home / DATA):
            home.mkdir(parents=True, exist_ok=True)
            write_atomically(home / DATA, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        missing = missing_for_a_report()
        if missing:
            raise UsageError(f"the page needs {' and '.join(missing)}; to get them: pip install 'saferank[report]'")
        from saferank.forecasting.page import write_page

        with writing(home / PAGE):
            write_page(self, home)
        return [home / DATA, home / PAGE]

    def __repr__(self) -> str:
        return f"Forecast of {self.log}, {len(self.queries)} queries, {self.model}: {self.headline}"


def policy_forecast(name: str, runs: Sequence[ForecastRuns], queries: Sequence[ForecastQuery]) -> PolicyForecast:
    """What the runs of one policy say; its runs on the fitted model have world 0."""
    fitted = {each.job.cell.instance.id: each for each in runs if each.job.world == 0}
    worst = min(fitted.values(), key=lambda each: each.worst_page.min())
    total = _total(runs, None)
    return PolicyForecast(
        policy=name,
        rule=worst.job.cell.rule_name or worst.job.cell.plan.rule,
        weeks=bands_of(*map(weekly, total)),
        whole=bands_of(*(each[:, -1:] / DAYS for each in total))[0],
        decided={days: _counts(runs, days) for days in DEADLINES},
        worst_page=float(worst.worst_page.min()),
        worst_query=worst.job.cell.instance.id,
        right_cost=_right_cost(runs, queries),
        by_query={query: bands_of(*(weekly(part)[:, -1:] for part in _total(runs, {query})))[0] for query in fitted},
    )


def _total(runs: Sequence[ForecastRuns], ids: set[str] | None) -> tuple[Floats, Floats]:
    """Extra clicks of these queries together (None: of all): [run, week] on the fitted model, and on drawn logs."""
    chosen = [each for each in runs if ids is None or each.job.cell.instance.id in ids]
    worlds = sorted({each.job.world for each in chosen})
    sums = {world: sum(each.extra for each in chosen if each.job.world == world) for world in worlds}
    return np.asarray(sums[0]), np.concatenate([sums[world] for world in worlds if world])


def _counts(runs: Sequence[ForecastRuns], days: int) -> dict[str, Count]:
    return {fate: _count(runs, days, fate) for fate in FATES}


def _count(runs: Sequence[ForecastRuns], days: int, fate: str) -> Count:
    numbers: dict[tuple[int, int], int] = {}
    for each in runs:
        for repetition, fates in enumerate(each.fates):
            key = each.job.world, repetition
            numbers[key] = numbers.get(key, 0) + (fates[days] == fate)
    drawn = [number for (world, _), number in numbers.items() if world]
    mean = float(np.mean([number for (world, _), number in numbers.items() if not world]))
    low, high = np.quantile(drawn, [0.05, 0.95])
    return Count(mean, float(low), float(high))


def _right_cost(runs: Sequence[ForecastRuns], queries: Sequence[ForecastQuery]) -> Band | None:
    right = {query.id: query for query in queries if query.is_right}
    due = sum(query.pages_a_day * query.production_clicks for query in right.values())
    if not due:
        return None
    band = bands_of(*(part[:, -1:] for part in _total(runs, set(right))))[0]
    return band.scaled(1 / (due * DAYS))
