"""Repetitions: the same policy against the same users, from independent random streams.

A *run* is one repetition of one cell (instance, policy). Its random streams depend on the seed and on the names of
what is played, never on threads, on order or on what else is in the experiment. ``engine.py`` says who plays them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saferank._kernel import specialised
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


def unheard(rounds: int) -> None:
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


def cells_of(instances: Sequence[Instance], plan: Plan) -> list[Cell]:
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


def run(cell: Cell, repetition: int, on_rounds: OnRounds = unheard) -> Floats:
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
