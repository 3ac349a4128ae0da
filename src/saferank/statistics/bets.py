r"""Evidence from pages drawn from a known law: for every pair of items that was compared, a bet with known odds.

A page is drawn with probability Q(page). Let item i be clicked and item j not, and let page' be the page with the two
exchanged. Given the clicks by position and that one of the two pages was drawn, i stands at the clicked place with
probability at most

    p0 = Q(page) / (Q(page) + Q(page'))            whenever i is not more attractive than j.

So a gambler who stakes on i at the odds p0 cannot win in the long run unless i is better. For a stake eta > 0 his
capital after bets with outcomes y (1 when i stands at the clicked place) is the product of

    exp(eta y) / (1 + p0 (exp(eta) - 1)),

a non-negative supermartingale. The mean over eight stakes is one too, and by Ville's inequality it ever reaches
1/alpha with probability at most alpha: then i is certified as better than j. Even coins are the case p0 = 1/2. The
proof, and for which users it holds, is in docs/algorithms/evidence.md.

The odds are rounded up to a multiple of 2^-10, for either item, so that logarithms come from a table: a bet at longer
odds than the true ones only loses.

Bets are kept by pair, in the table of ``pairs.py``. **Epochs**, for worlds that change, are cut every D pages, and D
may be ``ENDLESS``. Then a pair has one logarithm of capital for each item and stake, which never ends. With epochs it
has four (``epochs.py``).
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.statistics.certificates import (
    ENDLESS,
    Certificates,
    Closure,
    closure_full,
    list_full,
    new_certificates,
    new_closure,
    with_longer_list,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.statistics.pairs import (
    Pairs,
    all_rows,
    items_of,
    moved,
    moved_column,
    n_rows,
    new_pairs,
    pairs_full,
    row_of,
)
from saferank.verbs import Floats, Ints

STAKES = (0.05, 0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.3)
"""The eta of the mixture."""

N_STAKES = len(STAKES)
LOG_STAKES = math.log(N_STAKES)

ODDS = 1 << 10
"""Odds are rounded up to a multiple of one over this."""

CERTAIN = 30.0
"""The evidence of a pair that is certified for good: weights stay positive."""

NEAR_EVEN = 0.15
"""Below this slope |lead| / information the evidence is the normal approximation, else the best of the bets."""

SOFT, CURRENT, PREVIOUS, SURGE = 0, 1, 2, 3
"""The kinds of capital with epochs. Without, there is only the first."""

DIRECT_ITEMS = 16
"""Up to this number of items every pair has its row. A row of bets is longer than one of duels, so these are fewer."""

LARGEST_GAP = 12.0
"""Of neighbours in an order of a large catalogue, so that no weight underflows."""

_SMALL = 1e-12


class BetTable(NamedTuple):
    """What the logarithms of capital change by."""

    stakes: Floats  # [8]
    costs: Floats  # [1 + ODDS, 8]: log(1 + p0 (exp(eta) - 1)) at p0 = row / ODDS
    gains: Floats  # [1 + ODDS, 8]: eta - cost, what a won bet adds
    losses: Floats  # [1 + ODDS, 8]: -cost, what a lost bet adds
    needed: Floats  # [6] log(8/alpha) of the kinds of pairs, after the smallest of them: see ``needed_for``
    began: Ints  # [2] items that production ranked when the context began, and all items then


class Bets(NamedTuple):
    """The bets on pairs {low, high}: a row for each, a side for each of its two items. And what they have certified."""

    pairs: Pairs  # with the wins in this epoch
    kinds: Ints  # [1] kinds of capital: 1, or 4 with epochs
    capital: Floats  # [entry, stake] logarithms; entry = (kinds * row + kind) * 2 + side
    lead: Floats  # by row: sum of y - p0 seen from the lower item
    information: Floats  # by row: sum of p0 (1 - p0)
    epoch: Ints  # [3] pages issued before this epoch began, pages of an epoch, pages that it is expected to have
    levels: Floats  # [3] what follows from the expected pages: see ``set_levels``
    certificates: Certificates
    closure: Closure  # what follows from the certificates that hold
    fresh: Closure  # what follows from those of this epoch; not used without epochs


class Levels(NamedTuple):
    """The error of an ordered pair, by where its items were when the context began."""

    ranked: float  # both in production's ranking
    last: float  # one of its last two, and one outside
    upper: float  # another one of it, and one outside
    outside: float  # both outside
    later: float  # one came later: times 1 / (n n (n + 1)), n the larger number of the two items
    n_ranked: int
    n_items: int


def same_level(alpha: float) -> Levels:
    """Every pair has the same error."""
    return Levels(alpha, alpha, alpha, alpha, alpha, 0, ENDLESS)


LAST_WEIGHT, UPPER_WEIGHT, RANKED_WEIGHT, OUTSIDE_WEIGHT = 5.0, 1.5, 0.9, 0.85
"""How a budget is spent on pairs: most on what lets an item in. See docs/policies/safe-draw.md."""

FOR_LATER = 0.1
"""The share of a budget that is kept for pairs with items that come later."""


def budget(alpha: float, n_ranked: int, n_items: int) -> Levels:
    """Errors that sum to at most alpha over all pairs, later items included; either direction of a pair has the same.

    With n the number of an item that comes later, its n pairs with those before it have FOR_LATER alpha L / (n (n + 1))
    together, L = ``n_items``, and the sum of that over n = L, L + 1, ... is FOR_LATER alpha. Most pairs of a large
    catalogue have both items outside, and few of these are ever compared: together they weigh no more than L - K pairs
    for every item of production's ranking do.
    """
    outside, last = n_items - n_ranked, min(2, n_ranked)
    weight = min(OUTSIDE_WEIGHT, 2.0 * n_ranked / max(1, outside - 1))
    total = RANKED_WEIGHT * n_ranked * (n_ranked - 1) / 2 + weight * outside * (outside - 1) / 2
    total += (LAST_WEIGHT * last + UPPER_WEIGHT * (n_ranked - last)) * outside
    each, later = (1.0 - FOR_LATER) * alpha / max(total, _SMALL), FOR_LATER * alpha * n_items
    weights = RANKED_WEIGHT, LAST_WEIGHT, UPPER_WEIGHT, weight
    within, last_two, upper, both = (min(alpha, each * share) for share in weights)
    return Levels(within, last_two, upper, both, later, n_ranked, n_items)


@functools.cache
def bet_table(levels: Levels) -> BetTable:
    """The table for these errors of pairs; shared, not to be written."""
    needed = [math.log(N_STAKES / alpha) for alpha in levels[:5]]
    least = min(*needed[:4], needed[4] + 3.0 * math.log(max(1, levels.n_items)))
    began = np.array([levels.n_ranked, levels.n_items], np.int64)
    table = BetTable(*_steps(), np.array([least, *needed]), began)
    for part in table:
        part.flags.writeable = False
    return table


@functools.cache
def _steps() -> tuple[Floats, Floats, Floats, Floats]:
    """The stakes, and by odds what they cost, and what a bet that is won or lost adds.

    Logarithms are those of ``math``: numpy's differ in the last digit between processors, and results must not.
    """
    stakes, gains = np.array(STAKES), [math.expm1(stake) for stake in STAKES]
    costs = np.array([[math.log1p(odds / ODDS * gain) for gain in gains] for odds in range(ODDS + 1)])
    return stakes, costs, _by_cache_line(stakes - costs), _by_cache_line(-costs)


def _by_cache_line(table: Floats) -> Floats:
    """A copy of which every row of eight numbers is one cache line of 64 bytes."""
    block = np.empty(table.size + 7)
    first = -block.ctypes.data // 8 % 8
    aligned: Floats = block[first : first + table.size].reshape(table.shape)
    aligned[:] = table
    return aligned


# --- the table of bets ---


def new_bets(n_items: int, lifetime: int | None = None, n_pairs: int = 64) -> Bets:
    """No bet yet; an epoch has ``lifetime`` pages, None: it never ends. ``n_pairs``: room, if they are hashed."""
    length = ENDLESS if lifetime is None else lifetime
    pairs, kinds = new_pairs(n_items, n_pairs, DIRECT_ITEMS), 1 if length == ENDLESS else 4
    rows = n_rows(pairs)
    bets = Bets(
        pairs=pairs,
        kinds=np.full(1, kinds, np.int64),
        capital=np.zeros((2 * kinds * rows, N_STAKES)),
        lead=np.zeros(rows),
        information=np.zeros(rows),
        epoch=np.array([0, length, length], np.int64),
        levels=np.zeros(3),
        certificates=new_certificates(64),
        closure=new_closure(n_items),
        fresh=new_closure(n_items if kinds > 1 else 0),
    )
    set_levels(bets)
    return bets


@kernel
def most_bets(places: int) -> int:
    """How many pairs of a clicked and an unclicked item a page of this size may have."""
    return places * places // 4


@kernel
def bets_have_room(bets: Bets, places: int) -> bool:
    """True when there is room for the pairs of a page of this size, and for what they may certify."""
    n_new = most_bets(places)
    full = pairs_full(bets, n_new) or list_full(bets.certificates, n_new)
    return not (full or closure_full(bets.closure, places))


def with_room(bets: Bets, places: int) -> Bets:
    """The same bets with room for a page of this size."""
    n_new = most_bets(places)
    if pairs_full(bets, n_new):
        rows = all_rows(bets)  # not for every pair: a row of bets is long
        bets = _with_table(bets, rows, new_pairs(1, len(rows) + n_new + max(n_new, len(rows)) // 4, direct_items=0))
    while list_full(bets.certificates, n_new):
        bets = bets._replace(certificates=with_longer_list(bets.certificates))
    while closure_full(bets.closure, places):
        bets = bets._replace(closure=with_more_numbers(bets.closure))
    while bets.kinds[0] > 1 and len(bets.fresh.item) < len(bets.closure.item):
        bets = bets._replace(fresh=with_more_numbers(bets.fresh))
    return bets


def with_more_items(bets: Bets, n_items: int) -> Bets:
    """The same bets with room for ``n_items`` items."""
    if len(bets.closure.number) == n_items:
        return bets
    closure = with_more_unnumbered(bets.closure, n_items)
    fresh = with_more_unnumbered(bets.fresh, n_items) if bets.kinds[0] > 1 else bets.fresh
    bets = bets._replace(closure=closure, fresh=fresh)
    if len(bets.pairs.slots):
        return bets
    rows = all_rows(bets) if n_items <= DIRECT_ITEMS else np.flatnonzero(bets.information)
    return _with_table(bets, rows, new_pairs(n_items, 64 + 3 * len(rows) // 2, DIRECT_ITEMS))


def _with_table(bets: Bets, rows: Ints, bigger: Pairs) -> Bets:
    """These rows of the bets in a larger table."""
    pairs, columns = moved(bets, rows, bigger), (bets.capital, bets.lead, bets.information)
    capital, lead, information = (moved_column(column, bets.pairs, rows, pairs) for column in columns)
    return bets._replace(pairs=pairs, capital=capital, lead=lead, information=information)


# --- bets ---


@kernel
def entry_of(bets: Bets, row: int, kind: int, side: int) -> int:
    """Where the capital of a pair is, by kind and by the item on which it is staked."""
    return int((bets.kinds[0] * row + kind) * 2 + side)


@kernel
def _largest_of(c: tuple[float, float, float, float, float, float, float, float]) -> float:
    """The largest of eight numbers and 0."""
    pairs = max(c[0], c[1]), max(c[2], c[3]), max(c[4], c[5]), max(c[6], c[7])  # at the same time
    halves = max(pairs[0], pairs[1]), max(pairs[2], pairs[3])
    return max(0.0, halves[0], halves[1])


@kernel
def add_to(capital: Floats, entry: int, steps: Floats, at: int) -> float:
    """Add a row of a table to the logarithms of a capital; returns the largest, at least 0.

    All eight are read before any is written: otherwise the compiler has to take them one by one, for the table and the
    capital might be the same memory.
    """
    c = (
        capital[entry, 0] + steps[at, 0],
        capital[entry, 1] + steps[at, 1],
        capital[entry, 2] + steps[at, 2],
        capital[entry, 3] + steps[at, 3],
        capital[entry, 4] + steps[at, 4],
        capital[entry, 5] + steps[at, 5],
        capital[entry, 6] + steps[at, 6],
        capital[entry, 7] + steps[at, 7],
    )
    capital[entry, 0], capital[entry, 1], capital[entry, 2], capital[entry, 3] = c[0], c[1], c[2], c[3]
    capital[entry, 4], capital[entry, 5], capital[entry, 6], capital[entry, 7] = c[4], c[5], c[6], c[7]
    return _largest_of(c)


@kernel
def largest(capital: Floats, entry: int) -> float:
    """The largest logarithm of a capital, at least 0."""
    c = capital[entry]
    return _largest_of((c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]))


@seldom
def needed_for(table: BetTable, i: int, j: int) -> float:
    """log(8/alpha) of a pair: the logarithm of the sum of shares times exp(capital) that certifies i over j."""
    low, high = min(i, j), max(i, j)
    if high >= table.began[1]:
        return float(table.needed[5] + 2.0 * math.log(high) + math.log(high + 1.0))
    if high < table.began[0]:
        return float(table.needed[1])
    if low >= table.began[0]:
        return float(table.needed[4])
    return float(table.needed[2] if low >= table.began[0] - 2 else table.needed[3])


@kernel
def settle_bet(table: BetTable, bets: Bets, row: int, side: int, p0: float, now: int) -> bool:
    """The item of ``side`` stood at the clicked place of page ``now``, which had probability p0.

    True when something may follow from it: a certificate or, with epochs, an alarm.
    """
    scaled, entry = p0 * ODDS, entry_of(bets, row, SOFT, 0)
    won, lost = math.ceil(scaled), ODDS - math.floor(scaled)
    most = add_to(bets.capital, entry + side, table.gains, won)
    add_to(bets.capital, entry + 1 - side, table.losses, lost)
    lead = 1.0 - p0
    bets.lead[row] += lead if side == 0 else -lead
    bets.information[row] += p0 * lead
    if bets.kinds[0] > 1:
        return _settle_streams(table, bets, (row, side, won, lost), now)
    bets.pairs.wins[2 * row + side] += 1
    return most + LOG_STAKES >= table.needed[0] and has_won(table, bets, row, SOFT, side)


@seldom
def _settle_streams(table: BetTable, bets: Bets, bet: tuple[int, int, int, int], now: int) -> bool:
    """The same for the streams that certify and for the surge of a pair."""
    row, side, won, lost = bet
    capital, most, surge = bets.capital, 0.0, 0.0
    for kind in (CURRENT, PREVIOUS):
        if kind == PREVIOUS or now > bets.epoch[0]:
            most = max(most, add_to(capital, entry_of(bets, row, kind, side), table.gains, won))
            add_to(capital, entry_of(bets, row, kind, 1 - side), table.losses, lost)
    mine, other = entry_of(bets, row, SURGE, side), entry_of(bets, row, SURGE, 1 - side)
    for g in range(N_STAKES):
        capital[mine, g] = max(0.0, capital[mine, g] + table.gains[won, g])
        capital[other, g] = max(0.0, capital[other, g] + table.losses[lost, g])
        surge = max(surge, capital[mine, g])
    bets.pairs.wins[2 * row + side] += int(now > bets.epoch[0])
    return bool(most + LOG_STAKES >= table.needed[0] or surge > bets.levels[0])


@seldom
def has_won(table: BetTable, bets: Bets, row: int, kind: int, side: int) -> bool:
    """True when the mean of a capital of a pair has reached 1/alpha."""
    entry, needed, total = entry_of(bets, row, kind, side), needed_for(table, *items_of(bets, row)), 0.0
    if largest(bets.capital, entry) + LOG_STAKES < needed:  # exponentials are slow
        return False
    for g in range(N_STAKES):
        total += math.exp(bets.capital[entry, g])
    return bool(math.log(total) >= needed)


@kernel
def evidence_in(bets: Bets, row: int) -> float:
    """Signed evidence that the lower item of a row is better: about -log of the chance that equal items look so."""
    lead, information = bets.lead[row], bets.information[row]
    if information < _SMALL:
        return 0.0
    if abs(lead) < NEAR_EVEN * information:
        return float(math.copysign(lead * lead / (2.0 * information), lead))
    entry = entry_of(bets, row, SOFT, 0)
    return largest(bets.capital, entry) - largest(bets.capital, entry + 1)


@kernel
def evidence(bets: Bets, i: int, j: int) -> float:
    """Signed evidence that i is better than j."""
    e = evidence_in(bets, row_of(bets, i, j))
    return e if i < j else -e


@kernel
def gap(e: float) -> float:
    """The logarithm of the odds that the better-looking item is better: log(Phi(z) / Phi(-z)), z = sqrt(2 e)."""
    if e <= 0.0:
        return 0.0
    tail = math.erfc(math.sqrt(e))
    return math.log((2.0 - tail) / tail) if tail > 0.0 else 1e3


@seldom
def evidence_of_gap(size: float) -> float:
    """The evidence that gives a gap, at most CERTAIN: by bisection, since gap grows with it."""
    low, high = 0.0, CERTAIN
    if size <= 0.0:
        return 0.0
    if gap(high) <= size:
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gap(middle) < size:
            low = middle
        else:
            high = middle
    return high


# --- what the length of an epoch means ---


def set_levels(bets: Bets) -> None:
    """Set what follows from D, the pages that an epoch is expected to have.

    The levels are: the surge above which an alarm is considered, max(7, log(D / 27)), the largest evidence, and the
    largest gap between two items, max(5, log(D / 200)), to which it belongs. Short epochs must see a change soon, so
    every pair is shown the other way round now and then, about once in 150 pages at least. In a long epoch that would
    cost more than it finds. Without epochs nothing is to be seen, and nothing is held back.
    """
    pages = max(1, int(bets.epoch[2]))
    if bets.epoch[1] == ENDLESS:
        bets.levels[:] = math.inf, CERTAIN, LARGEST_GAP
    else:
        size = max(5.0, math.log(pages / 200))
        bets.levels[:] = max(7.0, math.log(pages / 27)), evidence_of_gap(size), min(LARGEST_GAP, size)
