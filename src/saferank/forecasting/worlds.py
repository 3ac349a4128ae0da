"""The users of a forecast: pages a day by query, the click model that foresees held-out pages best, and its refits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saferank.errors import ArgumentError
from saferank.fitting import ESTIMATORS, estimator
from saferank.fitting.bootstrap import replicates as drawn_models
from saferank.fitting.evaluation import Evaluation
from saferank.fitting.export import instances_of
from saferank.fitting.fit import estimate, evaluated, read_pages
from saferank.instances import Instance
from saferank.logs import ClickLog
from saferank.progress import Reporter
from saferank.verbs import Floats

WEEKS = 13
DAYS = 7 * WEEKS
DEADLINES = (7, 30, 90)
"""Number of days within which a query counts as decided or not."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """Pages a day by query id, and the share of all pages that these queries have."""

    pages_a_day: float
    by_query: dict[str, float]

    @property
    def covered(self) -> float:
        """The share of all pages that belongs to the queries of the forecast."""
        return sum(self.by_query.values()) / self.pages_a_day


def traffic_of(log: ClickLog, pages_a_day: float) -> Traffic:
    """The pages a day of every query that has a ranking of two items or more: its share of *all* pages of the log."""
    counts = np.bincount(log.pages.query, weights=log.pages.weight, minlength=len(log.queries))
    ranked = [query for query, ranking in enumerate(log.rankings) if ranking and len(ranking) > 1 and counts[query]]
    share = {log.queries[query]: float(counts[query]) / log.summary.pages for query in ranked}
    return Traffic(pages_a_day, {query: part * pages_a_day for query, part in share.items()})


def check_pages_a_day(pages_a_day: float) -> None:
    """An ``ArgumentError`` for traffic that nothing can be learnt from."""
    is_number = isinstance(pages_a_day, int | float)
    if not is_number or not 1 <= pages_a_day <= 1e12:
        found = f"{pages_a_day:g}" if is_number else repr(pages_a_day)
        reason = f"found {found}, expected the pages that all queries of the site have in a day, at least 1"
        raise ArgumentError("pages_a_day", reason)


def lifetime_of(certificate_days: float, pages_a_day: float) -> int | None:
    """Pages of an epoch of certificates, as the service counts epochs of days; None: certificates never end."""
    return max(1, round(certificate_days * pages_a_day)) if certificate_days else None


def check_certificate_days(days: float) -> None:
    """An ``ArgumentError`` for a lifetime that the service would refuse."""
    if not 0 <= days <= 3650:
        reason = f"found {days:g}, expected days from 0 (certificates never end) to 3650, for example 14"
        raise ArgumentError("certificate_days", reason)


@dataclass(frozen=True, eq=False)
class Schedule:
    """The pages of one query: how many a run plays, and at which of them results are read."""

    pages_a_day: float
    rounds: int
    checkpoints: tuple[int, ...]

    def cumulated(self, values: Floats) -> Floats:
        """``values`` [..., checkpoint], which grow from 0, at the ends of all weeks: [..., week].

        Weeks beyond the last page that is played go on as the last tenth of the run does.
        """
        pages = np.array([0, *self.checkpoints], float)
        known = np.concatenate([np.zeros((*values.shape[:-1], 1)), values], axis=-1)
        ends = 7 * np.arange(1, WEEKS + 1) * self.pages_a_day
        within = np.minimum(ends, pages[-1])
        after = np.searchsorted(pages, within).clip(1)
        share = (within - pages[after - 1]) / (pages[after] - pages[after - 1])
        inside = known[..., after - 1] * (1 - share) + known[..., after] * share
        slope = (known[..., -1] - known[..., -2]) / (pages[-1] - pages[-2])
        result: Floats = inside + slope[..., None] * (ends - within)
        return result


def schedule_of(pages_a_day: float, most_pages: int) -> Schedule:
    """The pages of a query until the last day, at most ``most_pages`` of them."""
    rounds = int(min(max(1, np.ceil(DAYS * pages_a_day)), most_pages))
    ends = np.ceil(7 * np.arange(1, WEEKS + 1) * pages_a_day)
    wanted = {int(end) for end in ends if 1 <= end < rounds} | {max(1, int(0.9 * rounds)), rounds}
    return Schedule(pages_a_day, rounds, tuple(sorted(wanted)))


HELD_OUT = 0.25


@dataclass(frozen=True, eq=False)
class Worlds:
    """Instances of the same queries: as fitted to the log, and as fitted to logs drawn from it."""

    model: str
    fitted: list[Instance]
    drawn: list[list[Instance]]
    lengths: dict[str, int]  # by query: how many items production's ranking has
    evaluations: dict[str, Evaluation]  # on held-out pages; empty when the model was given


def usable_pages(
    source: Path | list[Any], form: str, queries: int, page_length: int | None, max_bad: float, shown: Reporter
) -> ClickLog:
    """The pages of a log's most frequent queries; an ``ArgumentError`` when nothing can be learnt from them."""
    log = read_pages(source, form, queries, max_bad, shown, page_length)
    name = log.summary.source
    if not log.pages.clicks.any():
        raise ArgumentError("log", f"{name}: no page of its most frequent queries has a click; nothing can be forecast")
    if not any(ranking is not None and len(ranking) > 1 for ranking in log.rankings):
        raise ArgumentError("log", f"{name}: no query has a page of two items or more; there is nothing to rank")
    return log


def worlds_of(
    log: ClickLog, model: str | None, items: int | None, iterations: int, replicates: int, seed: int, shown: Reporter
) -> Worlds:
    """Fit, choose the model unless it is given, and fit again to ``replicates`` drawn logs."""
    evaluations: dict[str, Evaluation] = {}
    if model is None:
        evaluations, _ = evaluated(tuple(ESTIMATORS), log, HELD_OUT, iterations, seed, shown)
        if not evaluations:
            raise ArgumentError("model", "the log is too small to hold pages out; name a click model, for example pbm")
    name = model or max(evaluations, key=lambda each: evaluations[each].log_likelihood)
    fitted = _rankable(log, name, estimate(name, log, iterations, shown).model, items)
    with shown.status(f"estimating {name} from {replicates} drawn logs"):
        models = drawn_models(estimator(name), log, iterations, replicates, seed)
        drawn = [_rankable(log, name, model, items) for model in models]
    lengths = {log.queries[n]: len(ranking) for n, ranking in enumerate(log.rankings) if ranking is not None}
    return Worlds(name, fitted, drawn, lengths, evaluations)


def _rankable(log: ClickLog, name: str, model: Any, items: int | None) -> list[Instance]:
    """The instances that have something to rank."""
    return [instance for instance in instances_of(log, {name: model}, items) if len(instance.items) > 1]
