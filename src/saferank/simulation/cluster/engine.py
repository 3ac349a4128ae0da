"""The engine of a Dask cluster.

Tasks are handed out a few hundred at a time. A task that was lost with its worker is given to another one by Dask;
since a run depends on its names and the seed alone, it comes out the same. Nothing is kept on the cluster.
"""

import itertools
import queue
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from saferank.errors import ClusterError
from saferank.simulation.cluster.shipping import RefusedPlugin, Source, portable, sources_of
from saferank.simulation.cluster.worker import OtherVersion, described, identity, play
from saferank.simulation.engine import Played, Task
from saferank.simulation.experiment import Cell, OnRounds

ANSWER_SECONDS = 5.0
"""A scheduler that takes longer to answer is taken for absent."""

WORKER_SECONDS = 60.0
"""So long the experiment waits when all workers are gone."""

_AHEAD = 256
_POLL_SECONDS = 2.0
_RETRIES = 2


class AddressError(ClusterError):
    """Something that is no address of a scheduler."""


_ADDRESS = re.compile(r"(?:[a-z]+://)?(?:\[[0-9a-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}")


@contextmanager
def connected(address: str) -> Iterator["Cluster"]:
    """The engine of the cluster whose scheduler is at ``address``, checked: it answers and its workers are like us."""
    if not _ADDRESS.fullmatch(address):
        raise AddressError(f"found {address!r}, expected the address of a Dask scheduler, like tcp://127.0.0.1:8786")
    try:
        from distributed import Client as UntypedClient
    except ModuleNotFoundError as problem:
        raise ClusterError("needs dask.distributed: pip install 'saferank[cluster]'") from problem
    make_client: Any = UntypedClient
    try:
        client = make_client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:  # TimeoutError is an OSError
        raise ClusterError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler` and give the address it shows"
        ) from problem
    try:
        _check_workers(client, address)
        yield Cluster(client, address)
    finally:
        client.close(timeout=ANSWER_SECONDS)


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, and workers that would not give the same results."""
    try:
        client.wait_for_workers(1, timeout=2 * ANSWER_SECONDS)
        found = client.run(identity)
    except TimeoutError as problem:
        raise ClusterError(
            f"the cluster at {address} has no worker; start one with `dask worker {address}`"
        ) from problem
    except ModuleNotFoundError as problem:
        raise ClusterError(f"a worker of {address} has no module {problem.name}; install saferank there") from problem
    except AttributeError as problem:  # a saferank from before there was a cluster
        raise ClusterError(f"a worker of {address} has another saferank; here is {described(identity())}") from problem
    for worker, its in found.items():
        if its != identity():
            runs = f"worker {worker} runs {described(its)}"
            raise ClusterError(f"{runs}, here is {described(identity())}; install the same there")


class Cluster:
    """An engine whose tasks run on a Dask cluster."""

    task_rounds = 10_000_000
    """Larger tasks than those of threads: each travels over a network."""

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._sources: dict[tuple[Any, ...], tuple[Source, ...]] = {}

    def play(self, cells: Sequence[Cell], tasks: Sequence[Task], on_rounds: OnRounds) -> Iterator[Played]:
        """Tasks as they are done."""
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        coming, waiting = iter(tasks), set()
        ahead = max(_AHEAD, 4 * sum(self._client.nthreads().values()))
        try:
            for task in itertools.islice(coming, ahead):
                waiting.add(self._submitted(cells, task, done))
            while waiting:
                future = self._next(done)
                played = self._outcome(future)
                waiting.discard(future)
                waiting |= {self._submitted(cells, task, done) for task in itertools.islice(coming, 1)}
                on_rounds(cells[played.task.cell].plan.rounds * len(played.task.repetitions))
                yield played
        finally:
            self._cancel(waiting)

    def _submitted(self, cells: Sequence[Cell], task: Task, done: "queue.SimpleQueue[Any]") -> Any:
        cell = cells[task.cell]
        plan, sources = replace(cell.plan, policies=(cell.kind.name,)), self._sources_of(cell)
        users = portable(cell.instance)
        future = self._client.submit(play, users, plan, task, identity(), sources, pure=False, retries=_RETRIES)
        future.add_done_callback(done.put)
        return future

    def _sources_of(self, cell: Cell) -> tuple[Source, ...]:
        parts = (cell.kind.policy, cell.kind.start, type(cell.instance.model))
        if parts not in self._sources:
            self._sources[parts] = sources_of(parts)
        return self._sources[parts]

    def _next(self, done: "queue.SimpleQueue[Any]") -> Any:
        """The next future that is done."""
        return self._patiently(lambda: done.get(timeout=_POLL_SECONDS))

    def _patiently(self, attempt: Callable[[], Any]) -> Any:
        """What an attempt gives that may run out of time; an error when there has been no worker for too long."""
        deserted = None
        while True:
            try:
                return attempt()
            except (queue.Empty, TimeoutError):
                deserted = self._deserted(deserted)

    def _deserted(self, since: float | None) -> float | None:
        """When the last worker was gone, None while there is one."""
        if self._client.status != "running":
            raise ClusterError(f"lost the scheduler at {self._address}")
        if self._client.scheduler_info()["workers"]:
            return None
        if since is not None and time.monotonic() - since > WORKER_SECONDS:
            raise ClusterError(f"the cluster at {self._address} has had no worker for {WORKER_SECONDS:.0f} s")
        return time.monotonic() if since is None else since

    def _outcome(self, future: Any) -> Played:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:  # a result may be lost with its worker after it was done: then it is played again, if anybody is there
            return Played(*self._patiently(lambda: future.result(timeout=_POLL_SECONDS)))
        except OtherVersion as problem:
            raise ClusterError(f"{problem}, here is {described(identity())}; install the same there") from problem
        except RefusedPlugin as problem:
            raise ClusterError(str(problem)) from problem
        except KilledWorker as problem:
            raise ClusterError(f"the same work ended several workers of {self._address}: {problem}") from problem
        except FutureCancelledError as problem:
            raise ClusterError(f"lost the scheduler at {self._address}") from problem

    def _cancel(self, futures: set[Any]) -> None:
        if futures and self._client.status == "running":
            self._client.cancel(list(futures))
