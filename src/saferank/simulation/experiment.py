"""Repetitions: the same policy against the same users, from independent random streams, on one thread or several.

A *run* is one repetition of one cell (instance, policy). Its random streams depend on the seed and on the names of
what is played, never on threads, on order or on what else is in the experiment. Threads suffice: kernels hold no GIL.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saferank._kernel import prepare_thread, specialised
from saferank.click_models.best import best_reward
from saferank.instances import Instance
from saferank.policies import PolicyKind, Setup, make_room, policy_kind
from saferank.randomness import stream
from saferank.safety import judge_of
from saferank.simulation.arena import in_one_block
from saferank.simulation.results import Result, mean_and_stderr
from saferank.simulation.rounds import Table, World, new_tally, play
from saferank.statistics.decision import decision_rule
from saferank.statistics.duels import DENSE_LIMIT, new_certificates
from saferank.verbs import Floats, Ints, new_impression

FIRST_SEGMENT = 1 << 14
"""Rounds in the first call of the compiled loop; later calls last about SEGMENT_SECONDS."""

SEGMENT_SECONDS = 0.05
"""Short enough for a bar that moves and an interrupt that is heard, however slow a round of the policy is."""

OnRounds = Callable[[int], None]
Task = tuple[int, range]
"""The number of a cell and some repetitions of it."""

TASK_ROUNDS = 1_000_000
"""Repetitions are handed to threads in groups of about so many rounds: handing over costs as much as 2,000 rounds."""


def _unheard(rounds: int) -> None:
    """Nobody wants to know how many rounds were played."""


@dataclass(frozen=True)
class Plan:
    """What to play, apart from where and against whom."""

    policies: tuple[str, ...]
    n_positions: int
    rounds: int
    repetitions: int
    rule: str = "paper:1/T"
    seed: int = 0
    checkpoints: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n_positions", "rounds", "repetitions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, not {self.seed}")
        if not self.policies or len(set(self.policies)) != len(self.policies):
            raise ValueError(f"policies must be one or more different names, not {', '.join(self.policies) or 'none'}")
        for policy in self.policies:
            policy_kind(policy)
        decision_rule(self.rule, self.rounds)
        bad = [c for c in self.checkpoints if not 1 <= c <= self.rounds]
        if bad:
            raise ValueError(f"checkpoint {bad[0]} is not a round between 1 and {self.rounds}")

    def checkpoint_rounds(self) -> Ints:
        """The rounds at which results are written, ascending."""
        chosen = self.checkpoints or tuple(default_checkpoints(self.rounds).tolist())
        return np.array(sorted(set(chosen)), np.int64)


def default_checkpoints(rounds: int) -> Ints:
    """About 200 log-spaced rounds, every power of ten and the last one among them.

    >>> default_checkpoints(12).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    >>> len(default_checkpoints(100_000))
    170
    """
    spaced = np.round(np.geomspace(1, rounds, 200)).astype(np.int64)
    powers = 10 ** np.arange(len(str(rounds)), dtype=np.int64)
    return np.unique(np.concatenate([spaced, powers[powers <= rounds], [rounds]]))


@dataclass(frozen=True)
class Cell:
    """One policy on one instance."""

    instance: Instance
    kind: PolicyKind
    setup: Setup
    world: World
    plan: Plan
    checkpoints: Ints

    @property
    def rule_name(self) -> str | None:
        """The decision rule's name as results tell it; None for policies that do not take one."""
        return self.plan.rule if self.kind.rule is not None and self.kind.rule(self.setup) is self.setup.rule else None

    def streams(self, repetition: int) -> tuple[Any, Any]:
        """The random streams of policy and users of one repetition."""
        key = (self.instance.id, self.instance.model_name, self.kind.name, self.rule_name or "", repetition)
        return stream(self.plan.seed, "policy", *key), stream(self.plan.seed, "users", *key)


def cells_of(instances: list[Instance], plan: Plan) -> list[Cell]:
    """Every policy on every instance, the policies of an instance together."""
    kinds = [policy_kind(name) for name in plan.policies]
    worlds = [(instance, _world(instance, plan.n_positions)) for instance in instances]
    return [_cell(instance, kind, plan, world) for instance, world in worlds for kind in kinds]


def _world(instance: Instance, n_positions: int) -> World:
    judge = judge_of(instance.model.attraction, np.arange(n_positions, dtype=np.uint32))
    return World(instance.model, best_reward(instance.model, n_positions).value, judge)


def _cell(instance: Instance, kind: PolicyKind, plan: Plan, world: World) -> Cell:
    n_items = len(instance.items)
    if kind.largest_catalogue is not None and n_items > kind.largest_catalogue:
        raise ValueError(
            f"instance {instance.id!r} has {n_items} items; {kind.name} compares all pairs and takes at most "
            f"{kind.largest_catalogue}"
        )
    rule = decision_rule(plan.rule, plan.rounds)
    setup = Setup(n_items, plan.n_positions, rule, plan.rounds)
    return Cell(instance, kind, setup, world, plan, plan.checkpoint_rounds())


