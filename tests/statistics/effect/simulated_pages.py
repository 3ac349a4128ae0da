"""Simulated counted pages, many runs at once: the sums of ``comparison.py`` after every page, as arrays."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from saferank.statistics.effect.stakes import needed_lead, stakes_for
from saferank.verbs import Flags, Floats


class Looks(NamedTuple):
    """Sums after every page: [run, page]."""

    holdout: Floats  # expected + score
    served: Floats
    variance: Floats
    weight: Floats


def looks_of(held_out: Flags, outcome: Floats, share: float | Floats, most: float = 1.0) -> Looks:
    """What a fold of these pages [run, page] has after each of them."""
    pages = np.arange(outcome.shape[1])
    before = np.cumsum(outcome, axis=1) - outcome
    surplus = outcome - np.minimum((before + 0.5) / (pages + 1), most / 2)
    weight = np.broadcast_to(np.asarray(share * (1 - np.asarray(share))), outcome.shape)
    expected = np.cumsum(weight * (outcome - surplus), axis=1)
    score = np.where(held_out, 1 - np.asarray(share), share) * surplus
    return Looks(
        expected + np.cumsum(np.where(held_out, score, 0), axis=1),
        expected + np.cumsum(np.where(held_out, 0, score), axis=1),
        np.cumsum(score * score, axis=1),
        np.cumsum(weight, axis=1),
    )


def needed(variance: Floats, fall: float, error: float) -> Floats:
    """The needed lead, interpolated between exact values. It is concave in the variance, so this is never too large:
    there are at least as many alarms as with the exact one."""
    grid, exact = _exact(fall, error, float(2.0 ** np.ceil(np.log2(variance.max() + 1))))
    return np.interp(variance, grid, exact)


@lru_cache
def _exact(fall: float, error: float, largest: float) -> tuple[Floats, Floats]:
    grid = np.concatenate([[0.0], np.geomspace(1e-3, largest, 1000)])
    return grid, np.array([needed_lead(stakes_for(fall), each, error) for each in grid])


def alarms(looks: Looks, drop: float, error: float, most: float = 1.0) -> Flags:
    """At which looks [run, page] the guardrail stops."""
    return (1 - drop) * looks.holdout - looks.served >= needed(looks.variance, most / 2, error)


def ends(looks: Looks, error: float, most: float = 1.0) -> tuple[Floats, Floats]:
    """Both ends of the interval of the difference, at every look."""
    lead = looks.served - looks.holdout
    low = lead - needed(looks.variance, most, error / 2)
    high = lead + needed(looks.variance, most / 2, error / 2)
    return low / looks.weight, high / looks.weight


def batches(runs: int, size: int, seed: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Runs in batches that fit into the cache, each with a generator of its own."""
    for number in range(runs // size):
        yield size, np.random.default_rng((seed, number))
