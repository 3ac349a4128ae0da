"""BatchRank, after Algorithms 1 to 4 of Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvari, Wen (ICML 2017).

Positions count from 1 as in the paper. Decided here: a set of items is kept as a list, in the order of the lower bounds
when the batch's last stage ended (item order before); the random permutation of the items is drawn only as far as it is
seen; a batch with as many items as positions that is not split goes on with its next stage.
"""

from dataclasses import dataclass, field
from math import ceil, log

from tests.reference.kl_index import index
from tests.reference.policies import Page, _zeros
from tests.reference.randomness import Xoshiro, shuffle_front


@dataclass(eq=False)
class Batch:
    """Positions first..last, the items B_{b,l} that compete for them, and the counts of stage l."""

    first: int
    last: int
    items: list[int]
    stage: int = 0
    n: dict[int, int] = field(default_factory=dict)
    c: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start_counting()

    def start_counting(self) -> None:
        self.n = dict.fromkeys(self.items, 0)
        self.c = dict.fromkeys(self.items, 0)

    def length(self) -> int:
        return self.last - self.first + 1

    def n_min(self) -> int:
        return min(self.n.values())


@dataclass(eq=False)
class BatchPage(Page):
    """A page also freezes which batch, in which stage, filled which positions."""

    stages: list[tuple[Batch, int]]


class BatchRank:
    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro, horizon: float) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.horizon = max(2, horizon)
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.active = [Batch(1, n_positions, list(range(n_items)))]  # in order of positions
        self.page = BatchPage([], None, None, [], [])

    @property
    def leader(self) -> list[list[int]]:
        return [list(batch.items) for batch in self.active]

    # --- DisplayBatch ---

    def issue(self) -> BatchPage:
        shown: list[int] = []
        compared = []
        for batch in self.active:
            row = self.display(batch)
            shown += row
            compared.append(row)
        return BatchPage(shown, None, None, compared, [(batch, batch.stage) for batch in self.active])

    def display(self, batch: Batch) -> list[int]:
        """The len(b) items with the fewest observations, ties broken at random, in random order.

        Counts differ by at most one. If the items with fewer fill the positions, a random permutation of them is cut
        off; otherwise all of them and some of the others are shown, and the positions are permuted.
        """
        length = batch.length()
        fewest = [d for d in batch.items if batch.n[d] == batch.n_min()]
        others = [d for d in batch.items if batch.n[d] != batch.n_min()]
        if len(fewest) >= length:
            shuffle_front(self.rng, fewest, 0, length, len(fewest))
            return fewest[:length]
        shuffle_front(self.rng, others, 0, length - len(fewest), len(others))
        row = (fewest + others)[:length]
        shuffle_front(self.rng, row, 0, length, length)
        return row

    # --- CollectClicks ---

    def answer(self, page: BatchPage, clicks: list[int]) -> None:
        """A page whose batch has been split or has come to another stage since says nothing about it any more."""
        still = [batch for batch, stage in page.stages if batch in self.active and batch.stage == stage]
        for batch in still:
            self.collect(batch, page, clicks)
        for batch in still:
            self.update(batch)

    def collect(self, batch: Batch, page: BatchPage, clicks: list[int]) -> None:
        n_min = batch.n_min()
        for k in range(batch.first, batch.last + 1):
            d = page.shown[k - 1]
            if batch.n[d] == n_min:
                batch.c[d] += clicks[k - 1]
                batch.n[d] += 1

    # --- UpdateBatch ---

    def enough(self, stage: int) -> int:
        """n_l = ceil(16 D_l^-2 log T), D_l = 2^-l."""
        return ceil(16 * 2.0 ** (2 * stage) * log(self.horizon))

    def upper(self, batch: Batch, d: int) -> float:
        return index(batch.c[d], self.enough(batch.stage), self.horizon)

    def lower(self, batch: Batch, d: int) -> float:
        """The other side of the interval: that of the coin with clicks and non-clicks exchanged."""
        n = self.enough(batch.stage)
        return 1 - index(n - batch.c[d], n, self.horizon)

    def update(self, batch: Batch) -> None:
        if batch.n_min() != self.enough(batch.stage) or len(batch.items) == 1:
            return
        upper = {d: self.upper(batch, d) for d in batch.items}
        lower = {d: self.lower(batch, d) for d in batch.items}
        batch.items.sort(key=lambda d: -lower[d])  # d_1, d_2, ...; stable
        split = 0
        for k in range(1, batch.length()):
            if lower[batch.items[k - 1]] > max(upper[d] for d in batch.items[k:]):
                split = k
        if split > 0:
            place = self.active.index(batch)
            top = Batch(batch.first, batch.first + split - 1, batch.items[:split])
            rest = Batch(batch.first + split, batch.last, batch.items[split:])
            self.active[place : place + 1] = [top, rest]
            return
        worst = lower[batch.items[batch.length() - 1]]
        batch.items = [d for d in batch.items if upper[d] >= worst]
        batch.stage += 1
        batch.start_counting()

    def show(self) -> BatchPage:
        self.page = self.issue()
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        self.answer(self.page, clicks)
