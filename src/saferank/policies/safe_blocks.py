r"""safe-blocks: KL-UCB-BR that shuffles blocks, as many as the safety allowance and certified swaps pay for.

The paper lets a page have L - K/2 more wrong pairs than the original ranking. Here that is a budget, and every swap
that moved the leader is income, because on the event that no certificate is wrong it made the leader better by at least
one pair: after m swaps a page may carry

    B = floor(L - K/2) + m

possibly wrong pairs. A challenger costs L - K, a block all its pairs. The challenger has the largest optimistic index
of all unranked items that may still be better than the bottom item; a block holds only pairs whose lower item may still
be better. Ours, beyond the paper; the proof is in docs/policies/safe-blocks.md.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.kl_ucb_br import begin_again, crowned, follow_clicks
from saferank.policies.registry import OURS, Look, Outlook, Presentation, Setup, given_rule, register
from saferank.policies.shared.account import budget_of, new_account, rebased_leader, regrouped_leader
from saferank.policies.shared.blocks import (
    LOOK_AGAIN,
    follow_duel,
    is_open,
    look_at_leader,
    opens_again,
    pages_under_leader,
    show_blocks,
)
from saferank.policies.shared.bubble import first_row, first_standing, leader_of, mark_open, with_leader
from saferank.policies.shared.epochs import advance, restart, turn_epoch
from saferank.policies.shared.issuing import count_issued
from saferank.policies.shared.room import duels_have_room, has_room
from saferank.randomness import Words, word
from saferank.statistics.duels import (
    DenseDuels,
    HashedDuels,
    record,
    record_and_certify,
    wins_of,
    with_more_items,
)
from saferank.statistics.kl import duel_index, first_budgets
from saferank.statistics.leaders import LeaderCounts, enthrone, leaders_full, new_leader_counts
from saferank.statistics.lifetimes import LifetimeDuels, new_duels
from saferank.statistics.tournament import (
    ABSENT,
    Tournament,
    champion,
    may_challenge,
    new_tournament,
)
from saferank.verbs import NOBODY, Flags, Floats, Impression, Ints, Items, choose, learn

_OPEN = -1


class SafeBlocks(NamedTuple):
    """Hyper-parameters: the decision rule as a table of leads by n, and the budgets of the index by t."""

    lead_needed: Ints
    budgets: Floats


class SafeBlocksState(NamedTuple):
    """What KL-UCB-BR keeps, the account, and how far up blocks may reach."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    horizon: Ints  # [1] how many may be learnt from before the rule's table must be longer
    row: Items  # the leader, then the newest challenger
    unsettled: Ints  # [1] a pair was decided, or the leader moved, since the last pass
    moved_in: Ints  # [1] the newest round in which the leader moved
    account: Ints  # [3] allowance floor(L - K/2), certified swaps since the reference, price L - K of a challenger
    reach: Ints  # by place of the leader: with how many places right above it pairs are open
    place: Ints  # by item: its place in the leader when last looked at
    wake: Ints  # [1] count of the leader at which all pairs are looked at again
    quiet: Ints  # [1] count until which the champion of the tournament does not challenge, or _OPEN
    standing: Ints  # by item
    duels: DenseDuels | HashedDuels | LifetimeDuels
    leaders: LeaderCounts
    tournament: Tournament


@implements(mark_open, SafeBlocks)
def _mark_open(policy: SafeBlocks, state: SafeBlocksState) -> None:
    state.wake[0] = LOOK_AGAIN


@implements(record, SafeBlocks)
def _record(policy: SafeBlocks, state: SafeBlocksState, winner: int, loser: int, now: int) -> bool:
    changed = record_and_certify(policy, state, winner, loser, now)
    follow_duel(policy, state, winner, loser)
    return changed


@implements(may_challenge, SafeBlocks)
def _may_challenge(policy: SafeBlocks, wins: int, losses: int) -> bool:
    return bool(losses - wins < policy.lead_needed[np.uint32(wins + losses)])


@kernel
def _challenger(policy: SafeBlocks, state: SafeBlocksState, t: int) -> int:
    """The item with the largest index of all whose pair with the bottom item is open, or NOBODY.

    The tournament leaves out items that the bottom item surely beats; if the winner's index is not positive, none is.
    While the winner is known to stay the winner its record is the same, so it stays open, or closed until ``quiet``.
    """
    known = t < state.tournament.good_until[0]
    if known and t < state.quiet[0]:
        return NOBODY
    bottom = state.row[-2]
    best = champion(policy, state.tournament, state.duels, state.standing, bottom, t)
    if best == NOBODY or (known and state.quiet[0] == _OPEN) or is_open(policy, state, bottom, best, t):
        state.quiet[0] = _OPEN
        return best
    state.quiet[0] = opens_again(policy, state, bottom, best, t)
    return NOBODY


