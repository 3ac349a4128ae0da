"""Every click model is a set of coins: a page says which of them were tossed, and how they fell.

    estimate of a coin = (1 + heads) / (2 + tosses)

Attraction, examination, satisfaction, continuation: each parameter is the probability that its coin falls on heads, and
the probability of a whole visit is the product of its tosses. What a page leaves hidden (was this position looked at?)
is counted by its posterior probability, so heads and tosses are expected numbers. That is all that estimation knows of
a model: the verb ``count``.

The coins of a model stand in one row, field after field as its class declares them, so that EM, the bootstrap and their
tests need no cases: attraction first, one coin per pair of query and item; then what else belongs to pairs, to
positions, or to the model as a whole. ``model_of`` and ``coins_of`` lead from the row to the model and back.

Below the last click: did the user leave, or look on and find nothing? Shared by DBN and CCM.

Position k is examined with posterior probability reach[k]: 1 down to the last click, and below it, with attraction a
and the continuation c of a position without a click,

    quiet[k] = (1 - a[k]) * (c * quiet[k+1] + 1 - c),  quiet[end] = 1     no click from k on, if k is examined
    reach[k+1] = reach[k] * c * quiet[k+1] / (c * quiet[k+1] + 1 - c)     k + 1 is examined, given that nothing comes

The first is the backward pass of forward-backward, the second the forward pass; above the last click both are trivial,
because a click below proves that the user went on. The coins that would be tossed after the last position decide about
nothing and are left out: they would fall as they always do, and only slow EM down.

A click needs two heads: the position was examined and the item attracts. PBM and UBM share this E-step.

With attraction a and examination e, a click shows both coins. Without one, the coins fell in one of three ways, of
total probability 1 - a e, so the expected heads are a (1 - e) / (1 - a e) of attraction and e (1 - a) / (1 - a e) of
examination. Both coins are tossed at every position: clicks are independent given the examination probabilities.
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


@kernel
def last_click(clicks: Clicks) -> int:
    """The position (from 0) of the last click, -1 if there is none."""
    for k in range(len(clicks) - 1, -1, -1):
        if clicks[k] == 1:
            return k
    return -1


@kernel
def fill_quiet(attraction: Floats, continuation: float, items: Ints, start: int, quiet: Floats) -> None:
    """The probability of no click from each position on, if it is examined, for the positions from ``start`` on."""
    quiet[len(items)] = 1.0
    for k in range(len(items) - 1, start - 1, -1):
        goes_on = continuation * quiet[k + 1] + 1.0 - continuation
        quiet[k] = (1.0 - attraction[items[k]]) * goes_on


@kernel
def count_tail(items: Ints, start: int, coin: int, continuation: float, weight: float, tally: CoinCounts) -> None:
    """Count from ``start``, examined with posterior weight ``weight``, to the end of the page; no click is there."""
    reach = weight
    for k in range(start, len(items)):
        add(tally, items[k], 0.0, reach)
        if k + 1 < len(items):
            on = continuation * tally.quiet[k + 1]
            still = reach * on / (on + 1.0 - continuation)
            add(tally, coin, still, reach)
            reach = still


@kernel
def toss_both(
    tally: CoinCounts, coins: tuple[int, int], chances: tuple[float, float], clicked: bool, weight: float
) -> None:
    """Count the coins of attraction and examination, which fall on heads with ``chances`` (a, e)."""
    (pair, position), (a, e) = coins, chances
    missed = 1.0 - a * e
    add(tally, pair, weight if clicked else weight * (a * (1.0 - e) / missed), weight)
    add(tally, position, weight if clicked else weight * (e * (1.0 - a) / missed), weight)
