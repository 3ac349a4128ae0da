"""How likely a page was to be as it is: decisions with exact propensities, and the chance of each item to be first.

Decisions are in the form of the Open Bandit Pipeline.

What is exact of a drawn page? A page is drawn from a law Q, and drawn again until it is safe. So its probability is
Q(page) divided by the probability that a draw is safe, a sum over all pages which no record has; nor has it the
probability that an item gets a position. But of two safe pages that differ in one exchange of items the sum cancels:

    propensity = Q(page) / (Q(page) + Q(page with the two exchanged)),

which is what certificates are bought at. So a decision is about a pair: given everything else on the page, which of two
items stands in a place, and which in the other's, or nowhere. Of a policy that tosses coins for neighbours it is 1/2.

A decision belongs to a page that was explored, was not a repetition, and whose window is over. The record says which
exchanges were safe. An exchange is its own inverse, so the two pages of a pair are always asked about each other.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.arms import EXPLORE
from saferank.store.page_record import PageRecord, free_positions
from saferank.verbs import Impression, new_impression

COIN = 0.5


class Decision(NamedTuple):
    """One place of a page: the item that stands there, and the one that would if the two had been exchanged."""

    place: int  # on the page, from 0
    item: str
    other: str
    other_place: int | None  # None: the other item would not be on the page
    propensity: float


def decisions_of(record: PageRecord) -> Iterator[Decision]:
    """The decisions of a page, by pair of places; none of a page that was not explored."""
    if record.arm != EXPLORE or record.instead:
        return
    page = _impression(record)
    target = record.law.drawn and has_target(page)
    positions = free_positions(record.k, record.pins)
    for upper, position in enumerate(positions):
        for lower in range(upper + 1, len(record.row)):
            if not _exchangeable(record, page, upper, lower):
                continue
            chance = odds_of_exchange(page, record.positions, (upper, lower), target) if record.law.drawn else COIN
            items = record.row[upper], record.row[lower]
            other = positions[lower] if lower < len(positions) else None
            yield Decision(position, *items, other, chance)
            if other is not None:
                yield Decision(other, *items[::-1], position, chance)


def _exchangeable(record: PageRecord, page: Impression, upper: int, lower: int) -> bool:
    if page.start[upper] != page.start[lower]:
        return False
    if record.law.drawn:
        return bool(page.exchanges[upper] >> lower & 1)
    return bool(page.end[upper] - page.start[upper] == 2)


def _impression(record: PageRecord) -> Impression:
    page = new_impression(record.positions, len(record.row))
    page.places[0] = len(record.row)
    page.start[:], page.end[:] = np.frombuffer(record.law.start, np.uint8), np.frombuffer(record.law.end, np.uint8)
    if record.law.drawn:
        page.weight[:] = record.law.weight
        page.exchanges[:] = np.array(record.law.exchanges, np.uint64).view(np.int64)
    return page


# --- how likely each item of a page was to be first, as far as the record of the page can tell ---
# Exact is the chance given the class of the page: the page itself, and every page that the draw could have made from it
# by exchanging the first item with another one. The law says how likely each of those is against the page, and the
# record says which of them the safety check would have let through. The chances of a class sum to 1.
#
# The chance over all pages is not in the record: pages that are not safe are drawn again, and by how much that raises
# the others depends on every page there is.


def first_place_chances(record: PageRecord) -> list[float]:
    """By place of the row: the chance of its item to be first. Production's page is certain, as is what is pinned."""
    if not record.row or record.instead:
        return [float(place == 0) for place in range(len(record.shown))]
    if record.pins & 1:
        return [0.0] * len(record.row)
    if not record.law.drawn:
        return _coins(record)
    page = _impression(record)
    odds = [1.0, *(_odds(record, page, other) for other in range(1, len(record.row)))]
    total = sum(odds)
    return [odd / total for odd in odds]


def _coins(record: PageRecord) -> list[float]:
    """A group of places was shuffled: all its items alike. A certified pair is kept, which the record does not say."""
    group = [start == record.law.start[0] for start in record.law.start]
    return [float(inside) / sum(group) for inside in group]


def _odds(record: PageRecord, page: Impression, other: int) -> float:
    """How likely the page with the first item and another one exchanged was, against the page; 0 if it is not safe."""
    law = record.law
    if not law.exchanges[0] >> other & 1 or law.start[other] != law.start[0]:
        return 0.0
    return float(1.0 / odds_of_exchange(page, record.positions, (0, other), has_target(page)) - 1.0)
