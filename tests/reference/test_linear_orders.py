"""W by recursion, by enumeration of the linear orders, and by enumeration of the weak orders are the same."""

import random

import pytest

from .linear_orders import Pairs, worst_case_by_enumeration, worst_case_by_recursion
from .worst_case import worst_case


def some_certificates(rng: random.Random, n_items: int) -> Pairs:
    """Some pairs of a random order, with what follows transitively."""
    order = rng.sample(range(n_items), n_items)
    pairs = {(i, j) for p, i in enumerate(order) for j in order[p + 1 :] if rng.random() < 0.3}
    for middle in range(n_items):
        pairs |= {(i, j) for i, x in pairs for y, j in pairs if x == y == middle}
    return frozenset(pairs)


@pytest.mark.parametrize("n_items", range(1, 7))
def test_recursion_equals_enumeration(n_items: int) -> None:
    rng = random.Random(n_items)
    for _ in range(12):
        k = rng.randint(1, n_items)
        original, shown = list(range(k)), rng.sample(range(n_items), k)
        certificates = some_certificates(rng, n_items)
        found = worst_case_by_recursion(n_items, certificates, original, shown)
        assert found == worst_case_by_enumeration(n_items, certificates, original, shown)
        if n_items < 6:
            assert found == worst_case(n_items, set(certificates), original, shown)
