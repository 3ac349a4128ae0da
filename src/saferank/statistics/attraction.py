r"""Exact draws from the posterior of an attraction under a known position effect.

After S clicks and F_l displays without a click at the positions with examination kappa_l, under a uniform prior, the
log density of the attraction is

    g(theta) = S log(theta) + sum over l of F_l log(1 - kappa_l theta),     0 <= theta <= 1,

up to a constant. It is concave, so each of its tangents lies above it, and rejection sampling under the two tangents at
a and b is exact whatever a and b are. They are put about one standard deviation to each side of the mode m:

    a = max(m - w, 0.4 m),  b = min(m + w, m + 0.6 (1 - m)),  w = 1 / sqrt(-g''(m));

the bounds keep them away from the ends, where a slope may be infinite. About three proposals in four are accepted,
whatever the counts. A proposal costs three uniform numbers: on which side of the crossing point of the tangents, where
on it, and whether it is accepted.

A ``Posteriors`` keeps the tangents of every item until its counts change.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words, uniform
from saferank.verbs import Floats, Ints

_PROPOSALS = 1000
"""More are refused only by tangents that are not those of the counts."""


class Posteriors(NamedTuple):
    """Counts of every item and the tangents made from them; side 0 is the left one, [0, crossing]."""

    clicks: Ints  # by item: S
    failures: Ints  # [item, position]: F_l
    peak: Floats  # by item: the mode of g
    touches: Floats  # [item, side]: where the tangent touches g
    height: Floats  # [item, side]: g there
    slope: Floats  # [item, side]: g' there
    crossing: Floats  # by item
    left: Floats  # by item: share of the left side in the mass under both tangents
    missing: Floats  # [item, side]: exp(-|slope| length) - 1


def new_posteriors(n_items: int, n_positions: int) -> Posteriors:
    """Uniform distributions."""
    return Posteriors(
        clicks=np.zeros(n_items, np.int64),
        failures=np.zeros((n_items, n_positions), np.int64),
        peak=np.zeros(n_items),
        touches=np.zeros((n_items, 2)),
        height=np.zeros((n_items, 2)),
        slope=np.zeros((n_items, 2)),
        crossing=np.full(n_items, 0.5),
        left=np.full(n_items, 0.5),
        missing=np.zeros((n_items, 2)),
    )


@kernel
def log_density(clicks: int, failures: Ints, kappa: Floats, theta: float) -> float:
    """The value g(theta), -inf where the density is 0."""
    total = 0.0
    if clicks > 0:
        if theta <= 0:
            return -np.inf
        total = clicks * math.log(theta)
    for position in range(len(kappa)):
        if failures[position] > 0:
            rest = 1.0 - kappa[position] * theta
            if rest <= 0:
                return -np.inf
            total += failures[position] * math.log(rest)
    return total


@kernel
def _derivatives(clicks: int, failures: Ints, kappa: Floats, theta: float) -> tuple[float, float]:
    """(g'(theta), -g''(theta)) where both are finite."""
    slope, curvature = 0.0, 0.0
    if clicks > 0:
        slope = clicks / theta
        curvature = slope / theta
    for position in range(len(kappa)):
        if failures[position] > 0:
            step = kappa[position] / (1.0 - kappa[position] * theta)
            slope -= failures[position] * step
            curvature += failures[position] * step * step
    return slope, curvature


@kernel
def _unbounded_at_one(failures: Ints, kappa: Floats) -> bool:
    """True when theta = 1 is impossible: an examined item went without a click."""
    impossible = False
    for position in range(len(kappa)):
        impossible |= failures[position] > 0 and kappa[position] >= 1.0
    return impossible


@kernel
def mode(clicks: int, failures: Ints, kappa: Floats, theta: float) -> float:
    """Where g is largest: the root of h(theta) = theta g'(theta), which is decreasing and concave, by Newton's method.

    From the right of the root Newton's steps never pass it; from the left the first step passes it, at most to the
    middle between the point and 1. The search begins at ``theta``, between 0 and 0.999: very close to 1, where h may
    have a pole, the steps would be too small to tell from the last one.
    """
    if clicks == 0:
        return 0.0
    if not _unbounded_at_one(failures, kappa) and _derivatives(clicks, failures, kappa, 1.0)[0] >= 0:
        return 1.0
    for _ in range(200):
        value, fall = float(clicks), 0.0
        for position in range(len(kappa)):
            share = 1.0 / (1.0 - kappa[position] * theta)
            lost = failures[position] * kappa[position] * share
            value -= lost * theta
            fall += lost * share
        step = value / fall
        theta = theta + step if theta + step < 1.0 else 0.5 * (theta + 1.0)
        if abs(step) <= 1e-9 * theta:  # the next step would be about the square of this
            break
    return theta


@kernel
def _touch(posteriors: Posteriors, kappa: Floats, item: int, side: int, theta: float) -> None:
    clicks, failures = posteriors.clicks[item], posteriors.failures[item]
    posteriors.touches[item, side] = theta
    posteriors.height[item, side] = log_density(clicks, failures, kappa, theta)
    posteriors.slope[item, side] = _derivatives(clicks, failures, kappa, theta)[0]


@kernel
def _cross(posteriors: Posteriors, item: int) -> float:
    """Where the tangents meet; any point between the two where they touch would be as right, only slower."""
    a, b = float(posteriors.touches[item, 0]), float(posteriors.touches[item, 1])
    up, down = posteriors.slope[item, 0], posteriors.slope[item, 1]
    if not up > down:
        return b
    z = (posteriors.height[item, 1] - posteriors.height[item, 0] + a * up - b * down) / (up - down)
    return min(max(float(z), a), b)


@kernel
def _highest(posteriors: Posteriors, item: int, side: int, low: float, high: float) -> float:
    """The largest value of a tangent between ``low`` and ``high``."""
    slope = posteriors.slope[item, side]
    end = high if slope > 0 else low
    return float(posteriors.height[item, side] + slope * (end - posteriors.touches[item, side]))


@kernel
def _area(posteriors: Posteriors, item: int, side: int, length: float) -> float:
    """The area under exp(tangent), divided by its largest value."""
    rate = abs(posteriors.slope[item, side])
    posteriors.missing[item, side] = math.expm1(-rate * length)
    return float(-posteriors.missing[item, side] / rate if rate > 0 else length)


@kernel
def update_posterior(posteriors: Posteriors, kappa: Floats, item: int) -> None:
    """Find the tangents of an item whose counts have changed."""
    clicks, failures = posteriors.clicks[item], posteriors.failures[item]
    before = posteriors.peak[item]
    peak = mode(clicks, failures, kappa, before if 0.0 < before < 0.999 else 0.5)
    posteriors.peak[item] = peak
    curvature = _derivatives(clicks, failures, kappa, peak)[1]
    width = 1.0 / math.sqrt(curvature) if curvature > 0 else np.inf
    _touch(posteriors, kappa, item, 0, max(peak - width, 0.4 * peak))
    _touch(posteriors, kappa, item, 1, min(peak + width, peak + 0.6 * (1.0 - peak)))
    z = _cross(posteriors, item)
    posteriors.crossing[item] = z
    top_left, top_right = _highest(posteriors, item, 0, 0.0, z), _highest(posteriors, item, 1, z, 1.0)
    top = max(top_left, top_right)
    left = math.exp(top_left - top) * _area(posteriors, item, 0, z)
    right = math.exp(top_right - top) * _area(posteriors, item, 1, 1.0 - z)
    posteriors.left[item] = left / (left + right)


@kernel
def _propose(posteriors: Posteriors, item: int, side: int, v: float) -> float:
    """The point on a side beyond which, seen from its lower end, lies the share v of the mass."""
    z, slope = posteriors.crossing[item], posteriors.slope[item, side]
    low, high = (0.0, z) if side == 0 else (z, 1.0)
    if slope == 0:
        distance = v * (high - low)
    else:
        distance = -math.log1p(v * posteriors.missing[item, side]) / abs(slope)
    theta = high - distance if slope > 0 else low + distance
    return min(max(theta, 0.0), 1.0)


@kernel
def _accepted(posteriors: Posteriors, kappa: Floats, item: int, theta: float, tangent: float, u: float) -> bool:
    """True when u < exp(g - tangent). Between the points where the tangents touch, g lies above its chord: try that."""
    a, b = posteriors.touches[item, 0], posteriors.touches[item, 1]
    if a < theta < b:
        share = (theta - a) / (b - a)
        chord = (1.0 - share) * posteriors.height[item, 0] + share * posteriors.height[item, 1]
        if u < math.exp(min(chord - tangent, 0.0)) * (1.0 - 1e-9):
            return True
    excess = log_density(posteriors.clicks[item], posteriors.failures[item], kappa, theta) - tangent
    return u < math.exp(min(excess, 0.0))


@kernel
def draw_attraction(posteriors: Posteriors, kappa: Floats, item: int, rng: Words) -> float:
    """A draw from the posterior of an item: the first proposal that is accepted."""
    theta = 0.5
    for _ in range(_PROPOSALS):
        side = 0 if uniform(rng) < posteriors.left[item] else 1
        theta = _propose(posteriors, item, side, uniform(rng))
        tangent = posteriors.height[item, side] + posteriors.slope[item, side] * (
            theta - posteriors.touches[item, side]
        )
        if _accepted(posteriors, kappa, item, theta, tangent, uniform(rng)):
            break
    return theta
