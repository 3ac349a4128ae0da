"""The KL index in 30-digit decimal arithmetic so that no digit of a double is lost."""

import functools
from decimal import Decimal, localcontext
from math import inf, log

_DIGITS = 30


def _kl(p: Decimal, q: Decimal) -> Decimal:
    """The divergence p log(p/q) + (1-p) log((1-p)/(1-q)), with 0 log 0 = 0 and x log(x/0) infinite."""
    total = Decimal(0)
    if p > 0:
        if q == 0:
            return Decimal("Infinity")
        total += p * (p / q).ln()
    if p < 1:
        if q == 1:
            return Decimal("Infinity")
        total += (1 - p) * ((1 - p) / (1 - q)).ln()
    return total


def _index(mu: Decimal, n: int, t: float) -> float:
    """The largest double q in [mu, 1] with n kl(mu, q) <= log t + 3 log log t."""
    if n == 0 or mu == 1 or t < 3:
        return 1.0
    return largest_within(mu, n, Decimal(t).ln() + 3 * Decimal(t).ln().ln())


def largest_within(mu: Decimal, n: int, budget: Decimal) -> float:
    """The largest double q in [mu, 1) with n kl(mu, q) <= budget."""
    low, high = _bracket(mu, n, budget)  # the budget covers low and does not cover high
    while True:
        middle = (low + high) / 2
        if middle in (low, high):  # neighbouring doubles
            return low
        if n * _kl(mu, Decimal(middle)) <= budget:
            low = middle
        else:
            high = middle


def _bracket(mu: Decimal, n: int, budget: Decimal) -> tuple[float, float]:
    """Two doubles around the index, close together where double arithmetic finds them: decimals are slow."""
    low, high = float(mu), 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if n * _kl_in_doubles(float(mu), middle) <= float(budget):
            low = middle
        else:
            high = middle
    low, high = max(float(mu), low - 1e-13), min(1.0, high + 1e-13)
    covered = n * _kl(mu, Decimal(low)) <= budget, n * _kl(mu, Decimal(high)) <= budget
    return (low, high) if covered == (True, False) else (float(mu), 1.0)


def _kl_in_doubles(p: float, q: float) -> float:
    first = p * log(p / q) if p > 0 else 0.0
    return first + (1 - p) * log((1 - p) / (1 - q)) if q < 1 else inf


def kl(p: float, q: float) -> float:
    """The Kullback-Leibler divergence between two Bernoulli distributions of means p and q."""
    with localcontext() as context:
        context.prec = _DIGITS
        return float(_kl(Decimal(p), Decimal(q)))


def index_mu(mu: float, n: int, t: int) -> float:
    """f(mu, n, t) for the very double mu."""
    with localcontext() as context:
        context.prec = _DIGITS
        return _index(Decimal(mu), n, t)


@functools.lru_cache(maxsize=100_000)
def index(mu_wins: int, n: int, t: float) -> float:
    """f(mu, n, t) with mu = mu_wins / n; 1 when n = 0."""
    with localcontext() as context:
        context.prec = _DIGITS
        return _index(Decimal(mu_wins) / Decimal(n), n, t) if n > 0 else 1.0


def sbb(s: int, n: int, t: int) -> float:
    """The optimistic index 2 f((1 + s/n) / 2, n, t) - 1 of a pair, and 1 if n = 0."""
    if n == 0:
        return 1.0
    wins = (n + s) // 2  # (1 + s/n) / 2 = wins / n, and s + n is even
    return 2 * index(wins, n, t) - 1
