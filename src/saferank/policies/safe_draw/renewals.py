r"""Plans of safe-draw whose certificates have a lifetime: soft evidence, and certificates that are to be earned again.

Soft evidence is cut to at most 3.06, so that no gap exceeds 5: a pair that is certified is still shown the other way
round now and then. A certificate of this epoch counts as that much evidence. One that is held over from the epoch
before does not: its pair has to be certified again before it ends, and where the page needs it a plan helps.

Let w be the working order. Go through the held-over certificates, the least clear first, and take away every one
without which W(w) is still within the limit. Those that are left *matter*. In most plans that are not flat the clearest
of them is the *target*: its two items are exchanged in each draw with probability eps, before the draw is checked. So a
page has the law

    Q'(page) proportional to (1 - eps) Q(page) + eps Q(page with the target exchanged)      among safe pages,

Q that of the draw, and every pair is bet on at the odds of this mixture.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.exact_plans import RATE_SHARE, DrawPlan, board_of, lay_plan, place_in
from saferank.policies.shared.draws import draw_page
from saferank.randomness import Words, uniform
from saferank.safety.worst_case import Possible, at_most, is_within, page_code
from saferank.statistics.bets import evidence, row_of
from saferank.statistics.lifetime_bets import LifetimeBets, is_fresh
from saferank.statistics.rates import Rates, rate_evidence
from saferank.verbs import NOBODY, Floats, Impression, Ints

MOST_EVIDENCE = 3.06
"""Evidence is cut to this; gap(3.06) is 5."""

RENEWAL_SHARE = 0.7
"""The share of plans with a target, of those that are not flat and have certificates that matter."""

EXCHANGED = 0.12
"""eps: how often the items of the target are exchanged in a draw."""

TARGET = 1 << 62
"""The bit of ``Impression.exchanges`` that marks the two places of the target."""


class Renewal(NamedTuple):
    """The target of the newest plan, and room to find another."""

    target: Ints  # [2] the seats of the better and the worse item, NOBODY for no target
    asked: Ints  # [2] the working order, as a word, and the version of what is certain for which ``matters`` was made
    size: Ints  # [1] how many certificates matter
    matters: Ints  # the pairs of seats, better * n_seats + worse, the least clear first
    support: Floats  # scratch: how clear the pairs are that are still to be looked at
    direct: Ints  # scratch, by seat: bits of the seats over which it has a certificate
    certain: Ints  # scratch [2, seat]: what is certain, while something else is supposed


def new_renewal(n_seats: int) -> Renewal:
    """No target."""
    return Renewal(
        target=np.full(2, NOBODY, np.int64),
        asked=np.full(2, -1, np.int64),
        size=np.zeros(1, np.int64),
        matters=np.zeros(n_seats * n_seats, np.int64),
        support=np.zeros(n_seats * n_seats),
        direct=np.zeros(n_seats, np.int64),
        certain=np.zeros((2, n_seats), np.int64),
    )


@seldom
def weigh_soft_evidence(table: Floats, items: Ints, bets: LifetimeBets, rates: Rates) -> None:
    """Fill in the evidence of every pair of seats."""
    for x in range(len(items)):
        for z in range(x):
            i, j = items[x], items[z]
            if is_fresh(bets, i, j):
                e = MOST_EVIDENCE
            elif is_fresh(bets, j, i):
                e = -MOST_EVIDENCE
            else:
                e = evidence(bets, i, j) + RATE_SHARE * rate_evidence(rates, i, j)
                e = min(MOST_EVIDENCE, max(-MOST_EVIDENCE, e))
            table[x, z], table[z, x] = e, -e


@kernel
def _clearness(bets: LifetimeBets, i: int, j: int) -> float:
    """How much better i looks than j, whatever the number of bets: the lead per information."""
    row = row_of(bets, i, j)
    lead = bets.book.lead[row] / (bets.book.information[row] + 1.0)
    return float(lead if i < j else -lead)


@kernel
def _note_certificates(renewal: Renewal, items: Ints, bets: LifetimeBets) -> None:
    """Fill in ``direct``, and of the certificates that are held over the pair and how clear it is."""
    n_seats, size = len(items), 0
    for x in range(n_seats):
        renewal.direct[x] = 0
        for z in range(n_seats):
            i, j = items[x], items[z]
            if bets.table.expires[i, j] > 0:
                renewal.direct[x] |= 1 << z
                if not is_fresh(bets, i, j):
                    renewal.matters[size], renewal.support[size] = x * n_seats + z, _clearness(bets, i, j)
                    size += 1
    renewal.size[0] = size


@kernel
def _least_clear(renewal: Renewal, first: int) -> None:
    """Put the pair that is least clear, the first of equals, at entry ``first``; the others keep their order."""
    least = first
    for entry in range(first + 1, renewal.size[0]):
        if renewal.support[entry] < renewal.support[least]:
            least = entry
    pair, support = renewal.matters[least], renewal.support[least]
    for step in range(least - first):
        entry = least - step
        renewal.matters[entry], renewal.support[entry] = renewal.matters[entry - 1], renewal.support[entry - 1]
    renewal.matters[first], renewal.support[first] = pair, support


@kernel
def _suppose(renewal: Renewal, possible: Possible) -> None:
    """Let exactly what follows from ``direct`` be certain."""
    n_seats, better, worse = len(renewal.direct), possible.better, possible.worse
    for x in range(n_seats):
        better[x], worse[x] = 0, renewal.direct[x]
    for middle in range(n_seats):
        for x in range(n_seats):
            if worse[x] >> middle & 1:
                worse[x] |= worse[middle]
    for x in range(n_seats):
        for z in range(n_seats):
            if worse[x] >> z & 1:
                better[z] |= 1 << x


@kernel
def _is_dispensable(renewal: Renewal, possible: Possible, entry: int, code: int) -> bool:
    """Take a certificate away; put it back unless the page is within the limit without it."""
    n_seats = len(renewal.direct)
    x, z = renewal.matters[entry] // n_seats, renewal.matters[entry] % n_seats
    renewal.direct[x] ^= 1 << z
    _suppose(renewal, possible)
    if is_within(possible, code, possible.limit[0]):
        return True
    renewal.direct[x] ^= 1 << z
    return False


@seldom
def find_what_matters(renewal: Renewal, possible: Possible, items: Ints, bets: LifetimeBets, code: int) -> None:
    """Fill in the held-over certificates that matter for a page."""
    kept = 0
    _note_certificates(renewal, items, bets)
    for seat in range(len(items)):
        renewal.certain[0, seat], renewal.certain[1, seat] = possible.better[seat], possible.worse[seat]
    for entry in range(renewal.size[0]):
        _least_clear(renewal, entry)
        if not _is_dispensable(renewal, possible, entry, code):
            renewal.matters[kept] = renewal.matters[entry]
            kept += 1
    for seat in range(len(items)):
        possible.better[seat], possible.worse[seat] = renewal.certain[0, seat], renewal.certain[1, seat]
    renewal.size[0] = kept
    renewal.asked[0], renewal.asked[1] = code, possible.version[0]


@kernel
def draw_target(renewal: Renewal, rng: Words) -> None:
    """Random numbers: one if there is a certificate that matters."""
    n_seats = len(renewal.direct)
    if renewal.size[0] > 0 and uniform(rng) < RENEWAL_SHARE:
        pair = renewal.matters[renewal.size[0] - 1]
        renewal.target[0], renewal.target[1] = pair // n_seats, pair % n_seats


@seldom
def make_renewing_plan(state: Any, rng: Words) -> None:
    """Work out the next plan, then its target, if it is not flat."""
    renewal, possible = state.renewal, state.possible
    weigh_soft_evidence(state.plan.evidence, state.item, state.duels, state.rates)
    lay_plan(board_of(state), rng)
    renewal.target[0] = renewal.target[1] = NOBODY
    if state.plan.flat[0]:
        return
    code = page_code(state.plan.order)
    if renewal.asked[0] != code or renewal.asked[1] != possible.version[0]:
        find_what_matters(renewal, possible, state.item, state.duels, code)
    draw_target(renewal, rng)


@kernel
def _exchange_target(plan: DrawPlan, target: Ints) -> None:
    """Exchange the two items of the target in the numbers that were drawn."""
    first, second = place_in(plan.seats, target[0]), place_in(plan.seats, target[1])
    for place in range(len(plan.page)):
        if plan.page[place] == first:
            plan.page[place] = second
        elif plan.page[place] == second:
            plan.page[place] = first
    plan.left[first], plan.left[second] = plan.left[second], plan.left[first]


@kernel
def draw_with_target(plan: DrawPlan, possible: Possible, target: Ints, rng: Words) -> None:
    """Draw a page from the plan, its target exchanged now and then, again until it is safe.

    K uniform numbers each time, and with a target one more.
    """
    plan.pages[0] -= 1
    while True:
        draw_page(rng, plan.weight, plan.total[0], plan.left, plan.page)
        if target[0] != NOBODY and uniform(rng) < EXCHANGED:
            _exchange_target(plan, target)
        for place in range(len(plan.page)):
            plan.trial[place] = plan.seats[plan.page[place]]
        if at_most(possible, page_code(plan.trial), possible.limit[0]):
            break


@kernel
def mark_target(impression: Impression, better: int, worse: int) -> None:
    """Note the target on a page: without it the odds of its bets are not known."""
    for place in range(impression.places[0]):
        if impression.ranking[place] in (better, worse):
            impression.exchanges[place] |= TARGET


@kernel
def has_target(impression: Impression) -> bool:
    """True when the page is of a plan with a target."""
    marks = 0
    for place in range(impression.places[0]):
        marks |= impression.exchanges[place]
    return bool(marks & TARGET)


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


@kernel
def odds_with_target(impression: Impression, n_positions: int, a: int, b: int) -> float:
    """The probability of a page with a target, given it or the page with the items of two places exchanged."""
    first, second = NOBODY, NOBODY
    for place in range(impression.places[0]):
        if impression.exchanges[place] & TARGET:
            first, second = second, place
    here, there = (a, a), (a, b)
    drawn, swapped = (first, first), (first, second)
    mine = (1.0 - EXCHANGED) * _chance(impression, n_positions, here, drawn)
    mine += EXCHANGED * _chance(impression, n_positions, here, swapped)
    other = (1.0 - EXCHANGED) * _chance(impression, n_positions, there, drawn)
    other += EXCHANGED * _chance(impression, n_positions, there, swapped)
    return mine / (mine + other) if mine > 0.0 else 1.0
