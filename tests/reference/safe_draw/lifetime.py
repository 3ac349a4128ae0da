"""safe-draw whose certificates have a lifetime, up to 12 items: docs/algorithms/drift.md, "safe-draw", word by word.

Random words: those of safe-draw without a lifetime; besides, a plan that is not flat takes one if some certificate
matters, and every draw of a page of a plan with a target takes one more.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, exp, expm1, floor, log, log1p

from tests.reference.lifetimes import Certified, Pair
from tests.reference.linear_orders import worst_case_by_recursion
from tests.reference.randomness import Xoshiro
from tests.reference.safe_draw.evidence import STAKES, DrawnPage
from tests.reference.safe_draw.exact import DrawPlan, SafeDraw, evidence_of


@dataclass
class IssuedPage:
    """A page, its round, and the two places of the target of its plan."""

    drawn: DrawnPage
    round: int
    target: tuple[int, int] | None

    def chance(self, a: int, b: int, swapped: bool) -> float:
        """The chance that the draw gives the page with the items of a and b exchanged, and if swapped the target's."""
        row = list(self.drawn.weights)
        if swapped and self.target:
            first, second = self.target
            row[first], row[second] = row[second], row[first]
        row[a], row[b] = row[b], row[a]
        chance, total = 1.0, 0.0
        for k in range(len(row) - 1, -1, -1):
            total += row[k]
            if k < len(self.drawn.shown):
                chance *= row[k] / total
        return chance

    def probability(self, a: int, b: int) -> float:
        """That of this page, among itself and the one with the items of a and b exchanged."""
        if self.target is None:
            return self.drawn.probability(a, b)
        here = (1 - 0.12) * self.chance(a, a, False) + 0.12 * self.chance(a, a, True)
        there = (1 - 0.12) * self.chance(a, b, False) + 0.12 * self.chance(a, b, True)
        return here / (here + there) if here > 0 else 1.0


def nothing() -> list[float]:
    return [0.0] * len(STAKES)


def closed(pairs: set[Pair]) -> frozenset[Pair]:
    """What follows transitively."""
    over = set(pairs)
    while more := {(i, k) for i, j in over for j2, k in over if j == j2} - over:
        over |= more
    return frozenset(over)


