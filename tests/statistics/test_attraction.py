"""The posterior of an attraction: exact draws, few proposals, whatever the counts."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from saferank.randomness import Words, stream
from saferank.statistics.attraction import (
    Posteriors,
    draw_attraction,
    log_density,
    mode,
    new_posteriors,
    update_posterior,
)
from saferank.verbs import Floats

KAPPA = np.array([1.0, 0.6, 0.1])


class Counts(NamedTuple):
    clicks: int
    failures: tuple[int, int, int]


CASES = [
    Counts(0, (0, 0, 0)),
    Counts(1, (0, 0, 0)),
    Counts(0, (1, 0, 0)),
    Counts(0, (0, 0, 3)),
    Counts(3, (0, 2, 50)),
    Counts(100, (1, 0, 0)),
    Counts(2, (500, 300, 100)),
    Counts(4000, (9000, 5000, 2000)),
    Counts(100_000, (900_000, 1000, 500)),
    Counts(900, (100, 0, 1000)),  # PBM would give fewer failures at the last position
    Counts(5000, (0, 0, 20)),
]


def posterior(counts: Counts) -> Posteriors:
    made = new_posteriors(1, len(KAPPA))
    made.clicks[0], made.failures[0] = counts
    update_posterior(made, KAPPA, 0)
    return made


def draws(counts: Counts, n: int, rng: Words) -> Floats:
    made = posterior(counts)
    return np.array([draw_attraction(made, KAPPA, 0, rng) for _ in range(n)])


def distribution(counts: Counts) -> tuple[Floats, Floats]:
    """A grid and the distribution function on it, by the trapezoidal rule on the part that has mass."""
    made = posterior(counts)
    peak = made.peak[0]
    width = max(made.touches[0, 1] - made.touches[0, 0], 1e-9)
    grid = np.linspace(max(0.0, peak - 40 * width), min(1.0, peak + 40 * width), 200_001)
    logs = np.array([log_density(counts.clicks, made.failures[0], KAPPA, theta) for theta in grid])
    density = np.exp(logs - logs.max())
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return grid, area / area[-1]


@pytest.mark.parametrize("counts", CASES, ids=str)
def test_draws_have_the_posterior_distribution(counts: Counts) -> None:
    """Kolmogorov-Smirnov with 4,000 draws; a right sampler fails each case with a probability of 1e-6."""
    n = 4000
    drawn = np.sort(draws(counts, n, stream(1, "draws")))
    expected = np.interp(drawn, *distribution(counts))
    steps = np.arange(n + 1) / n
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * n))


@pytest.mark.parametrize("counts", CASES, ids=str)
def test_more_than_half_of_the_proposals_are_accepted(counts: Counts) -> None:
    """A proposal takes three words; the share of 2,000 draws is within 0.04 of the true one (four standard errors)."""
    rng, n = stream(2, "proposals"), 2000
    made, states = posterior(counts), [tuple(rng.tolist())]
    for _ in range(n):
        draw_attraction(made, KAPPA, 0, rng)
        states.append(tuple(rng.tolist()))
    proposals = sum(words_between(before, after) for before, after in pairwise(states)) / 3
    assert n / proposals > 0.55


def words_between(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """How many words a stream gave between two states."""
    from tests.reference.randomness import Xoshiro

    rng, words = Xoshiro(list(before)), 0
    while tuple(rng.state) != after:
        rng.word()
        words += 1
    return words


@pytest.mark.parametrize("counts", CASES, ids=str)
@pytest.mark.parametrize("begin", [1e-6, 0.3, 0.999])
def test_the_mode_does_not_depend_on_where_the_search_begins(counts: Counts, begin: float) -> None:
    failures = np.array(counts.failures)
    found = mode(counts.clicks, failures, KAPPA, begin)
    assert found == pytest.approx(mode(counts.clicks, failures, KAPPA, 0.5), rel=1e-12)
    around = [theta for theta in (found * 0.999, min(1.0, found * 1.001)) if theta != found]
    best = log_density(counts.clicks, failures, KAPPA, found)
    assert all(log_density(counts.clicks, failures, KAPPA, theta) <= best for theta in around)


def test_counts_that_grow_one_by_one_give_the_posterior_of_all_of_them() -> None:
    """Also after a mode that rounding leaves just below 1: 4 clicks, one failure at 0.8, then one at 1."""
    kappa = np.array([1.0, 0.8, 0.5])
    chance = np.random.default_rng(1)
    for steps in [[3, 3, 3, 3, 1, 0, 2], *chance.integers(0, 4, (200, 12)).tolist()]:
        grown, at_once = new_posteriors(1, 3), new_posteriors(1, 3)
        for step in steps:
            if step == 3:
                grown.clicks[0] += 1
            else:
                grown.failures[0, step] += 1
            update_posterior(grown, kappa, 0)
        at_once.clicks[0], at_once.failures[0] = grown.clicks[0], grown.failures[0]
        update_posterior(at_once, kappa, 0)
        assert grown.peak[0] == pytest.approx(at_once.peak[0], rel=1e-9)
        assert grown.left[0] == pytest.approx(at_once.left[0], rel=1e-6)
