r"""Confidence sequences for the difference of two arms: intervals that hold at every look.

With the estimates of ``comparison.py``, H = expected + score of the holdout and S = expected + score of the served:

* difference: (S - H) / weight estimates the mean difference over the pages counted so far. The lead of the served is
  S - H, its variance the two squares together; what is needed at error / 2 on each side gives the interval.
* relative difference f - 1, f = mean served / mean holdout: f is too low when S / max(f, 1) - H min(f, 1) is too large
  a lead, too high when its negative is. Both leads are monotone in f, so the ends are formulas.
"""

import math
from typing import NamedTuple

from saferank.errors import ArgumentError
from saferank.statistics.effect.comparison import ArmComparison, check_most
from saferank.statistics.effect.stakes import needed_lead, stakes_for


class Interval(NamedTuple):
    """An estimate and the interval that covers the truth at all looks together but for the error."""

    estimate: float
    low: float
    high: float


class Leads(NamedTuple):
    """What the served must be ahead, or behind, for a statement; and the sums that are compared."""

    ahead: float
    behind: float
    holdout: float
    served: float


def leads(state: ArmComparison, error: float, most: float) -> Leads:
    """The leads that are enough at half of ``error`` in each direction, and where the arms stand."""
    check_error(error)
    check_most(most)
    variance = state.holdout.square + state.served.square
    return Leads(
        ahead=needed_lead(stakes_for(most), variance, error / 2),
        behind=needed_lead(stakes_for(most / 2), variance, error / 2),
        holdout=state.expected + state.holdout.score,
        served=state.expected + state.served.score,
    )


def check_error(error: float) -> None:
    """An ``ArgumentError`` for an error probability that is none."""
    if not 0 < error < 1:
        raise ArgumentError("error", f"found {error:g}, expected a probability between 0 and 1, for example 0.05")


def difference(state: ArmComparison, error: float = 0.05, most: float = 1.0) -> Interval:
    """Mean outcome of served pages minus that of the holdout, in outcomes a page; ``most`` as in ``with_page``.

    The probability that it *ever* fails to cover the mean difference over the pages counted so far is at most
    ``error``, also when outcomes and difference change with time.
    """
    need = leads(state, error, most)
    if not state.weight:
        return Interval(math.nan, -most, most)
    lead = need.served - need.holdout
    low, high = (lead - need.ahead) / state.weight, (lead + need.behind) / state.weight
    estimate = max(-most, min(lead / state.weight, most)) if _has_both(state) else math.nan
    return Interval(estimate, max(low, -most), min(high, most))


def relative_difference(state: ArmComparison, error: float = 0.05, most: float = 1.0) -> Interval:
    """Mean outcome of served pages divided by that of the holdout, minus 1: -0.05 is a loss of 5 %.

    For every fixed value f: the probability that it ever excludes f on a side on which f is true is at most
    ``error`` / 2. It is a confidence sequence when the ratio of the means so far does not change.
    """
    need = leads(state, error, most)
    if need.holdout <= 0 or need.served <= 0:
        return Interval(math.nan, -1.0, math.inf)
    estimate = need.served / need.holdout - 1 if _has_both(state) else math.nan
    return Interval(estimate, max(_lowest(need), 0.0) - 1, _highest(need) - 1)


def _has_both(state: ArmComparison) -> bool:
    """True when both arms have pages: the sums of one alone are no estimate, though the interval holds."""
    return bool(state.served.pages and state.holdout.pages)


def _lowest(need: Leads) -> float:
    ratio = (need.served - need.ahead) / need.holdout
    return ratio if ratio <= 1 else need.served / (need.holdout + need.ahead)


def _highest(need: Leads) -> float:
    ratio = (need.served + need.behind) / need.holdout
    if ratio <= 1:
        return ratio
    return need.served / (need.holdout - need.behind) if need.holdout > need.behind else math.inf
