"""Repetitions: the same policy against the same users, from independent random streams.

A *run* is one repetition of one cell (instance, policy). Its random streams depend on the seed and on the names of
what is played, never on threads, on order or on what else is in the experiment. ``engine.py`` plays them. The users of
a repetition are the same for every policy, and the coins of a policy the same under every rule (``users.py``):
differences between policies and between rules are paired.

A world may change during a run (``drift.py``). Then a cell has several *eras*, and the compiled loop is called
again in each: regret, violations and wrong certificates are always those of the world that holds in that round.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import specialised
from saferank.errors import ArgumentError, argument, whole_number
from saferank.instances import Instance, with_examination
from saferank.memory import in_one_block
from saferank.policies import PolicyKind, Setup, make_room, make_room_in_plan, policy_kind
from saferank.randomness import Words, stream
from saferank.safety import judge_of
from saferank.simulation.drift import Drift
from saferank.simulation.feedback import LateFeedback, layout_of, terms_of
from saferank.simulation.late import new_awaited, play_late
from saferank.simulation.results import Result, mean_and_stderr
from saferank.simulation.rewards import CLICKS, best_of, reward_of, value_of
from saferank.simulation.rounds import Table, Tally, World, new_tally, play
from saferank.simulation.runs import MEASURES
from saferank.statistics.certificates import Certificates, new_certificates
from saferank.statistics.decision import decision_rule
from saferank.verbs import Floats, Ints, new_impression

FIRST_SEGMENT = 1 << 14
"""Rounds in the first call of the compiled loop; later calls last about SEGMENT_SECONDS."""

SEGMENT_SECONDS = 0.05
"""Short enough for a bar that moves and an interrupt that is noticed, however slow a round of the policy is."""

OnRounds = Callable[[int], None]


def ignore_rounds(rounds: int) -> None:
    """The default of ``on_rounds``."""


OnEnd = Callable[[Certificates], None]


def ignore_certificates(certificates: Certificates) -> None:
    """The default of ``on_end``."""


LONGEST = 10**15
"""The largest number of rounds: whole numbers up to here are exact as floats."""

MOST_REPETITIONS = 10**6


DEFAULT_RULE = "paper:1/T"


@dataclass(frozen=True)
class Plan:
    """What to play, apart from where and against whom. Whatever cannot be played is an ``ArgumentError``."""

    policies: tuple[str | PolicyKind, ...]
    n_positions: int
    rounds: int
    repetitions: int
    rule: str = DEFAULT_RULE
    seed: int = 0
    checkpoints: tuple[int, ...] = ()
    drift: Drift | None = None  # how the world changes; None: it does not
    lifetime: int | None = None  # of certificates, see ``Setup``, for those policies that take one
    feedback: LateFeedback | None = None  # when clicks arrive, and which never do; None: all at once
    layout: tuple[int, ...] | None = None  # by place of the screen: the policy's position shown there, from 1
    examination: tuple[float, ...] | None = None  # given to policies that need it; None: the true one
    reward: str = CLICKS  # by which regret is measured, see ``rewards.py``
    rule_is_given: bool = False  # every policy must take ``rule``; else the default stands for each one's own kind

    def __post_init__(self) -> None:
        whole_number(self.n_positions, "positions")
        whole_number(self.rounds, "rounds", at_most=LONGEST)
        whole_number(self.repetitions, "repetitions", at_most=MOST_REPETITIONS)
        whole_number(self.seed, "seed", at_least=0)
        with argument("policies"):
            _check_different([policy_kind(policy).name for policy in self.policies])
        with argument("rule"):
            decision_rule(self.rule, self.rounds)
        if self.lifetime is not None:
            whole_number(self.lifetime, "lifetime")
        for checkpoint in self.checkpoints:
            if not 1 <= checkpoint <= self.rounds:
                expected = f"expected whole numbers from 1 to {self.rounds}, the rounds"
                raise ArgumentError("checkpoints", f"found {checkpoint}, {expected}")
        layout_of(self.layout, self.n_positions)
        reward_of(self.reward, self.n_positions)
        self._check_memory()

    @property
    def beyond(self) -> bool:
        """True when another loop is needed than the usual one."""
        return not (self.feedback is None and self.layout is None and self.reward == CLICKS)

    @property
    def world(self) -> str | None:
        """What is not as in the paper, in words; None when nothing is."""
        parts = [] if self.drift is None else [f"drift:{self.drift}"]
        parts += [str(self.feedback)] if self.feedback is not None and str(self.feedback) else []
        parts += [] if self.layout is None else [f"layout:{'-'.join(map(str, self.layout))}"]
        parts += [] if self.examination is None else [f"told:{'-'.join(map(str, self.examination))}"]
        parts += [] if self.reward == CLICKS else [f"reward:{self.reward}"]
        return ",".join(parts) or None

    def _check_memory(self) -> None:
        """All runs of a cell wait for its last one: refuse what can never fit."""
        n_checkpoints = len(self.checkpoint_rounds())
        needed = self.repetitions * n_checkpoints * len(MEASURES) * 8
        if needed > memory_bytes():
            take = f"{self.repetitions:,} runs at {n_checkpoints} checkpoints take {needed / 1e9:,.1f} GB"
            has = f"this machine has {memory_bytes() / 1e9:,.1f}"
            raise ArgumentError("repetitions", f"{take}, {has}; choose fewer of either")

    def checkpoint_rounds(self) -> Ints:
        """The rounds at which results are written, ascending; the last one is always among them."""
        chosen = self.checkpoints or tuple(default_checkpoints(self.rounds).tolist())
        return np.array(sorted({*chosen, self.rounds}), np.int64)


def _check_different(names: Sequence[str]) -> None:
    if not names:
        raise ValueError("found none, expected one or more policies")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]} is there twice; keep one")


def memory_bytes() -> float:
    """The memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


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


