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
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.randomness import Words, shuffle_front
from saferank.statistics.decision import PaperRule, whole_horizon
from saferank.statistics.kl import FIRST_BUDGET, budget, entropy, optimistic
from saferank.verbs import Flags, Impression, Ints, Items, choose, learn


class BatchRank(NamedTuple):
    """Hyper-parameters: log T, and the budget of the confidence bounds (infinite below T = 3)."""

    log_horizon: float
    allowed: float


class BatchRankState(NamedTuple):
    """The batches, which tile the positions; what is known of a batch is stored at its first position.

    Items stand in seats, batch after batch. Only the last batch can have more items than positions: a split gives the
    upper half as many items as positions.
    """

    round: Ints  # [1] pages issued
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
def _seats_end(state: BatchRankState, first: int) -> int:
    """One past the last seat of the batch whose first position this is."""
    end = state.end[first]
    return int(state.size[0] if end == len(state.end) else end)


@kernel
def _fewest(state: BatchRankState, first: int) -> int:
    """How often the least observed item of a batch was observed."""
    fewest = state.observed[state.seats[first]]
    for seat in range(first + 1, _seats_end(state, first)):
        fewest = min(fewest, state.observed[state.seats[seat]])
    return int(fewest)


@kernel
def _list_by_observations(state: BatchRankState, first: int) -> int:
    """List the items of a batch, those observed least before the others; returns how many those are."""
    fewest, filled = _fewest(state, first), 0
    for seat in range(first, _seats_end(state, first)):
        if state.observed[state.seats[seat]] == fewest:
            state.scratch[filled] = state.seats[seat]
            filled += 1
    least = filled
    for seat in range(first, _seats_end(state, first)):
        if state.observed[state.seats[seat]] != fewest:
            state.scratch[filled] = state.seats[seat]
            filled += 1
    return least


@kernel
def _draw_batch(state: BatchRankState, rng: Words, first: int, impression: Impression) -> None:
    """The items observed least, ties broken at random, at random positions of the batch."""
    end, size = state.end[first], _seats_end(state, first) - first
    length, least = end - first, _list_by_observations(state, first)
    if least >= length:
        shuffle_front(rng, state.scratch, 0, length, least)
    else:
        shuffle_front(rng, state.scratch, least, length, size)
        shuffle_front(rng, state.scratch, 0, length, length)
    for place in range(first, end):
        impression.ranking[place] = state.scratch[place - first]
        impression.start[place], impression.end[place] = first, end


