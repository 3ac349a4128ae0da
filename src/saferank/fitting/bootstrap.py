"""Standard errors by the Poisson bootstrap: fit again and again on logs in which every page comes Poisson(1) times.

    error of a coin = max(standard deviation over replicates, sqrt(p (1 - p) / (3 + tosses)))

A page with weight w gets weight Poisson(w), which is what w pages with Poisson(1) each add up to, so replicates cost no
more than fits of distinct pages. The bootstrap was chosen over the information matrix because it is honest where that
is not: users who follow no model, DCM's count that maximises no likelihood, EM that has not come to rest, and the scale
of PBM and UBM, which clicks do not tell (the information is singular there). It answers how much the number that is
written would vary with another log of this size, made by the same users.

Its blind spot are coins that nearly always fell on the same side, of which every replicate says the same. The second
term is the standard deviation of a coin of which all tosses were seen; no hidden toss can be known better. The limits:
with B replicates the error itself is off by about 1 / sqrt(2 B - 2) (13 % for 30), bias is not in it, and pages of
one user count as independent.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from saferank.fitting.coins import coins_of, model_of
from saferank.fitting.estimation import ITERATIONS, Estimator, Fitted
from saferank.logs.records import ClickLog, reweighted
from saferank.verbs import Floats

REPLICATES = 30
_THREADS = 2


def standard_errors(
    fit: Estimator, log: ClickLog, fitted: Fitted, iterations: int = ITERATIONS, n: int = REPLICATES, seed: int = 0
) -> Any:
    """A standard error for every parameter, in a model of the same shape."""
    coins = np.array([coins_of(model) for model in replicates(fit, log, iterations, n, seed)])
    errors = np.maximum(coins.std(axis=0, ddof=1), _seen_tosses(coins_of(fitted.model), fitted.tosses))
    return model_of(type(fitted.model), errors, len(log.pairs), log.pages.items.shape[1])


def replicates(fit: Estimator, log: ClickLog, iterations: int, n: int, seed: int) -> Iterator[Any]:
    """Models fitted to n logs drawn from ``log``; the same seed draws the same logs, for every model."""
    with ThreadPoolExecutor(_THREADS) as threads:  # kernels run without the interpreter's lock
        yield from threads.map(lambda b: fit(_drawn(log, (seed, b)), iterations).model, range(n))


def _drawn(log: ClickLog, seed: tuple[int, int]) -> ClickLog:
    return reweighted(log, np.random.default_rng(seed).poisson(log.pages.weight))


def _seen_tosses(coins: Floats, tosses: Floats) -> Floats:
    """The standard deviation of Beta(1 + heads, 1 + tails), whose mean is the estimate (1 + heads) / (2 + tosses)."""
    errors: Floats = np.sqrt(coins * (1 - coins) / (3 + tosses))
    return errors
