"""A benchmark as one call: how long a round of every policy is under every click model, on this machine."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from saferank._version import __version__
from saferank.errors import ArgumentError
from saferank.experiments.simulate import plan_of
from saferank.instances import choose_instances, positions_problem
from saferank.policies import POLICIES
from saferank.progress import progress_of
from saferank.simulation.bench import SpeedUp, Timing, time_jobs, time_policies

QUERIES = 4
"""Embedded queries that every policy plays."""


@dataclass(frozen=True)
class Benchmark:
    """What was measured, and with which page and how many rounds."""

    positions: int
    rounds: int
    timings: list[Timing]
    speed_up: SpeedUp

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON takes it."""
        return {
            "version": __version__,
            "positions": self.positions,
            "rounds": self.rounds,
            "timings": [{**asdict(timing), "multiple": timing.multiple} for timing in self.timings],
            "speed_up": {**asdict(self.speed_up), "factor": self.speed_up.factor},
        }


def bench(
    policies: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    rounds: float = 100_000,
    positions: int = 5,
    *,
    progress: bool = True,
) -> Benchmark:
    """Time these policies under these click models (None: all) on embedded queries; a lap has ``rounds`` rounds."""
    plan = plan_of(policies or tuple(POLICIES), positions, rounds, repetitions=2, rule=None, seed=0)
    instances = choose_instances(models=models, queries=QUERIES)
    for instance in instances:
        if problem := positions_problem(instance, plan.n_positions):
            raise ArgumentError("positions", problem)
    with progress_of(progress).status("timing; a quiet machine gives the best figures"):
        timings = list(time_policies(instances, plan))
        return Benchmark(plan.n_positions, plan.rounds, timings, time_jobs(instances, plan))
