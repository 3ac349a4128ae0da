"""Verdicts: what a measured difference says about a claim.

With a difference d in the claimed direction and its standard error e: the claim *holds* when d >= 3 e, it *does not
hold* when d <= -3 e, and otherwise it is *undecided*. Under normality a claim about equal means passes with probability
0.13 %. What is not noisy needs no errors: "never violates" holds for no violation at all and fails for a single one.
"""

import math
from dataclasses import dataclass
from typing import Literal

from saferank.reporting.numbers import Measured

Verdict = Literal["holds", "does not hold", "undecided"]
HOLDS: Verdict = "holds"
FAILS: Verdict = "does not hold"
UNDECIDED: Verdict = "undecided"

STANDARD_ERRORS = 3.0
"""How many a difference must have."""

CLEARLY, HARDLY = 0.5, 0.9
"""Shares of another regret: at most half is clearly less, nine tenths and more is hardly less."""

_TIE = 1e-9
"""Differences of a smaller share are rounding, not results."""
_ZERO_REGRET = 1e-6


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it rests on; ``difference`` is positive in the direction of the claim."""

    verdict: Verdict
    numbers: str
    difference: float
    stderr: float | None
    of: Measured | None = None
    """The regret of the policy that the claim is about, where two are compared."""

    @property
    def standard_errors(self) -> float | None:
        """The difference in standard errors; infinite without noise, None without an error."""
        if self.stderr is None:
            return None
        if self.stderr == 0:
            return math.copysign(math.inf, self.difference) if self.difference else 0.0
        return self.difference / self.stderr


def ends_below(low: Measured, high: Measured, share: float = 1.0) -> Judgement:
    """Claimed: ``low`` is less than ``share`` of ``high``.

    >>> ends_below(Measured(10.0, 1.0), Measured(20.0, 1.0)).verdict
    'holds'
    """
    return _judged(share * high.mean - low.mean, low, high, share)


def stays_above(high: Measured, low: Measured, share: float = 1.0) -> Judgement:
    """Claimed: ``high`` is more than ``share`` of ``low``.

    >>> stays_above(Measured(9.0, 0.1), Measured(20.0, 0.1), HARDLY).verdict
    'does not hold'
    """
    return _judged(high.mean - share * low.mean, high, low, share)


def never(violations: Measured) -> Judgement:
    """Claimed: not a single violation.

    >>> never(Measured(0.0, 0.0)).verdict, never(Measured(0.01, 0.01)).verdict
    ('holds', 'does not hold')
    """
    verdict = HOLDS if violations.mean == 0 else FAILS
    return Judgement(verdict, f"{violations} a run", 0.0 - violations.mean, violations.stderr)


def some(violations: Measured) -> Judgement:
    """Claimed: there are violations, more than noise.

    >>> some(Measured(5.0, 1.0)).verdict, some(Measured(2.0, 1.0)).verdict, some(Measured(0.0, 0.0)).verdict
    ('holds', 'undecided', 'does not hold')
    """
    verdict = _verdict(violations.mean, violations.stderr, violations.mean) if violations.mean > 0 else FAILS
    return Judgement(verdict, f"{violations} a run", violations.mean, violations.stderr)


def zero(regret: Measured) -> Judgement:
    """Claimed: no regret, up to the rounding of sums.

    >>> zero(Measured(-1e-12, 0.0)).verdict, zero(Measured(3.0, 0.0)).verdict
    ('holds', 'does not hold')
    """
    there = abs(regret.mean) >= _ZERO_REGRET
    return Judgement(FAILS if there else HOLDS, str(regret), -regret.mean if there else 0.0, regret.stderr)


def _judged(difference: float, left: Measured, right: Measured, share: float) -> Judgement:
    error = None
    if left.stderr is not None and right.stderr is not None:
        error = math.hypot(left.stderr, share * right.stderr)
    scale = max(abs(left.mean), abs(right.mean))
    verdict = _verdict(difference, error, scale)
    if abs(difference) <= _TIE * scale:
        difference = 0.0
    return Judgement(verdict, f"{left} against {_part(share)}{right}", difference, error, left)


def _part(share: float) -> str:
    return "" if share == 1.0 else f"{share:g} × "  # noqa: RUF001 (a multiplication sign is meant)


def _verdict(difference: float, stderr: float | None, scale: float) -> Verdict:
    if stderr is None or abs(difference) <= _TIE * scale:
        return UNDECIDED
    if difference >= STANDARD_ERRORS * stderr:
        return HOLDS
    return FAILS if difference <= -STANDARD_ERRORS * stderr else UNDECIDED
