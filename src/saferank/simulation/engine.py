"""Engines, which play the runs of an experiment, and how their results are gathered.

An *engine* (threads here, a Dask cluster in ``cluster/``) plays tasks in any order. ``Gathered`` puts the runs of a
cell in the order of their repetitions before it averages, so results do not depend on the engine. Threads suffice on
one machine: kernels hold no GIL.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from saferank._kernel import prepare_thread
from saferank.simulation.experiment import Cell, OnRounds, compile_loops, ignore_rounds, result_of, run
from saferank.simulation.results import Result
from saferank.simulation.runs import Runs, kept
from saferank.verbs import Floats

TASK_ROUNDS = 1_000_000
"""Rounds of a group of repetitions that a thread is handed, about: handing over costs as much as 2,000 rounds."""


Item = TypeVar("Item")
Done = TypeVar("Done")


class Task(NamedTuple):
    """Some repetitions of a cell."""

    cell: int  # its number in the experiment
    repetitions: tuple[int, ...]


class Played(NamedTuple):
    """What came of a task."""

    task: Task
    rows: list[Floats]  # by repetition
    seconds: float  # of the thread that played it


class SimulationEngine(Protocol):
    """Plays tasks."""

    task_rounds: int  # about how many rounds a task should have

    def play(self, cells: Sequence[Cell], tasks: Sequence[Task], on_rounds: OnRounds) -> Iterator[Played]:
        """Tasks as they are done, in any order; ``on_rounds`` gets rounds played, what it raises ends everything."""


class _Stopped(Exception):  # noqa: N818 (no error: the experiment is being stopped)
    """Ends a run from inside."""


class Threads:
    """The engine of one machine."""

    task_rounds = TASK_ROUNDS

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def play(self, cells: Sequence[Cell], tasks: Sequence[Task], on_rounds: OnRounds) -> Iterator[Played]:
        """Tasks as they are done."""
        compile_loops([cells[number] for number in sorted({task.cell for task in tasks})])
        yield from on_threads(self.jobs, lambda task, count: play_task(cells[task.cell], task, count), tasks, on_rounds)


def on_threads(
    jobs: int, play: Callable[[Item, OnRounds], Done], items: Iterable[Item], on_rounds: OnRounds
) -> Iterator[Done]:
    """What ``play`` makes of the items, as they are done; a failure is raised, and ends what is being played.

    Only a few items wait, so that an interrupt finds no long queue.
    """
    stop = threading.Event()

    def count(rounds: int) -> None:
        if stop.is_set():
            raise _Stopped
        on_rounds(rounds)

    pool, left = ThreadPoolExecutor(max_workers=jobs, initializer=prepare_thread), iter(items)
    try:
        waiting = {pool.submit(play, item, count) for item in itertools.islice(left, 2 * jobs)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(play, item, count) for item in itertools.islice(left, len(done))}
            yield from (future.result() for future in done)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def play_task(cell: Cell, task: Task, on_rounds: OnRounds = ignore_rounds) -> Played:
    """Play a task of this cell on this thread."""
    started = time.perf_counter()
    rows = [run(cell, repetition, on_rounds) for repetition in task.repetitions]
    return Played(task, rows, time.perf_counter() - started)


class Gathered:
    """What has come of an experiment so far.

    Once all runs of a cell are there, their means are kept at every checkpoint and the runs themselves at some.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        self.results: dict[int, Result] = {}  # of the cells that are complete, by number
        self.kept: dict[int, Runs] = {}  # single runs of the cells that are complete
        self.runs: dict[int, dict[int, Floats]] = {}  # of the others, by number and repetition
        self.seconds: dict[int, float] = {}  # of threads, by number

    def add(self, played: Played) -> None:
        """Take in a task that was played."""
        number, cell = played.task.cell, self.cells[played.task.cell]
        self.seconds[number] = self.seconds.get(number, 0.0) + played.seconds
        runs = self.runs.setdefault(number, {})
        runs |= dict(zip(played.task.repetitions, played.rows, strict=True))
        if len(runs) == cell.plan.repetitions:
            self.finish(number, np.array([runs[repetition] for repetition in sorted(runs)]))
            del self.runs[number]

    def finish(self, number: int, rows: Floats) -> None:
        """Take in all runs of a cell, in the order of their repetitions."""
        cell = self.cells[number]
        self.results[number], self.kept[number] = result_of(cell, rows), kept(cell.checkpoints, rows)

    def tasks(self, task_rounds: int) -> list[Task]:
        """What is still to be played, in tasks of about this number of rounds."""
        unfinished = [number for number in range(len(self.cells)) if number not in self.results]
        return [task for number in unfinished for task in self._tasks_of(number, task_rounds)]

    def _tasks_of(self, number: int, task_rounds: int) -> list[Task]:
        plan, there = self.cells[number].plan, self.runs.get(number, {})
        missing = [repetition for repetition in range(plan.repetitions) if repetition not in there]
        together = max(1, task_rounds // plan.rounds)
        starts = range(0, len(missing), together)
        return [Task(number, tuple(missing[start : start + together])) for start in starts]

    @property
    def rounds_there(self) -> int:
        """How many rounds need not be played any more."""
        complete = sum(self.cells[number].plan.repetitions * self.cells[number].plan.rounds for number in self.results)
        return complete + sum(len(runs) * self.cells[number].plan.rounds for number, runs in self.runs.items())

    def in_order(self) -> list[Result]:
        """The results in the order of the cells."""
        return [self.results[number] for number in range(len(self.cells))]

    def runs_in_order(self) -> list[Runs]:
        """The single runs in the order of the cells."""
        return [self.kept[number] for number in range(len(self.cells))]


def simulate(
    cells: Sequence[Cell],
    jobs: int = 1,
    on_rounds: OnRounds = ignore_rounds,
    *,
    engine: SimulationEngine | None = None,
    gathered: Gathered | None = None,
) -> list[Result]:
    """Play every repetition of every cell, on ``jobs`` threads or by another engine; the results do not depend on it.

    ``on_rounds`` is called with the rounds played since, on any thread; what it raises ends the experiment. What
    ``gathered`` has already is not played again.
    """
    player = Threads(jobs) if engine is None else engine
    so_far = Gathered(cells) if gathered is None else gathered
    for played in player.play(cells, so_far.tasks(player.task_rounds), on_rounds):
        so_far.add(played)
    return so_far.in_order()
