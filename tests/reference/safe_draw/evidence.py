"""What safe-draw learns from its pages: docs/algorithms/safe-draw-to-the-letter.md, "Evidence" and "Learning".

Statistics are kept by item. Sums are loops from the first to the last term, because ``sum`` rounds differently from
Python 3.12 on.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, exp, expm1, floor, log, log1p

STAKES = [0.05, 0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.3]
CERTAIN = 30.0


@dataclass
class DrawnPage:
    """Items shown; hidden in the order of their numbers; weights as the page was drawn, of the shown, then the hidden.

    ``safe[a][b]``: when the page was issued, the page with the shown place a and the place b exchanged had W <= A.
    """

    shown: list[int]
    hidden: list[int]
    weights: list[float]
    safe: list[list[bool]]

    def row(self) -> list[int]:
        return self.shown + self.hidden

    def tails(self) -> list[float]:
        """D(k), the sum of the weights from place k on, summed from the last one up."""
        tails = [0.0] * len(self.weights)
        below = 0.0
        for k in range(len(self.weights) - 1, -1, -1):
            below += self.weights[k]
            tails[k] = below
        return tails

    def probability(self, a: int, b: int) -> float:
        """p0, that of this page among itself and the page with the shown place a and the place b exchanged."""
        up, lo = min(a, b), max(a, b)
        b_is_hidden = b >= len(self.shown)
        change = self.weights[up] - self.weights[lo]
        here = self.weights[up] if b_is_hidden else 1.0
        there = self.weights[lo] if b_is_hidden else 1.0
        for k, d in enumerate(self.tails()):
            if up < k <= lo and k < len(self.shown):
                here *= d + change
                there *= d
        return 1.0 if here <= 0 else here / (here + there)


def weight_of_pair(k: int, n: int, i: int, j: int) -> float:
    """The weight of a pair of the n items with which a context begins, k of them ranked, for ``budget:ALPHA``."""
    ranked, outside = min(i, j), max(i, j)
    if outside < k:
        return 0.9
    if ranked >= k:
        return min(0.85, 2 * k / (n - k - 1))
    return 5.0 if ranked >= k - 2 else 1.5


def error_of_pair(alpha: float, k: int, n: int, i: int, j: int) -> float:
    """The error of an ordered pair under ``budget:ALPHA``."""
    newest = max(i, j)
    if newest >= n:
        return 0.1 * alpha * n / (newest**2 * (newest + 1))
    total = 0.0
    for x in range(n):
        for z in range(x):
            total += weight_of_pair(k, n, x, z)
    return 0.9 * alpha * weight_of_pair(k, n, i, j) / total


class Evidence:
    """What is known of items and places. Items keep it when they leave."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.spent: tuple[int, int] | None = None  # ``budget:ALPHA``: ranked and all items when the context began
        self.l: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0] * len(STAKES))
        self.lead: dict[tuple[int, int], float] = defaultdict(float)  # S
        self.information: dict[tuple[int, int], float] = defaultdict(float)  # I, the same in both directions
        self.wins: dict[tuple[int, int], int] = defaultdict(int)
        self.clicks: dict[int, int] = defaultdict(int)  # C
        self.exposure: dict[int, float] = defaultdict(float)  # M
        self.place_clicks: dict[int, int] = defaultdict(int)  # c
        self.n = 0
        self.clicked_pages = 0
        self.certificates: list[tuple[int, int]] = []  # (winner, loser) in the order in which they came
        self.over: set[tuple[int, int]] = set()  # these and what follows transitively

    def settled_for_good(self, i: int, j: int) -> bool:
        return (i, j) in self.over or (j, i) in self.over

    def rate_evidence(self, i: int, j: int) -> float:
        d = self.clicks[i] * self.exposure[j] - self.clicks[j] * self.exposure[i]
        w = self.exposure[i] * self.exposure[j] * (self.clicks[i] + self.clicks[j])
        return d * abs(d) / (2 * w) if w != 0 else 0.0

    def bet_evidence(self, i: int, j: int) -> float:
        s, information = self.lead[i, j], self.information[i, j]
        if information < 1e-12:
            return 0.0
        if abs(s) < 0.15 * information:
            return s * abs(s) / (2 * information)
        return max(0.0, *self.l[i, j]) - max(0.0, *self.l[j, i])

    def settled(self, i: int, j: int) -> bool:
        """i is certified over j, and need not be compared with it."""
        return (i, j) in self.over

    def most(self) -> float:
        """The largest evidence."""
        return CERTAIN

    def evidence(self, i: int, j: int, prior: float) -> float:
        """E(i, j) of two items, evaluated from i; ``prior`` speaks for j."""
        if self.settled(i, j):
            return self.most()
        if self.settled(j, i):
            return -self.most()
        e = self.bet_evidence(i, j) + 0.5 * self.rate_evidence(i, j)
        return min(self.most(), max(-self.most(), e - prior))

    def count_rates(self, page: DrawnPage, clicks: list[int]) -> None:
        self.n += 1
        self.clicked_pages += int(any(clicks))
        for k, (item, click) in enumerate(zip(page.shown, clicks, strict=True)):
            self.place_clicks[k] += click
            self.clicks[item] += click
            self.exposure[item] += (self.place_clicks[k] + 0.5) * (1 / (self.n + 1))

    def bet(self, i: int, j: int, p0: float) -> None:
        """i was clicked, j was not."""
        p = ceil(1024 * p0) / 1024
        q = (1024 - floor(1024 * p0)) / 1024
        for e, eta in enumerate(STAKES):
            self.l[i, j][e] += eta - log1p(p * expm1(eta))
            self.l[j, i][e] -= log1p(q * expm1(eta))
        self.lead[i, j] += 1 - p0
        self.lead[j, i] = -self.lead[i, j]
        self.information[i, j] += p0 * (1 - p0)
        self.information[j, i] = self.information[i, j]
        self.wins[i, j] += 1

    def decided(self, i: int, j: int) -> bool:
        capital = 0.0
        for capital_of_stake in self.l[i, j]:
            capital += exp(capital_of_stake)
        return capital > 0 and log(capital) >= self.needed(i, j)

    def needed(self, i: int, j: int) -> float:
        """The logarithm of the sum over the stakes that certifies i over j."""
        return log(8 / (self.alpha if self.spent is None else error_of_pair(self.alpha, *self.spent, i, j)))

    def certify(self, i: int, j: int) -> None:
        self.certificates.append((i, j))
        above = [x for x, y in self.over if y == i]
        below = [y for x, y in self.over if x == j]
        self.over |= {(x, y) for x in [i, *above] for y in [j, *below]}
