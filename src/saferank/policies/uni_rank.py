r"""UniRank: an ordered partition of all items as the leader, its neighbouring parts merged while optimism allows.

With m = s/n and t the pages issued before under this leader, parts P_c and P_(c+1) are recommended as one while some
item j of the lower part has a positive optimistic index 2 f((1 + m(j,i))/2, n, t) - 1 against an item i of the upper
one; the part that reaches position K may take in one extra item from below. After t0 pages item i stays beside j in
the new leader unless

    m(i,j) + sqrt(log log(t0 + 3) / n(i,j)) < 0.

No horizon, no delta, no original ranking.

C.-S. Gauthier, R. Gaudel, E. Fromont: UniRank: Unimodal Bandit Algorithms for Online Ranking. ICML 2022.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
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
from saferank.policies.shared.uni_rank_page import recommend_parts
from saferank.randomness import Words
from saferank.statistics.duels import Duels, fight, new_duels, record, with_more_items
from saferank.statistics.kl import first_budgets
from saferank.statistics.leaders import (
    LeaderCounts,
    enthrone,
    forget_leaders,
    leaders_full,
    new_leader_counts,
    pages_under,
)
from saferank.statistics.pairs import count_win, duel_of
from saferank.verbs import Call, Flags, Floats, Impression, Ints, Items, choose, follow, learn, plan_has_room, renew


class UniRank(NamedTuple):
    """Hyper-parameters: only the budgets of the first counts, in a table: two logarithms a page would be slow."""

    budgets: Floats


class UniRankEvidence(NamedTuple):
    """Duels, and which items surely stand below which."""

    learned: Ints  # [1] pages learnt from
    changes: Ints  # [1] how often ``below`` changed
    duels: Duels
    below: Flags  # [L, L]: the first item stands below the second, by the log log bound
    bound: Floats  # [3] log log(t0 + 3) lies between the first two while t0 is at most the third
    wake: Floats  # [2] smallest m^2 n of a pair marked below, and the t0 at which the bound reaches it


class UniRankPlan(NamedTuple):
    """The parts that this makes of the items of a call, and the pages under every such leader."""

    base: Items  # production's ranking, of which only the length counts
    present: Flags  # by item
    known: Ints  # [1] the changes that the parts have followed
    parts: Partition
    part_of: Ints  # by item: where its part ends; the leader as a key
    leaders: LeaderCounts
    extra: Ints  # [5] the extra item's place, the start of the part it is for, the count at which to choose again, its
    # losses against that part when it was chosen, the first page of the choice
    allowed: Floats  # [1] the budget of the choice


@kernel
def _bound_at(t0: float) -> float:
    return math.log(math.log(t0 + 3.0))


@kernel
def _stands_below(evidence: UniRankEvidence, i: int, j: int) -> bool:
    """Not ok(i, j): m(i,j) + sqrt(log log(t0 + 3) / n) < 0, the logarithms taken only when the case is close."""
    won, lost = duel_of(evidence.duels, i, j)
    wins, losses = float(won), float(lost)
    if losses <= wins:
        return False
    n = wins + losses
    strength = (losses - wins) * (losses - wins) / n
    if strength < evidence.bound[0] * (1.0 - 1e-12):
        return False
    close = strength < evidence.bound[1] * (1.0 + 1e-12)
    if close and (wins - losses) / n + math.sqrt(_bound_at(float(evidence.learned[0])) / n) >= 0:
        return False
    if strength < evidence.wake[0]:
        _wake_at(evidence, strength)
    return True


@kernel
def _wake_at(evidence: UniRankEvidence, strength: float) -> None:
    """Remember when the growing bound will release the pair of this strength; a little early, never late."""
    evidence.wake[0] = strength
    evidence.wake[1] = math.exp(min(math.exp(min(strength, 6.0)), 600.0)) * (1.0 - 1e-9) - 5.0


@implements(record, UniRank)
def _record(policy: UniRank, evidence: UniRankEvidence, winner: int, loser: int, now: int) -> bool:
    count_win(evidence.duels, winner, loser)
    up, down = _stands_below(evidence, winner, loser), _stands_below(evidence, loser, winner)
    changed = up != evidence.below[winner, loser] or down != evidence.below[loser, winner]
    evidence.below[winner, loser], evidence.below[loser, winner] = up, down
    return bool(changed)


@kernel
def _follow_bound(evidence: UniRankEvidence) -> None:
    """Renew the bracket around log log(t0 + 3) when t0 has left it."""
    t0 = float(evidence.learned[0])
    if t0 > evidence.bound[2]:
        evidence.bound[2] = math.floor(t0 * 1.02)
        evidence.bound[0], evidence.bound[1] = _bound_at(t0), _bound_at(evidence.bound[2])


@kernel
def _review_all(evidence: UniRankEvidence) -> bool:
    """Look at every pair again, because the bound has grown over one of them."""
    evidence.wake[0] = evidence.wake[1] = np.inf
    changed, n_items = False, len(evidence.below)
    for i in range(n_items):
        for j in range(n_items):
            stands = evidence.below[i, j] and _stands_below(evidence, i, j)
            changed |= stands != evidence.below[i, j]
            evidence.below[i, j] = stands
    return changed


@implements(learn, UniRank)
def _learn(policy: UniRank, evidence: UniRankEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1
    _follow_bound(evidence)
    changed = fight(policy, evidence, impression, clicks)
    if evidence.learned[0] >= evidence.wake[1]:
        changed |= _review_all(evidence)
    if changed:
        evidence.changes[0] += 1


@implements(follow, UniRank)
def _follow(
    policy: UniRank, evidence: UniRankEvidence, plan: UniRankPlan, impression: Impression, clicks: Ints, issued: int
) -> None:
    if impression.round[0] < plan.extra[4]:
        plan.extra[2] = 0
    if plan.known[0] != evidence.changes[0]:
        _lead(evidence, plan, issued)


@kernel
def _lead(evidence: UniRankEvidence, plan: UniRankPlan, issued: int) -> None:
    """Derive the parts, which lead from now on."""
    plan.known[0] = evidence.changes[0]
    rebuild(plan.parts, evidence.below, plan.present)
    for place in range(plan.parts.size[0]):
        plan.part_of[plan.parts.order[place]] = plan.parts.end[place]
    enthrone(plan.leaders, plan.part_of, issued)
    plan.extra[2] = 0


@implements(renew, UniRank)
def _renew(policy: UniRank, evidence: UniRankEvidence, plan: UniRankPlan, issued: int) -> None:
    """Another set of items has leaders of its own, so counts start again at 0."""
    forget_leaders(plan.leaders)
    _lead(evidence, plan, issued)


@implements(choose, UniRank)
def _choose(policy: UniRank, evidence: UniRankEvidence, plan: UniRankPlan, rng: Words, impression: Impression) -> None:
    t = pages_under(plan.leaders, impression.round[0] - 1)
    shuffle_page(impression, rng, recommend_parts(policy, evidence, plan, t, impression))


@implements(plan_has_room, UniRank)
def _plan_has_room(policy: UniRank, plan: UniRankPlan) -> bool:
    return not leaders_full(plan.leaders)


def _start(setup: Setup) -> tuple[UniRank, UniRankEvidence]:
    evidence = UniRankEvidence(
        learned=np.zeros(1, np.int64),
        changes=np.zeros(1, np.int64),
        duels=new_duels(setup.n_items, direct_items=LARGEST_CATALOGUE),
        below=np.zeros((setup.n_items, setup.n_items), np.bool_),
        bound=np.array([-np.inf, -np.inf, -np.inf]),
        wake=np.array([np.inf, np.inf]),
    )
    return UniRank(first_budgets()), evidence


def _plan(policy: UniRank, evidence: UniRankEvidence, call: Call) -> UniRankPlan:
    n_items = len(evidence.below)
    return UniRankPlan(
        base=call.base,
        present=items_of(call, n_items),
        known=np.zeros(1, np.int64),
        parts=new_partition(n_items),
        part_of=np.zeros(n_items, np.int64),
        leaders=new_leader_counts(n_items, 256),
        extra=np.zeros(5, np.int64),
        allowed=np.zeros(1),
    )


def _with_items(evidence: UniRankEvidence, n_items: int) -> UniRankEvidence:
    duels = with_more_items(evidence.duels, n_items, LARGEST_CATALOGUE)
    return evidence._replace(duels=duels, below=with_larger_matrix(evidence.below, n_items))


def _outlook(policy: UniRank, evidence: UniRankEvidence, plan: UniRankPlan, issued: int) -> Outlook:
    return Outlook(f"shuffles and merges neighbouring parts of {sizes_in_words(plan.parts)} items")


def _leader(evidence: UniRankEvidence, plan: UniRankPlan) -> Ints:
    return row_of(plan.parts)


register(
    "uni-rank",
    UniRank,
    start=_start,
    leader=_leader,
    plan=_plan,
    compares_all=True,
    largest_catalogue=LARGEST_CATALOGUE,
    with_items=_with_items,
    outlook=_outlook,
    settled=lambda evidence, plan, i, j: apart(plan.parts, i, j),
    shown_as=Presentation(
        "UniRank",
        Look("#1b8a4a", "#4fc983", (0, (3, 1.2, 1, 1.2, 1, 1.2)), "D"),
        PAPER,
        order=4,
        about="merges neighbouring parts while optimism allows; not safe",
    ),
)
