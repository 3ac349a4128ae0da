r"""Evidence from a lead and its variance: bets with several stakes at once.

Let Y be a sum whose increments have conditional means summing to at most 0, each increment at least -c below what was
predicted for it, and V the sum of squares of (increment - prediction). For every stake 0 < a < 1/c

    exp(a Y - cost(a) V),     cost(a) = (-log(1 - c a) - c a) / c^2,

is at most a non-negative supermartingale that starts at 1 (docs/engineers/effect.md). So is the mean over stakes with
weights that sum to 1: the *evidence*. It reaches 1/error at any time with probability at most error (Ville's
inequality).

A stake is about the relative difference that it is made for: with Y the lead in clicks and outcomes of variance near
their mean, a difference of 5 % is found soonest by a = 0.05. Stakes reach from 0.001 to 0.8 with most of their weight
about 0.05; those above 0.9 / c are left out.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from saferank.verbs import Floats

_SMALLEST, _LARGEST, _USUAL, _COUNT = 0.001, 0.8, 0.05, 20
_BOLDEST = 0.9  # c times the largest stake
_ENOUGH = 1e-12


class Stakes(NamedTuple):
    """Stakes, the logarithms of their weights, and what each pays for a unit of variance."""

    stakes: Floats
    log_weights: Floats
    costs: Floats


@functools.lru_cache(maxsize=64)
def stakes_for(fall: float) -> Stakes:
    """The stakes for increments that fall at most ``fall`` (c) below their prediction."""
    stakes = np.geomspace(_SMALLEST, _LARGEST, _COUNT)
    stakes = stakes[stakes * fall <= _BOLDEST]
    weights = 1 / (1 + (np.log(stakes / _USUAL) / math.log(4)) ** 2)
    costs = (-np.log1p(-fall * stakes) - fall * stakes) / fall**2
    return Stakes(stakes, np.log(weights / weights.sum()), costs)


def log_evidence(stakes: Stakes, lead: float | Floats, variance: float | Floats) -> Floats:
    """The logarithm of the evidence; arrays of leads and variances are taken together.

    >>> round(float(log_evidence(stakes_for(0.5), 60.0, 200.0)), 2)
    5.78
    """
    bets = _bets(stakes, np.asarray(lead, float), np.asarray(variance, float))
    top = bets.max(axis=-1)
    total: Floats = top + np.log(np.exp(bets - top[..., None]).sum(axis=-1))
    return total


def _bets(stakes: Stakes, lead: Floats, variance: Floats) -> Floats:
    won: Floats = lead[..., None] * stakes.stakes - variance[..., None] * stakes.costs + stakes.log_weights
    return won


def needed_lead(stakes: Stakes, variance: float, error: float) -> float:
    """The lead at which the evidence reaches 1 / error, from above: never too small.

    The single stake that needs least gives a lead that is enough. The logarithm of the evidence is convex and
    increasing in the lead, so Newton's steps go down from there and never pass the solution.
    """
    target = -math.log(error)
    lead = float(np.min((target - stakes.log_weights + stakes.costs * variance) / stakes.stakes))
    while True:
        bets = _bets(stakes, np.array(lead), np.array(variance))
        shares = np.exp(bets - bets.max())
        excess = float(bets.max()) + math.log(shares.sum()) - target
        if excess <= _ENOUGH:
            return lead
        lead -= excess / float(shares @ stakes.stakes / shares.sum())
