r"""BubbleRank: safe re-ranking by adjacent swaps, with a random unranked item contending for the last position.

The page is the leader with random swaps of adjacent pairs that are not decided; a pair that the clicks decide moves up
for good. The challenger is drawn uniformly among the unranked items that the bottom item does not surely beat; when
there is none, and when all items are ranked, the page is the leader alone.

C. Li, B. Kveton, T. Lattimore, I. Markov, M. de Rijke, C. Szepesvari, M. Zoghi: BubbleRank: Safe Online Learning to
Re-Rank via Implicit Click Feedback. UAI 2019.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, given_rule, register, register_variant
from saferank.policies.shared.bubble import (
    NEW_BOTTOM,
    bubble_parts,
    leader_of,
    promote,
    renew_leader,
    show_row,
    turn_epoch,
)
from saferank.policies.shared.room import duels_have_room
from saferank.randomness import Words, below
from saferank.statistics.duels import (
    AnyDuels,
    compared_enough,
    duels_for,
    fight,
    record,
    record_and_certify,
    with_more_items,
)
from saferank.statistics.tournament import CANDIDATE
from saferank.verbs import NO_ITEM, Call, Impression, Ints, Items, advance, choose, follow, has_room, learn, renew


class BubbleRank(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n, and two things that the paper leaves open."""

    lead_needed: Ints
    all_candidates: bool = False  # those that the bottom item surely beats may challenge too
    hidden_duels: bool = True  # the bottom item and the challenger duel, although one of them is not shown


class BubbleRankEvidence(NamedTuple):
    """The duels."""

    n_items: Ints  # [1] items known
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    changes: Ints  # [1] how often the certified order has changed
    duels: AnyDuels


class BubbleRankPlan(NamedTuple):
    """The leader, and which items may challenge."""

    base: Items  # production's ranking
    candidates: Items
    row: Items  # the leader, then the newest challenger
    open: Ints  # by place of the row: 1 while its item is not surely better than the next one
    standing: Ints  # by item
    pool: Items  # scratch: all items of the call
    known: Ints  # [1] the changes of the certified order that the leader has followed
    unsettled: Ints  # [1] a pair was decided, or the leader moved, since the last pass
    eligible: Items  # unranked items that the bottom item does not beat, in candidate order
    n_eligible: Ints  # [1]


implements(record, BubbleRank)(record_and_certify)


@implements(choose, BubbleRank)
def _choose(
    policy: BubbleRank, evidence: BubbleRankEvidence, plan: BubbleRankPlan, rng: Words, impression: Impression
) -> None:
    challenger = NO_ITEM
    if plan.n_eligible[0] > 0:
        challenger = int(np.int64(plan.eligible[below(rng, plan.n_eligible[0])]))
        plan.row[-1] = challenger  # open to comparison, or it would not be eligible
        if policy.all_candidates:
            plan.open[-1] = int(not compared_enough(evidence.duels, policy.lead_needed, plan.row[-2], challenger))
    show_row(plan, challenger, rng, impression)
    if challenger != NO_ITEM and not policy.hidden_duels:
        _part_from_hidden(impression, len(plan.row) - 1)


@kernel
def _part_from_hidden(impression: Impression, hidden: int) -> None:
    """Take the hidden place out of its pair: what is not shown is then compared with nothing."""
    last = hidden - 1
    if impression.end[last] > hidden:
        impression.end[last], impression.start[hidden] = hidden, hidden
        impression.start[last] = last


