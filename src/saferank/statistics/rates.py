r"""Click-through rates that do not depend on where items were shown: guesses for choices, never for certificates.

Every place k has a running click-through rate c(k) of all items shown there. An item is expected to be clicked as
often as its places are, so with its clicks C and its exposure M = sum of c(k) over its pages, C / M compares it with
the average item. The signed evidence that i is better than j is the score test of two Poisson rates, in units of
log-likelihood:

    (C_i M_j - C_j M_i)^2 / (2 M_i M_j (C_i + C_j)),     with the sign of C_i M_j - C_j M_i.

It uses every page on which either item was shown, where a bet needs a click on one of them and a page that could have
shown the other there. But it is not protected against anything: users whose attention depends on the items above, or
a place that mostly holds good items, shift it. So it may move the order that is tried, and decides nothing.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.verbs import Floats, Impression, Ints


class Rates(NamedTuple):
    """Clicks and exposure of items, clicks and pages of places."""

    clicks: Floats  # by item
    exposure: Floats  # by item
    place_clicks: Floats  # by place
    pages: Floats  # [1]


def new_rates(n_items: int, n_positions: int) -> Rates:
    """No page yet."""
    return Rates(np.zeros(n_items), np.zeros(n_items), np.zeros(n_positions), np.zeros(1))


def with_more_rates(rates: Rates, n_items: int) -> Rates:
    """The same rates with room for ``n_items`` items."""
    bigger = new_rates(n_items, len(rates.place_clicks))
    known = len(rates.clicks)
    bigger.clicks[:known], bigger.exposure[:known] = rates.clicks, rates.exposure
    return bigger._replace(place_clicks=rates.place_clicks, pages=rates.pages)


@kernel
def note_rates(rates: Rates, impression: Impression, clicks: Ints) -> bool:
    """Take a page into the rates; True when it was clicked. A place begins with half a click on one page."""
    rates.pages[0] += 1.0
    share, clicked = 1.0 / (rates.pages[0] + 1.0), 0
    for place in range(len(clicks)):
        item = impression.ranking[place]
        rates.place_clicks[place] += clicks[place]
        rates.clicks[item] += clicks[place]
        rates.exposure[item] += (rates.place_clicks[place] + 0.5) * share
        clicked |= clicks[place]
    return bool(clicked)


@kernel
def rate_evidence(rates: Rates, i: int, j: int) -> float:
    """Signed evidence that item i is clicked more than item j; 0 while neither was."""
    clicks, exposure = rates.clicks, rates.exposure
    weight = exposure[i] * exposure[j] * (clicks[i] + clicks[j])
    if weight <= 0.0:
        return 0.0
    lead = clicks[i] * exposure[j] - clicks[j] * exposure[i]
    return float(lead * abs(lead) / (2.0 * weight))


@kernel
def fade_rates(rates: Rates, exposure: float, pages: float) -> None:
    """For a changing world: no item counts for more than this exposure, no place for more than ``pages`` pages."""
    for item in range(len(rates.clicks)):
        if rates.exposure[item] > exposure:
            rates.clicks[item] *= exposure / rates.exposure[item]
            rates.exposure[item] = exposure
    if rates.pages[0] > pages:
        for place in range(len(rates.place_clicks)):
            rates.place_clicks[place] *= pages / rates.pages[0]
        rates.pages[0] = pages
