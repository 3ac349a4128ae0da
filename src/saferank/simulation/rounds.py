"""The compiled loop: one policy, one user model, round after round."""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies import has_room
from saferank.randomness import Words
from saferank.safety import Judge, violates
from saferank.statistics.duels import Certificates
from saferank.verbs import Floats, Impression, Ints, choose, click, expected_clicks, learn


class World(NamedTuple):
    """The truth: how users click, the best reward there is, and who is better than whom."""

    model: Any
    best: float
    judge: Judge


class Table(NamedTuple):
    """What policy and users share while a run goes on: one page, its clicks, and their two random streams."""

    impression: Impression
    clicks: Ints
    certificates: Certificates  # of the policy's state; empty for a policy that gives none
    policy_rng: Words
    user_rng: Words


class Tally(NamedTuple):
    """What has come of a run so far, and the rows that are filled at its checkpoints."""

    rounds: Ints  # [1] rounds played
    regret: Floats  # [1]
    violations: Ints  # [1]
    certificates: Ints  # [2] certificates looked at, wrong ones among them
    checkpoints: Ints  # rounds at which a row is written, ascending
    rows: Floats  # [checkpoint, 3]: regret, violations, wrong certificates
    filled: Ints  # [1] rows written


def new_tally(checkpoints: Ints) -> Tally:
    """Nothing played yet."""
    return Tally(
        rounds=np.zeros(1, np.int64),
        regret=np.zeros(1),
        violations=np.zeros(1, np.int64),
        certificates=np.zeros(2, np.int64),
        checkpoints=checkpoints,
        rows=np.zeros((len(checkpoints), 3)),
        filled=np.zeros(1, np.int64),
    )


@kernel
def _wrong_since(judge: Judge, certificates: Certificates, seen: int) -> int:
    """How many of the certificates after the first ``seen`` are wrong."""
    wrong = 0
    for entry in range(seen, certificates.given[0]):
        wrong += int(judge.grade[certificates.better[entry]] > judge.grade[certificates.worse[entry]])
    return wrong


@kernel
def _write_row(tally: Tally, regret: float, violations: int) -> None:
    row = tally.filled[0]
    tally.rows[row, 0], tally.rows[row, 1], tally.rows[row, 2] = regret, violations, tally.certificates[1]
    tally.filled[0] += 1


@kernel
def _next_checkpoint(tally: Tally) -> int:
    return int(tally.checkpoints[tally.filled[0]] if tally.filled[0] < len(tally.checkpoints) else -1)


@kernel
def play(policy: Any, state: Any, world: World, table: Table, tally: Tally, until: int) -> None:
    """Play up to round ``until``, or less when the state has no room for another page.

    The running sums are local variables: in arrays they would be stored and loaded again every round.
    """
    shown, judge, certificates = table.impression.shown, world.judge, table.certificates
    rounds, regret, violations = tally.rounds[0], tally.regret[0], tally.violations[0]
    seen, checkpoint = tally.certificates[0], _next_checkpoint(tally)
    while rounds < until and has_room(policy, state):
        choose(policy, state, table.policy_rng, table.impression)
        click(world.model, shown, table.user_rng, table.clicks)
        regret += world.best - expected_clicks(world.model, shown)
        violations += int(violates(judge, shown))
        learn(policy, state, table.impression, table.clicks)
        rounds += 1
        if seen < certificates.given[0]:
            tally.certificates[1] += _wrong_since(judge, certificates, seen)
            seen = certificates.given[0]
        if rounds == checkpoint:
            _write_row(tally, regret, violations)
            checkpoint = _next_checkpoint(tally)
    tally.rounds[0], tally.regret[0], tally.violations[0], tally.certificates[0] = rounds, regret, violations, seen
