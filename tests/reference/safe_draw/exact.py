"""The policy safe-draw of docs/algorithms/safe-draw-to-the-letter.md, up to 12 items, also with late feedback.

Random words: a new plan takes a uniform number for step 2 if mass > 0, one for flat if it is hindered, one more for
step 3 if it is then not flat but starved, and one for the draw of step 5 if it is flat and there are items outside.
A page takes K, and K more each time it is drawn again.

Rankings, plans and W are rows of seats. Python places count from 0: place k of the document is row[k - 1].
"""

from dataclasses import dataclass
from itertools import pairwise
from math import erfc, exp, floor, log, sqrt

from tests.reference.linear_orders import Pairs, worst_case_by_recursion
from tests.reference.randomness import Xoshiro
from tests.reference.safe_draw.evidence import DrawnPage, Evidence

PAGES_OF_A_PLAN = 16
SETTLED = 1.5


def gap(evidence: float) -> float:
    if evidence <= 0:
        return 0.0
    e = erfc(sqrt(evidence))
    return log((2 - e) / e)


def evidence_of(size: float) -> float:
    """The evidence, at most 30, whose gap this is: the upper end of an interval that is halved 60 times."""
    low, high = 0.0, 30.0
    if size <= 0:
        return 0.0
    if gap(high) <= size:
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gap(middle) < size:
            low = middle
        else:
            high = middle
    return high


def total_of(weights: list[float]) -> float:
    total = 0.0
    for weight in weights:
        total += weight
    return total


def draw(weights: list[float], total: float, u: float) -> int:
    """The number drawn from numbered weights with a uniform number u. Raises if no weight is positive."""
    point = u * total
    for number, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return number
    return max(number for number, weight in enumerate(weights) if weight > 0)


def exchanged(row: list[int], p: int, q: int) -> list[int]:
    """The row with the items at places p and q exchanged."""
    after = list(row)
    after[p], after[q] = row[q], row[p]
    return after


@dataclass
class DrawPlan:
    """w and then the outside items by seat, their weights, and how the plan came about."""

    numbered: list[int]
    weights: list[float]
    refused: bool
    starved: bool
    flat: bool
    served: int = 0


