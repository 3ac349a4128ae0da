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
    first_row,
    first_standing,
    leader_of,
    promote,
    rebuild_row,
    regroup_row,
    show_row,
)
from saferank.policies.shared.epochs import advance, restart, turn_epoch
from saferank.policies.shared.issuing import count_issued
from saferank.policies.shared.room import duels_have_room, has_room
from saferank.randomness import Words
from saferank.statistics.duels import (
    AnyDuels,
    compared_enough,
    duels_for,
    fight,
    record,
    record_and_certify,
)
from saferank.statistics.kl import duel_index
from saferank.statistics.leaders import (
    LeaderCounts,
    enthrone,
    forget_leaders,
    leaders_full,
    new_leader_counts,
    with_more_leaders,
)
from saferank.statistics.pairs import duel_of
from saferank.statistics.tournament import (
    Tournament,
    champion,
    new_opponent,
    new_record,
    new_tournament,
)
from saferank.verbs import NOBODY, Flags, Impression, Ints, Items, choose, learn


class KlUcbBr(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n."""

    lead_needed: Ints


class KlUcbBrState(NamedTuple):
    """The leader, the duels, and where every item stands."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    row: Items  # the leader, then the newest challenger
    unsettled: Ints  # [1] a pair was decided, or the leader moved, since the last pass
    moved_in: Ints  # [1] the newest round in which the leader moved
    open: Ints  # by place of the row: 1 while its item is not surely better than the next one
    standing: Ints  # by item
    duels: AnyDuels
    leaders: LeaderCounts
    tournament: Tournament


implements(record, KlUcbBr)(record_and_certify)


@implements(choose, KlUcbBr)
def _choose(policy: KlUcbBr, state: KlUcbBrState, rng: Words, impression: Impression) -> None:
    leaders = state.leaders
    issued = leaders.counts[leaders.current[0]]
    leaders.counts[leaders.current[0]] += 1
    challenger = champion(state.tournament, state.duels, state.standing, state.row[-2], issued)
    if challenger != NOBODY:
        state.row[-1] = challenger
        state.open[-1] = int(not compared_enough(state.duels, policy.lead_needed, state.row[-2], challenger))
    show_row(state, challenger, rng, impression)


@implements(learn, KlUcbBr)
def _learn(policy: KlUcbBr, state: KlUcbBrState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1
    if fight(policy, state, impression, clicks):
        state.unsettled[0] = 1
    if promote(policy, state, impression.challenger[0]) != STANDS:
        state.moved_in[0] = state.round[0]
        enthrone(state.leaders, state.row[:-1])
    if impression.round[0] <= state.moved_in[0]:
        new_opponent(state.tournament)  # a page from before the move may have compared any pair
    elif impression.challenger[0] != NOBODY:
        new_record(state.tournament, state.duels, state.row[-2], impression.challenger[0])


@implements(advance, KlUcbBr)
def _advance(policy: KlUcbBr, state: KlUcbBrState) -> None:
    turn_epoch(state.duels, policy, state)


@implements(restart, KlUcbBr)
def _restart(policy: KlUcbBr, state: KlUcbBrState) -> None:
    """In a new epoch: derive the leader, count its pages from 0."""
    promote(policy, state, NOBODY)
    forget_leaders(state.leaders)
    enthrone(state.leaders, state.row[:-1])
    state.moved_in[0] = state.round[0]
    new_opponent(state.tournament)


@implements(count_issued, KlUcbBr)
def _count_issued(policy: KlUcbBr, state: KlUcbBrState, pages: int) -> None:
    state.round[0] += pages
    state.leaders.counts[state.leaders.current[0]] += pages


@implements(has_room, KlUcbBr)
def _has_room(policy: KlUcbBr, state: KlUcbBrState) -> bool:
    return duels_have_room(state, len(state.row)) and not leaders_full(state.leaders)


def _start(setup: Setup) -> tuple[KlUcbBr, KlUcbBrState]:
    state = KlUcbBrState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        horizon=np.zeros(1, np.int64),
        row=first_row(setup.n_positions),
        unsettled=np.zeros(1, np.int64),
        moved_in=np.zeros(1, np.int64),
        open=np.ones(setup.n_positions, np.int64),
        standing=first_standing(setup.n_items, setup.n_positions),
        duels=duels_for(setup.n_items, setup.n_positions, setup.lifetime),
        leaders=new_leader_counts(setup.n_positions, 256),
        tournament=new_tournament(setup.n_items),
    )
    enthrone(state.leaders, state.row[:-1])
    return KlUcbBr(setup.rule.table(0)), state


def _regroup(policy: KlUcbBr, state: KlUcbBrState, present: Flags) -> KlUcbBrState:
    """The state for other items: ranks closed, counts by leader kept, a new tournament."""
    state = regroup_row(policy, state, present)._replace(tournament=new_tournament(len(present)))
    return _crowned(state)


def _rebuild(policy: KlUcbBr, state: KlUcbBrState, base: Items) -> KlUcbBrState:
    state = _crowned(rebuild_row(policy, state, base))
    new_opponent(state.tournament)
    return state


def _crowned(state: KlUcbBrState) -> KlUcbBrState:
    """The state with its row's leader as the one whose pages are counted."""
    if leaders_full(state.leaders):
        state = state._replace(leaders=with_more_leaders(state.leaders))
    enthrone(state.leaders, state.row[:-1])
    state.moved_in[0] = state.round[0]
    return state


def _outlook(policy: KlUcbBr, state: KlUcbBrState) -> Outlook:
    bottom, issued = state.row[-2], state.leaders.counts[state.leaders.current[0]]
    x = champion(state.tournament, state.duels, state.standing, bottom, issued)
    if x == NOBODY:
        return Outlook("no item is left to challenge")
    index = duel_index(*duel_of(state.duels, x, bottom), issued)
    return Outlook(f"the largest optimistic index after {issued} pages under this leader", int(x), float(index))


register(
    "kl-ucb-br",
    KlUcbBr,
    start=_start,
    leader=leader_of,
    certifies=True,
    safe=True,
    rule=given_rule,
    regroup=_regroup,
    outlook=_outlook,
    rebuild=_rebuild,
    caches=("tournament", "open", "row"),
    lifetimes=True,
    shown_as=Presentation(
        "KL-UCB-BR",
        Look("#d9730d", "#f59a3e", "-", "o"),
        PAPER,
        order=1,
        about="explores unranked items by optimism, at the last position, and never leaves the safety constraint",
    ),
)