@implements(learn, BubbleRank)
def _learn(policy: BubbleRank, evidence: BubbleRankEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1
    if fight(policy, evidence, impression, clicks):
        evidence.changes[0] += 1


@implements(follow, BubbleRank)
def _follow(
    policy: BubbleRank,
    evidence: BubbleRankEvidence,
    plan: BubbleRankPlan,
    impression: Impression,
    clicks: Ints,
    issued: int,
) -> None:
    decided = plan.known[0] != evidence.changes[0]
    moved = promote(policy, evidence, plan, impression.challenger[0])
    if moved == NEW_BOTTOM or decided:
        list_eligible(policy, evidence, plan)


@kernel
def list_eligible(policy: BubbleRank, evidence: BubbleRankEvidence, plan: BubbleRankPlan) -> None:
    """Find the items that may challenge the present bottom item."""
    size = 0
    for item in range(len(plan.standing)):
        beaten = compared_enough(evidence.duels, policy.lead_needed, plan.row[-2], item)
        if plan.standing[item] == CANDIDATE and (policy.all_candidates or not beaten):
            plan.eligible[size] = item
            size += 1
    plan.n_eligible[0] = size


@implements(renew, BubbleRank)
def _renew(policy: BubbleRank, evidence: BubbleRankEvidence, plan: BubbleRankPlan, issued: int) -> None:
    renew_leader(policy, evidence, plan)
    list_eligible(policy, evidence, plan)


@implements(advance, BubbleRank)
def _advance(policy: BubbleRank, evidence: BubbleRankEvidence, issued: int) -> bool:
    return turn_epoch(evidence.duels, evidence, issued)


@implements(has_room, BubbleRank)
def _has_room(policy: BubbleRank, evidence: BubbleRankEvidence, places: int) -> bool:
    return duels_have_room(evidence, places)


def _start(setup: Setup) -> tuple[BubbleRank, BubbleRankEvidence]:
    return _start_as(setup, BubbleRank(setup.rule.table(0)))


def _start_with_all_candidates(setup: Setup) -> tuple[BubbleRank, BubbleRankEvidence]:
    return _start_as(setup, BubbleRank(setup.rule.table(0), all_candidates=True))


def _start_without_hidden_duels(setup: Setup) -> tuple[BubbleRank, BubbleRankEvidence]:
    return _start_as(setup, BubbleRank(setup.rule.table(0), hidden_duels=False))


def _start_as(setup: Setup, policy: BubbleRank) -> tuple[BubbleRank, BubbleRankEvidence]:
    items = np.array([setup.n_items], np.int64)
    learned, horizon, changes = np.zeros((3, 1), np.int64)
    return policy, BubbleRankEvidence(items, learned, horizon, changes, duels_for(setup.n_items, setup.lifetime))


def _plan(policy: BubbleRank, evidence: BubbleRankEvidence, call: Call) -> BubbleRankPlan:
    parts = bubble_parts(call, int(evidence.n_items[0]))
    eligible = np.zeros(len(call.base) + len(call.candidates), np.uint32)
    return BubbleRankPlan(**parts, eligible=eligible, n_eligible=np.zeros(1, np.int64))


def _with_items(evidence: BubbleRankEvidence, n_items: int) -> BubbleRankEvidence:
    items = np.array([n_items], np.int64)
    return evidence._replace(n_items=items, duels=with_more_items(evidence.duels, n_items))


def _outlook(policy: BubbleRank, evidence: BubbleRankEvidence, plan: BubbleRankPlan, issued: int) -> Outlook:
    size = int(plan.n_eligible[0])
    return Outlook(
        f"the challenger is drawn at random among {size} unranked items" if size else "no item may challenge"
    )


KIND = register(
    "bubble-rank",
    BubbleRank,
    start=_start,
    leader=leader_of,
    plan=_plan,
    certifies=True,
    safe=True,
    follows_base=True,
    rule=given_rule,
    with_items=_with_items,
    outlook=_outlook,
    lifetimes=True,
    shown_as=Presentation(
        "BubbleRank",
        Look("#c51b2c", "#ff6b74", (0, (5, 1.6)), "s"),
        PAPER,
        order=2,
        about="exchanges neighbours; a drawn unranked item challenges the last position",
    ),
)

ALL_CANDIDATES = register_variant(KIND, "all-candidates", _start_with_all_candidates)
"""The other reading of the paper's sentence about candidates, for sensitivity runs: any unranked item may challenge."""

SHOWN_ONLY = register_variant(KIND, "shown-only", _start_without_hidden_duels)
"""Another reading of a comparison, for sensitivity runs: an item that is not shown takes part in no duel.

The challenger and the bottom item are never shown together, so no challenger is ever accepted: the items of the page
stay, and only their order is learnt.
"""
