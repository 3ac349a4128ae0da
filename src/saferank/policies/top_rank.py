r"""TopRank: shuffle inside blocks, and cut a block when the clicks order its items.

An edge worse -> better is drawn, and never removed, when

    s(i,j) >= sqrt(2 n(i,j) log(c sqrt(n(i,j)) / delta)),     delta = 1/T,  c = 3.43;

a block holds the remaining items without an edge to another remaining item. It does not know the original ranking.

T. Lattimore, B. Kveton, S. Li, C. Szepesvari: TopRank: A Practical Algorithm for Online Stochastic Ranking. NeurIPS
2018.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.best_items import items_of
from saferank.policies.shared.partition import (
    LARGEST_CATALOGUE,
    Partition,
    apart,
    new_partition,
    rebuild,
    row_of,
    shuffle_page,
    sizes_in_words,
    with_larger_matrix,
)
from saferank.policies.shared.room import duels_have_room
from saferank.randomness import Words
from saferank.statistics.decision import DecisionRule, PaperRule, top_rank_rule, whole_horizon
from saferank.statistics.duels import (
    Duels,
    fight,
    is_certified,
    new_duels,
    record,
    record_and_certify,
    with_more_items,
)
from saferank.verbs import Call, Flags, Impression, Ints, Items, choose, follow, has_room, learn, renew


class TopRank(NamedTuple):
    """Hyper-parameters: TopRank's confidence rule as a table of leads by n."""

    lead_needed: Ints


class TopRankEvidence(NamedTuple):
    """Duels, whose certificates are the edges."""

    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    changes: Ints  # [1] how often edges appeared
    duels: Duels
    below: Flags  # [L, L]: the first item was ever declared worse than the second


class TopRankPlan(NamedTuple):
    """The blocks that the edges make of the items of a call."""

    base: Items  # production's ranking, of which only the length counts
    present: Flags  # by item
    known: Ints  # [1] the changes that the blocks have followed
    blocks: Partition


@implements(record, TopRank)
def _record(policy: TopRank, evidence: TopRankEvidence, winner: int, loser: int, now: int) -> bool:
    changed = record_and_certify(policy, evidence, winner, loser, now)
    if changed and is_certified(evidence.duels, winner, loser):
        evidence.below[loser, winner] = True
    return changed


@implements(choose, TopRank)
def _choose(policy: TopRank, evidence: TopRankEvidence, plan: TopRankPlan, rng: Words, impression: Impression) -> None:
    places = plan.blocks.end[len(impression.shown) - 1]
    for place in range(places):
        impression.ranking[place] = plan.blocks.order[place]
        impression.start[place], impression.end[place] = plan.blocks.start[place], plan.blocks.end[place]
    shuffle_page(impression, rng, places)


@implements(learn, TopRank)
def _learn(policy: TopRank, evidence: TopRankEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1
    if fight(policy, evidence, impression, clicks):
        evidence.changes[0] += 1


@implements(renew, TopRank)
def _renew(policy: TopRank, evidence: TopRankEvidence, plan: TopRankPlan, issued: int) -> None:
    plan.known[0] = evidence.changes[0]
    rebuild(plan.blocks, evidence.below, plan.present)


@implements(follow, TopRank)
def _follow(
    policy: TopRank, evidence: TopRankEvidence, plan: TopRankPlan, impression: Impression, clicks: Ints, issued: int
) -> None:
    if plan.known[0] != evidence.changes[0]:
        _renew(policy, evidence, plan, issued)


@implements(has_room, TopRank)
def _has_room(policy: TopRank, evidence: TopRankEvidence, places: int) -> bool:
    return duels_have_room(evidence, 0)


def _start(setup: Setup) -> tuple[TopRank, TopRankEvidence]:
    learned, horizon, changes = np.zeros((3, 1), np.int64)
    duels = new_duels(setup.n_items, direct_items=LARGEST_CATALOGUE)
    below = np.zeros((setup.n_items, setup.n_items), np.bool_)
    return TopRank(_rule(setup).table(0)), TopRankEvidence(learned, horizon, changes, duels, below)


def _plan(policy: TopRank, evidence: TopRankEvidence, call: Call) -> TopRankPlan:
    n_items = len(evidence.below)
    return TopRankPlan(call.base, items_of(call, n_items), np.zeros(1, np.int64), new_partition(n_items))


def _rule(setup: Setup) -> DecisionRule:
    """Delta is one over the horizon; a live ranker has none and takes the level of its paper rule."""
    if setup.horizon is not None:
        return top_rank_rule(1 / max(2, whole_horizon(setup.horizon)))
    if isinstance(setup.rule, PaperRule):
        return top_rank_rule(setup.rule.level)
    raise ValueError(
        f"top-rank has a rule of its own and takes only its delta: write paper:DELTA, not {setup.rule.name}"
    )


def _with_items(evidence: TopRankEvidence, n_items: int) -> TopRankEvidence:
    duels = with_more_items(evidence.duels, n_items, LARGEST_CATALOGUE)
    return evidence._replace(duels=duels, below=with_larger_matrix(evidence.below, n_items))


def _outlook(policy: TopRank, evidence: TopRankEvidence, plan: TopRankPlan, issued: int) -> Outlook:
    return Outlook(f"shuffles inside blocks of {sizes_in_words(plan.blocks)} items")


def _leader(evidence: TopRankEvidence, plan: TopRankPlan) -> Ints:
    return row_of(plan.blocks)


register(
    "top-rank",
    TopRank,
    start=_start,
    leader=_leader,
    plan=_plan,
    certifies=True,
    rule=_rule,
    compares_all=True,
    largest_catalogue=LARGEST_CATALOGUE,
    with_items=_with_items,
    outlook=_outlook,
    settled=lambda evidence, plan, i, j: apart(plan.blocks, i, j),
    shown_as=Presentation(
        "TopRank",
        Look("#2166ac", "#6cb0f5", (0, (6, 1.5, 1.2, 1.5)), "^"),
        PAPER,
        order=3,
        about="shuffles blocks of items whose order is undecided; not safe",
    ),
)
