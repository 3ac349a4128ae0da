"""``saferank.forecast``: what safe re-ranking would bring on a team's own queries, as one function."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, RunInterrupted, argument, whole_number

if TYPE_CHECKING:
    from saferank.forecasting.outcome import Forecast, ForecastQuery
    from saferank.forecasting.playing import Job

POLICIES = ("safe-draw", "kl-ucb-br")
RULE = "anytime:1e-5"
ITERATIONS = 200
REPLICATES = 12
MOST_PAGES = 50_000
CERTIFICATE_DAYS = 14.0
"""As the service is set when nothing else is said."""


def forecast(
    log: Any,
    format: str,
    pages_a_day: float,
    policies: Sequence[str] = POLICIES,
    *,
    queries: int = 100,
    model: str | None = None,
    positions: int | None = None,
    page_length: int | None = None,
    items: int | None = None,
    rule: str = RULE,
    certificate_days: float = CERTIFICATE_DAYS,
    replicates: int = REPLICATES,
    iterations: int = ITERATIONS,
    most_pages: float = MOST_PAGES,
    seed: int = 0,
    jobs: int | None = None,
    max_bad: float = 0.01,
    progress: bool = True,
) -> "Forecast":
    """Fit a click model to a log, and simulate policies on its most frequent queries for 13 weeks.

    The simulation takes the fitted model for the truth: docs/engineers/forecast.md says what that means, and what the
    bands do not cover. The same seed gives the same numbers whatever ``jobs`` is.

    Args:
        log: A click log: a file, or sessions as a frame or a list of dicts, as in ``fit``.
        format: That of the file (docs/researchers/click-logs.md).
        pages_a_day: All pages of the site in a day; a query gets its share of the log's pages.
        policies: Names of policies; the first is the one of the headline.
        queries: How many queries, the most frequent first.
        model: A click model; None: the one that foresees held-out pages best.
        positions: How many items a page shows; None: all of production's ranking.
        page_length: As in ``fit``.
        items: As in ``fit``; with more items than positions there are candidates.
        rule: When a pair is decided.
        certificate_days: The length of an epoch of certificates, as in the service; 0: they never end.
        replicates: Logs that are drawn for the bands.
        iterations: Of EM.
        most_pages: The longest run of a query, beyond which it goes on as in its last tenth.
        seed: Seed of everything that is drawn.
        jobs: Threads; None: one for each core.
        max_bad: The share of unreadable lines up to which the log is read.
        progress: Show a bar.

    Returns:
        Extra clicks by week with bands, decisions and costs, by policy and by query.

    Raises:
        UsageError: Something cannot be used: an argument, or the log.
        RunInterrupted: Ctrl-C.

    """
    from saferank.experiments.engines import MOST_JOBS, cores, explain_compilation
    from saferank.fitting import estimator
    from saferank.forecasting.playing import jobs_of, played
    from saferank.forecasting.worlds import (
        check_certificate_days,
        check_pages_a_day,
        traffic_of,
        usable_pages,
        worlds_of,
    )
    from saferank.logs.reading import source_of
    from saferank.logs.records import check_lengths
    from saferank.progress import progress_of

    check_pages_a_day(pages_a_day)
    check_certificate_days(certificate_days)
    check_policies(policies, rule)
    check_lengths(page_length, items)
    for name, value, least in (("replicates", replicates, 4), ("iterations", iterations, 1), ("seed", seed, 0)):
        whole_number(value, name, at_least=least)
    longest = whole_number(most_pages, "most_pages", at_least=1000)
    if positions is not None:
        whole_number(positions, "positions")
    if model is not None:
        with argument("model"):
            estimator(model)
    threads = cores() if jobs is None else whole_number(jobs, "jobs", at_most=MOST_JOBS)
    shown, started = progress_of(progress), time.monotonic()
    try:
        pages = usable_pages(source_of(log), format, queries, page_length, max_bad, shown)
        worlds = worlds_of(pages, model, items, iterations, replicates, seed, shown)
        traffic = traffic_of(pages, pages_a_day)
        work = jobs_of(worlds, traffic, policies, positions, rule, longest, seed, certificate_days)
        total = sum(job.cell.plan.rounds * job.cell.plan.repetitions for job in work)
        with shown.meter(total) as meter, explain_compilation():
            runs = played(work, threads, meter)
    except KeyboardInterrupt:
        raise RunInterrupted("interrupted; nothing was written") from None
    from saferank.forecasting.outcome import Forecast, policy_forecast
    from saferank.simulation.results import provenance

    found = _queries(work, policies[0])
    return Forecast(
        log=Path(pages.summary.source).name,
        pages_a_day=float(pages_a_day),
        covered=traffic.covered,
        model=worlds.model,
        log_likelihoods={name: each.log_likelihood for name, each in worlds.evaluations.items() if not each.impossible},
        queries=found,
        policies=[
            policy_forecast(name, [each for each in runs if each.job.cell.kind.name == name], found)
            for name in policies
        ],
        replicates=replicates,
        certificate_days=float(certificate_days),
        provenance=provenance("saferank.forecast", seed, time.monotonic() - started),
    )


def check_policies(policies: Sequence[str], rule: str) -> None:
    """An ``ArgumentError`` for policies that are unknown, are there twice, or give no certificates."""
    from saferank.policies import policy_kind
    from saferank.statistics.decision import decision_rule

    if isinstance(policies, str) or not policies:
        raise ArgumentError("policies", f"found {policies!r}, expected a list of names, for example safe-draw")
    with argument("rule"):
        decided_by = decision_rule(rule)
    for name in policies:
        with argument("policies"):
            kind = policy_kind(name)
        if not kind.certifies:
            raise ArgumentError("policies", f"{name} gives no certificates; a forecast is about policies that do")
        with argument("rule"):
            kind.check_rule(decided_by)
        if list(policies).count(name) > 1:
            raise ArgumentError("policies", f"{name} is there twice; keep one")


def _queries(work: "Sequence[Job]", policy: str) -> "list[ForecastQuery]":
    from saferank.forecasting.outcome import ForecastQuery

    return [
        ForecastQuery(
            id=job.cell.instance.id,
            pages_a_day=job.schedule.pages_a_day,
            production_clicks=job.cell.world.original,
            best_clicks=job.cell.world.best,
            played_pages=job.schedule.rounds,
        )
        for job in work
        if job.world == 0 and job.cell.kind.name == policy
    ]
