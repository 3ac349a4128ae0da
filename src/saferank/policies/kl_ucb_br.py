r"""KL-UCB-BR: safe re-ranking with optimistic exploration of unranked items (the paper's Algorithm 1).

The challenger for the last position of the leader is the unranked item

    x = argmax_j  2 f((1 + s(j,b)/n(j,b)) / 2, n(j,b), t) - 1,      b the bottom item of the leader,

with the KL-UCB index f and t the number of pages issued before under exactly this leader. The page is the leader with
random swaps of adjacent pairs that are not decided, the pair of bottom item and challenger among them; a pair that the
clicks decide moves up for good.

H. Shiino, K. Ariu, K. Abe, R. Togashi: Exploration of Unranked Items in Safe Online Learning to Re-Rank. SIGIR 2023.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, given_rule, register
from saferank.policies.shared.bubble import (
    STANDS,
    bubble_parts,
    leader_of,
    pages_before,
    promote,
    renew_leader,
    show_row,
    turn_epoch,
)
from saferank.policies.shared.room import duels_have_room
from saferank.randomness import Words
from saferank.statistics.duels import (
    AnyDuels,
    compared_enough,
    duels_for,
    fight,
    record,
    record_and_certify,
    with_more_items,
)
from saferank.statistics.kl import duel_index
from saferank.statistics.leaders import (
    LeaderCounts,
    enthrone,
    forget_leaders,
    leaders_full,
    new_leader_counts,
    pages_under,
)
from saferank.statistics.pairs import duel_of
from saferank.statistics.tournament import (
    Tournament,
    champion,
    new_opponent,
    new_record,
    new_tournament,
)
from saferank.verbs import (
    NO_ITEM,
    Call,
    Impression,
    Ints,
    Items,
    advance,
    choose,
    follow,
    has_room,
    learn,
    plan_has_room,
    renew,
)


class KlUcbBr(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n."""

    lead_needed: Ints


class KlUcbBrEvidence(NamedTuple):
    """The duels."""

    n_items: Ints  # [1] items known
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    changes: Ints  # [1] how often the certified order has changed
    duels: AnyDuels


class KlUcbBrPlan(NamedTuple):
    """The leader, the pages under every leader, and where every item stands."""

    base: Items  # production's ranking
    candidates: Items
    row: Items  # the leader, then the newest challenger
    open: Ints  # by place of the row: 1 while its item is not surely better than the next one
    standing: Ints  # by item
    pool: Items  # scratch: all items of the call
    known: Ints  # [1] the changes of the certified order that the leader has followed
    unsettled: Ints  # [1] a pair was decided, or the leader moved, since the last pass
    moved_in: Ints  # [1] the newest round in which the leader moved, or the plan was made
    leaders: LeaderCounts
    tournament: Tournament


implements(record, KlUcbBr)(record_and_certify)


@implements(choose, KlUcbBr)
def _choose(policy: KlUcbBr, evidence: KlUcbBrEvidence, plan: KlUcbBrPlan, rng: Words, impression: Impression) -> None:
    issued = pages_under(plan.leaders, impression.round[0] - 1)
    challenger = champion(plan.tournament, evidence.duels, plan.standing, plan.row[-2], issued)
    if challenger != NO_ITEM:
        plan.row[-1] = challenger
        plan.open[-1] = int(not compared_enough(evidence.duels, policy.lead_needed, plan.row[-2], challenger))
    show_row(plan, challenger, rng, impression)


@implements(learn, KlUcbBr)
def _learn(policy: KlUcbBr, evidence: KlUcbBrEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1
    if fight(policy, evidence, impression, clicks):
        evidence.changes[0] += 1


@implements(follow, KlUcbBr)
def _follow(
    policy: KlUcbBr, evidence: KlUcbBrEvidence, plan: KlUcbBrPlan, impression: Impression, clicks: Ints, issued: int
) -> None:
    if promote(policy, evidence, plan, impression.challenger[0]) != STANDS:
        plan.moved_in[0] = issued
        enthrone(plan.leaders, plan.row[:-1], issued)
    if impression.round[0] <= plan.moved_in[0]:
        new_opponent(plan.tournament)  # a page from before the move may have compared any pair
    elif impression.challenger[0] != NO_ITEM:
        new_record(plan.tournament, evidence.duels, plan.row[-2], impression.challenger[0])


@implements(renew, KlUcbBr)
def _renew(policy: KlUcbBr, evidence: KlUcbBrEvidence, plan: KlUcbBrPlan, issued: int) -> None:
    """Pages before the plan was made count for its leader, even if another one led then: all of this epoch."""
    renew_leader(policy, evidence, plan)
    forget_leaders(plan.leaders)
    enthrone(plan.leaders, plan.row[:-1], pages_before(evidence.duels))
    plan.moved_in[0] = issued
    new_opponent(plan.tournament)


@implements(advance, KlUcbBr)
def _advance(policy: KlUcbBr, evidence: KlUcbBrEvidence, issued: int) -> bool:
    return turn_epoch(evidence.duels, evidence, issued)


@implements(has_room, KlUcbBr)
def _has_room(policy: KlUcbBr, evidence: KlUcbBrEvidence, places: int) -> bool:
    return duels_have_room(evidence, places)


@implements(plan_has_room, KlUcbBr)
def _plan_has_room(policy: KlUcbBr, plan: KlUcbBrPlan) -> bool:
    return not leaders_full(plan.leaders)


def _start(setup: Setup) -> tuple[KlUcbBr, KlUcbBrEvidence]:
    items = np.array([setup.n_items], np.int64)
    learned, horizon, changes = np.zeros((3, 1), np.int64)
    evidence = KlUcbBrEvidence(items, learned, horizon, changes, duels_for(setup.n_items, setup.lifetime))
    return KlUcbBr(setup.rule.table(0)), evidence


def _plan(policy: KlUcbBr, evidence: KlUcbBrEvidence, call: Call) -> KlUcbBrPlan:
    n_items = int(evidence.n_items[0])
    return KlUcbBrPlan(
        **bubble_parts(call, n_items),
        moved_in=np.zeros(1, np.int64),
        leaders=new_leader_counts(len(call.base), 256),
        tournament=new_tournament(n_items),
    )


def _with_items(evidence: KlUcbBrEvidence, n_items: int) -> KlUcbBrEvidence:
    items = np.array([n_items], np.int64)
    return evidence._replace(n_items=items, duels=with_more_items(evidence.duels, n_items))


def _outlook(policy: KlUcbBr, evidence: KlUcbBrEvidence, plan: KlUcbBrPlan, issued: int) -> Outlook:
    bottom, issued = plan.row[-2], pages_under(plan.leaders, issued)
    x = champion(plan.tournament, evidence.duels, plan.standing, bottom, issued)
    if x == NO_ITEM:
        return Outlook("no item is left to challenge")
    index = duel_index(*duel_of(evidence.duels, x, bottom), issued)
    return Outlook(f"the largest optimistic index after {issued} pages under this leader", int(x), float(index))


register(
    "kl-ucb-br",
    KlUcbBr,
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
        "KL-UCB-BR",
        Look("#d9730d", "#f59a3e", "-", "o"),
        PAPER,
        order=1,
        about="explores unranked items by optimism, at the last position, and never leaves the safety constraint",
    ),
)
