"""The bench measures every policy under every model; how fast they are is not for a test to say."""

import itertools
import time
from dataclasses import replace

import pytest

from saferank.instances.embedded import embedded_instances
from saferank.simulation.bench import SpeedUp, Timing, time_jobs, time_policies
from saferank.simulation.experiment import Plan

PLAN = Plan(("original", "bubble-rank"), n_positions=5, rounds=500, repetitions=2)
INSTANCES = embedded_instances(2, models=("pbm", "cm"))


def test_every_policy_is_timed_under_every_model() -> None:
    timings = list(time_policies(INSTANCES, PLAN, laps=2))
    assert [(t.model, t.policy) for t in timings] == [(m, p) for m in ("pbm", "cm") for p in PLAN.policies]
    assert all(timing.nanoseconds > 0 and timing.bare_nanoseconds > 0 for timing in timings)


def test_a_round_is_measured_by_the_cpu_time_of_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for other processes does not count: the clock on the wall is not looked at."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    (timing,) = time_policies(INSTANCES[:1], replace(PLAN, policies=("original",)), laps=2)
    assert timing.nanoseconds == timing.bare_nanoseconds == 1e9 / PLAN.rounds


def test_a_multiple_is_the_quotient() -> None:
    assert Timing("original", "pbm", 30.0, 10.0).multiple == 3.0


def test_jobs_are_timed_on_the_same_cells() -> None:
    measured = time_jobs(INSTANCES, PLAN, jobs=2, laps=1)
    assert measured.jobs == 2
    assert min(measured.seconds_alone, measured.seconds_together) > 0
    assert SpeedUp(2, 3.0, 2.0).factor == 1.5
