"""The KL-UCB index.

    f(mu, n, t) = sup { q in [mu, 1] : n kl(mu, q) <= log t + 3 log log t }

Inside, everything is expressed in wins and losses (mu = wins / n) and in ``x = -log(1 - q)``, which keeps its precision
where q is close to 1:

    n kl(mu, q) = entropy(wins, losses) - wins log q + losses x,    entropy = wins log(wins/n) + losses log(losses/n)

Comparing a rival with a known index needs no inversion: it is larger exactly when the rival's n kl(mu, q) is below
the budget. Both halves are increasing and convex in x, so Newton's method from the right cannot overshoot.
"""

import functools
import math

import numpy as np

from saferank._kernel import kernel
from saferank.verbs import Floats

FIRST_BUDGET = 3
"""Below t = 3 the budget is undefined or negative, and every index is 1."""


@kernel
def budget(t: int) -> float:
    """The budget log t + 3 log log t, for t >= 3."""
    logarithm = math.log(t)
    return logarithm + 3.0 * math.log(logarithm)


@kernel
def _fill_budgets(budgets: Floats) -> None:
    for t in range(FIRST_BUDGET, len(budgets)):
        budgets[t] = budget(t)


@functools.cache
def first_budgets() -> Floats:
    """The budgets of the first counts as a table, made on first use: two logarithms a page would be slow."""
    table = np.full(1 << 16, np.inf)  # below FIRST_BUDGET every index is 1, as if the budget had no end
    _fill_budgets(table)
    table.flags.writeable = False
    return table


@kernel
def budget_at(budgets: Floats, t: int) -> float:
    """The budget at any t >= 0, from the table ``first_budgets()`` as far as that goes."""
    return float(budgets[t] if t < len(budgets) else budget(t))


@kernel
def entropy(wins: float, losses: float) -> float:
    """The sum wins log(wins/n) + losses log(losses/n): minus n times the entropy of the empirical coin."""
    n = wins + losses
    total = 0.0
    if wins > 0:
        total += wins * math.log(wins / n)
    if losses > 0:
        total += losses * math.log(losses / n)
    return total


@kernel
def evidence(wins: float, losses: float, x: float, log_q: float) -> float:
    """The value n kl(mu, q), with x = -log(1 - q): the budget that brings the index up to q."""
    return entropy(wins, losses) + losses * x - wins * log_q


@kernel
def evidence_at_least(wins: float, losses: float, q: float) -> float:
    """A lower bound on n kl(mu, q), by Pinsker's inequality 2 n (q - mu)^2, without a logarithm."""
    n = wins + losses
    return 2.0 * (n * q - wins) ** 2 / n


@kernel
def rounds_within(t: int, allowed: float, until: float) -> int:
    """For how many more counts after t the budget, now ``allowed``, surely stays within ``until``.

    The budget is concave, so its tangent at t lies above it.
    """
    slope = (1.0 + 3.0 / math.log(t)) / t
    return int(min(max((until - allowed) / slope * (1.0 - 1e-9), 0.0), 1e15))


@kernel
def _pinsker(wins: float, losses: float, allowed: float) -> float:
    """A lower bound on 1 - index, from kl(mu, q) >= (q - mu)^2 / (2 min(q, 1 - mu, 1/4)) for mu < q."""
    n = wins + losses
    mu, miss, share = wins / n, losses / n, allowed / n
    small = share + math.sqrt(share * (share + 2.0 * mu))
    return miss - min(small, math.sqrt(2.0 * share * min(miss, 0.25)))


@kernel
def optimistic(wins: float, losses: float, plain: float, allowed: float) -> float:
    """The index as x = -log(1 - q), for losses > 0."""
    if wins == 0:
        return allowed / losses
    x = (allowed - plain) / losses  # where the index would be if log q were 0: an upper bound
    rest = _pinsker(wins, losses, allowed)
    if rest > 0:
        x = min(x, -math.log(rest))
    for _ in range(100):
        rest = math.exp(-x)
        excess = plain + losses * x - wins * math.log1p(-rest) - allowed
        step = excess / (losses - wins * rest / (1.0 - rest))
        if not step > 2e-16 * x:
            break
        x -= step
    return x


@kernel
def optimistic_near(x: float, wins: float, losses: float, plain: float, allowed: float) -> float:
    """The index as x = -log(1 - q), for losses > 0, faster from the index ``x`` of a similar record or budget.

    What is inverted is convex in x, and increasing where q > wins / n: from there Newton's method jumps to the right of
    the solution at most once, and then comes down to it.
    """
    highest = (allowed - plain) / losses  # where the index would be if log q were 0
    x = min(x, highest)
    rest = math.exp(-x)
    if wins == 0 or not rest * (wins + losses) < losses:  # q <= wins / n
        return optimistic(wins, losses, plain, allowed)
    for _ in range(100):
        excess = plain + losses * x - wins * math.log1p(-rest) - allowed
        step = excess / (losses - wins * rest / (1.0 - rest))
        x = min(x - step, highest)
        if abs(step) <= 1e-9 * x:  # the next step would be about the square of this
            break
        rest = math.exp(-x)
    return x


@kernel
def kl_index(mu: float, n: float, t: int) -> float:
    """The upper confidence bound f(mu, n, t) of the paper.

    >>> round(kl_index(0.25, 10, 50), 12)
    0.826855729193
    """
    if n == 0 or mu >= 1 or t < FIRST_BUDGET:
        return 1.0
    wins, losses = mu * n, (1.0 - mu) * n
    x = optimistic(wins, losses, entropy(wins, losses), budget(t))
    return max(mu, -math.expm1(-x))


@kernel
def duel_index(wins: int, losses: int, t: int) -> float:
    """The paper's optimistic index of a duel, 2 f((1 + s/n)/2, n, t) - 1, in -1..1; 1 for a duel never fought."""
    if losses == 0 or t < FIRST_BUDGET:
        return 1.0
    x = optimistic(float(wins), float(losses), entropy(float(wins), float(losses)), budget(t))
    return max(float(wins - losses) / float(wins + losses), 1.0 - 2.0 * math.exp(-x))


@kernel
def may_be_better(wins: int, losses: int, allowed: float) -> bool:
    """True when the optimistic index of a duel is positive under this budget, without computing the index.

    Positive means n kl(mu, 1/2) < budget when mu < 1/2. With d = s/n, kl lies between d^2/2 + d^4/12 and
    d^2/2 + (log 2 - 1/2) d^4, which settles nearly every case without a logarithm.
    """
    if losses <= wins:
        return True
    n = float(wins + losses)
    square = (float(losses - wins) / n) ** 2
    if n * (square * (0.5 + 0.19314718056 * square)) < allowed * 0.9999999:
        return True
    if n * (square * (0.5 + square / 12.0)) > allowed * 1.0000001:
        return False
    return entropy(float(wins), float(losses)) + n * math.log(2.0) < allowed


@kernel
def hopeless_until(wins: int, losses: int, allowed: float) -> float:
    """A budget up to which the index of a duel is not positive, given that it is not under ``allowed``.

    At most n kl(mu, 1/2). The logarithms are taken only where the lower bound on kl does not suffice.
    """
    n = float(wins + losses)
    square = (float(losses - wins) / n) ** 2
    bound = n * (square * (0.5 + square / 12.0))
    if bound > allowed * 1.0000001:
        return bound
    return entropy(float(wins), float(losses)) + n * math.log(2.0)
