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
    first_row,
    first_standing,
    leader_of,
    promote,
    rebuild_row,
    regroup_row,
    show_row,
)
from saferank.policies.shared.epochs import advance, restart, turn_epoch
from saferank.policies.shared.room import duels_have_room, has_room
from saferank.randomness import Words, below
from saferank.statistics.duels import (
    AnyDuels,
    compared_enough,
    duels_for,
    fight,
    record,
    record_and_certify,
)
from saferank.statistics.tournament import CANDIDATE
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items, choose, learn


class BubbleRank(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n, and two things that the paper leaves open."""

    lead_needed: Ints
    all_candidates: bool = False  # those that the bottom item surely beats may challenge too
    hidden_duels: bool = True  # the bottom item and the challenger duel, although one of them is not shown


class BubbleRankState(NamedTuple):
    """The leader, the duels, and which items may challenge."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    row: Items  # the leader, then the newest challenger
    unsettled: Ints  # [1] a pair was decided, or the leader moved, since the last pass
    open: Ints  # by place of the row: 1 while its item is not surely better than the next one
    standing: Ints  # by item
    duels: AnyDuels
    eligible: Items  # unranked items that the bottom item does not beat, in candidate order
    n_eligible: Ints  # [1]


implements(record, BubbleRank)(record_and_certify)


@implements(choose, BubbleRank)
def _choose(policy: BubbleRank, state: BubbleRankState, rng: Words, impression: Impression) -> None:
    challenger = NOBODY
    if state.n_eligible[0] > 0:
        challenger = int(np.int64(state.eligible[below(rng, state.n_eligible[0])]))
        state.row[-1] = challenger  # open to comparison, or it would not be eligible
        if policy.all_candidates:
            state.open[-1] = int(not compared_enough(state.duels, policy.lead_needed, state.row[-2], challenger))
    show_row(state, challenger, rng, impression)
    if challenger != NOBODY and not policy.hidden_duels:
        _part_from_hidden(impression, len(state.row) - 1)


@kernel
def _part_from_hidden(impression: Impression, hidden: int) -> None:
    """Take the hidden place out of its pair: what is not shown is then compared with nothing."""
    last = hidden - 1
    if impression.end[last] > hidden:
        impression.end[last], impression.start[hidden] = hidden, hidden
        impression.start[last] = last


@implements(learn, BubbleRank)
def _learn(policy: BubbleRank, state: BubbleRankState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    decided = fight(policy, state, impression, clicks)
    if decided:
        state.unsettled[0] = 1
    moved = promote(policy, state, impression.challenger[0])
    if moved == NEW_BOTTOM or decided:
        list_eligible(policy, state)


@kernel
def list_eligible(policy: BubbleRank, state: BubbleRankState) -> None:
    """Find the items that may challenge the present bottom item."""
    size = 0
    for item in range(len(state.standing)):
        beaten = compared_enough(state.duels, policy.lead_needed, state.row[-2], item)
        if state.standing[item] == CANDIDATE and (policy.all_candidates or not beaten):
            state.eligible[size] = item
            size += 1
    state.n_eligible[0] = size


@implements(advance, BubbleRank)
def _advance(policy: BubbleRank, state: BubbleRankState) -> None:
    turn_epoch(state.duels, policy, state)


@implements(restart, BubbleRank)
def _restart(policy: BubbleRank, state: BubbleRankState) -> None:
    promote(policy, state, NOBODY)
    list_eligible(policy, state)


@implements(has_room, BubbleRank)
def _has_room(policy: BubbleRank, state: BubbleRankState) -> bool:
    return duels_have_room(state, len(state.row))


def _start(setup: Setup) -> tuple[BubbleRank, BubbleRankState]:
    return _start_as(setup, BubbleRank(setup.rule.table(0)))


def _start_with_all_candidates(setup: Setup) -> tuple[BubbleRank, BubbleRankState]:
    return _start_as(setup, BubbleRank(setup.rule.table(0), all_candidates=True))


def _start_without_hidden_duels(setup: Setup) -> tuple[BubbleRank, BubbleRankState]:
    return _start_as(setup, BubbleRank(setup.rule.table(0), hidden_duels=False))


def _start_as(setup: Setup, policy: BubbleRank) -> tuple[BubbleRank, BubbleRankState]:
    state = BubbleRankState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        horizon=np.zeros(1, np.int64),
        row=first_row(setup.n_positions),
        unsettled=np.zeros(1, np.int64),
        open=np.ones(setup.n_positions, np.int64),
        standing=first_standing(setup.n_items, setup.n_positions),
        duels=duels_for(setup.n_items, setup.n_positions, setup.lifetime),
        eligible=np.zeros(setup.n_items, np.uint32),
        n_eligible=np.zeros(1, np.int64),
    )
    list_eligible(policy, state)
    return policy, state


def _regroup(policy: BubbleRank, state: BubbleRankState, present: Flags) -> BubbleRankState:
    state = regroup_row(policy, state, present)._replace(eligible=np.zeros(len(present), np.uint32))
    list_eligible(policy, state)
    return state


def _rebuild(policy: BubbleRank, state: BubbleRankState, base: Items) -> BubbleRankState:
    state = rebuild_row(policy, state, base)
    list_eligible(policy, state)
    return state


def _outlook(policy: BubbleRank, state: BubbleRankState) -> Outlook:
    size = int(state.n_eligible[0])
    return Outlook(
        f"the challenger is drawn at random among {size} unranked items" if size else "no item may challenge"
    )


KIND = register(
    "bubble-rank",
    BubbleRank,
    start=_start,
    leader=leader_of,
    certifies=True,
    safe=True,
    rule=given_rule,
    regroup=_regroup,
    outlook=_outlook,
    rebuild=_rebuild,
    caches=("open", "row"),
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
