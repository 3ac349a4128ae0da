"""What clicks say of items before they certify: docs/algorithms/safe-draw-to-the-letter.md, "Appeal"."""

from collections import defaultdict
from math import cos, log, pi, sqrt

from tests.reference.randomness import Xoshiro


def normal(rng: Xoshiro) -> float:
    """Box and Muller, from two uniform numbers."""
    u = rng.uniform()
    u_prime = rng.uniform()
    return sqrt(-2 * log(1 - u)) * cos(2 * pi * u_prime)


def gamma(shape: float, rng: Xoshiro) -> float:
    """A Gamma number of this shape and of rate 1, by Marsaglia and Tsang's method."""
    a = shape + 1 if shape < 1 else shape
    d = a - 1 / 3
    c = 1 / sqrt(9 * d)
    while True:
        n = normal(rng)
        v = 1 + c * n
        if v > 0:
            v = v**3
            u = rng.uniform()
            if log(1 - u) < n**2 / 2 + d * (1 - v + log(v)):
                break
    return d * v * (1 - rng.uniform()) ** (1 / shape) if shape < 1 else d * v


class Appeal:
    """Clicks and exposure of items. They are kept when items leave."""

    def __init__(self) -> None:
        self.clicks: dict[int, int] = defaultdict(int)  # C
        self.exposure: dict[int, float] = defaultdict(float)  # M
        self.place_clicks: dict[int, int] = defaultdict(int)
        self.pages = 0
        self.seen: list[int] = []  # in the order in which they were first on a page that was learnt from
        self.base: list[int] = []
        self.candidates: list[int] = []  # the present items outside production's ranking, in candidate order

    def count(self, shown: list[int], clicks: list[int]) -> None:
        """A page is learnt from."""
        for k, (x, click) in enumerate(zip(shown, clicks, strict=True)):
            self.exposure[x] += (self.place_clicks[k] + 0.1) / (self.pages + 1)
            self.clicks[x] += click
            if x not in self.seen:
                self.seen.append(x)
        for k, click in enumerate(clicks):
            self.place_clicks[k] += click
        self.pages += 1

    def mu(self, x: int) -> float:
        if x in self.base:
            return 1.0
        clicks, exposure = 0, 0.0
        for candidate in self.candidates:
            clicks += self.clicks[candidate]
            exposure += self.exposure[candidate]
        pooled = (clicks + 2) / (exposure + 2)
        c, n = self.candidates.index(x) + 1, len(self.candidates)
        prior_of_rank: float = (c / n) ** (-1 / 4)
        return pooled * 0.75 * prior_of_rank

    def th(self, x: int) -> float:
        return (self.clicks[x] + 2 * self.mu(x)) / (self.exposure[x] + 2)

    def s(self, x: int) -> float:
        """The standard error of th."""
        return sqrt(self.clicks[x] + 2 * self.mu(x)) / (self.exposure[x] + 2)

    def z(self, x: int, d: int) -> float:
        """z(th_x - th_d)."""
        return (self.th(x) - self.th(d)) / sqrt(self.s(x) ** 2 + self.s(d) ** 2)

    def drawn_th(self, x: int, rng: Xoshiro) -> float:
        return gamma(self.clicks[x] + 2 * self.mu(x), rng) / (self.exposure[x] + 2)
