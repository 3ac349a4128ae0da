"""The runs of a forecast: every policy on every query, on the fitted model and on those of drawn logs.

A query is *changed* on the day on which a certificate first says that an item is better than one which production
shows above it; pages follow certificates. It is *confirmed* while the certificates that hold together say that
every item of production's ranking is better than the next one, and its last better than every candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saferank.forecasting.worlds import DEADLINES, WEEKS, Schedule, Traffic, Worlds, lifetime_of, schedule_of
from saferank.progress import Meter
from saferank.simulation.engine import on_threads
from saferank.simulation.experiment import Cell, OnRounds, Plan, cells_of, compile_loops, run
from saferank.simulation.runs import MEASURES
from saferank.statistics.certificates import Certificates, close, closure_for, lasting_certificates, surely
from saferank.verbs import Flags, Floats, Ints

CHANGED, CONFIRMED, OPEN = "changed", "confirmed", "open"
FATES = (CHANGED, CONFIRMED, OPEN)
_RELATIVE, _WORST = MEASURES.index("clicks_relative"), MEASURES.index("worst_page")


@dataclass(frozen=True)
class Job:
    """Some runs of one policy on one query, in one world."""

    cell: Cell
    schedule: Schedule
    world: int  # 0: the fitted model; else the number of a drawn log


@dataclass(frozen=True, eq=False)
class ForecastRuns:
    """What came of the runs of a job."""

    job: Job
    extra: Floats  # [run, week] clicks beyond production's, cumulated
    worst_page: Floats  # [run] smallest expected clicks of a page, relative to production's
    fates: list[dict[int, str]]  # by run: CHANGED, CONFIRMED or OPEN by deadline


def jobs_of(
    worlds: Worlds,
    traffic: Traffic,
    policies: Sequence[str],
    positions: int | None,
    rule: str,
    most_pages: int,
    seed: int,
    certificate_days: float = 0.0,
) -> list[Job]:
    """All jobs: as many runs on the fitted model as there are drawn logs, and one on the model of each of these."""
    jobs = []
    for number, instances in enumerate([worlds.fitted, *worlds.drawn]):
        repetitions = 1 if number else len(worlds.drawn)
        for instance in instances:
            pages_a_day = traffic.by_query[instance.id]
            schedule = schedule_of(pages_a_day, most_pages)
            lifetime = lifetime_of(certificate_days, pages_a_day)
            shown = _positions(worlds.lengths[instance.id], positions)
            size = shown, schedule.rounds, repetitions
            plan = Plan(tuple(policies), *size, rule, seed + number, schedule.checkpoints, lifetime=lifetime)
            jobs += [Job(cell, schedule, number) for cell in cells_of([instance], plan)]
    return jobs


def _positions(length: int, positions: int | None) -> int:
    """How many items a page shows: those of production's ranking, or the first few of them."""
    return length if positions is None else min(positions, length)


def played(jobs: Sequence[Job], threads: int, meter: Meter) -> list[ForecastRuns]:
    """Play all jobs; the results do not depend on the number of threads."""
    compile_loops([job.cell for job in jobs])
    places = {id(job): place for place, job in enumerate(jobs)}
    return sorted(on_threads(threads, _play, jobs, meter), key=lambda runs: places[id(runs.job)])


def _play(job: Job, on_rounds: OnRounds) -> ForecastRuns:
    certificates: list[Certificates] = []
    rows = np.array(
        [run(job.cell, number, on_rounds, certificates.append) for number in range(job.cell.plan.repetitions)]
    )
    original = job.cell.world.original
    extra = (rows[:, :, _RELATIVE] - 1) * original * np.array(job.schedule.checkpoints)
    fates = [fates_of(given, job) for given in certificates]
    return ForecastRuns(job, job.schedule.cumulated(extra), rows[:, -1, _WORST], fates)


def fates_of(given: Certificates, job: Job) -> dict[int, str]:
    """By deadline what the certificates of a run make of production's ranking."""
    return {days: _fate(given, job, days) for days in DEADLINES}


def _fate(given: Certificates, job: Job, days: int) -> str:
    """What the certificates that were given within a number of days make of production's ranking."""
    until = min(days * job.schedule.pages_a_day, job.schedule.rounds)
    rounds = given.round[: given.given[0]]
    n = int(np.count_nonzero(rounds <= until))
    better, worse = given.better[:n], given.worse[:n]
    shown = job.cell.setup.n_positions
    if np.any((better > worse) & (worse < shown)):
        return CHANGED
    holds = _holding(rounds[:n], until, job.cell.setup.lifetime)
    closure, last = closure_for(job.cell.setup.n_items), shown - 1
    close(lasting_certificates(np.stack([better[holds], worse[holds]], axis=1)), closure, 1)
    wanted = [*((k, k + 1) for k in range(last)), *((last, item) for item in range(shown, job.cell.setup.n_items))]
    return CONFIRMED if all(surely(closure, *pair) for pair in wanted) else OPEN


def _holding(rounds: Ints, until: float, lifetime: int | None) -> Flags:
    """Which certificates of these rounds still hold at a later one: to the end of the epoch after their own."""
    if lifetime is None:
        return np.ones(len(rounds), np.bool_)
    holding: Flags = (rounds - 1) // lifetime >= (int(until) - 1) // lifetime - 1
    return holding


def weekly(cumulated: Floats) -> Floats:
    """Clicks a day in each week, from clicks up to its end: [..., week]."""
    assert cumulated.shape[-1] == WEEKS
    growth: Floats = np.diff(cumulated, axis=-1, prepend=0.0) / 7
    return growth
