r"""BatchRank: the agnostic forerunner of TopRank. Batches of items compete for a range of positions, in stages.

In stage l of a batch every item is observed n_l = ceil(16 4^l log T) times, at random positions of the batch. Then,
with the KL confidence bounds n_l kl(c, q) <= log T + 3 log log T around the click rates c, in decreasing order of the
lower bounds L:

    split after the largest k < len(b) with L(d_k) > max of U over the items below; both halves begin with stage 0;
    without a split drop the items with U < L(d_len(b)) and begin the next stage.

It knows no original ranking and gives no promise about a single page.

M. Zoghi, T. Tunys, M. Ghavamzadeh, B. Kveton, C. Szepesvari, Z. Wen: Online Learning to Rank in Stochastic Click
Models. ICML 2017.

>>> from saferank import Ranker
>>> ranker = Ranker("batch-rank", original=["a", "b"], candidates=["x"], rule="paper:0.01")
>>> for visitor in range(300):
...     page = ranker.rank()
...     ranker.feedback(page, clicked=[item for item in page.items if item == "x"])
>>> ranker.leader[0]
'x'
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.randomness import Words, shuffle_front
from saferank.statistics.decision import PaperRule, whole_horizon
from saferank.statistics.kl import FIRST_BUDGET, budget, entropy, optimistic
from saferank.verbs import Call, Impression, Ints, Items, choose, follow, learn, renew


class BatchRank(NamedTuple):
    """Hyper-parameters: log T, and the budget of the confidence bounds (infinite below T = 3)."""

    log_horizon: float
    allowed: float


class BatchRankEvidence(NamedTuple):
    """It only counts: the knowledge of a batch belongs to its stage."""

    n_items: Ints  # [1] items known
    learned: Ints  # [1] pages answered


class BatchRankPlan(NamedTuple):
    """The batches, which tile the positions; the counts of a batch are stored at its first position.

    Items stand in seats, batch after batch. Only the last batch can have more items than positions: a split gives the
    upper half as many items as positions. Batches and stages are about a fixed set of items: with another call
    everything begins again, so there is nothing that could be evidence.
    """

    base: Items  # production's ranking, of which only the length counts
    seats: Items  # items by seat; within a batch by their rates when its last stage ended
    size: Ints  # [1] seats in use: the others were dropped
    start: Ints  # by position: the first position of its batch
    end: Ints  # by position: one past the last position of its batch
    stage: Ints  # by first position: l
    needed: Ints  # by first position: n_l
    since: Ints  # by first position: pages issued before the stage began
    observed: Ints  # by item, in the present stage
    clicked: Ints  # by item, in the present stage
    scratch: Items  # by item


@kernel
def _seats_end(plan: BatchRankPlan, first: int) -> int:
    """One past the last seat of the batch whose first position this is."""
    end = plan.end[first]
    return int(plan.size[0] if end == len(plan.end) else end)


@kernel
def _fewest(plan: BatchRankPlan, first: int) -> int:
    """How often the least observed item of a batch was observed."""
    fewest = plan.observed[plan.seats[first]]
    for seat in range(first + 1, _seats_end(plan, first)):
        fewest = min(fewest, plan.observed[plan.seats[seat]])
    return int(fewest)


@kernel
def _list_by_observations(plan: BatchRankPlan, first: int) -> int:
    """List the items of a batch, those observed least before the others; returns how many those are."""
    fewest, filled = _fewest(plan, first), 0
    for seat in range(first, _seats_end(plan, first)):
        if plan.observed[plan.seats[seat]] == fewest:
            plan.scratch[filled] = plan.seats[seat]
            filled += 1
    least = filled
    for seat in range(first, _seats_end(plan, first)):
        if plan.observed[plan.seats[seat]] != fewest:
            plan.scratch[filled] = plan.seats[seat]
            filled += 1
    return least


@kernel
def _draw_batch(plan: BatchRankPlan, rng: Words, first: int, impression: Impression) -> None:
    """The items observed least, ties broken at random, at random positions of the batch."""
    end, size = plan.end[first], _seats_end(plan, first) - first
    length, least = end - first, _list_by_observations(plan, first)
    if least >= length:
        shuffle_front(rng, plan.scratch, 0, length, least)
    else:
        shuffle_front(rng, plan.scratch, least, length, size)
        shuffle_front(rng, plan.scratch, 0, length, length)
    for place in range(first, end):
        impression.ranking[place] = plan.scratch[place - first]
        impression.start[place], impression.end[place] = first, end


@implements(choose, BatchRank)
def _choose(
    policy: BatchRank, evidence: BatchRankEvidence, plan: BatchRankPlan, rng: Words, impression: Impression
) -> None:
    impression.places[0] = len(plan.end)
    first = 0
    while first < len(plan.end):
        _draw_batch(plan, rng, first, impression)
        first = plan.end[first]


@kernel
def _collect(plan: BatchRankPlan, first: int, impression: Impression, clicks: Ints) -> None:
    """Count the items that were observed least, so that counts differ by at most one."""
    fewest = _fewest(plan, first)
    for place in range(first, plan.end[first]):
        item = impression.ranking[place]
        if plan.observed[item] == fewest:
            plan.observed[item] += 1
            plan.clicked[item] += clicks[place]


@kernel
def _upper(policy: BatchRank, clicked: int, n: int) -> float:
    """The upper confidence bound of a click rate."""
    if clicked == n or policy.allowed == np.inf:
        return 1.0
    wins, losses = float(clicked), float(n - clicked)
    return -math.expm1(-optimistic(wins, losses, entropy(wins, losses), policy.allowed))


@kernel
def _lower(policy: BatchRank, clicked: int, n: int) -> float:
    """The lower confidence bound: clicks and non-clicks exchanged."""
    return 1.0 - _upper(policy, n - clicked, n)


@kernel
def _sort_seats(plan: BatchRankPlan, first: int) -> None:
    """Order a batch by clicks, which is the order of the bounds because all were observed equally often; stable."""
    for seat in range(first + 1, _seats_end(plan, first)):
        item, free = plan.seats[seat], seat
        while free > first and plan.clicked[plan.seats[free - 1]] < plan.clicked[item]:
            plan.seats[free] = plan.seats[free - 1]
            free -= 1
        plan.seats[free] = item


@kernel
def _split_at(policy: BatchRank, plan: BatchRankPlan, first: int) -> int:
    """The last position at which a new batch can begin; ``first`` when there is none."""
    for position in range(plan.end[first] - 1, first, -1):
        above, below = plan.clicked[plan.seats[position - 1]], plan.clicked[plan.seats[position]]
        if above > below and _lower(policy, above, plan.needed[first]) > _upper(policy, below, plan.needed[first]):
            return position
    return first


@kernel
def _begin_stage(policy: BatchRank, plan: BatchRankPlan, first: int, end: int, stage: int, issued: int) -> None:
    """Begin a stage of the batch of these positions, with its counts at 0."""
    for position in range(first, end):
        plan.start[position], plan.end[position] = first, end
    plan.stage[first] = stage
    plan.needed[first] = math.ceil(16.0 * 4.0**stage * policy.log_horizon)
    plan.since[first] = issued
    for seat in range(first, _seats_end(plan, first)):
        plan.observed[plan.seats[seat]] = 0
        plan.clicked[plan.seats[seat]] = 0


@kernel
def _drop_losers(policy: BatchRank, plan: BatchRankPlan, first: int) -> None:
    """Leave out the items of the last batch that are surely not among its best."""
    end, needed = plan.end[first], plan.needed[first]
    worst = _lower(policy, plan.clicked[plan.seats[end - 1]], needed)
    while plan.size[0] > end and _upper(policy, plan.clicked[plan.seats[plan.size[0] - 1]], needed) < worst:
        plan.size[0] -= 1


@kernel
def _close_stage(policy: BatchRank, plan: BatchRankPlan, first: int, issued: int) -> None:
    """Split the batch, or drop items and begin its next stage."""
    end = plan.end[first]
    if policy.allowed < np.inf:  # otherwise all bounds are 0 and 1, and nothing is ordered
        _sort_seats(plan, first)
    middle = _split_at(policy, plan, first)
    if middle > first:
        _begin_stage(policy, plan, first, middle, 0, issued)
        _begin_stage(policy, plan, middle, end, 0, issued)
        return
    if end == len(plan.end):
        _drop_losers(policy, plan, first)
    _begin_stage(policy, plan, first, end, plan.stage[first] + 1, issued)


@implements(learn, BatchRank)
def _learn(policy: BatchRank, evidence: BatchRankEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1


@implements(follow, BatchRank)
def _follow(
    policy: BatchRank,
    evidence: BatchRankEvidence,
    plan: BatchRankPlan,
    impression: Impression,
    clicks: Ints,
    issued: int,
) -> None:
    first = 0
    while first < len(plan.end):
        end = plan.end[first]
        same_batch = impression.start[first] == first and impression.end[first] == end
        if same_batch and impression.round[0] > plan.since[first]:  # of the present stage
            _collect(plan, first, impression, clicks)
            several = _seats_end(plan, first) - first > 1
            if several and _fewest(plan, first) == plan.needed[first]:
                _close_stage(policy, plan, first, issued)
        first = end


@implements(renew, BatchRank)
def _renew(policy: BatchRank, evidence: BatchRankEvidence, plan: BatchRankPlan, issued: int) -> None:
    """One batch of all items of the call."""
    plan.size[0] = len(plan.seats)
    for seat in range(len(plan.seats)):  # in item order
        item, free = plan.seats[seat], seat
        while free > 0 and plan.seats[free - 1] > item:
            plan.seats[free] = plan.seats[free - 1]
            free -= 1
        plan.seats[free] = item
    _begin_stage(policy, plan, 0, len(plan.end), 0, issued)


def _plan(policy: BatchRank, evidence: BatchRankEvidence, call: Call) -> BatchRankPlan:
    n_items, n_positions = int(evidence.n_items[0]), len(call.base)
    start, stage, needed, since = np.zeros((4, n_positions), np.int64)
    observed, clicked = np.zeros((2, n_items), np.int64)
    return BatchRankPlan(
        base=call.base,
        seats=np.append(call.base, call.candidates),
        size=np.zeros(1, np.int64),
        start=start,
        end=np.full(n_positions, n_positions, np.int64),
        stage=stage,
        needed=needed,
        since=since,
        observed=observed,
        clicked=clicked,
        scratch=np.zeros(n_items, np.uint32),
    )


def _horizon(setup: Setup) -> float:
    """T is the horizon; a live ranker has none and takes one over the level of its paper rule."""
    if setup.horizon is not None:
        return max(2, whole_horizon(setup.horizon))
    if isinstance(setup.rule, PaperRule):
        return max(2.0, 1 / setup.rule.level)
    raise ValueError(
        f"batch-rank has confidence bounds of its own and takes only 1/T: write paper:DELTA, not {setup.rule.name}"
    )


def _start(setup: Setup) -> tuple[BatchRank, BatchRankEvidence]:
    horizon = _horizon(setup)
    allowed = budget(horizon) if horizon >= FIRST_BUDGET else math.inf  # type: ignore[arg-type]
    evidence = BatchRankEvidence(np.array([setup.n_items], np.int64), np.zeros(1, np.int64))
    return BatchRank(math.log(horizon), allowed), evidence


def _with_items(evidence: BatchRankEvidence, n_items: int) -> BatchRankEvidence:
    return evidence._replace(n_items=np.array([n_items], np.int64))


def _leader(evidence: BatchRankEvidence, plan: BatchRankPlan) -> Ints:
    return plan.seats[: plan.size[0]].astype(np.int64)


def _outlook(policy: BatchRank, evidence: BatchRankEvidence, plan: BatchRankPlan, issued: int) -> Outlook:
    sizes = [(_seats_end(plan, first) - first, plan.end[first] - first) for first in np.unique(plan.start)]
    batches = ", ".join(f"{items} for {positions}" for items, positions in sizes)
    return Outlook(f"shuffles inside batches (items for positions): {batches}")


def _settled(evidence: BatchRankEvidence, plan: BatchRankPlan, i: int, j: int) -> bool:
    """True when two items of the leader stand in different batches."""
    row = _leader(evidence, plan).tolist()
    last = len(plan.start) - 1
    return bool(plan.start[min(row.index(i), last)] != plan.start[min(row.index(j), last)])


register(
    "batch-rank",
    BatchRank,
    start=_start,
    leader=_leader,
    plan=_plan,
    with_items=_with_items,
    outlook=_outlook,
    settled=_settled,
    shown_as=Presentation(
        "BatchRank",
        Look("#0c7b80", "#4cc4cb", (0, (3, 3)), "p"),
        PEER,
        order=23,
        about="shuffles batches of items in stages, the forerunner of TopRank; not safe",
    ),
)
