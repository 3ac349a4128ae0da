"""How bad a page may be, if all that is known are the certificates: by enumeration of all orders of the items."""

from functools import cache
from itertools import product

from .safety import wrong_pairs

Pairs = frozenset[tuple[int, int]]
"""Certificates (better, worse)."""

Levels = tuple[int, ...]
"""A weak order: a level for each item, 0 the worst, no level between them without an item."""


@cache
def weak_orders(n_items: int) -> list[Levels]:
    """All weak orders, ties allowed: 1, 3, 13, 75, 541, 4683 of them for 1 to 6 items."""
    assert n_items <= 6
    every = product(range(n_items), repeat=n_items)
    return [levels for levels in every if set(levels) == set(range(max(levels) + 1))]


@cache
def consistent_orders(n_items: int, certificates: Pairs) -> list[Levels]:
    """The weak orders in which every certificate's better item is strictly better than its worse item."""

    def agrees(levels: Levels) -> bool:
        return all(levels[better] > levels[worse] for better, worse in certificates)

    return [levels for levels in weak_orders(n_items) if agrees(levels)]


@cache
def _worst_case(n_items: int, certificates: Pairs, original: Levels, shown: Levels) -> int | None:
    largest: int | None = None
    for levels in consistent_orders(n_items, certificates):
        attraction = [float(level) for level in levels]
        excess = wrong_pairs(list(shown), attraction) - wrong_pairs(list(original), attraction)
        if largest is None or excess > largest:
            largest = excess
    return largest


def worst_case(n_items: int, certificates: set[tuple[int, int]], original: list[int], shown: list[int]) -> int | None:
    """The largest V(shown) - V(original) over all weak orders consistent with the certificates (better, worse).

    None when there is no such order: then some certificate is wrong and nothing is promised.
    """
    assert len(original) == len(shown) <= n_items
    return _worst_case(n_items, frozenset(certificates), tuple(original), tuple(shown))


def exceeds(n_items: int, certificates: set[tuple[int, int]], original: list[int], shown: list[int]) -> bool:
    """Whether the worst case is above the allowance L - K/2, a real number."""
    excess = worst_case(n_items, certificates, original, shown)
    return excess is not None and excess > n_items - len(original) / 2
