"""A harmful plug-in for tests: it keeps the contract and the allowance, and shows every pair in the wrong order.

BubbleRank exchanges neighbours by fair coins. This one exchanges every pair that is not decided, on every page.
"""

from typing import NamedTuple

import numpy as np

from saferank.policies import PolicyKind, Setup, register
from saferank.policies.bubble_rank import BubbleRankEvidence, BubbleRankPlan
from saferank.policies.registry import given_rule
from saferank.policies.shared.bubble import bubble_parts, leader_of, promote, renew_leader, turn_epoch
from saferank.policies.shared.room import duels_have_room
from saferank.randomness import Words
from saferank.statistics.duels import duels_for, fight, record, record_and_certify, with_more_items
from saferank.verbs import (
    NO_ITEM,
    Call,
    Impression,
    Ints,
    advance,
    choose,
    follow,
    has_room,
    implements,
    learn,
    renew,
)


class Contrary(NamedTuple):
    """The decision rule."""

    lead_needed: Ints


implements(record, Contrary)(record_and_certify)


@implements(choose, Contrary)
def _choose(
    policy: Contrary, evidence: BubbleRankEvidence, plan: BubbleRankPlan, rng: Words, impression: Impression
) -> None:
    places = len(plan.row) - 1
    impression.places[0], impression.challenger[0] = places, NO_ITEM
    for place in range(places):
        upper = place - place % 2
        paired = upper + 1 < places
        other = 2 * upper + 1 - place if paired and plan.open[upper] else place
        impression.ranking[place] = plan.row[other]
        impression.start[place] = upper
        impression.end[place] = upper + 2 if paired else place + 1


@implements(learn, Contrary)
def _learn(policy: Contrary, evidence: BubbleRankEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1
    if fight(policy, evidence, impression, clicks):
        evidence.changes[0] += 1


@implements(follow, Contrary)
def _follow(
    policy: Contrary,
    evidence: BubbleRankEvidence,
    plan: BubbleRankPlan,
    impression: Impression,
    clicks: Ints,
    issued: int,
) -> None:
    promote(policy, evidence, plan, impression.challenger[0])


@implements(renew, Contrary)
def _renew(policy: Contrary, evidence: BubbleRankEvidence, plan: BubbleRankPlan, issued: int) -> None:
    renew_leader(policy, evidence, plan)


@implements(advance, Contrary)
def _advance(policy: Contrary, evidence: BubbleRankEvidence, issued: int) -> bool:
    return turn_epoch(evidence.duels, evidence, issued)


@implements(has_room, Contrary)
def _has_room(policy: Contrary, evidence: BubbleRankEvidence, places: int) -> bool:
    return duels_have_room(evidence, places)


def _start(setup: Setup) -> tuple[Contrary, BubbleRankEvidence]:
    items, (learned, horizon, changes) = np.array([setup.n_items]), np.zeros((3, 1), np.int64)
    evidence = BubbleRankEvidence(items, learned, horizon, changes, duels_for(setup.n_items, setup.lifetime))
    return Contrary(setup.rule.table(0)), evidence


def _plan(policy: Contrary, evidence: BubbleRankEvidence, call: Call) -> BubbleRankPlan:
    parts = bubble_parts(call, int(evidence.n_items[0]))
    return BubbleRankPlan(**parts, eligible=np.zeros(1, np.uint32), n_eligible=np.zeros(1, np.int64))


def _with_items(evidence: BubbleRankEvidence, n_items: int) -> BubbleRankEvidence:
    return evidence._replace(n_items=np.array([n_items]), duels=with_more_items(evidence.duels, n_items))


KIND: PolicyKind = register(
    "contrary", Contrary, start=_start, leader=leader_of, plan=_plan, certifies=True, safe=True, follows_base=True,
    rule=given_rule, with_items=_with_items, lifetimes=True,
)  # fmt: skip
