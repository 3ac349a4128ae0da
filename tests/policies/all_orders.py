"""How bad a page may be, if all that is known are the certificates: by enumeration of all linear orders of the items.

Linear orders are enough: an order with ties can be made linear so that ties stand as on the original ranking, which
leaves V(original) as it is and does not lower V(page).
"""

from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


@cache
def better_in_orders(n_items: int) -> Bools:
    """[order, b, w]: b is better than w in the order; for all n! orders."""
    ranks = np.array(list(permutations(range(n_items))))
    return np.asarray(ranks[:, :, None] < ranks[:, None, :])


def above(row: list[int], n_items: int) -> Bools:
    """[w, b]: w is shown, and b is shown below it or not at all."""
    place = np.full(n_items, len(row))
    place[row] = np.arange(len(row))
    return np.asarray(place[:, None] < place[None, :])


def consistent(n_items: int, certificates: set[tuple[int, int]]) -> Bools:
    """The orders in which the better item of every certificate is better."""
    better = better_in_orders(n_items)
    keep = np.ones(len(better), np.bool_)
    for i, j in certificates:
        keep &= better[:, i, j]
    return np.asarray(better[keep])


def wrong_pairs(orders: Bools, row: list[int]) -> NDArray[np.int64]:
    """V of a row of items, by order."""
    n_items = orders.shape[1]
    return np.asarray(orders.reshape(len(orders), -1).astype(np.int64) @ above(row, n_items).T.reshape(-1))


def worst_excess(orders: Bools, original: list[int], page: list[int]) -> int:
    """The largest V(page) - V(original) over these orders."""
    return int((wrong_pairs(orders, page) - wrong_pairs(orders, original)).max())
