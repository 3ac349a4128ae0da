"""Engines and what becomes of their tasks."""

from collections.abc import Iterator, Sequence

import pytest

from saferank.instances.embedded import embedded_instances
from saferank.simulation.engine import Gathered, Played, Task, Threads, play_task, simulate
from saferank.simulation.experiment import Cell, OnRounds, Plan, cells_of

CELLS = cells_of(
    embedded_instances(2, models=("pbm",)), Plan(("bubble-rank", "original"), 5, 300, 5, rule="paper:0.05")
)
EXPECTED = simulate(CELLS)


class Backwards:
    """An engine that plays the last task first, two repetitions at a time."""

    task_rounds = 600

    def play(self, cells: Sequence[Cell], tasks: Sequence[Task], on_rounds: OnRounds) -> Iterator[Played]:
        for task in reversed(tasks):
            yield play_task(cells[task.cell], task, on_rounds)


def test_results_do_not_depend_on_the_engine_nor_on_its_order() -> None:
    assert simulate(CELLS, engine=Backwards()) == EXPECTED


@pytest.mark.parametrize(("task_rounds", "sizes"), [(1, [1] * 5), (600, [2, 2, 1]), (10**9, [5])])
def test_tasks_have_about_as_many_rounds_as_asked_for(task_rounds: int, sizes: list[int]) -> None:
    tasks = Gathered(CELLS).tasks(task_rounds)
    assert [len(task.repetitions) for task in tasks if task.cell == 1] == sizes
    assert sorted((task.cell, r) for task in tasks for r in task.repetitions) == [
        (cell, r) for cell in range(4) for r in range(5)
    ]


def test_what_is_there_already_is_not_played_again() -> None:
    gathered, heard = Gathered(CELLS), list[int]()
    for task in (Task(0, (3, 1)), Task(2, (0, 1, 2, 3, 4))):
        gathered.add(play_task(CELLS[task.cell], task))
    assert gathered.results == {2: EXPECTED[2]}
    assert gathered.tasks(10**9)[0] == Task(0, (0, 2, 4))
    assert simulate(CELLS, on_rounds=heard.append, engine=Threads(2), gathered=gathered) == EXPECTED
    assert sum(heard) == (4 * 5 - 7) * 300
    assert sorted(gathered.seconds) == [0, 1, 2, 3]
    assert gathered.runs == {}
