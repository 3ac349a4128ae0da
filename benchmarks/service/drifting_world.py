"""The queries of a shop whose truth drifts, and what production makes of it.

Appeal, production's noise and examination have the law of ``benchmarks/policies/large_worlds.py``, so that the service
can be held against the library on clean pages.
"""

import math
import random
from dataclasses import dataclass, field

from saferank.safety import whole_allowance

K, RANKED = 10, 20
EXAMINATION: list[float] = [(place + 1) ** -0.7 for place in range(K)]
SPREAD, MEAN, NOISE = 0.6, 0.2, 0.5
RESCORED = 0.1
"""Share of the items of which production changes its mind when it is trained again."""


@dataclass
class Query:
    """The truth about one query, and production's ranking of it."""

    name: str
    dice: random.Random
    items: int
    appeal: dict[str, float] = field(default_factory=dict)
    ranking: list[str] = field(default_factory=list)
    _noise: dict[str, float] = field(default_factory=dict)
    _rank: dict[str, int] = field(default_factory=dict)  # by item: how many are better
    _made: int = 0

    def __post_init__(self) -> None:
        for _ in range(self.items):
            self._add()
        self.train()

    def _add(self) -> str:
        item = f"{self.name}-{self._made}"
        self.appeal[item] = min(0.95, MEAN * math.exp(SPREAD * self.dice.gauss(0, 1) - SPREAD**2 / 2))
        self._noise[item] = self.dice.gauss(0, NOISE)
        self._made += 1
        return item

    def train(self) -> None:
        """Production ranks again, by the present truth and by its noise, a part of which is new."""
        for item in self.appeal:
            if self.dice.random() < RESCORED:
                self._noise[item] = self.dice.gauss(0, NOISE)
        self.ranking = sorted(self.appeal, key=lambda item: -math.log(self.appeal[item]) - self._noise[item])
        self._rank_truly()

    def turn_over(self) -> None:
        """An item leaves and another comes; production has it at the end until it is trained again."""
        gone = self.ranking.pop(self.dice.randrange(len(self.ranking)))
        del self.appeal[gone], self._noise[gone]
        self.ranking.append(self._add())
        self._rank_truly()

    def reverse(self) -> None:
        """The best item becomes the worst, and so on."""
        order = sorted(self.appeal, key=lambda item: self.appeal[item])
        self.appeal = dict(zip(order, sorted(self.appeal.values(), reverse=True), strict=True))
        self._rank_truly()

    def _rank_truly(self) -> None:
        best_first = sorted(self.appeal, key=lambda item: -self.appeal[item])
        self._rank = {item: better for better, item in enumerate(best_first)}

    def clicks(self, shown: list[str]) -> float:
        """Expected clicks of a page."""
        return sum(seen * self.appeal[item] for seen, item in zip(EXAMINATION, shown, strict=True))

    def best_clicks(self) -> float:
        """Expected clicks of the best page."""
        best = sorted(self.appeal.values(), reverse=True)[:K]
        return sum(seen * appeal for seen, appeal in zip(EXAMINATION, best, strict=True))

    def is_violated_by(self, shown: list[str]) -> bool:
        """True when a page has more wrong pairs than production's page and the allowance."""
        return self._wrong_pairs(shown) > self._wrong_pairs(self.ranking[:K]) + whole_allowance(len(self._rank), K)

    def _wrong_pairs(self, shown: list[str]) -> int:
        """Pairs of a shown item and a better one that stands below it or is not shown."""
        ranks = [self._rank[item] for item in shown]
        return sum(rank - sum(above < rank for above in ranks[:place]) for place, rank in enumerate(ranks))
