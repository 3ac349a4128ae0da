"""The Gamma law by its distribution function."""

import numpy as np
import pytest
from scipy import stats

from saferank._kernel import kernel
from saferank.randomness import Words, stream
from saferank.statistics.gamma import gamma, normal
from saferank.verbs import Floats


@kernel
def _fill(rng: Words, shape: float, numbers: Floats) -> None:
    for n in range(len(numbers)):
        numbers[n] = gamma(rng, shape)


@kernel
def _fill_normal(rng: Words, numbers: Floats) -> None:
    for n in range(len(numbers)):
        numbers[n] = normal(rng)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 1.7, 30.0, 4000.0])
def test_gamma_numbers_follow_the_gamma_law(shape: float) -> None:
    """Kolmogorov and Smirnov, 20,000 numbers; a right sampler fails one of seven such tests with probability 7e-4."""
    numbers = np.zeros(20_000)
    _fill(stream(3, "gamma", str(shape)), shape, numbers)
    assert stats.kstest(numbers, stats.gamma(shape).cdf).pvalue > 1e-4
    assert stats.kstest(1.1 * numbers, stats.gamma(shape).cdf).pvalue < 1e-4 or shape < 0.1


def test_normal_numbers_follow_the_normal_law() -> None:
    numbers = np.zeros(20_000)
    _fill_normal(stream(3, "normal"), numbers)
    assert stats.kstest(numbers, stats.norm.cdf).pvalue > 1e-4
