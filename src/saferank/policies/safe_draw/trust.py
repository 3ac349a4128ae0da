r"""Gentle draws: a prior that production's ranking is right, which fades with the clicks of the context.

Of every pair of which production has i above j (not if both are outside its ranking), while it is not certified,

    E'(i, j) = E(i, j) + e exp(-c / 100)

takes the place of the evidence E in plans. c counts the clicked pages that were learnt since both items are here. e is
the evidence of the odds ``trust : 1 - trust``, so ``trust`` is how sure one is, before any click, that production has
two items the right way round. With trust = 1/2 there is no prior. Only the weights of the draw change by it, and a page
carries its weights: the odds of its bets stay exact.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.constants import CLICKED_PAGES_OF_TRUST
from saferank.statistics.bets import evidence_of_gap
from saferank.verbs import Floats, Ints


class Trust(NamedTuple):
    """How much of the prior is left."""

    clicked: Ints  # [1] clicked pages that were learnt
    came: Ints  # by item: how many of them were learnt before it came


def new_trust(n_items: int) -> Trust:
    """No click yet."""
    return Trust(np.zeros(1, np.int64), np.zeros(n_items, np.int64))


def trust_with_more(trust: Trust, n_items: int) -> Trust:
    """The same with items that come now."""
    newcomers = np.full(n_items - len(trust.came), trust.clicked[0])
    return trust._replace(came=np.append(trust.came, newcomers))


@kernel
def prior_of(trust: float, known: Floats) -> float:
    """The e of a trust; ``known`` is the trust that was asked for last, and its e."""
    if known[0] != trust:
        known[0], known[1] = trust, evidence_of_gap(math.log(trust / (1.0 - trust)))
    return float(known[1])


@kernel
def faded(prior: float, left: Trust, i: int, j: int) -> float:
    """What is left of a prior for two items."""
    if prior == 0.0:
        return 0.0
    return float(prior * math.exp(-(left.clicked[0] - max(left.came[i], left.came[j])) / CLICKED_PAGES_OF_TRUST))