def run(cell: Cell, repetition: int, on_rounds: OnRounds = _unheard) -> Floats:
    """Play one repetition; returns regret, violations and wrong certificates by checkpoint (rows of three)."""
    kind, setup = cell.kind, cell.setup
    policy, state = kind.start(setup)
    clicks, tally = np.zeros(setup.n_positions, np.int64), new_tally(cell.checkpoints)
    state, tally, clicks, (policy_rng, user_rng) = in_one_block((state, tally, clicks, cell.streams(repetition)))
    impression = new_impression(setup.n_positions, kind.places(setup))
    loop = specialised(play, kind.policy, type(cell.world.model))
    segment, played = FIRST_SEGMENT, FIRST_SEGMENT
    while tally.rounds[0] < cell.plan.rounds:
        cramped = state if played == 0 else None
        policy, state = make_room(kind, setup, policy, state)
        if state is cramped:  # better to stop than to ask for ever
            raise RuntimeError(f"{kind.name} finds no room for round {tally.rounds[0] + 1}, and nothing grows")
        certificates = state.duels.certificates if kind.certifies else new_certificates(0)
        table = Table(impression, clicks, certificates, policy_rng, user_rng)
        before, started = int(tally.rounds[0]), time.perf_counter()
        loop(policy, state, cell.world, table, tally, min(before + segment, cell.plan.rounds))
        played = int(tally.rounds[0]) - before
        segment = 1 + int(played * SEGMENT_SECONDS / (time.perf_counter() - started))
        on_rounds(played)
    return tally.rows


def compile_loops(cells: list[Cell]) -> None:
    """Compile, or load, the loop of every kind of cell once, before threads would do it at the same time."""
    kinds = {(cell.kind.name, cell.instance.model_name, len(cell.instance.items) > DENSE_LIMIT): cell for cell in cells}
    for cell in kinds.values():
        run(replace(cell, plan=replace(cell.plan, rounds=1, checkpoints=()), checkpoints=np.ones(1, np.int64)), 0)


def result_of(cell: Cell, runs: Floats) -> Result:
    """Means and standard errors of the runs of a cell (repetition, checkpoint, column)."""
    regret, regret_stderr = mean_and_stderr(runs[:, :, 0])
    violations, violations_stderr = mean_and_stderr(runs[:, :, 1])
    return Result(
        instance=cell.instance.id,
        model=cell.instance.model_name,
        policy=cell.kind.name,
        rule=cell.rule_name,
        positions=cell.setup.n_positions,
        items=cell.setup.n_items,
        repetitions=len(runs),
        rounds=cell.checkpoints.tolist(),
        regret_mean=regret,
        regret_stderr=regret_stderr,
        violations_mean=violations,
        violations_stderr=violations_stderr,
        wrong_certificates_mean=mean_and_stderr(runs[:, :, 2])[0] if cell.kind.certifies else None,
    )


def simulate(cells: list[Cell], jobs: int = 1, on_rounds: OnRounds = _unheard) -> list[Result]:
    """Play every repetition of every cell on ``jobs`` threads; the results do not depend on how many.

    ``on_rounds`` hears of rounds as they are played, on any thread; what it raises ends the experiment.
    """
    compile_loops(cells)
    stop = threading.Event()

    def heard(rounds: int) -> None:
        if stop.is_set():
            raise _Stopped
        on_rounds(rounds)

    def play_some(task: Task) -> tuple[Task, list[Floats]]:
        number, repetitions = task
        return task, [run(cells[number], repetition, heard) for repetition in repetitions]

    pool = ThreadPoolExecutor(max_workers=jobs, initializer=prepare_thread)
    try:
        return _gather(cells, _played(pool, play_some, _tasks(cells), ahead=2 * jobs))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _tasks(cells: list[Cell]) -> Iterator[Task]:
    for number, cell in enumerate(cells):
        together = max(1, TASK_ROUNDS // cell.plan.rounds)
        for start in range(0, cell.plan.repetitions, together):
            yield number, range(start, min(start + together, cell.plan.repetitions))


class _Stopped(Exception):  # noqa: N818 (no error: the experiment is being stopped)
    """Ends a run from inside."""


def _played(
    pool: ThreadPoolExecutor, play_some: Callable[[Task], tuple[Task, list[Floats]]], tasks: Iterator[Task], ahead: int
) -> Iterator[tuple[Task, list[Floats]]]:
    """Tasks as they are done; only a few wait, so that an interrupt finds no long queue. A failure is raised."""
    waiting = {pool.submit(play_some, task) for task in itertools.islice(tasks, ahead)}
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        waiting |= {pool.submit(play_some, task) for task in itertools.islice(tasks, len(done))}
        yield from (future.result() for future in done)


def _gather(cells: list[Cell], played: Iterable[tuple[Task, list[Floats]]]) -> list[Result]:
    """The results in the order of the cells; the runs of a cell are forgotten once all of them are there."""
    runs: dict[int, dict[int, Floats]] = {number: {} for number in range(len(cells))}
    results: dict[int, Result] = {}
    for (number, repetitions), rows in played:
        runs[number] |= dict(zip(repetitions, rows, strict=True))
        if len(runs[number]) == cells[number].plan.repetitions:
            of_cell = runs.pop(number)
            results[number] = result_of(cells[number], np.array([of_cell[r] for r in sorted(of_cell)]))
    return [results[number] for number in range(len(cells))]
