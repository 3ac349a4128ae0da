"""Compile ahead of use, on all cores: for an image, for CI, and before a first start.

Kernels compile at their first use, one after the other, while somebody waits. Here as many processes as there are cores
compile them into the cache on disk. A job is one policy, because what its kernels share is then written once.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from saferank._kernel import JIT, cache_folder
from saferank.errors import ArgumentError, RunError, argument

SERVICE, PAPER_PROFILE, EVERYTHING = "service", "paper", "all"
PURPOSES = (SERVICE, PAPER_PROFILE, EVERYTHING)
SERVED = ("safe-draw",)
"""What the service serves by default."""


class CompileJob(NamedTuple):
    """What one process compiles at a time."""

    policy: str
    models: tuple[str, ...] = ()  # the click models of simulated users
    size: int = 0  # of a catalogue that is served; 0 where nothing is

    def __str__(self) -> str:
        return f"{self.policy} for " + (f"{self.size} served items" if self.size else ", ".join(self.models))


def jobs_for(purpose: str, policies: Sequence[str] | None = None) -> list[CompileJob]:
    """The jobs of a purpose, the longest first; ``policies`` instead of those that belong to it."""
    from saferank.click_models import CLICK_MODELS
    from saferank.policies import POLICIES
    from saferank.policies.registry import PAPER, policies_of, policy_kind

    if purpose not in PURPOSES:
        raise ArgumentError("for", f"unknown purpose {purpose!r}; known ones: {', '.join(PURPOSES)}")
    with argument("policies"):
        for name in policies or ():
            policy_kind(name)  # or it says what is known
    served = [CompileJob(policy, size=size) for policy in policies or SERVED for size in _sizes()]
    if purpose == SERVICE:
        return served
    models = ("pbm", "cm") if purpose == PAPER_PROFILE else tuple(CLICK_MODELS)
    usual = (*policies_of(PAPER), *SERVED) if purpose == PAPER_PROFILE else tuple(POLICIES)
    chosen = sorted(policies or dict.fromkeys(usual), key=lambda name: name not in SERVED)
    played = [CompileJob(policy, models) for policy in chosen]
    return played if purpose == PAPER_PROFILE else [*served, *played]


def _sizes() -> tuple[int, ...]:
    try:
        from saferank.service.knowledge.warm_up import SIZES
    except ImportError as problem:
        raise RunError(f"the service needs more packages ({problem}): pip install 'saferank[service]'") from problem
    return SIZES


def precompile(jobs: Sequence[CompileJob], on_done: Callable[[int], None], processes: int | None = None) -> None:
    """Do the jobs in processes; ``on_done`` is called with 1 after each. The first failure ends everything."""
    if not JIT:
        raise RunError("nothing is compiled while NUMBA_DISABLE_JIT is set")
    if cache_folder() is None:
        raise RunError("compiled code cannot be kept; set NUMBA_CACHE_DIR to a folder that can be written")
    fresh = multiprocessing.get_context("spawn")  # a fork would copy the threads of this process in any state
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=fresh) as pool:
        waiting = {pool.submit(run_job, job): job for job in jobs}
        try:
            for done in as_completed(waiting):
                done.result()
                on_done(1)
        except BaseException as problem:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(problem, Exception):
                raise RunError(f"{waiting[done]} was not compiled: {problem}") from problem
            raise


def run_job(job: CompileJob) -> None:
    """Compile, or load, in this process."""
    if job.size:
        _serve(job)
    else:
        _play(job)


def _serve(job: CompileJob) -> None:
    from saferank.policies.registry import policy_kind
    from saferank.service.knowledge.warm_up import warm_up

    warm_up(job.policy, policy_kind(job.policy).default_rule(), (job.size,))


def _play(job: CompileJob) -> None:
    from saferank.instances import embedded_instances
    from saferank.simulation.experiment import Plan, cells_of, compile_loops

    instances = embedded_instances(1, models=tuple(dict.fromkeys(("pbm", *job.models))))
    plan = Plan(policies=(job.policy,), n_positions=5, rounds=1, repetitions=1)
    compile_loops([cell for cell in cells_of(instances, plan) if cell.instance.model_name in job.models])
