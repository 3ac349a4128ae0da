"""CascadeKL-UCB (docs/policies/cascade-kl-ucb.md), sentence by sentence."""

from tests.reference.kl_index import index
from tests.reference.policies import Page, _zeros
from tests.reference.randomness import Xoshiro


class CascadeKlUcb:
    """T_i = times item i was examined, w_i = its clicks / T_i; the K largest f(w_i, T_i, t) in decreasing order."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.examined = [0] * n_items
        self.clicked = [0] * n_items
        self.round = 0
        self.page = Page([], None, None, [])

    @property
    def leader(self) -> list[int]:
        """The best guess: the largest rates w_i, items that were never examined last, ties in item order."""
        return sorted(range(self.n_items), key=lambda i: -self.rate(i))[: self.n_positions]

    def rate(self, i: int) -> float:
        return self.clicked[i] / self.examined[i] if self.examined[i] else -1.0

    def issue(self) -> Page:
        self.round += 1
        indices = [index(self.clicked[i], self.examined[i], self.round) for i in range(self.n_items)]
        order = sorted(range(self.n_items), key=lambda i: -indices[i])  # stable: ties stay in item order
        return Page(order[: self.n_positions], None, None, [])

    def answer(self, page: Page, clicks: list[int]) -> None:
        """With the first click at C the items at 1..C were examined, all K without a click."""
        for item, click in zip(page.shown, clicks, strict=True):
            self.examined[item] += 1
            self.clicked[item] += click
            if click:
                return

    def show(self) -> Page:
        self.page = self.issue()
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        self.answer(self.page, clicks)
