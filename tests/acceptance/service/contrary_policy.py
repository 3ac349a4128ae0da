"""A harmful plug-in for tests: it keeps the contract and the allowance, and shows every pair in the wrong order.

BubbleRank exchanges neighbours by fair coins. This one exchanges every pair that is not decided, on every page.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank.policies import PolicyKind, Setup, register
from saferank.policies.bubble_rank import BubbleRankState
from saferank.policies.registry import given_rule
from saferank.policies.shared.bubble import (
    first_row,
    first_standing,
    leader_of,
    promote,
    rebuild_row,
    regroup_row,
)
from saferank.policies.shared.epochs import advance, restart, turn_epoch
from saferank.policies.shared.room import duels_have_room, has_room
from saferank.randomness import Words
from saferank.statistics.duels import duels_for, fight, record, record_and_certify
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items, choose, implements, learn


class Contrary(NamedTuple):
    """The decision rule."""

    lead_needed: Ints


implements(record, Contrary)(record_and_certify)


@implements(choose, Contrary)
def _choose(policy: Contrary, state: BubbleRankState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    places = len(state.row) - 1
    impression.round[0], impression.places[0], impression.challenger[0] = state.round[0], places, NOBODY
    for place in range(places):
        upper = place - place % 2
        paired = upper + 1 < places
        other = 2 * upper + 1 - place if paired and state.open[upper] else place
        impression.ranking[place] = state.row[other]
        impression.start[place] = upper
        impression.end[place] = upper + 2 if paired else place + 1


@implements(learn, Contrary)
def _learn(policy: Contrary, state: BubbleRankState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    if fight(policy, state, impression, clicks):
        state.unsettled[0] = 1
    promote(policy, state, impression.challenger[0])


@implements(advance, Contrary)
def _advance(policy: Contrary, state: BubbleRankState) -> None:
    turn_epoch(state.duels, policy, state)


@implements(restart, Contrary)
def _restart(policy: Contrary, state: BubbleRankState) -> None:
    promote(policy, state, NOBODY)


@implements(has_room, Contrary)
def _has_room(policy: Contrary, state: BubbleRankState) -> bool:
    return duels_have_room(state, len(state.row))


def _start(setup: Setup) -> tuple[Contrary, BubbleRankState]:
    policy = Contrary(setup.rule.table(0))
    zero = (np.zeros(1, np.int64) for _ in range(5))
    state = BubbleRankState(
        round=next(zero), learned=next(zero), horizon=next(zero), row=first_row(setup.n_positions),
        unsettled=next(zero), open=np.ones(setup.n_positions, np.int64),
        standing=first_standing(setup.n_items, setup.n_positions),
        duels=duels_for(setup.n_items, setup.n_positions, setup.lifetime),
        eligible=np.zeros(setup.n_items, np.uint32), n_eligible=next(zero),
    )  # fmt: skip
    return policy, state


def _regroup(policy: Contrary, state: BubbleRankState, present: Flags) -> Any:
    return regroup_row(policy, state, present)


def _rebuild(policy: Contrary, state: BubbleRankState, base: Items) -> Any:
    return rebuild_row(policy, state, base)


KIND: PolicyKind = register(
    "contrary", Contrary, start=_start, leader=leader_of, certifies=True, safe=True, rule=given_rule, regroup=_regroup,
    rebuild=_rebuild, caches=("open", "row"), lifetimes=True,
)  # fmt: skip
