"""KL-UCB-BR whose certificates have a lifetime, sentence by sentence (docs/algorithms/drift.md, "The rules")."""

from collections.abc import Callable

from .policies import KlUcbBr, Page, _click, _update, _zeros
from .randomness import Xoshiro

Pair = tuple[int, int]
"""(better, worse)."""


class Certified:
    """The certificates that hold, by pair, each with the last round in which it does."""

    def __init__(self) -> None:
        self.expires: dict[Pair, int] = {}
        self.dropped: dict[Pair, int] = {}
        self.alarms = 0

    def above(self, i: int, j: int) -> bool:
        """It follows from the certificates that i is better than j."""
        return self.way(i, j) is not None

    def way(self, start: int, goal: int) -> list[Pair] | None:
        """The certificates on a shortest way from start down to goal, in the order of items where there are several."""
        ways: dict[int, list[Pair]] = {start: []}
        queue = [start]
        while queue:
            item = queue.pop(0)
            for other in sorted(worse for better, worse in self.expires if better == item):
                if other not in ways:
                    ways[other] = [*ways[item], (item, other)]
                    queue.append(other)
        return ways.get(goal) if goal != start else None

    def drop(self, pair: Pair) -> None:
        self.dropped[pair] = self.expires.pop(pair)

    def give(self, i: int, j: int, expires: int) -> bool:
        """Whether it is given: not if it holds as long already, nor again after it was dropped."""
        if expires <= max(self.expires.get((i, j), 0), self.dropped.get((i, j), 0)):
            return False
        if self.expires.get((j, i), expires) < expires:
            del self.expires[j, i]
        self.expires[i, j] = expires
        while (i, j) in self.expires:
            way = self.way(j, i)
            if way is None:
                break
            self.alarms += 1
            circle = [*way, (i, j)]
            newest = max(self.expires[pair] for pair in circle)
            older = [pair for pair in circle if self.expires[pair] < newest]
            for pair in older or circle:
                self.drop(pair)
        return True

    def expire(self, now: int) -> None:
        self.expires = {pair: last for pair, last in self.expires.items() if last >= now}


class LifetimeKlUcbBr(KlUcbBr):
    """An epoch has ``lifetime`` rounds; statistics and leader counts are those of the epoch."""

    def __init__(
        self, n_items: int, n_positions: int, rng: Xoshiro, decides: Callable[[int, int], bool], lifetime: int
    ) -> None:
        super().__init__(n_items, n_positions, rng, decides)
        self.lifetime = lifetime
        self.start = 0  # rounds before this epoch
        self.certified = Certified()

    def swapped(self, row: list[int], upper: int, lower: int) -> bool:
        if not self.certified.above(row[lower], row[upper]):
            return False
        row[upper], row[lower] = row[lower], row[upper]
        return True

    def derived_leader(self) -> list[int]:
        """Production's ranking, then all others. Sweeps over neighbours, and over the bottom item and each item
        outside, until nothing moves; then one exchange of the first two places further apart, and sweeps again.
        """
        row = list(range(self.n_items))
        last = self.n_positions - 1
        near = [(place, place + 1) for place in range(last)] + [
            (last, place) for place in range(last + 1, self.n_items)
        ]
        every = [(upper, lower) for upper in range(last + 1) for lower in range(upper + 1, self.n_items)]
        while True:
            moved = [self.swapped(row, upper, lower) for upper, lower in near]
            if not any(moved) and not any(self.swapped(row, upper, lower) for upper, lower in every):
                return row[: self.n_positions]

    def begin_epoch(self) -> None:
        self.start = self.round
        self.s = _zeros(self.n_items)
        self.n = _zeros(self.n_items)
        self.counts = {}
        self.certified.expire(self.round + 1)
        self.leader = self.derived_leader()

    def beats(self, i: int, j: int) -> bool:
        """Asked by ``show`` for the coins: certified in this epoch, so not to be compared any more."""
        return self.certified.expires.get((i, j), 0) == self.start + 2 * self.lifetime

    def show(self) -> Page:
        if self.round == self.start + self.lifetime:
            self.begin_epoch()
        return super().show()

    def feedback(self, clicks: list[int]) -> None:
        changed = False
        for i, j in self.page.compared:
            difference = _click(i, self.page.shown, clicks) - _click(j, self.page.shown, clicks)
            _update(self.s, self.n, i, j, difference)
            for winner, loser in [(i, j)] * (difference > 0) + [(j, i)] * (difference < 0):
                if self.decides(self.s[winner][loser], self.n[winner][loser]):
                    changed |= self.certified.give(winner, loser, self.start + 2 * self.lifetime)
        self.counts[tuple(self.leader)] = self.counts.get(tuple(self.leader), 0) + 1
        if changed:
            self.leader = self.derived_leader()
