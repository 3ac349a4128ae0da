"""Logged decisions with exact propensities, in the form of the Open Bandit Pipeline.

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