@implements(choose, BatchRank)
def _choose(policy: BatchRank, state: BatchRankState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    impression.round[0], impression.places[0] = state.round[0], len(state.end)
    first = 0
    while first < len(state.end):
        _draw_batch(state, rng, first, impression)
        first = state.end[first]


@kernel
def _collect(state: BatchRankState, first: int, impression: Impression, clicks: Ints) -> None:
    """Count the items that were observed least, so that counts differ by at most one."""
    fewest = _fewest(state, first)
    for place in range(first, state.end[first]):
        item = impression.ranking[place]
        if state.observed[item] == fewest:
            state.observed[item] += 1
            state.clicked[item] += clicks[place]


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
def _sort_seats(state: BatchRankState, first: int) -> None:
    """Order a batch by clicks, which is the order of the bounds because all were observed equally often; stable."""
    for seat in range(first + 1, _seats_end(state, first)):
        item, free = state.seats[seat], seat
        while free > first and state.clicked[state.seats[free - 1]] < state.clicked[item]:
            state.seats[free] = state.seats[free - 1]
            free -= 1
        state.seats[free] = item


@kernel
def _split_at(policy: BatchRank, state: BatchRankState, first: int) -> int:
    """The last position at which a new batch can begin; ``first`` when there is none."""
    for position in range(state.end[first] - 1, first, -1):
        above, below = state.clicked[state.seats[position - 1]], state.clicked[state.seats[position]]
        if above > below and _lower(policy, above, state.needed[first]) > _upper(policy, below, state.needed[first]):
            return position
    return first


@kernel
def _begin_stage(policy: BatchRank, state: BatchRankState, first: int, end: int, stage: int) -> None:
    """Begin a stage of the batch of these positions, with its counts at 0."""
    for position in range(first, end):
        state.start[position], state.end[position] = first, end
    state.stage[first] = stage
    state.needed[first] = math.ceil(16.0 * 4.0**stage * policy.log_horizon)
    state.since[first] = state.round[0]
    for seat in range(first, _seats_end(state, first)):
        state.observed[state.seats[seat]] = 0
        state.clicked[state.seats[seat]] = 0


@kernel
def _drop_losers(policy: BatchRank, state: BatchRankState, first: int) -> None:
    """Leave out the items of the last batch that are surely not among its best."""
    end, needed = state.end[first], state.needed[first]
    worst = _lower(policy, state.clicked[state.seats[end - 1]], needed)
    while state.size[0] > end and _upper(policy, state.clicked[state.seats[state.size[0] - 1]], needed) < worst:
        state.size[0] -= 1


@kernel
def _close_stage(policy: BatchRank, state: BatchRankState, first: int) -> None:
    """Split the batch, or drop items and begin its next stage."""
    end = state.end[first]
    if policy.allowed < np.inf:  # otherwise all bounds are 0 and 1, and nothing is ordered
        _sort_seats(state, first)
    middle = _split_at(policy, state, first)
    if middle > first:
        _begin_stage(policy, state, first, middle, 0)
        _begin_stage(policy, state, middle, end, 0)
        return
    if end == len(state.end):
        _drop_losers(policy, state, first)
    _begin_stage(policy, state, first, end, state.stage[first] + 1)


@implements(learn, BatchRank)
def _learn(policy: BatchRank, state: BatchRankState, impression: Impression, clicks: Ints) -> None:
    first = 0
    while first < len(state.end):
        end = state.end[first]
        same_batch = impression.start[first] == first and impression.end[first] == end
        if same_batch and impression.round[0] > state.since[first]:  # of the present stage
            _collect(state, first, impression, clicks)
            several = _seats_end(state, first) - first > 1
            if several and _fewest(state, first) == state.needed[first]:
                _close_stage(policy, state, first)
        first = end


def _begun(policy: BatchRank, present: Flags, n_positions: int, rounds: int) -> BatchRankState:
    """One batch of all items that are present, after so many pages."""
    items, n_items = np.flatnonzero(present), len(present)
    seats = np.zeros(n_items, np.uint32)
    seats[: len(items)] = items
    state = BatchRankState(
        round=np.array([rounds], np.int64),
        seats=seats,
        size=np.array([len(items)], np.int64),
        start=np.zeros(n_positions, np.int64),
        end=np.full(n_positions, n_positions, np.int64),
        stage=np.zeros(n_positions, np.int64),
        needed=np.zeros(n_positions, np.int64),
        since=np.zeros(n_positions, np.int64),
        observed=np.zeros(n_items, np.int64),
        clicked=np.zeros(n_items, np.int64),
        scratch=np.zeros(n_items, np.uint32),
    )
    _begin_stage(policy, state, 0, n_positions, 0)
    return state


def _horizon(setup: Setup) -> float:
    """T is the horizon; a live ranker has none and takes one over the level of its paper rule."""
    if setup.horizon is not None:
        return max(2, whole_horizon(setup.horizon))
    if isinstance(setup.rule, PaperRule):
        return max(2.0, 1 / setup.rule.level)
    raise ValueError(
        f"batch-rank has confidence bounds of its own and takes only 1/T: write paper:DELTA, not {setup.rule.name}"
    )


def _start(setup: Setup) -> tuple[BatchRank, BatchRankState]:
    horizon = _horizon(setup)
    allowed = budget(horizon) if horizon >= FIRST_BUDGET else math.inf  # type: ignore[arg-type]
    policy = BatchRank(math.log(horizon), allowed)
    return policy, _begun(policy, np.ones(setup.n_items, np.bool_), setup.n_positions, 0)


def _leader(state: Any) -> Ints:
    return state.seats[: state.size[0]].astype(np.int64)  # type: ignore[no-any-return]


def _regroup(policy: BatchRank, state: BatchRankState, present: Flags) -> BatchRankState:
    """Batches and stages are about a fixed set of items: with another one everything begins again."""
    return _begun(policy, present, len(state.end), int(state.round[0]))


def _outlook(policy: BatchRank, state: BatchRankState) -> Outlook:
    sizes = [(_seats_end(state, first) - first, state.end[first] - first) for first in np.unique(state.start)]
    batches = ", ".join(f"{items} for {positions}" for items, positions in sizes)
    return Outlook(f"shuffles inside batches (items for positions): {batches}")


def _settled(state: Any, i: int, j: int) -> bool:
    """True when two items of the leader stand in different batches."""
    row = _leader(state).tolist()
    last = len(state.start) - 1
    return bool(state.start[min(row.index(i), last)] != state.start[min(row.index(j), last)])


register(
    "batch-rank",
    BatchRank,
    start=_start,
    leader=_leader,
    regroup=_regroup,
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
