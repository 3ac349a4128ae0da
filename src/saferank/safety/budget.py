"""What a page may spend: the allowance as a budget of possibly wrong pairs, and the price of a page.

Let a page be the leader, followed by the challenger at the hidden place K+1, shuffled inside blocks of neighbouring
places. Whatever the truth,

    V(page) <= V(leader) + pairs inside blocks + (L - K - 1 if the challenger shares a block),

because only the two items of a pair inside a block can change places, and a challenger that is shown passes the other
unranked items too. On the event that no certificate is wrong, V(leader) <= V(original) - income. So a page whose price
is within allowance + income is safe. The argument in full: docs/policies/safe-blocks.md.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from saferank.safety.constraint import allowance


def whole_allowance(n_items: int, n_positions: int) -> int:
    """The allowance in whole pairs, floor(L - K/2): a page has a whole number of wrong pairs.

    >>> whole_allowance(10, 5), whole_allowance(10, 4)
    (7, 8)
    """
    return math.floor(allowance(n_items, n_positions))


@dataclass(frozen=True)
class Price:
    """By how many wrong pairs a page may be worse than the leader, and why."""

    challenger: int  # its pair with the bottom item and its pairs with the other unranked items: L - K, or 0 without
    blocks: int  # all other pairs inside blocks
    order: int = 0  # where a page is not the leader shuffled in blocks: how it differs from it; certainty may pay back

    @property
    def total(self) -> int:
        """All of it."""
        return self.challenger + self.blocks + self.order


@dataclass(frozen=True)
class Budget:
    """What pages may spend, and what a certain page spends."""

    allowance: int  # floor(L - K/2)
    income: int  # certified swaps since the reference ranking
    price: Price | None = None  # of a page

    @property
    def total(self) -> int:
        """How many possibly wrong pairs a page may carry beyond the leader's."""
        return self.allowance + self.income

    @property
    def covered(self) -> bool:
        """True when the page costs no more than there is."""
        return self.price is None or self.price.total <= self.total

    def __str__(self) -> str:
        text = f"{self.total} possibly wrong pairs a page: allowance {self.allowance}, {self.income} certified swaps"
        if self.price is None:
            return text
        parts = f"{self.price.challenger} on the challenger, {self.price.blocks} on pairs in blocks"
        if self.price.order:
            parts += f", {self.price.order} on another order than the leader's"
        return f"{text}; this page spends {self.price.total}: {parts}"


def price_of_page(
    leader: Sequence[Hashable], blocks: Sequence[Sequence[Hashable]], challenger: Hashable | None, n_items: int
) -> Price:
    """What a page costs at most: ``blocks`` from the top, each in any order, of a catalogue of ``n_items`` items.

    A ``ValueError`` for a page that is not the leader, followed by the challenger, shuffled inside the blocks: of such
    a page nothing is known.

    >>> price_of_page("abcde", ["a", "cb", "dxe"], "x", n_items=10)
    Price(challenger=5, blocks=3, order=0)
    """
    row = [*leader] if challenger is None else [*leader, challenger]
    if n_items < len(set(row)) or len(set(row)) < len(row):
        raise ValueError(f"{row} are not different items of a catalogue of {n_items}")
    start = 0
    for block in blocks:
        neighbours = row[start : start + len(block)]
        if not block or set(block) != set(neighbours):
            raise ValueError(f"{[*block]} is no block of {row}: expected {neighbours} in some order")
        start += len(block)
    if start < len(row):
        raise ValueError(f"the blocks end before {row[start:]}")
    pairs = sum(len(block) * (len(block) - 1) // 2 for block in blocks)
    if challenger is None or len(blocks[-1]) == 1:
        return Price(0, pairs)
    return Price(n_items - len(leader), pairs - 1)
