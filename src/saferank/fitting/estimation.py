"""EM over weighted distinct pages: count what every coin did under the present model, then estimate it again.

    coin <- min((1 + heads) / (2 + tosses), 1 - 1e-6),     all coins together, from 1/2, 50 times

The 1 and the 2 are PyClick's, and a Beta(2, 2) prior on every coin: this is its mode, so that EM climbs the *penalised*
likelihood, log P(pages) + sum over coins of log(coin) + log(1 - coin), which never falls. The likelihood itself may, by
a little, where data are few. Where nothing is hidden (CM, and DCM as PyClick counts it) a single sweep says it all.

Equal pages are swept once, with their weight: the cost does not grow with the log.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.fitting.coins import CoinCounts, count, model_of, new_tally, sizes
from saferank.fitting.evaluation import log_likelihood, page_length
from saferank.logs.records import ClickLog, DistinctPages
from saferank.verbs import Floats

ITERATIONS = 50
CEILING = 1 - 1e-6
"""PyClick's: an EM value of 1 would never be left again."""


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Fitted:
    """A click model whose attraction (and satisfaction) goes by pair of query and item, and how it was reached."""

    model: Any
    tosses: Floats  # by coin, in the order of ``coins_of(model)``: how much the pages say about it
    log_likelihoods: Floats  # after every iteration

    @property
    def iterations(self) -> int:
        """How often the pages were swept."""
        return len(self.log_likelihoods)

    @property
    def last_change(self) -> float | None:
        """What the last iteration added to the log-likelihood; None where there was only one."""
        return None if self.iterations == 1 else float(self.log_likelihoods[-1] - self.log_likelihoods[-2])


Estimator = Callable[..., Fitted]
"""Estimates a model: from a log and a number of iterations, which may be left out."""


def maximise(kind: type, log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """EM from fair coins."""
    return _sweeps(kind, log, iterations, CEILING)


def count_once(kind: type, log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """One sweep whatever the number of ``iterations``, for models whose counts do not depend on their parameters."""
    return _sweeps(kind, log, 1, 1.0)


def expected_counts(model: Any, pages: DistinctPages) -> CoinCounts:
    """The E-step: what the pages tell about every coin of ``model``."""
    n_positions = pages.items.shape[1]
    tally = new_tally(sum(sizes(type(model), len(model.attraction), n_positions).values()), n_positions)
    _sweep(model, pages, tally)
    return tally


def _sweeps(kind: type, log: ClickLog, iterations: int, ceiling: float) -> Fitted:
    shape = len(log.pairs), log.pages.items.shape[1]
    model = model_of(kind, np.full(sum(sizes(kind, *shape).values()), 0.5), *shape)
    likelihoods = np.zeros(iterations)
    for i in range(iterations):
        tally = expected_counts(model, log.pages)
        model = model_of(kind, np.minimum((1 + tally.heads) / (2 + tally.tosses), ceiling), *shape)
        likelihoods[i] = log_likelihood(model, log.pages)
    return Fitted(model, tally.tosses, likelihoods)


@kernel
def _sweep(model: Any, pages: DistinctPages, tally: CoinCounts) -> None:
    for n in range(len(pages.weight)):
        length = page_length(pages.items[n])
        count(model, pages.items[n, :length], pages.clicks[n, :length], float(pages.weight[n]), tally)
