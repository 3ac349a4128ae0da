"""PBM-TS (docs/policies/pbm-ts.md): theta_i from its posterior, by rejection under two tangents.

The log density g(theta) = S log theta + sum over places l of F_l log(1 - kappa_l theta), with S = sum of S_il and
F_l = N_il - S_il, is concave, so each of its tangents lies above it. With the mode m and w = 1 / sqrt(-g''(m)):

    a = max(m - w, 0.4 m),  b = min(m + w, m + 0.6 (1 - m)),  z = where the tangents at a and b meet, within [a, b].

The proposal is exp(tangent at a) on [0, z] and exp(tangent at b) on [z, 1]. Three uniform numbers a proposal: which
side, where on it (measured from the end where the tangent is highest), and whether it is accepted.
"""

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt

from tests.reference.peers.pbm_ucb import PbmPolicy
from tests.reference.randomness import Xoshiro


@dataclass
class Posterior:
    """The density of theta after S clicks and F_l displays without a click at the places with kappa_l."""

    clicks: int
    failures: list[int]
    kappa: list[float]

    def log_density(self, theta: float) -> float:
        total = 0.0
        if self.clicks > 0:
            if theta <= 0:
                return -inf
            total += self.clicks * log(theta)
        for failures, kappa in zip(self.failures, self.kappa, strict=True):
            if failures > 0:
                if kappa * theta >= 1:
                    return -inf
                total += failures * log(1 - kappa * theta)
        return total

    def slope(self, theta: float) -> float:
        """The derivative g'(theta)."""
        total = self.clicks / theta if self.clicks else 0.0
        for failures, kappa in zip(self.failures, self.kappa, strict=True):
            if failures > 0:
                total -= failures * kappa / (1 - kappa * theta)
        return total

    def curvature(self, theta: float) -> float:
        """The second derivative with the sign changed, -g''(theta)."""
        total = self.clicks / theta**2 if self.clicks else 0.0
        for failures, kappa in zip(self.failures, self.kappa, strict=True):
            if failures > 0:
                total += failures * (kappa / (1 - kappa * theta)) ** 2
        return total

    def mode(self) -> float:
        """Where g is largest in [0, 1], by bisection."""
        if self.clicks == 0:
            return 0.0
        sure = any(failures > 0 and kappa == 1 for failures, kappa in zip(self.failures, self.kappa, strict=True))
        if not sure and self.slope(1.0) >= 0:
            return 1.0
        low, high = 0.0, 1.0
        while True:
            middle = (low + high) / 2
            if middle in (low, high):
                return low
            if self.slope(middle) > 0:
                low = middle
            else:
                high = middle

    def draw(self, rng: Xoshiro) -> float:
        mode = self.mode()
        curvature = self.curvature(mode)
        width = 1 / sqrt(curvature) if curvature > 0 else inf
        a, b = max(mode - width, 0.4 * mode), min(mode + width, mode + 0.6 * (1 - mode))
        ga, gb, sa, sb = self.log_density(a), self.log_density(b), self.slope(a), self.slope(b)
        z = (gb - ga + a * sa - b * sb) / (sa - sb) if sa > sb else b
        z = min(max(z, a), b)
        left, right = Piece(0.0, z, sa, a, ga), Piece(z, 1.0, sb, b, gb)
        top = max(left.highest(), right.highest())
        while True:
            sides = left.mass(top), right.mass(top)
            piece = left if rng.uniform() * (sides[0] + sides[1]) < sides[0] else right
            theta = min(max(piece.at(rng.uniform()), 0.0), 1.0)
            excess = self.log_density(theta) - (piece.height + piece.slope * (theta - piece.touches))
            if rng.uniform() < exp(min(excess, 0.0)):
                return theta


@dataclass
class Piece:
    """A tangent, height + slope (x - touches), over the interval [low, high]."""

    low: float
    high: float
    slope: float
    touches: float
    height: float

    def highest(self) -> float:
        end = self.high if self.slope > 0 else self.low
        return self.height + self.slope * (end - self.touches)

    def mass(self, top: float) -> float:
        """The area under exp(tangent - top)."""
        length, rate = self.high - self.low, abs(self.slope)
        return exp(self.highest() - top) * (-expm1(-rate * length) / rate if rate > 0 else length)

    def at(self, v: float) -> float:
        """The point below which, measured from the highest end, lies the share v of the mass."""
        length, rate = self.high - self.low, abs(self.slope)
        distance = -log1p(v * expm1(-rate * length)) / rate if rate > 0 else v * length
        return self.high - distance if self.slope > 0 else self.low + distance


class PbmTs(PbmPolicy):
    """The K largest theta_i, drawn in item order."""

    def values(self) -> list[float]:
        return [self.posterior(i).draw(self.rng) for i in range(self.n_items)]

    def posterior(self, i: int) -> Posterior:
        failures = [n - s for n, s in zip(self.shown_at[i], self.clicked_at[i], strict=True)]
        return Posterior(self.clicks(i), failures, self.kappa)
