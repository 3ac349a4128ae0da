"""W of docs/policies/safe-draw.md: the largest V(page) - V(original) over the linear orders that agree with the
certificates.
"""

from functools import cache
from itertools import permutations

from .safety import wrong_pairs

Pairs = frozenset[tuple[int, int]]
"""Certificates (better, worse)."""


def below(ranking: list[int], x: int, n_items: int) -> frozenset[int]:
    """The items below x in the ranking or hidden, if x is shown, else nothing."""
    if x not in ranking:
        return frozenset()
    return frozenset(range(n_items)) - set(ranking[: ranking.index(x) + 1])


def worst_case_by_recursion(n_items: int, certificates: Pairs, original: list[int], shown: list[int]) -> int:
    """Build the order from the best item down; what an item adds depends only on the set of the items before it."""
    everything = frozenset(range(n_items))
    better_than = [frozenset(i for i, j in certificates if j == x) for x in range(n_items)]
    below_shown = [below(shown, x, n_items) for x in range(n_items)]
    below_original = [below(original, x, n_items) for x in range(n_items)]

    @cache
    def rest(before: frozenset[int]) -> int:
        """The most that the items not yet in the order can add."""
        if before == everything:
            return 0
        possible = [x for x in everything - before if better_than[x] <= before]
        return max(
            len(before & below_shown[x]) - len(before & below_original[x]) + rest(before | {x}) for x in possible
        )

    return rest(frozenset())


def worst_case_by_enumeration(n_items: int, certificates: Pairs, original: list[int], shown: list[int]) -> int:
    """The same, with V as it is defined, over all permutations. For few items only."""
    largest: int | None = None
    for order in permutations(range(n_items)):
        attraction = [0.0] * n_items
        for place, item in enumerate(order):
            attraction[item] = float(n_items - place)
        if all(attraction[i] > attraction[j] for i, j in certificates):
            excess = wrong_pairs(shown, attraction) - wrong_pairs(original, attraction)
            if largest is None or excess > largest:
                largest = excess
    assert largest is not None  # the certificates have no cycle
    return largest
