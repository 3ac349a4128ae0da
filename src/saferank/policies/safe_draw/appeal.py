r"""The appeal of items: their clicks relative to what is usual at their places. For proposals, never for certificates.

    rate(k) = (clicks at place k + .1) / (pages + 1), the running click rate of place k
    exposure of x = sum over the pages that showed x at place k of rate(k) before that page

so an item is expected to be clicked as often as its exposure says. It uses every page that showed an item, where a bet
needs a click and a page that could have shown the other item there. But it is protected against nothing: users whose
attention depends on the items above, or a place that mostly holds good items, shift it.

*Small catalogues* take the score test of two Poisson rates as evidence of i over j, in units of log-likelihood, with
C clicks and M exposure, and the sign of C_i M_j - C_j M_i:

    (C_i M_j - C_j M_i)^2 / (2 M_i M_j (C_i + C_j))

*Large ones* compare th(x) = (C_x + 2 mu(x)) / (M_x + 2), about 1 for an item that is as good as those of production's
ranking. mu(x) = 1 for items of that ranking. For the others it falls along the call's candidate order, with c the
number of x among the candidates, from 1:

    guess(x) = c^-.25
    mu(x) = pooled * guess(x),     pooled = (clicks of candidates + 2) / (sum of their exposure * guess + 2)

So an untried item is guessed to be what clicks say of those that were tried, less what the order says: the same for 100
candidates as for 100,000. As a law, th(x) is Gamma with shape clicks + 2 mu and rate exposure + 2; its standard error
is sqrt(shape) / rate.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.constants import FIRST_CLICKS, GUESS_CLICKS, GUESS_FALL, PLACE_PAGES
from saferank.verbs import Floats, Impression, Ints, Items

_NOT_A_CANDIDATE = 0.0


class Appeal(NamedTuple):
    """Clicks and exposures by item and by place: evidence."""

    clicks: Floats  # by item
    exposure: Floats  # by item
    place_clicks: Floats  # by place
    pages: Ints  # [1] pages learnt from
    tried: Ints  # items that were ever shown, in the order in which it happened
    n_tried: Ints  # [1]


class Guesses(NamedTuple):
    """What a call makes of it."""

    guess: Floats  # by item: c^-.25; 0 for items of production's ranking and absent ones
    pool: Floats  # [2] clicks of candidates, and the sum of their exposure times guess


def new_appeal(n_items: int, n_positions: int) -> Appeal:
    """Nothing shown yet."""
    return Appeal(
        clicks=np.zeros(n_items),
        exposure=np.zeros(n_items),
        place_clicks=np.zeros(n_positions),
        pages=np.zeros(1, np.int64),
        tried=np.zeros(n_items, np.int64),
        n_tried=np.zeros(1, np.int64),
    )


def with_more_appeal(appeal: Appeal, n_items: int) -> Appeal:
    """The same clicks with room for ``n_items`` items."""
    room = np.zeros(n_items - len(appeal.clicks))
    clicks, exposure = np.append(appeal.clicks, room), np.append(appeal.exposure, room)
    return appeal._replace(clicks=clicks, exposure=exposure, tried=np.append(appeal.tried, room.astype(np.int64)))


def new_guesses(n_items: int) -> Guesses:
    """For no call yet."""
    return Guesses(np.zeros(n_items), np.zeros(2))


@kernel
def guess_by_order(guesses: Guesses, candidates: Items) -> None:
    """Fill in the guesses that an order of the candidates makes."""
    for item in range(len(guesses.guess)):
        guesses.guess[item] = _NOT_A_CANDIDATE
    for c in range(len(candidates)):
        guesses.guess[candidates[c]] = (c + 1.0) ** -GUESS_FALL


@kernel
def pool_candidates(guesses: Guesses, appeal: Appeal) -> None:
    """Sum the clicks of candidates, and their exposure times guess, in the order in which they were tried."""
    clicks, exposure = 0.0, 0.0
    for entry in range(appeal.n_tried[0]):
        item = appeal.tried[entry]
        if guesses.guess[item] != _NOT_A_CANDIDATE:
            clicks += appeal.clicks[item]
            exposure += appeal.exposure[item] * guesses.guess[item]
    guesses.pool[0], guesses.pool[1] = clicks, exposure


class Estimates(NamedTuple):
    """What the appeal of an item is made of: a part of the evidence and what a call makes of it."""

    clicks: Floats
    exposure: Floats
    guess: Floats
    pool: Floats


@kernel
def shape_of(appeal: Estimates, item: int) -> float:
    """Clicks, and the clicks that the guess is worth."""
    mu = 1.0
    if appeal.guess[item] != _NOT_A_CANDIDATE:
        mu = appeal.guess[item] * (appeal.pool[0] + GUESS_CLICKS) / (appeal.pool[1] + GUESS_CLICKS)
    return float(appeal.clicks[item] + GUESS_CLICKS * mu)


@kernel
def rate_of(appeal: Estimates, item: int) -> float:
    """Exposure, and what the guess is worth."""
    return float(appeal.exposure[item] + GUESS_CLICKS)


@kernel
def appeal_of(appeal: Estimates, item: int) -> float:
    """Th."""
    return shape_of(appeal, item) / rate_of(appeal, item)


@kernel
def lead_in_errors(appeal: Estimates, x: int, d: int) -> float:
    """z(th(x) - th(d)): the difference, divided by the standard error of a difference of independent numbers."""
    error_x = math.sqrt(shape_of(appeal, x)) / rate_of(appeal, x)
    error_d = math.sqrt(shape_of(appeal, d)) / rate_of(appeal, d)
    error = math.sqrt(error_x * error_x + error_d * error_d)
    return (appeal_of(appeal, x) - appeal_of(appeal, d)) / error


@kernel
def note_page(appeal: Appeal, impression: Impression, clicks: Ints) -> None:
    """Count a page: the exposure of its items at the click rates before it, then its clicks."""
    share = 1.0 / (appeal.pages[0] + 1.0)
    for place in range(len(clicks)):
        item = impression.ranking[place]
        if appeal.exposure[item] == 0.0:
            appeal.tried[appeal.n_tried[0]] = item
            appeal.n_tried[0] += 1
        appeal.exposure[item] += (appeal.place_clicks[place] + FIRST_CLICKS) * share
        appeal.clicks[item] += clicks[place]
        appeal.place_clicks[place] += clicks[place]
    appeal.pages[0] += 1


@kernel
def appeal_evidence(appeal: Appeal, i: int, j: int) -> float:
    """Signed evidence that item i is clicked more than item j; 0 while neither was."""
    clicks, exposure = appeal.clicks, appeal.exposure
    weight = exposure[i] * exposure[j] * (clicks[i] + clicks[j])
    if weight <= 0.0:
        return 0.0
    lead = clicks[i] * exposure[j] - clicks[j] * exposure[i]
    return float(lead * abs(lead) / (2.0 * weight))


@seldom
def fade_appeal(appeal: Appeal, exposure: float) -> None:
    """Let no item count for more than this exposure, and places for a bounded number of pages: for a changing world."""
    for item in range(len(appeal.clicks)):
        if appeal.exposure[item] > exposure:
            appeal.clicks[item] *= exposure / appeal.exposure[item]
            appeal.exposure[item] = exposure
    if appeal.pages[0] > PLACE_PAGES:
        for place in range(len(appeal.place_clicks)):
            appeal.place_clicks[place] *= PLACE_PAGES / appeal.pages[0]
        appeal.pages[0] = PLACE_PAGES
