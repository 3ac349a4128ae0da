r"""The law of pages that are drawn item by item: Plackett-Luce.

Every item has a weight. The first place gets an item drawn with probability proportional to the weights, the second
place one of those that are left, and so on:

    Q(page) = product over places k of weight(k) / D(k),     D(k) = sum of the weights from place k on, hidden ones too.

When the items of two places are exchanged only the D between them change, and so the odds of the exchange are a short
product. Sums are taken from the smallest weights up, so that nothing cancels.
"""

from saferank._kernel import kernel
from saferank.randomness import Words, as_uniform, following, load, output, store, uniform
from saferank.verbs import Floats, Impression, Ints

_FRESH = 1e-3
"""A running total is summed again when it has fallen below this share of what it was."""


@kernel
def sum_of(weights: Floats, size: int) -> float:
    """The sum of the first so many weights, in their order."""
    total = 0.0
    for number in range(size):
        total += weights[number]
    return total


@kernel
def _pick(weights: Floats, size: int, point: float) -> int:
    """The first number at which the running sum of weights exceeds ``point``; the last positive one if none does."""
    for number in range(size):
        point -= weights[number]  # the point is not negative here, and a weight of 0 leaves it where it is
        if point < 0.0:
            return number
    last = size - 1
    while last > 0 and weights[last] <= 0.0:
        last -= 1
    return last


@kernel
def draw_one(rng: Words, weights: Floats, size: int) -> int:
    """A number below ``size``, drawn with these weights, of which one at least is positive. One uniform number."""
    return _pick(weights, size, uniform(rng) * sum_of(weights, size))


@kernel
def draw_page(rng: Words, weights: Floats, total: float, left: Floats, page: Ints) -> None:
    """Fill ``page`` with numbers drawn one after the other; what was drawn is 0 in ``left``. A uniform number each.

    ``total`` is the sum of the weights.
    """
    size, state = len(weights), load(rng)
    for number in range(size):
        left[number] = weights[number]
    limit = _FRESH * total
    for place in range(len(page)):
        if total < limit:
            total = sum_of(left, size)
            limit = _FRESH * total
        number = _pick(left, size, as_uniform(output(state)) * total)
        state = following(state)
        page[place] = number
        total -= left[number]
        left[number] = 0.0
    store(rng, state)


@kernel
def fill_tails(weight: Floats, tails: Floats, n_places: int) -> None:
    """D by place, of a row of weights by place; what follows the shown places is hidden."""
    total = 0.0
    for step in range(n_places):
        place = n_places - 1 - step
        total += weight[place]
        if place < len(tails):
            tails[place] = total


@kernel
def odds_of(weight: Floats, tails: Floats, clicked: int, other: int) -> float:
    """The probability of the page, given it or the page with these two places exchanged; the first place is shown.

    1, which says nothing, where rounding leaves nothing of the other page.
    """
    upper, lower = min(clicked, other), max(clicked, other)
    change = weight[upper] - weight[lower]
    here, there = 1.0, 1.0
    if lower >= len(tails):
        here, there = weight[upper], weight[lower]
    for place in range(upper + 1, min(lower + 1, len(tails))):
        here *= tails[place] + change
        there *= tails[place]
    return here / (here + there) if here > 0.0 else 1.0


@kernel
def odds_of_exchange(impression: Impression, n_positions: int, a: int, b: int) -> float:
    """The probability of the page, given it or the page with the items of two places of one group exchanged.

    Each group was drawn by itself: its shown places from the top, what was left is hidden. D counts its places only.
    """
    weight, start, places = impression.weight, impression.start, impression.places[0]
    upper, lower = min(a, b), max(a, b)
    tail, change = 0.0, weight[upper] - weight[lower]
    ratio = weight[lower] / weight[upper] if lower >= n_positions else 1.0
    for step in range(places - 1 - upper):
        place = places - 1 - step
        if start[place] == start[a]:
            tail += weight[place]
            if place <= lower and place < n_positions:
                ratio *= tail / (tail + change)
    return float(1.0 / (1.0 + ratio))
