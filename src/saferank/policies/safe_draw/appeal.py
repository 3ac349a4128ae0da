r"""The appeal of an item: its clicks relative to what is usual at its places. For proposals, never for certificates.

    th(x) = (clicks of x + 2 mu(x)) / (exposure of x + 2)
    exposure of x = sum over the pages that showed x at place k of rate(k), the running click rate of place k then
    rate(k) = (clicks at place k + .1) / (pages + 1)

so th is about 1 for an item that is as good as those of production's ranking. mu(x) = 1 for items of that ranking.
For the others it falls along the call's candidate order, with c the number of x among the candidates, from 1:

    guess(x) = c^-.25
    mu(x) = pooled * guess(x),     pooled = (clicks of candidates + 2) / (sum of their exposure * guess + 2)

So an untried item is guessed to be what clicks say of those that were tried, less what the order says: the same for 100
candidates as for 100,000. As a law, th(x) is Gamma with shape clicks + 2 mu and rate exposure + 2; its standard error
is sqrt(shape) / rate.
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.constants import FIRST_CLICKS, GUESS_CLICKS, GUESS_FALL
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
    """The same clicks with room for so many items."""
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
    for place in range(len(clicks)):
        item = impression.ranking[place]
        rate = (appeal.place_clicks[place] + FIRST_CLICKS) / (appeal.pages[0] + 1.0)
        if appeal.exposure[item] == 0.0:
            appeal.tried[appeal.n_tried[0]] = item
            appeal.n_tried[0] += 1
        appeal.exposure[item] += rate
        appeal.clicks[item] += clicks[place]
        appeal.place_clicks[place] += clicks[place]
    appeal.pages[0] += 1


@kernel
def fade_appeal(appeal: Appeal, exposure: float, pages: int) -> None:
    """Let no item count for more than this exposure, and places for more than so many pages: for a changing world."""
    for item in range(len(appeal.clicks)):
        if appeal.exposure[item] > exposure:
            appeal.clicks[item] *= exposure / appeal.exposure[item]
            appeal.exposure[item] = exposure
    if appeal.pages[0] > pages:
        for place in range(len(appeal.place_clicks)):
            appeal.place_clicks[place] *= pages / appeal.pages[0]
        appeal.pages[0] = pages