class Era(NamedTuple):
    """A world, and the first round in which it holds."""

    first: int
    world: World


@dataclass(frozen=True)
class Cell:
    """One policy on one instance."""

    instance: Instance
    kind: PolicyKind
    setup: Setup
    eras: tuple[Era, ...]  # ascending; one, from round 1 on, when nothing changes
    plan: Plan
    checkpoints: Ints

    @property
    def world(self) -> World:
        """The world at the start."""
        return self.eras[0].world

    @property
    def rule_name(self) -> str | None:
        """The decision rule's name in results; None for policies that do not take one."""
        takes_one = self.kind.rule is not None and self.kind.rule(self.setup).kind == self.setup.rule.kind
        return rule_of(self.kind, self.plan) if takes_one else None

    def streams(self, repetition: int) -> tuple[Any, Any]:
        """The random streams of policy and users of one repetition.

        The users do not depend on the policy. The coins of a policy do not depend on its rule or reading: under two
        rules it shows the same pages until one of them decides.
        """
        query = (self.instance.id, self.instance.model_name)
        played = (*query, self.kind.name.partition(":")[0], repetition)
        return stream(self.plan.seed, "policy", *played), stream(self.plan.seed, "users", *query, repetition)

    def feedback_stream(self, repetition: int) -> Words:
        """The random stream of what is lost and how late the rest is; the same for every policy, like the users."""
        return stream(self.plan.seed, "feedback", self.instance.id, self.instance.model_name, repetition)


def rule_of(kind: PolicyKind, plan: Plan) -> str:
    """The rule by which a policy decides: the plan's, or where none was given its own kind at the level 1/T."""
    return kind.default_rule("1/T") if plan.rule == DEFAULT_RULE and not plan.rule_is_given else plan.rule


def cells_of(instances: Sequence[Instance], plan: Plan) -> list[Cell]:
    """Every policy on every instance, the policies of an instance together."""
    kinds = [policy_kind(name) for name in plan.policies]
    worlds = [(instance, _eras(instance, plan)) for instance in with_examination(instances)]
    return [_cell(instance, kind, plan, eras) for instance, eras in worlds for kind in kinds]