class SafeDraw(Evidence):
    """safe-draw: pages are drawn from a plan's weights, and drawn again if some order that is possible forbids them."""

    def __init__(self, n_items: int, n_positions: int, alpha: float, rng: Xoshiro, trust: float = 0.5) -> None:
        super().__init__(alpha)
        self.rng = rng
        self.prior = evidence_of(log(trust / (1 - trust)))
        self.came: dict[int, int] = {}
        self.regroup(list(range(n_positions)), list(range(n_positions, n_items)))

    def regroup(self, base: list[int], others: list[int]) -> None:
        """Items come and go, production's ranking changes: seats are given again, R begins at production's ranking."""
        self.items = base + others
        for item in self.items:
            self.came.setdefault(item, self.clicked_pages)
        self.n_items, self.n_positions = len(self.items), len(base)
        self.allowed = floor(self.n_items - self.n_positions / 2)  # A
        self.reference = list(range(self.n_positions))  # R, seats
        self.improve_reference()
        self.plan: DrawPlan | None = None

    # Seats.

    def certified(self, x: int, y: int) -> bool:
        return (self.items[x], self.items[y]) in self.over

    def certified_pairs(self) -> list[tuple[int, int]]:
        """In the order of (winner, loser)."""
        seats = range(self.n_items)
        return [(x, y) for x in seats for y in seats if self.certified(x, y)]

    def e(self, x: int, y: int) -> float:
        """E(x, y) of two seats: evaluated from the one with the larger number."""
        if x == y:
            return 0.0
        if x < y:
            return -self.e(y, x)
        i, j = self.items[x], self.items[y]
        return self.evidence(i, j, self.faded(i, j) if y < self.n_positions else 0.0)

    def faded(self, i: int, j: int) -> float:
        """What is left of the prior that production has the two the right way round."""
        return self.prior * exp(-(self.clicked_pages - max(self.came[i], self.came[j])) / 100) if self.prior else 0.0

    def worst(self, ranking: list[int]) -> int:
        """W, remembered until the certificates or the items change."""
        if tuple(ranking) not in self.answers:
            original = list(range(self.n_positions))
            found = worst_case_by_recursion(self.n_items, self.pairs, original, ranking)
            self.answers[tuple(ranking)] = found
        return self.answers[tuple(ranking)]

    # The reference.

    def improve_reference(self) -> None:
        self.pairs: Pairs = frozenset(self.certified_pairs())
        self.answers: dict[tuple[int, ...], int] = {}
        changed = True
        while changed:
            changed = False
            for winner, loser in self.certified_pairs():
                for move in (self.winner_above_loser, self.winner_for_loser, self.loser_below_winner):
                    if self.applies(winner, loser):
                        after = move(winner, loser)
                        if after is not None and self.worst(after) < self.worst(self.reference):
                            self.reference = after
                            changed = True

    def applies(self, winner: int, loser: int) -> bool:
        r = self.reference
        return loser in r and (winner not in r or r.index(winner) > r.index(loser))

    def winner_above_loser(self, winner: int, loser: int) -> list[int] | None:
        after = [x for x in self.reference if x != winner]
        after.insert(after.index(loser), winner)
        return after[: self.n_positions]

    def winner_for_loser(self, winner: int, loser: int) -> list[int] | None:
        other = {winner: loser, loser: winner}
        return [other.get(x, x) for x in self.reference]

    def loser_below_winner(self, winner: int, loser: int) -> list[int] | None:
        if winner not in self.reference:
            return None
        after = [x for x in self.reference if x != loser]
        after.insert(after.index(winner) + 1, loser)
        return after

    def reference_has(self, x: int, above: int) -> bool:
        """R has x above the other one."""
        r = self.reference
        return x in r and (above not in r or r.index(above) > r.index(x))

    # The working order.

    def working_order(self, cap: int) -> tuple[list[int], bool]:
        """w(cap), and whether a refusal was noted."""
        w = list(self.reference)
        refused = False
        for _ in range(self.n_positions):
            changed = False
            for x in range(self.n_items):
                beaten = [] if x in w else [k for k in range(self.n_positions) if self.e(x, w[k]) > SETTLED]
                if beaten:
                    after = [*w[: beaten[-1]], x, *w[beaten[-1] + 1 :]]
                    w, done = self.taken(w, after, cap)
                    changed, refused = changed or done, refused or not done
            for k in range(self.n_positions - 1):
                if self.e(w[k + 1], w[k]) > SETTLED:
                    w, done = self.taken(w, exchanged(w, k, k + 1), cap)
                    changed, refused = changed or done, refused or not done
            if not changed:
                break
        return w, refused

    def taken(self, w: list[int], after: list[int], cap: int) -> tuple[list[int], bool]:
        return (after, True) if self.worst(after) <= cap else (w, False)

    # The plan.

    def outside(self, w: list[int]) -> list[int]:
        return [x for x in range(self.n_items) if x not in w]

    def mass(self, w: list[int]) -> float:
        """2. How likely it is that a page which is not allowed is the better one."""
        mass = 0.0
        for x in self.outside(w):
            if self.worst([*w[:-1], x]) > self.allowed:
                mass += exp(-gap(self.e(w[-1], x)))
        for k in range(self.n_positions - 1):
            if self.worst(exchanged(w, k, k + 1)) > self.allowed:
                mass += exp(-gap(self.e(w[k], w[k + 1])))
        return min(1.0, mass)

    def falls(self, w: list[int], hindered: bool) -> dict[int, float]:
        """4. lambda by seat."""
        falls = {w[0]: 0.0}
        for upper, lower in pairwise(w):
            growth = max(0.5, gap(self.e(upper, lower)))
            if hindered and not self.certified(upper, lower) and not self.reference_has(upper, lower):
                growth = min(0.8, growth)
            falls[lower] = falls[upper] + growth
        b = w[-1]
        for x in self.outside(w):
            growth = max(0.8, gap(self.e(b, x)))
            if hindered and not self.certified(b, x) and self.reference_has(x, b):
                growth = 0.8
            falls[x] = falls[b] + growth
        return falls

    def flatten(self, w: list[int], falls: dict[int, float]) -> None:
        """5."""
        b = w[-1]
        above_b = w[-2] if self.n_positions > 1 else b
        if self.n_positions > 1:
            falls[b] = falls[above_b] + (3 if self.certified(above_b, b) else 0.3)
        outside = self.outside(w)
        for x in outside:
            falls[x] = falls[b] + 3
        if outside:
            sums = [total_of([self.e(x, z) for z in range(self.n_items)]) for x in outside]
            o = outside[sums.index(max(sums))]
            weights = [exp(-gap(self.e(o, x))) for x in outside]
            challenger = outside[draw(weights, total_of(weights), self.rng.uniform())]
            falls[challenger] = falls[above_b]

    def new_plan(self) -> DrawPlan:
        # 1. and 2.
        w, refused = self.working_order(self.allowed)
        mass = self.mass(w)
        starved = mass > 0 and self.rng.uniform() < mass
        hindered = refused or starved
        # 3.
        flat = hindered and self.rng.uniform() < 1 / 2
        if flat or (starved and self.rng.uniform() < 1 / 4):
            w, _ = self.working_order(max(self.worst(self.reference), self.allowed - 7))
        # 4. to 6.
        falls = self.falls(w, hindered)
        if flat:
            self.flatten(w, falls)
        numbered = w + self.outside(w)
        return DrawPlan(numbered, [exp(-falls[x]) for x in numbered], refused, starved, flat)

    # Pages.

    def drawn(self, weights_of_plan: list[float]) -> list[int]:
        """K numbers, without replacement."""
        weights = list(weights_of_plan)
        total = summed = total_of(weights)
        numbers = []
        for _ in range(self.n_positions):
            if total < 0.001 * summed:
                total = summed = total_of(weights)
            number = draw(weights, total, self.rng.uniform())
            numbers.append(number)
            total -= weights[number]
            weights[number] = 0.0
        return numbers

    def choose(self) -> DrawnPage:
        if self.plan is None or self.plan.served == PAGES_OF_A_PLAN:
            self.plan = self.new_plan()
        self.plan.served += 1
        numbered, weights = self.plan.numbered, self.plan.weights
        numbers = self.drawn(weights)
        while self.worst([numbered[number] for number in numbers]) > self.allowed:
            numbers = self.drawn(weights)
        numbers += [number for number in range(self.n_items) if number not in numbers]
        row = [numbered[number] for number in numbers]
        places = range(self.n_items)
        safe = [[self.exchange_is_safe(row, a, b) for b in places] for a in range(self.n_positions)]
        items = [self.items[seat] for seat in row]
        k = self.n_positions
        return DrawnPage(items[:k], items[k:], [weights[number] for number in numbers], safe)

    def exchange_is_safe(self, row: list[int], a: int, b: int) -> bool:
        return self.worst(exchanged(row, a, b)[: self.n_positions]) <= self.allowed

    # Clicks, at once or late.

    def learn(self, page: DrawnPage, clicks: list[int]) -> None:
        self.count_rates(page, clicks)
        row = page.row()
        clicked = [a for a in range(len(page.shown)) if clicks[a]]
        not_clicked = [b for b in range(len(row)) if b not in clicked]
        here = [p for p in range(len(row)) if row[p] in self.items]  # pairs of which an item has left are not bet on
        places = [(a, b) for a in clicked for b in not_clicked if a in here and b in here]
        for a, b in places:
            if not self.settled_for_good(row[a], row[b]) and page.safe[a][b]:
                self.bet(row[a], row[b], page.probability(a, b))
        before = len(self.certificates)
        for a, b in places:
            if not self.settled_for_good(row[a], row[b]) and self.decided(row[a], row[b]):
                self.certify(row[a], row[b])
        if len(self.certificates) > before:
            self.improve_reference()
            self.plan = None
