"""When is a pair decided (the specification's section of that name), and TopRank's rule for an edge."""

from fractions import Fraction
from math import comb, factorial, log, sqrt


def paper_decides(s: int, n: int, delta: float) -> bool:
    """s > 2 sqrt(n log(1/delta)), strict; false at n = 0."""
    if n == 0:
        return False
    return s > 2 * sqrt(n * log(1 / delta))


def _beta(x: int, y: int) -> Fraction:
    """B(x, y) at positive integers."""
    return Fraction(factorial(x - 1) * factorial(y - 1), factorial(x + y - 1))


def _upper_half(x: int, y: int) -> Fraction:
    """1 - I_{1/2}(x, y) at positive integers: I_{1/2}(x, y) is the probability that x + y - 1 fair coins give at least
    x heads.
    """
    coins = x + y - 1
    return 1 - Fraction(sum(comb(coins, heads) for heads in range(x, coins + 1)), 2**coins)


def anytime_m(s: int, n: int, a: int = 10) -> Fraction:
    """M = 2^n B(a+w, a+l) [1 - I_{1/2}(a+w, a+l)] / (B(a,a)/2), exactly."""
    w, l = (n + s) // 2, (n - s) // 2  # noqa: E741  the document's names
    return Fraction(2**n) * _beta(a + w, a + l) * _upper_half(a + w, a + l) / (_beta(a, a) / 2)


def anytime_decides(s: int, n: int, alpha: float, a: int = 10) -> bool:
    """M >= 1/alpha; false at n = 0."""
    if n == 0:
        return False
    return anytime_m(s, n, a) >= 1 / Fraction(alpha)


def toprank_adds_edge(s: int, n: int, delta: float) -> bool:
    """s >= sqrt(2 n log(c sqrt(n) / delta)), c = 3.43; false at n = 0."""
    if n == 0:
        return False
    return s >= sqrt(2 * n * log(3.43 * sqrt(n) / delta))
