"""The four verbs that do all the work. Read this first.

    choose(policy, state, rng, impression)           fills what will be shown; never changes the duels
    learn(policy, state, impression, clicks)         the only function that changes them
    click(click_model, shown, rng, clicks)           one simulated user
    expected_clicks(click_model, shown) -> float     the reward r(shown)

A policy is a NamedTuple of hyper-parameters, its state a NamedTuple of arrays, randomness an argument. Each verb
dispatches on the type of its first argument, so an algorithm is added by implementing two verbs for a new type. The
compiled simulator and the live ranker call the same four verbs; neither knows any algorithm.

An *impression* is everything that ``learn`` needs later, frozen when the page is issued. It is a row of places of
which the first ``n_positions`` are shown and the others are compared all the same (their click is 0), cut into
*groups* of neighbouring places. Two items duel exactly when they stand in the same group and one of them was clicked:
BubbleRank's pairs are groups of two, TopRank's blocks and UniRank's parts are larger ones. So late, lost, repeated and
reordered feedback need nothing special.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import implements, kernel, verb
from saferank.randomness import Words

Items = NDArray[np.uint32]
"""Rows of items. Unsigned, because a signed index costs a check for negative values at every use."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

__all__ = [
    "NOBODY", "Flags", "Floats", "Impression", "Ints", "Items", "Words", "choose", "click", "expected_clicks",
    "implements", "kernel", "learn", "new_impression",
]  # fmt: skip

NOBODY = -1
"""Stands where there is no item: no challenger, no hidden item."""


class Impression(NamedTuple):
    """One page: what is shown, what is compared, and with whom."""

    round: Ints  # [1] number of this page, from 1
    ranking: Items  # items by place: shown ones first, then those compared without being shown
    start: Ints  # by place: the first place of its group
    end: Ints  # by place: one past the last place of its group
    places: Ints  # [1] how many places are in use
    challenger: Ints  # [1] the item that contends for the last position, or NOBODY
    shown: Items  # a view of the first n_positions places of ranking
    weight: Floats  # by place: of a page drawn item by item, the weight of its item in the draw
    exchanges: Ints  # by place: bits of the places with which the draw could have exchanged it
    frozen: Ints  # [1] 1 when exchanges is filled in


def new_impression(n_positions: int, n_places: int) -> Impression:
    """An empty impression with room for ``n_places`` compared items."""
    ranking = np.zeros(max(n_positions, n_places), np.uint32)
    return Impression(
        round=np.zeros(1, np.int64),
        ranking=ranking,
        start=np.zeros(len(ranking), np.int64),
        end=np.zeros(len(ranking), np.int64),
        places=np.zeros(1, np.int64),
        challenger=np.full(1, NOBODY, np.int64),
        shown=ranking[:n_positions],
        weight=np.zeros(len(ranking)),
        exchanges=np.zeros(len(ranking), np.int64),
        frozen=np.zeros(1, np.int64),
    )


@verb
def choose(policy: Any, state: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page: fill ``impression``, count the round. Statistics of duels stay as they are."""


@verb
def learn(policy: Any, state: Any, impression: Impression, clicks: Ints) -> None:
    """Take the clicks (0 or 1 for each shown position) of a page into the statistics and move the leader."""


@verb
def click(model: Any, shown: Items, rng: Words, clicks: Ints) -> None:
    """Let one simulated user look at ``shown`` and fill ``clicks`` (one entry per position) with 0 and 1."""


@verb
def expected_clicks(model: Any, shown: Items) -> float:
    """The expected number of clicks on ``shown``."""
    raise NotImplementedError
