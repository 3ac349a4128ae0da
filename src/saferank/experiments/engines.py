"""Which engine plays, threads or a Dask cluster, and why a policy does not compile."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from saferank._kernel import CompilationError, why_not_compiled
from saferank.errors import ArgumentError, UsageError, whole_number
from saferank.simulation.engine import SimulationEngine, Threads

MOST_JOBS = 1024


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def engine_of(jobs: int | None, cluster: str | None, classes: Iterable[Any] = ()) -> Iterator[SimulationEngine]:
    """An engine: ``jobs`` threads (None: one for each core), or the cluster at this address.

    ``classes`` are those of the policies and click models that it has to play: a plug-in must be in a file, whose
    source is sent to the workers.
    """
    if cluster is None:
        yield Threads(cores() if jobs is None else whole_number(jobs, "jobs", at_most=MOST_JOBS))
        return
    from saferank.simulation.cluster import AddressError, NotInAFileError, connected, sources_of

    try:
        sources_of(classes)
        with connected(cluster) as engine:
            yield engine
    except (AddressError, NotInAFileError) as problem:
        raise ArgumentError("cluster", str(problem)) from problem


@contextmanager
def explain_compilation() -> Iterator[None]:
    """Say in a sentence why a plug-in does not compile."""
    try:
        yield
    except CompilationError as problem:
        raise UsageError(f"a policy or click model does not compile: {why_not_compiled(problem)}") from problem
