r"""The law of pages that are drawn item by item: Plackett-Luce.

Every item has a weight. The first place gets an item drawn with probability proportional to the weights, the second
place one of those that are left, and so on:

    Q(page) = product over places k of weight(k) / D(k),     D(k) = sum of the weights from place k on, hidden ones too.

When the items of two places are exchanged only the D between them change, and so the odds of the exchange are a short
product. Sums are taken from the smallest weights up, so that nothing cancels.

A page may have *groups* of places, each drawn by itself. And it may have a *target*: two items that are exchanged after
the draw with probability eps (``renewals.py``), so that the page has the law

    Q'(page) proportional to (1 - eps) Q(page) + eps Q(page with the target exchanged)      among safe pages.
"""

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.constants import EXCHANGED
from saferank.randomness import Words, as_uniform, following, load, output, store, uniform
from saferank.verbs import NO_ITEM, Floats, Impression, Ints

TARGET = 1 << 62
"""The bit of ``Impression.exchanges`` that marks the two places of the target."""

_FRESH = 1e-3
"""A running total is summed again when it has fallen below this share of what it was."""


@kernel
def sum_of(weights: Floats, size: int) -> float:
    """The sum of the first ``size`` weights, in their order."""
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

    1, which says nothing, where rounding leaves nothing of the other page. Products are taken from the lower place up.
    """
    upper, lower = min(clicked, other), max(clicked, other)
    change, last = weight[upper] - weight[lower], min(lower, len(tails) - 1)
    here, there = 1.0, 1.0
    if lower >= len(tails):
        here, there = weight[upper], weight[lower]
    for step in range(last - upper):
        here *= tails[last - step] + change
        there *= tails[last - step]
    return here / (here + there) if here > 0.0 else 1.0


@kernel
def is_whole(impression: Impression) -> bool:
    """True for a page that was drawn as one group, by the small plan."""
    return bool(impression.end[0] == impression.places[0])


@kernel
def odds_of_exchange(impression: Impression, n_positions: int, pair: tuple[int, int], has_target: bool) -> float:
    """The probability of the page, given it or the page with the items of two places of one group exchanged.

    Each group was drawn by itself: its shown places from the top, what was left is hidden. D counts its places only.
    Products of a whole page are those of ``odds_of``. Weights of a large plan may be so small that only ratios of them
    are numbers.
    """
    if has_target:
        return _odds_with_target(impression, n_positions, pair)
    weight, start, places = impression.weight, impression.start, impression.places[0]
    upper, lower = min(pair[0], pair[1]), max(pair[0], pair[1])
    tail, change, here, there = 0.0, weight[upper] - weight[lower], 1.0, 1.0
    if lower >= n_positions:
        here, there = weight[upper], weight[lower]
    ratio = there / here
    for step in range(places - 1 - upper):
        place = places - 1 - step
        if start[place] == start[upper]:
            tail += weight[place]
            if place <= lower and place < n_positions:
                here, there, ratio = here * (tail + change), there * tail, ratio * (tail / (tail + change))
    if is_whole(impression):
        return here / (here + there) if here > 0.0 else 1.0
    return float(1.0 / (1.0 + ratio))


@kernel
def mark_target(impression: Impression, better: int, worse: int) -> None:
    """Note the target on a page: without it the odds of its bets are not known."""
    for place in range(impression.places[0]):
        if impression.ranking[place] in (better, worse):
            impression.exchanges[place] |= TARGET


@kernel
def has_target(impression: Impression) -> bool:
    """True when the page is of a plan with a target. On a page of 63 places the bit is that of the last place."""
    marks, places = 0, impression.places[0]
    for place in range(places):
        marks |= impression.exchanges[place]
    return bool(marks & TARGET) and places < 63


@kernel
def _other_place(place: int, a: int, b: int) -> int:
    """Where a place goes when two are exchanged."""
    if place == a:
        return b
    return a if place == b else place


@kernel
def _chance(impression: Impression, n_positions: int, places: tuple[int, int], target: tuple[int, int]) -> float:
    """The probability that the draw gives the page with two places, and then the weights of two items, exchanged."""
    total, chance = 0.0, 1.0
    for step in range(impression.places[0]):
        place = impression.places[0] - 1 - step
        item = _other_place(place, places[0], places[1])
        weight = impression.weight[_other_place(item, target[0], target[1])]
        total += weight
        if place < n_positions:
            chance *= weight / total
    return chance


@seldom
def _odds_with_target(impression: Impression, n_positions: int, pair: tuple[int, int]) -> float:
    first, second = NO_ITEM, NO_ITEM
    for place in range(impression.places[0]):
        if impression.exchanges[place] & TARGET:
            first, second = second, place
    here, drawn, swapped = (pair[0], pair[0]), (first, first), (first, second)
    mine = (1.0 - EXCHANGED) * _chance(impression, n_positions, here, drawn)
    mine += EXCHANGED * _chance(impression, n_positions, here, swapped)
    other = (1.0 - EXCHANGED) * _chance(impression, n_positions, pair, drawn)
    other += EXCHANGED * _chance(impression, n_positions, pair, swapped)
    return mine / (mine + other) if mine > 0.0 else 1.0
