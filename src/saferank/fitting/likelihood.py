"""How likely is a page: log P(page) = sum over positions of log P(click or not at k | clicks above k).

Each model gives P(click at k | clicks above) in its verb ``foresee``: a forward pass that keeps the probability, given
the clicks above, that position k is examined. This is exact for every model, also for those whose users leave unseen,
and the same numbers give the likelihood, the perplexity and the convergence of EM.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, verb
from saferank.fitting.coins import Clicks
from saferank.logs.records import DistinctPages
from saferank.verbs import Floats, Ints

_TINY = 1e-300


@verb
def foresee(model: Any, items: Ints, clicks: Clicks, chances: Floats) -> None:
    """Fill ``chances[k]`` with P(click at k | clicks above k) for every position of the page."""


class Surprise(NamedTuple):
    """What a set of pages has of the unexpected: -log P of what happened at each position, summed over pages."""

    nats: Floats  # by position
    shown: Ints  # by position: how many pages reach down to it
    impossible: Ints  # [1] pages of probability 0
    chances: Floats  # scratch, by position


@kernel
def still_looking(belief: float, attraction: float) -> float:
    """P(examined | not clicked), when ``belief`` was P(examined) before it was known that there is no click."""
    return belief * (1.0 - attraction) / max(1.0 - belief * attraction, _TINY)


@kernel
def page_length(items: Ints) -> int:
    """How many items a row holds before it is filled up with -1."""
    length = len(items)
    while length > 0 and items[length - 1] < 0:
        length -= 1
    return length


def surprise(model: Any, pages: DistinctPages) -> Surprise:
    """How surprising the pages are to ``model``, position by position; infinite where it holds them for impossible."""
    n_positions = pages.items.shape[1]
    made = Surprise(
        nats=np.zeros(n_positions),
        shown=np.zeros(n_positions, np.int64),
        impossible=np.zeros(1, np.int64),
        chances=np.zeros(n_positions),
    )
    _add_pages(model, pages, made)
    return made


def log_likelihood(model: Any, pages: DistinctPages) -> float:
    """The natural logarithm of the probability of all pages; -inf if the model holds one of them for impossible."""
    return -float(surprise(model, pages).nats.sum())


@kernel
def _add_pages(model: Any, pages: DistinctPages, made: Surprise) -> None:
    for n in range(len(pages.weight)):
        length = page_length(pages.items[n])
        clicks = pages.clicks[n, :length]
        foresee(model, pages.items[n, :length], clicks, made.chances)
        if _add_page(clicks, pages.weight[n], made):
            made.impossible[0] += pages.weight[n]


@kernel
def _add_page(clicks: Clicks, weight: int, made: Surprise) -> bool:
    """Add one page; true if something on it was impossible."""
    impossible = False
    for k in range(len(clicks)):
        chance = made.chances[k] if clicks[k] == 1 else 1.0 - made.chances[k]
        made.shown[k] += weight
        if chance > 0.0:
            made.nats[k] -= weight * math.log(chance)
        else:
            made.nats[k], impossible = math.inf, True
    return impossible
