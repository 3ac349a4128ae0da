"""Compile on all cores, before a first run needs it: each policy in a process of its own.

Numba compiles one function at a time in a process, so a first experiment with six policies would keep one core busy
while the others wait. The processes write to the cache on disk, from which every later process loads. A mark in the
cache says what is there already.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from saferank._kernel import JIT, cache_folder, is_compiled, is_foreign
from saferank.errors import RunError
from saferank.plugins import home_of
from saferank.policies import POLICIES
from saferank.progress import KERNELS, Reporter
from saferank.simulation.experiment import Cell

LARGEST_SMALL = 12
"""Maximum items of a catalogue for which loops are compiled ahead, like those of the paper and of the examples."""


class CompileJob(NamedTuple):
    """What one process compiles."""

    policy: str
    models: tuple[str, ...] = ()  # the click models of simulated users
    size: int = 0  # of a catalogue that is served; 0 where nothing is

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the compiled parts, one after the other."""
        return tuple(f"{self.policy} {what}" for what in self.models or (f"served {self.size}",))


def jobs_of(cells: Iterable[Cell]) -> list[CompileJob]:
    """What these cells need; not what plug-ins, other worlds and large catalogues need."""
    models: dict[str, dict[str, None]] = {}
    for cell in cells:
        name = cell.kind.name.partition(":")[0]
        known = POLICIES.get(name)
        # of the package, and not of a plug-in that took our class: no other process knows it
        ours = known is not None and known.policy is cell.kind.policy and not is_foreign(home_of(known.start))
        foreign = any(map(is_foreign, (cell.kind.policy, type(cell.instance.model))))
        if cell.setup.n_items <= LARGEST_SMALL and not cell.plan.beyond and ours and not foreign:
            models.setdefault(name, {})[cell.instance.model_name] = None
    return [CompileJob(policy, tuple(names)) for policy, names in models.items()]


def worth_compiling(jobs: Iterable[CompileJob], processes: int) -> list[CompileJob]:
    """The jobs that the cache does not hold; none where processes would gain nothing.

    They gain nothing if there is only one job or one process, or if what they compile cannot be kept: then the code is
    compiled where it is used.
    """
    if not JIT or processes < 2 or cache_folder() is None:
        return []
    cold = [job for job in jobs if not all(map(is_compiled, job.parts))]
    return cold if len(cold) > 1 else []


def compile_ahead(jobs: Sequence[CompileJob], shown: Reporter, processes: int) -> None:
    """Do the jobs in a number of processes, with a bar. The first failure ends everything and is a ``RunError``."""
    if not JIT:
        raise RunError("nothing is compiled while NUMBA_DISABLE_JIT is set")
    if cache_folder() is None:
        raise RunError("compiled code cannot be kept; set NUMBA_CACHE_DIR to a folder that can be written")
    with shown.meter(sum(len(job.parts) for job in jobs), KERNELS) as meter:
        running: list[subprocess.Popen[str]] = []
        pool = ThreadPoolExecutor(min(processes, len(jobs)) or 1)
        try:
            for done in [pool.submit(_compile, job, meter, running) for job in jobs]:
                done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.kill()
            pool.shutdown()


def _compile(job: CompileJob, on_part: Callable[[int], None], running: list[subprocess.Popen[str]]) -> None:
    command = [sys.executable, "-m", "saferank.precompiling", json.dumps(job)]
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # wherever the package was found
    said = ""
    with subprocess.Popen(
        command, env=around, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        running.append(process)
        for line in process.stdout or ():
            if line.strip() in job.parts:
                on_part(1)
            else:
                said = line.strip() or said
    if process.returncode:
        raise RunError(f"{' and '.join(job.parts)}: not compiled: {said or 'the process ended'}")
