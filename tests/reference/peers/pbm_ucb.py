"""PBM-UCB (docs/policies/pbm-ucb.md), sentence by sentence; kappa is the known examination."""

from math import inf, log, sqrt

from tests.reference.policies import Page, _zeros
from tests.reference.randomness import Xoshiro


class PbmPolicy:
    """What PBM-UCB and PBM-TS share: clicks and displays by item and place, and who is placed where."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro, kappa: list[float]) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.kappa = kappa[:n_positions]
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.shown_at = [[0] * n_positions for _ in range(n_items)]  # N_il
        self.clicked_at = [[0] * n_positions for _ in range(n_items)]  # S_il
        self.round = 0
        self.page = Page([], None, None, [])

    def clicks(self, i: int) -> int:
        return sum(self.clicked_at[i])

    def mass(self, i: int) -> float:
        """M_i: the sum of kappa over the places where it was shown, place by place."""
        total = 0.0
        for times, kappa in zip(self.shown_at[i], self.kappa, strict=True):
            total += times * kappa
        return total

    def placed(self, value: list[float]) -> list[int]:
        """The K largest values (ties in item order), the largest at the place with the largest kappa (ties: upper)."""
        best = sorted(range(self.n_items), key=lambda i: -value[i])[: self.n_positions]
        places = sorted(range(self.n_positions), key=lambda place: -self.kappa[place])
        row = [-1] * self.n_positions
        for item, place in zip(best, places, strict=True):
            row[place] = item
        return row

    @property
    def leader(self) -> list[int]:
        """The best guess: the largest S_i / M_i, items that were never shown last, placed like a page."""
        return self.placed([self.clicks(i) / self.mass(i) if self.mass(i) else -1.0 for i in range(self.n_items)])

    def values(self) -> list[float]:
        raise NotImplementedError

    def issue(self) -> Page:
        self.round += 1
        return Page(self.placed(self.values()), None, None, [])

    def answer(self, page: Page, clicks: list[int]) -> None:
        for place, (item, click) in enumerate(zip(page.shown, clicks, strict=True)):
            self.shown_at[item][place] += 1
            self.clicked_at[item][place] += click

    def show(self) -> Page:
        self.page = self.issue()
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        self.answer(self.page, clicks)


class PbmUcb(PbmPolicy):
    """U_i = S_i / M_i + sqrt(N_i / M_i) sqrt(log t / (2 M_i)), infinite for an item that was never shown."""

    def values(self) -> list[float]:
        return [self.bound(i) for i in range(self.n_items)]

    def bound(self, i: int) -> float:
        shown, mass = sum(self.shown_at[i]), self.mass(i)
        if shown == 0:
            return inf
        return self.clicks(i) / mass + sqrt(shown / mass) * sqrt(log(self.round) / (2 * mass))
