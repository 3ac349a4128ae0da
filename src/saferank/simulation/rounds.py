"""The compiled loop: one policy, one click model, round after round."""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words
from saferank.safety import Judge, violates
from saferank.simulation.runs import MEASURES
from saferank.simulation.users import next_user
from saferank.statistics.certificates import Certificates
from saferank.verbs import (
    Floats,
    Impression,
    Ints,
    advance,
    choose,
    click,
    expected_clicks,
    follow,
    freeze,
    has_room,
    learn,
    plan_has_room,
    renew,
    shows_one_page,
)


class World(NamedTuple):
    """The truth: how users click, the best reward there is, and which items are better than which."""

    model: Any
    best: float
    judge: Judge
    original: float  # the reward of the original ranking


class Table(NamedTuple):
    """What policy and users share during a run: one page, its clicks, and their random streams."""

    impression: Impression
    clicks: Ints
    certificates: Certificates  # of the evidence; empty for a policy that gives none
    policy_rng: Words
    user_rng: Words
    page_rng: Words  # from which the user of a page draws: see ``users.py``


class Tally(NamedTuple):
    """What has come of a run so far, and the rows that are filled at its checkpoints."""

    rounds: Ints  # [1] rounds played
    regret: Floats  # [1]
    violations: Ints  # [1]
    certificates: Ints  # [2] certificates looked at, wrong ones among them
    clicks: Floats  # [3] expected clicks of the pages, of the original ranking, the smallest ratio of a page
    checkpoints: Ints  # rounds at which a row is written, ascending
    rows: Floats  # [checkpoint, measure]: see ``runs.MEASURES``
    filled: Ints  # [1] rows written


def new_tally(checkpoints: Ints) -> Tally:
    """Nothing played yet."""
    return Tally(
        rounds=np.zeros(1, np.int64),
        regret=np.zeros(1),
        violations=np.zeros(1, np.int64),
        certificates=np.zeros(2, np.int64),
        clicks=np.array([0.0, 0.0, np.inf]),
        checkpoints=checkpoints,
        rows=np.zeros((len(checkpoints), len(MEASURES))),
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
def count_wrong(tally: Tally, judge: Judge, certificates: Certificates) -> None:
    """Look at the certificates that are new, and count the wrong ones."""
    if tally.certificates[0] < certificates.given[0]:
        tally.certificates[1] += _wrong_since(judge, certificates, tally.certificates[0])
        tally.certificates[0] = certificates.given[0]


@kernel
def write_row(tally: Tally, regret: float, violations: int, clicks: tuple[float, float, float]) -> None:
    """Fill the row of the checkpoint that has been reached."""
    row, (earned, due, worst) = tally.filled[0], clicks
    tally.rows[row, 0], tally.rows[row, 1], tally.rows[row, 2] = regret, violations, tally.certificates[1]
    tally.rows[row, 3], tally.rows[row, 4] = earned / due if due > 0.0 else 1.0, worst
    tally.filled[0] += 1


@kernel
def next_checkpoint(tally: Tally) -> int:
    """The round at which the next row is written; -1 when all are."""
    return int(tally.checkpoints[tally.filled[0]] if tally.filled[0] < len(tally.checkpoints) else -1)


@kernel
def next_page(policy: Any, evidence: Any, plan: Any, rng: Words, impression: Impression, issued: int) -> None:
    """Draw the page after ``issued`` others; the first one has the plan filled in."""
    if advance(policy, evidence, issued) or issued == 0:
        renew(policy, evidence, plan, issued)
    impression.round[0] = issued + 1
    choose(policy, evidence, plan, rng, impression)


@kernel
def play(policy: Any, evidence: Any, plan: Any, world: World, table: Table, tally: Tally, until: int) -> None:
    """Play up to round ``until``, or less when evidence or plan has no room for another page.

    The running sums are local variables: in arrays they would be stored and loaded again every round.
    """
    page, clicks, judge, certificates = table.impression, table.clicks, world.judge, table.certificates
    shown, places = page.shown, len(page.ranking)
    rounds, regret, violations = tally.rounds[0], tally.regret[0], tally.violations[0]
    seen, checkpoint = tally.certificates[0], next_checkpoint(tally)
    earned, due, worst = tally.clicks[0], tally.clicks[1], tally.clicks[2]
    share = 1.0 / world.original if world.original > 0.0 else 0.0
    expected, violating, same = 0.0, 0, False
    while rounds < until and has_room(policy, evidence, places) and plan_has_room(policy, plan):
        if not same:
            next_page(policy, evidence, plan, table.policy_rng, page, rounds)
            next_user(world.model, table.user_rng, table.page_rng)
            click(world.model, shown, table.page_rng, clicks)
            expected, violating = expected_clicks(world.model, shown), int(violates(judge, shown))
            freeze(policy, evidence, plan, page, clicks)
            learn(policy, evidence, page, clicks)
            follow(policy, evidence, plan, page, clicks, rounds + 1)
            same = shows_one_page(policy)  # known when the loop is compiled
        regret += world.best - expected
        earned += expected
        due += world.original
        worst = min(worst, expected * share)
        violations += violating
        rounds += 1
        if seen < certificates.given[0]:
            tally.certificates[1] += _wrong_since(judge, certificates, seen)
            seen = certificates.given[0]
        if rounds == checkpoint:
            write_row(tally, regret, violations, (earned, due, worst))
            checkpoint = next_checkpoint(tally)
    tally.rounds[0], tally.regret[0], tally.violations[0], tally.certificates[0] = rounds, regret, violations, seen
    tally.clicks[0], tally.clicks[1], tally.clicks[2] = earned, due, worst
