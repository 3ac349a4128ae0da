"""Every click model is a set of coins: a page says which of them were tossed, and how they fell.

    estimate of a coin = (1 + heads) / (2 + tosses)

Attraction, examination, satisfaction, continuation: each parameter is the probability that its coin falls on heads, and
the probability of a whole visit is the product of its tosses. What a page leaves hidden (was this position looked at?)
is counted by its posterior probability, so heads and tosses are expected numbers. That is all that estimation knows of
a model: the verb ``count``.

The coins of a model stand in one row, field after field as its class declares them, so that EM, the bootstrap and their
tests need no cases: attraction first, one coin per pair of query and item; then what else belongs to pairs, to
positions, or to everybody. ``model_of`` and ``coins_of`` lead from the row to the model and back.
"""

from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, verb
from saferank.click_models.shapes import PerItem, PerPosition, Probability, Triangle
from saferank.verbs import Floats, Ints

Clicks = NDArray[np.uint8]
"""One 0 or 1 per position."""


class CoinCounts(NamedTuple):
    """What a sweep over the pages counts, and room for one page's recursion."""

    heads: Floats  # by coin
    tosses: Floats  # by coin
    quiet: Floats  # by position, and one past the end: scratch for the models whose users stop unseen


def new_tally(n_coins: int, n_positions: int) -> CoinCounts:
    """Nothing counted yet."""
    return CoinCounts(np.zeros(n_coins), np.zeros(n_coins), np.zeros(n_positions + 1))


@kernel
def add(tally: CoinCounts, coin: int, heads: float, tosses: float) -> None:
    """Count expected heads and tosses of one coin."""
    tally.heads[coin] += heads
    tally.tosses[coin] += tosses


@verb
def count(model: Any, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    """Add what one page shows: the expected heads and tosses of every coin under ``model``, ``weight`` times."""


def sizes(kind: type, n_pairs: int, n_positions: int) -> dict[str, int]:
    """How many coins each field has.

    >>> from saferank.click_models import UBM
    >>> sizes(UBM, n_pairs=40, n_positions=10)
    {'attraction': 40, 'examination': 55}
    """
    of_shape = {PerItem: n_pairs, PerPosition: n_positions, Triangle: n_positions * (n_positions + 1) // 2}
    return {name: of_shape.get(hint, 1) for name, hint in declared(kind).items()}


def declared(kind: type) -> dict[str, Any]:
    """The fields of a model's class with the shapes that it declares: PerItem, PerPosition, Triangle, Probability."""
    return get_type_hints(kind, include_extras=True)


def model_of(kind: type, coins: Floats, n_pairs: int, n_positions: int) -> Any:
    """The model whose parameters stand in ``coins``; its arrays are views of it where they can be."""
    lengths = sizes(kind, n_pairs, n_positions)
    parts = np.split(coins, np.cumsum(list(lengths.values()))[:-1])
    return kind(*(_field(hint, part) for hint, part in zip(declared(kind).values(), parts, strict=True)))


def coins_of(model: Any) -> Floats:
    """The parameters of a model in one row.

    >>> from saferank.click_models import DBN
    >>> coins_of(DBN(np.array([0.5, 0.25]), np.array([0.4, 0.2]), 0.9)).tolist()
    [0.5, 0.25, 0.4, 0.2, 0.9]
    """
    hints = declared(type(model)).values()
    row: Floats = np.concatenate([_row(hint, field) for hint, field in zip(hints, model, strict=True)])
    return row


def _field(hint: Any, part: Floats) -> Floats | float:
    if hint == Triangle:
        return _square(part)
    return float(part[0]) if hint == Probability else part


def _row(hint: Any, field: Any) -> Floats:
    return field[np.tril_indices(len(field))] if hint == Triangle else np.atleast_1d(field)


def _square(triangle: Floats) -> Floats:
    """Row after row of a lower triangle, as a square with zeros above the diagonal."""
    n_rows = int((2 * len(triangle)) ** 0.5)
    square = np.zeros((n_rows, n_rows))
    square[np.tril_indices(n_rows)] = triangle
    return square
