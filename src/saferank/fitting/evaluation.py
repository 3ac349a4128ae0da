"""How likely pages are under a model, and how well a fitted one foresees pages that it was not fitted to.

    log P(page) = sum over positions of log P(click or not at k | clicks above k)

Each model gives P(click at k | clicks above) in its verb ``foresee``: a forward pass that keeps the probability, given
the clicks above, that position k is examined. This is exact for every model, also for those whose users leave unseen,
and the same numbers give the likelihood, the perplexity and the convergence of EM.

    perplexity = 2 ^ (-mean of log2 P(click or not at k | clicks above k))

It is 1 if every click is foreseen and 2 for a fair coin, by position over the pages that reach down to it, or over all
positions of all pages. This is the *conditional* perplexity of the click model literature: the model sees the clicks
above, as it does in the likelihood, of which it is another form. Both are exact: a model that holds what happened for
impossible (CM, two clicks on a page) gets a log-likelihood of -inf, and the share of such pages is reported.

The predicted click-through of a position sees no clicks: P(click at k) on each page as shown, averaged over pages. What
is clicked above k does not depend on what is shown below, so that it is the difference of two expected numbers of
clicks: of the page down to k, and of the page down to k - 1.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, verb
from saferank.fitting.coins import Clicks
from saferank.logs.records import DistinctPages
from saferank.verbs import Floats, Ints, Items, expected_clicks

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


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One model on one set of pages."""

    log_likelihood: float  # of a page, on average, natural logarithm
    perplexity: float
    perplexities: Floats  # by position
    impossible: float  # share of pages
    shown: Ints  # pages that reach down to each position
    predicted: Floats  # click-through by position
    observed: Floats  # click-through by position


def evaluate_model(model: Any, pages: DistinctPages) -> Evaluation:
    """Likelihood, perplexity and click-through of ``pages`` under ``model``."""
    seen, n_pages = surprise(model, pages), pages.weight.sum()
    return Evaluation(
        log_likelihood=float(-seen.nats.sum() / n_pages),
        perplexity=float(np.exp(seen.nats.sum() / seen.shown.sum())),
        perplexities=np.exp(seen.nats / np.maximum(seen.shown, 1)),
        impossible=float(seen.impossible[0] / n_pages),
        shown=seen.shown,
        predicted=predicted_clicks(model, pages) / np.maximum(seen.shown, 1),
        observed=pages.weight @ pages.clicks / np.maximum(seen.shown, 1),
    )


def predicted_clicks(model: Any, pages: DistinctPages) -> Floats:
    """The expected number of clicks at every position, summed over pages."""
    clicks = np.zeros(pages.items.shape[1])
    _add_expected(model, pages.items.astype(np.uint32), pages, clicks)
    return clicks


@kernel
def _add_expected(model: Any, items: Items, pages: DistinctPages, clicks: Floats) -> None:
    for n in range(len(items)):
        above = 0.0
        for k in range(page_length(pages.items[n])):
            so_far = expected_clicks(model, items[n, : k + 1])
            clicks[k] += pages.weight[n] * (so_far - above)
            above = so_far