@implements(choose, SafeBlocks)
def _choose(policy: SafeBlocks, state: SafeBlocksState, rng: Words, impression: Impression) -> None:
    t, coins = pages_under_leader(state), word(rng)
    state.leaders.counts[state.leaders.current[0]] += 1
    state.round[0] += 1
    impression.round[0] = state.round[0]
    if t >= state.wake[0]:
        look_at_leader(policy, state, t)
    show_blocks(policy, state, _challenger(policy, state, t), coins, t, rng, impression)


@implements(learn, SafeBlocks)
def _learn(policy: SafeBlocks, state: SafeBlocksState, impression: Impression, clicks: Ints) -> None:
    state.account[1] += follow_clicks(policy, state, impression, clicks)


@implements(count_issued, SafeBlocks)
def _count_issued(policy: SafeBlocks, state: SafeBlocksState, pages: int) -> None:
    state.round[0] += pages
    state.leaders.counts[state.leaders.current[0]] += pages


@implements(advance, SafeBlocks)
def _advance(policy: SafeBlocks, state: SafeBlocksState) -> None:
    turn_epoch(state.duels, policy, state)


@implements(restart, SafeBlocks)
def _restart(policy: SafeBlocks, state: SafeBlocksState) -> None:
    state.account[1] += begin_again(policy, state)
    state.quiet[0] = _OPEN


@implements(has_room, SafeBlocks)
def _has_room(policy: SafeBlocks, state: SafeBlocksState) -> bool:
    return duels_have_room(state, len(state.row) * (len(state.row) - 1) // 2) and not leaders_full(state.leaders)


def _start(setup: Setup) -> tuple[SafeBlocks, SafeBlocksState]:
    state = SafeBlocksState(
        round=np.zeros(1, np.int64),
        learned=np.zeros(1, np.int64),
        horizon=np.zeros(1, np.int64),
        row=first_row(setup.n_positions),
        unsettled=np.zeros(1, np.int64),
        moved_in=np.zeros(1, np.int64),
        account=new_account(setup.n_items, setup.n_positions),
        reach=np.zeros(setup.n_positions + 1, np.int64),
        place=np.zeros(setup.n_items, np.int64),
        wake=np.full(1, LOOK_AGAIN, np.int64),
        quiet=np.full(1, _OPEN, np.int64),
        standing=first_standing(setup.n_items, setup.n_positions),
        duels=new_duels(setup.n_items, setup.n_positions, setup.lifetime),
        leaders=new_leader_counts(setup.n_positions, 256),
        tournament=new_tournament(setup.n_items),
    )
    enthrone(state.leaders, state.row[:-1])
    return SafeBlocks(setup.rule.table(0), first_budgets()), state


def _regroup(policy: SafeBlocks, state: SafeBlocksState, present: Flags) -> SafeBlocksState:
    """For other items: leader and account by what is certain, a new tournament."""
    state = state._replace(duels=with_more_items(state.duels, len(present)))
    leader, account = regrouped_leader(policy, state, state.row[:-1], present, distant=False)
    places, tournament = np.zeros(len(present), np.int64), new_tournament(len(present))
    state = with_leader(policy, state, leader, present)
    regrouped: SafeBlocksState = crowned(state._replace(account=account, place=places, tournament=tournament))
    return regrouped


def _rebuild(policy: SafeBlocks, state: SafeBlocksState, base: Items) -> SafeBlocksState:
    """For another ranking of production's: leader and account derived from it, a new tournament."""
    leader, account = rebased_leader(policy, state, base, distant=False)
    n_items = len(state.standing)
    rebuilt = with_leader(policy, state, leader, state.standing != ABSENT)
    places, tournament = np.zeros(n_items, np.int64), new_tournament(n_items)
    crowned_state: SafeBlocksState = crowned(rebuilt._replace(account=account, place=places, tournament=tournament))
    crowned_state.quiet[0] = _OPEN
    return crowned_state


def _outlook(policy: SafeBlocks, state: SafeBlocksState) -> Outlook:
    bottom, issued = state.row[-2], pages_under_leader(state)
    x = _challenger(policy, state, issued)
    if x == NOBODY:
        return Outlook("no unranked item may still be better than the bottom item; shuffles blocks of the leader")
    index = duel_index(wins_of(state.duels, x, bottom), wins_of(state.duels, bottom, x), issued)
    return Outlook(
        f"shuffles blocks of the leader; the challenger has the largest optimistic index after {issued} pages under it",
        int(x),
        float(index),
    )


register(
    "safe-blocks",
    SafeBlocks,
    start=_start,
    leader=leader_of,
    certifies=True,
    safe=True,
    rule=given_rule,
    regroup=_regroup,
    rebuild=_rebuild,
    outlook=_outlook,
    caches=("row", "reach", "place", "wake", "quiet", "tournament"),
    budget=budget_of,
    compares_blocks=True,
    lifetimes=True,
    shown_as=Presentation(
        "SafeBlocks",
        Look("#7b2f94", "#cf8fe6", (0, (9, 2)), "v"),
        OURS,
        order=11,
        about="spends the safety allowance and certified swaps on shuffled blocks",
    ),
)
