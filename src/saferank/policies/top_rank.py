r"""TopRank: shuffle inside blocks, and cut a block when the clicks order its items.

An edge worse -> better is drawn, and never removed, when

    s(i,j) >= sqrt(2 n(i,j) log(c sqrt(n(i,j)) / delta)),     delta = 1/T,  c = 3.43;

a block holds the remaining items without an edge to another remaining item. It does not know the original ranking.

T. Lattimore, B. Kveton, S. Li, C. Szepesvari: TopRank: A Practical Algorithm for Online Stochastic Ranking. NeurIPS
2018.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, register
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
from saferank.policies.shared.room import duels_have_room, has_room
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
from saferank.verbs import Flags, Impression, Ints, choose, learn


class TopRank(NamedTuple):
    """Hyper-parameters: TopRank's confidence rule as a table of leads by n."""

    lead_needed: Ints


class TopRankState(NamedTuple):
    """Duels, whose certificates are the edges, and the blocks they make."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    duels: Duels
    below: Flags  # [L, L]: the first item was ever declared worse than the second
    present: Flags  # by item
    blocks: Partition


@implements(record, TopRank)
def _record(policy: TopRank, state: TopRankState, winner: int, loser: int, now: int) -> bool:
    changed = record_and_certify(policy, state, winner, loser, now)
    if changed and is_certified(state.duels, winner, loser):
        state.below[loser, winner] = True
    return changed


@implements(choose, TopRank)
def _choose(policy: TopRank, state: TopRankState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    impression.round[0] = state.round[0]
    places = state.blocks.end[len(impression.shown) - 1]
    for place in range(places):
        impression.ranking[place] = state.blocks.order[place]
        impression.start[place], impression.end[place] = state.blocks.start[place], state.blocks.end[place]
    shuffle_page(impression, rng, places)


@implements(learn, TopRank)
def _learn(policy: TopRank, state: TopRankState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    if fight(policy, state, impression, clicks):
        rebuild(state.blocks, state.below, state.present)


@implements(has_room, TopRank)
def _has_room(policy: TopRank, state: TopRankState) -> bool:
    return duels_have_room(state, 0)


def _start(setup: Setup) -> tuple[TopRank, TopRankState]:
    state = TopRankState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        horizon=np.zeros(1, np.int64),
        duels=new_duels(setup.n_items, direct_items=LARGEST_CATALOGUE),
        below=np.zeros((setup.n_items, setup.n_items), np.bool_),
        present=np.ones(setup.n_items, np.bool_),
        blocks=new_partition(setup.n_items),
    )
    rebuild(state.blocks, state.below, state.present)
    return TopRank(_rule(setup).table(0)), state


def _rule(setup: Setup) -> DecisionRule:
    """Delta is one over the horizon; a live ranker has none and takes the level of its paper rule."""
    if setup.horizon is not None:
        return top_rank_rule(1 / max(2, whole_horizon(setup.horizon)))
    if isinstance(setup.rule, PaperRule):
        return top_rank_rule(setup.rule.level)
    raise ValueError(
        f"top-rank has a rule of its own and takes only its delta: write paper:DELTA, not {setup.rule.name}"
    )


def _regroup(policy: TopRank, state: TopRankState, present: Flags) -> TopRankState:
    n_items = len(present)
    state = state._replace(
        duels=with_more_items(state.duels, n_items, LARGEST_CATALOGUE),
        below=with_larger_matrix(state.below, n_items),
        present=present,
        blocks=new_partition(n_items),
    )
    rebuild(state.blocks, state.below, state.present)
    return state


def _outlook(policy: TopRank, state: TopRankState) -> Outlook:
    return Outlook(f"shuffles inside blocks of {sizes_in_words(state.blocks)} items")


def _leader(state: Any) -> Ints:
    return row_of(state.blocks)


register(
    "top-rank",
    TopRank,
    start=_start,
    leader=_leader,
    certifies=True,
    rule=_rule,
    compares_all=True,
    largest_catalogue=LARGEST_CATALOGUE,
    regroup=_regroup,
    outlook=_outlook,
    settled=lambda state, i, j: apart(state.blocks, i, j),
    shown_as=Presentation(
        "TopRank",
        Look("#2166ac", "#6cb0f5", (0, (6, 1.5, 1.2, 1.5)), "^"),
        PAPER,
        order=3,
        about="shuffles blocks of items whose order is undecided; not safe",
    ),
)
