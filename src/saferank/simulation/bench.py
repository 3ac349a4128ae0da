"""How long is a round? Every policy against every click model, beside a bare loop that only draws the clicks.

Machines are noisy, so a round is measured by the CPU time of the thread, and the figure that travels is the multiple of
the bare loop measured in the same run: the two are timed in turn, and each keeps its fastest lap. Only the speed-up by
threads is wall time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.instances import Instance
from saferank.randomness import Words, stream, uniform
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Cell, Plan, cells_of, compile_loops, run
from saferank.verbs import Floats, Ints


@dataclass(frozen=True)
class Timing:
    """Nanoseconds of CPU time per round of a policy under a click model, and of the bare loop beside it."""

    policy: str
    model: str
    nanoseconds: float
    bare_nanoseconds: float

    @property
    def multiple(self) -> float:
        """How many bare rounds one round takes."""
        return self.nanoseconds / self.bare_nanoseconds


@kernel
def bare_loop(rng: Words, probability: Floats, clicks: Ints, rounds: int) -> int:
    """Draw one Bernoulli click per position and round, nothing else."""
    total = 0
    for _ in range(rounds):
        for k in range(len(clicks)):
            clicks[k] = uniform(rng) < probability[k]
        total += clicks[0]
    return total


def _cpu_seconds(call: Callable[[], Any]) -> float:
    """The CPU time of this thread, which other processes do not lengthen."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def _wall_seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _time_cells(cells: list[Cell], laps: int) -> Timing:
    """The fastest of ``laps`` laps over the cells, which are one policy on instances of one model."""
    plan = cells[0].plan
    rng, clicks = stream(plan.seed, "bare"), np.zeros(plan.n_positions, np.int64)
    probability = np.full(plan.n_positions, 0.2)
    bare, real = [], []
    for lap in range(laps):
        bare.append(_cpu_seconds(lambda: bare_loop(rng, probability, clicks, plan.rounds)))
        real.append(sum(_cpu_seconds(lambda cell=cell, lap=lap: run(cell, lap)) for cell in cells) / len(cells))  # type: ignore[misc]
    scale = 1e9 / plan.rounds
    return Timing(cells[0].kind.name, cells[0].instance.model_name, min(real) * scale, min(bare) * scale)


def time_policies(instances: list[Instance], plan: Plan, laps: int = 5) -> Iterator[Timing]:
    """Time every policy of the plan under every click model among the instances."""
    bare_loop(stream(0, "bare"), np.zeros(1), np.zeros(1, np.int64), 1)
    for model in dict.fromkeys(instance.model_name for instance in instances):
        of_model = [instance for instance in instances if instance.model_name == model]
        for policy in plan.policies:
            cells = cells_of(of_model, replace(plan, policies=(policy,)))
            compile_loops(cells)
            yield _time_cells(cells, laps)


@dataclass(frozen=True)
class SpeedUp:
    """Seconds of the same experiment on one thread and on several."""

    jobs: int
    seconds_alone: float
    seconds_together: float

    @property
    def factor(self) -> float:
        """How many times faster the threads are together."""
        return self.seconds_alone / self.seconds_together


def time_jobs(instances: list[Instance], plan: Plan, jobs: int = 2, laps: int = 3) -> SpeedUp:
    """Time the same cells on one thread and on ``jobs``, in turn; each keeps its fastest lap."""
    cells = cells_of(instances, plan)
    compile_loops(cells)
    alone, together = [], []
    for _ in range(laps):
        alone.append(_wall_seconds(lambda: simulate(cells, jobs=1)))
        together.append(_wall_seconds(lambda: simulate(cells, jobs=jobs)))
    return SpeedUp(jobs, min(alone), min(together))