class LifetimeSafeDraw(SafeDraw):
    """An epoch has ``lifetime`` pages."""

    def __init__(
        self, n_items: int, n_positions: int, alpha: float, rng: Xoshiro, lifetime: int, trust: float = 0.5
    ) -> None:
        self.lifetime = lifetime
        self.round = self.start = 0
        self.held = Certified()
        self.current: dict[Pair, list[float]] = defaultdict(nothing)
        self.previous: dict[Pair, list[float]] = defaultdict(nothing)
        self.surge: dict[Pair, list[float]] = defaultdict(nothing)
        self.target: Pair | None = None  # seats
        self.asked: tuple[list[int], list[Pair]] | None = None  # a working order and what matters for it
        self.renewing = 0  # pages with a target
        super().__init__(n_items, n_positions, alpha, rng, trust)

    def regroup(self, base: list[int], others: list[int]) -> None:
        self.asked = None
        super().regroup(base, others)

    # What is certain.

    def follow(self, fewer: bool) -> None:
        """R is improved; after fewer certificates from production's ranking on. The plan ends."""
        self.over = set(closed(set(self.held.expires)))
        if fewer:
            self.reference = list(range(self.n_positions))
        self.improve_reference()
        self.plan = self.asked = None

    def fresh(self, i: int, j: int) -> bool:
        return self.held.expires.get((i, j), 0) == self.start + 2 * self.lifetime

    def settled(self, i: int, j: int) -> bool:
        """By what follows from the certificates of this epoch."""
        return (i, j) in closed({pair for pair in self.held.expires if self.fresh(*pair)})

    def most(self) -> float:
        return evidence_of(max(5.0, log(self.lifetime / 200)))

    def begin_epoch(self) -> None:
        self.start = self.round
        self.previous, self.current = self.current, defaultdict(nothing)
        self.wins.clear()
        self.scale(8.0)
        self.fade(32.0)
        self.held.expire(self.round + 1)
        self.follow(True)

    # Evidence.

    def scale(self, most: float) -> None:
        for i, j in [pair for pair in self.lead if pair[0] < pair[1]]:
            size = abs(self.bet_evidence(i, j))
            if size > most:
                share = most / size
                self.lead[i, j] *= share
                self.lead[j, i] *= share
                self.information[i, j] *= share
                self.information[j, i] *= share
                self.l[i, j] = [value * share for value in self.l[i, j]]
                self.l[j, i] = [value * share for value in self.l[j, i]]

    def fade(self, most: float) -> None:
        for item, exposure in self.exposure.items():
            if exposure > most:
                self.clicks[item] *= most / exposure  # type: ignore[assignment]
                self.exposure[item] = most
        if self.n > 1000:
            for k in self.place_clicks:
                self.place_clicks[k] *= 1000 / self.n  # type: ignore[assignment]
            self.n = 1000

    def settle(self, i: int, j: int, p0: float, now: int) -> None:
        """i was clicked, j was not, on page ``now``."""
        before = self.wins[i, j]
        self.bet(i, j, p0)  # soft
        streams = [self.previous]
        if now > self.start:
            streams.append(self.current)
        else:
            self.wins[i, j] = before
        p = ceil(1024 * p0) / 1024
        q = (1024 - floor(1024 * p0)) / 1024
        for e, eta in enumerate(STAKES):
            gain = eta - log1p(p * expm1(eta))
            cost = log1p(q * expm1(eta))
            for stream in streams:
                stream[i, j][e] += gain
                stream[j, i][e] -= cost
            self.surge[i, j][e] = max(0.0, self.surge[i, j][e] + gain)
            self.surge[j, i][e] = max(0.0, self.surge[j, i][e] - cost)

    def won(self, stream: dict[Pair, list[float]], i: int, j: int) -> bool:
        capital = 0.0
        for value in stream[i, j]:
            capital += exp(value)
        return log(capital) >= self.needed(i, j)

    def certify_if_won(self, i: int, j: int) -> bool:
        expires = self.start + 2 * self.lifetime
        if not self.won(self.current, i, j):
            if self.held.above(i, j) or self.held.above(j, i) or not self.won(self.previous, i, j):
                return False
            expires -= self.lifetime
        given = self.held.give(i, j, expires)
        if given:
            self.certificates.append((i, j))
        return given

    def alarm(self, i: int, j: int) -> bool:
        if max(self.surge[i, j]) <= max(7.0, log(self.lifetime / 27)):
            return False
        self.surge[i, j] = nothing()
        against = self.bet_evidence(j, i)
        if against > 0:
            self.l[i, j], self.l[j, i] = nothing(), nothing()
            self.lead[i, j] = self.lead[j, i] = self.information[i, j] = self.information[j, i] = 0.0
        if against <= 1.5 and not self.held.above(j, i):
            return False
        above = self.held.above
        ways = [(a, b) for a, b in self.held.expires if (a == j or above(j, a)) and (b == i or above(b, i))]
        for pair in ways:
            del self.held.expires[pair]
            for stream in (self.current, self.previous):
                stream[pair] = [min(0.0, value) for value in stream[pair]]
        self.scale(1.0)
        self.held.alarms += 1
        return True

    # The target.

    def clearness(self, i: int, j: int) -> float:
        return self.lead[i, j] / (self.information[i, j] + 1)

    def matters(self, w: list[int]) -> list[Pair]:
        """The held-over certificates, by seats, without which w is too much; the least clear are taken away first."""
        items, seats = self.items, range(self.n_items)
        direct = {(x, z) for x in seats for z in seats if (items[x], items[z]) in self.held.expires}
        held = [(x, z) for x, z in sorted(direct) if not self.fresh(items[x], items[z])]
        kept = []
        for x, z in sorted(held, key=lambda pair: self.clearness(items[pair[0]], items[pair[1]])):
            rest = closed(direct - {(x, z)})
            if worst_case_by_recursion(self.n_items, rest, list(range(self.n_positions)), w) <= self.allowed:
                direct.remove((x, z))
            else:
                kept.append((x, z))
        return kept

    def new_plan(self) -> DrawPlan:
        plan = super().new_plan()
        self.target = None
        if not plan.flat:
            w = plan.numbered[: self.n_positions]
            if self.asked is None or self.asked[0] != w:
                self.asked = (w, self.matters(w))
            matters = self.asked[1]
            if matters and self.rng.uniform() < 0.7:
                self.target = matters[-1]
        return plan

    # Pages.

    def issue(self) -> IssuedPage:
        if self.round == self.start + self.lifetime:
            self.begin_epoch()
        self.round += 1
        page = self.choose()
        if self.target is None:
            return IssuedPage(page, self.round, None)
        self.renewing += 1
        first, second = sorted(page.row().index(self.items[seat]) for seat in self.target)
        return IssuedPage(page, self.round, (first, second))

    def drawn(self, weights_of_plan: list[float]) -> list[int]:
        numbers = super().drawn(weights_of_plan)
        if self.target is None or self.rng.uniform() >= 0.12:
            return numbers
        assert self.plan is not None
        first, second = (self.plan.numbered.index(seat) for seat in self.target)
        other = {first: second, second: first}
        return [other.get(number, number) for number in numbers]

    # Clicks.

    def bets_of(self, page: IssuedPage, clicks: list[int]) -> list[tuple[int, int]]:
        """The places of the pairs that are bet on, the clicked one first."""
        row, shown = page.drawn.row(), len(clicks)
        clicked = [a for a in range(shown) if clicks[a]]
        places = [(a, b) for a in clicked for b in range(len(row)) if b not in clicked and page.drawn.safe[a][b]]
        return [(a, b) for a, b in places if row[a] in self.items and row[b] in self.items]

    def learn_issued(self, page: IssuedPage, clicks: list[int]) -> None:
        if page.round <= self.start - self.lifetime:
            return
        self.count_rates(page.drawn, clicks)
        row, places = page.drawn.row(), self.bets_of(page, clicks)
        for a, b in places:
            self.settle(row[a], row[b], page.probability(a, b), page.round)
        alarms = [self.alarm(row[a], row[b]) for a, b in places]
        if any(alarms):
            self.fade(4.0)
        before, circles = set(self.held.expires), self.held.alarms
        given = [self.certify_if_won(row[a], row[b]) for a, b in places]
        if any(alarms) or any(given):
            self.follow(any(alarms) or self.held.alarms > circles or not before <= set(self.held.expires))
