"""The normal, Gamma and Beta laws by their distribution functions."""

import numpy as np
import pytest
from scipy import stats

from saferank._kernel import kernel
from saferank.randomness import Words, beta, gamma, normal, stream
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


@kernel
def _fill_beta(rng: Words, a: float, b: float, numbers: Floats) -> None:
    for n in range(len(numbers)):
        numbers[n] = beta(rng, a, b)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.0, 7.0)])
def test_beta_numbers_follow_the_beta_law(a: float, b: float) -> None:
    numbers = np.zeros(20_000)
    _fill_beta(stream(3, "beta", str(a)), a, b, numbers)
    assert stats.kstest(numbers, stats.beta(a, b).cdf).pvalue > 1e-4
    assert stats.kstest(numbers, stats.beta(a, 1.2 * b).cdf).pvalue < 1e-4