def _eras(instance: Instance, plan: Plan) -> tuple[Era, ...]:
    if plan.drift is None:
        return (Era(1, _world(instance.model, plan)),)
    changes = plan.drift.changes(instance.model.attraction, plan.n_positions, plan.rounds)
    models = [(first, instance.model._replace(attraction=attraction)) for first, attraction in changes]
    return tuple(Era(first, _world(model, plan)) for first, model in models)


def _world(model: Any, plan: Plan) -> World:
    n_positions = plan.n_positions
    kind, layout = reward_of(plan.reward, n_positions), layout_of(plan.layout, n_positions)
    judge = judge_of(model.attraction, np.arange(n_positions, dtype=np.uint32))
    original = value_of(kind, model, layout.astype(np.uint32))  # the original ranking, as it stands on the screen
    return World(model, best_of(kind, model, n_positions), judge, original)


def _cell(instance: Instance, kind: PolicyKind, plan: Plan, eras: tuple[Era, ...]) -> Cell:
    n_items = len(instance.items)
    if kind.largest_catalogue is not None and n_items > kind.largest_catalogue:
        raise ArgumentError(
            "instances",
            f"instance {instance.id!r} has {n_items} items; {kind.name} compares all pairs and takes at most "
            f"{kind.largest_catalogue}",
        )
    with argument("positions"):
        kind.check_positions(plan.n_positions)
    rule = decision_rule(rule_of(kind, plan), plan.rounds)
    with argument("rule"):
        kind.check_rule(rule)
    lifetime = plan.lifetime if kind.lifetimes else None
    with argument("lifetime"):
        kind.check_lifetime(lifetime)
    with argument("instances" if plan.examination is None else "examination"):
        known = instance if plan.examination is None else replace(instance, examination=plan.examination)
        _check_examination(known, kind, plan.n_positions)
    setup = Setup(n_items, plan.n_positions, rule, plan.rounds, lifetime, known.examination)
    return Cell(instance, kind, setup, eras, plan, _checkpoints(plan, eras))


def _check_examination(instance: Instance, kind: PolicyKind, n_positions: int) -> None:
    """ValueError when the policy needs examination probabilities that the instance does not have."""
    if not kind.needs_examination:
        return
    where = f"instance {instance.id!r} ({instance.model_name})"
    if instance.examination is None:
        raise ValueError(
            f"{where}: {kind.name} needs the examination probabilities of a position-based model; add a pbm instance "
            f"with the same id, or leave {kind.name} out"
        )
    try:
        kind.check_examination(instance.examination, n_positions)
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}; {kind.name} needs it") from problem


def _checkpoints(plan: Plan, eras: tuple[Era, ...]) -> Ints:
    """Those of the plan; if none were asked for, also the rounds before the first and the last change."""
    chosen = plan.checkpoint_rounds()
    if plan.checkpoints or len(eras) == 1:
        return chosen
    return np.union1d(chosen, [eras[1].first - 1, eras[-1].first - 1])


