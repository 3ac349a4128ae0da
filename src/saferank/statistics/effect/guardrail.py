"""The guardrail: stop when it is evident that served pages lose more than a given share against the holdout."""

import math
from dataclasses import dataclass

from saferank.errors import ArgumentError
from saferank.statistics.effect.comparison import ArmComparison, check_most
from saferank.statistics.effect.intervals import check_error
from saferank.statistics.effect.stakes import log_evidence, stakes_for


@dataclass(frozen=True)
class Guardrail:
    """A loss that is not accepted, and the probability over all time with which it may be asserted wrongly.

    ``drop`` is relative: 0.03 stands for 3 % fewer clicks than the holdout has; 0 for any loss. While the mean outcome
    of the served pages so far is at least (1 - drop) times the holdout's, ``stopped`` ever says True with probability
    at most ``error``. Ask it as often as you like.

    >>> from saferank.statistics.effect import new_comparison
    >>> Guardrail(drop=0.03, error=0.01).stopped(new_comparison())
    False
    """

    drop: float
    error: float
    most: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.drop < 1:
            raise ArgumentError("drop", f"found {self.drop:g}, expected a share from 0 to below 1, for example 0.03")
        check_error(self.error)
        check_most(self.most)

    def log_evidence(self, state: ArmComparison) -> float:
        """The logarithm of the evidence that served pages lose more than ``drop``: 0 at the start, then either way."""
        lead = (1 - self.drop) * (state.expected + state.holdout.score) - (state.expected + state.served.score)
        variance = state.holdout.square + state.served.square
        return float(log_evidence(stakes_for(self.most / 2), lead, variance))

    def stopped(self, state: ArmComparison) -> bool:
        """True when the evidence reaches 1 / ``error``. It may fall again later: keep the first True."""
        return self.log_evidence(state) >= -math.log(self.error)