def run(
    cell: Cell, repetition: int, on_rounds: OnRounds = ignore_rounds, on_end: OnEnd = ignore_certificates
) -> Floats:
    """Play one repetition; returns a row of ``MEASURES`` for every checkpoint.

    ``on_end`` gets the certificates of the whole run; none of a policy that gives none.
    """
    kind, setup = cell.kind, cell.setup
    policy, evidence = kind.begin(setup)
    plan, places = kind.empty_plan(policy, evidence, setup.first_call()), kind.places(setup.n_items, setup.n_positions)
    plan = plan if kind.for_many_pages is None else kind.for_many_pages(plan)
    clicks, tally = np.zeros(setup.n_positions, np.int64), new_tally(cell.checkpoints)
    policy_rng, user_rng = cell.streams(repetition)
    parts = evidence, plan, tally, clicks, (policy_rng, user_rng, user_rng)
    evidence, plan, tally, clicks, words = in_one_block(parts)
    impression = new_impression(setup.n_positions, places)
    loop, arriving = _loop(cell, repetition)
    segment, played = FIRST_SEGMENT, FIRST_SEGMENT
    certificates = new_certificates(0)
    while tally.rounds[0] < cell.plan.rounds or arriving[0]:
        cramped = evidence, plan
        policy, evidence = make_room(kind, setup, policy, evidence, len(impression.ranking))
        plan = make_room_in_plan(plan)
        if played == 0 and evidence is cramped[0] and plan is cramped[1]:  # better to stop than to ask forever
            raise RuntimeError(f"{kind.name} finds no room for round {tally.rounds[0] + 1}, and nothing grows")
        certificates = evidence.duels.certificates if kind.certifies else new_certificates(0)
        table = Table(impression, clicks, certificates, *words)
        before, started = int(tally.rounds[0]), time.perf_counter()
        world, until = _stretch(cell, before - int(arriving[0]))
        loop(policy, evidence, plan, world, table, tally, min(before + segment, until))
        played = int(tally.rounds[0]) - before
        segment = 1 + int(played * SEGMENT_SECONDS / (time.perf_counter() - started))
        on_rounds(played)
    on_end(certificates)
    return tally.rows


def _loop(cell: Cell, repetition: int) -> tuple[Callable[..., None], Ints]:
    """The compiled loop of a cell, and an entry that is 1 while pages wait to be learnt in the present round."""
    kinds = cell.kind.policy, type(cell.world.model)
    if not cell.plan.beyond:
        return specialised(play, *kinds), np.zeros(1, np.int64)
    plan, setup = cell.plan, cell.setup
    layout = layout_of(plan.layout, plan.n_positions)
    terms = terms_of(plan.feedback, layout, reward_of(plan.reward, plan.n_positions))
    words = cell.feedback_stream(repetition)
    awaited = new_awaited(
        len(terms.delays), plan.n_positions, cell.kind.places(setup.n_items, setup.n_positions), words
    )
    late = specialised(play_late, *kinds)

    def loop(policy: Any, evidence: Any, plan: Any, world: World, table: Table, tally: Tally, until: int) -> None:
        late(policy, evidence, plan, world, table, tally, awaited, terms, until)

    return loop, awaited.arriving


def _stretch(cell: Cell, played: int) -> tuple[World, int]:
    """The world of the round after ``played`` rounds, and the last round that it holds."""
    rounds = cell.plan.rounds
    ends = [min(era.first - 1, rounds) for era in cell.eras[1:]] + [rounds]
    number = next(number for number, end in enumerate(ends) if played < end)
    return cell.eras[number].world, ends[number]


def compile_loops(cells: Sequence[Cell]) -> None:
    """Compile, or load, the loop of every kind of cell once, before threads would do it at the same time."""
    kinds = [(cell.instance.model_name, cell.plan.world, _types_of(cell)) for cell in cells]
    loops = dict(zip(kinds, cells, strict=True))
    for cell in loops.values():
        run(replace(cell, plan=replace(cell.plan, rounds=1, checkpoints=()), checkpoints=np.ones(1, np.int64)), 0)


def _types_of(cell: Cell) -> Any:
    policy, evidence = cell.kind.begin(cell.setup)
    return types_of((policy, evidence, cell.kind.empty_plan(policy, evidence, cell.setup.first_call())))


def types_of(value: Any) -> Any:
    """The types in nested tuples: evidence and plans that agree in them share compiled code."""
    return (type(value), *map(types_of, value)) if isinstance(value, tuple) else type(value)


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
        lifetime=cell.setup.lifetime,
        clicks_relative_mean=mean_and_stderr(runs[:, :, 3])[0],
        worst_page_min=runs[:, :, 4].min(axis=0).tolist(),
        world=cell.plan.world,
    )
