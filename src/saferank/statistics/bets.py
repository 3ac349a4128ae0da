r"""Evidence from pages drawn from a known law: for every pair of items, a bet with known odds.

A page is drawn with probability Q(page). Let item i be clicked and item j not, and let page' be the page with the two
exchanged. Given the clicks by position and that one of the two pages was drawn, i stands at the clicked place with
probability at most

    p0 = Q(page) / (Q(page) + Q(page'))            whenever i is not more attractive than j.

So a gambler who stakes on i at the odds p0 cannot win in the long run unless i is better. For a stake eta > 0 his
capital after bets with outcomes y (1 when i stands at the clicked place) is the product of

    exp(eta y) / (1 + p0 (exp(eta) - 1)),

a non-negative supermartingale. A mean over eight stakes is one too, and by Ville's inequality it ever reaches
1/alpha with probability at most alpha: then i is certified as better than j. The stakes count equally, or with weights
that were chosen beforehand. Even coins are the case p0 = 1/2. The
proof, and for which users it holds, is in docs/algorithms/evidence.md.

The odds are rounded up to a multiple of 2^-10, for either item, so that logarithms come from a table: a bet at longer
odds than the true ones only loses.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, seldom, verb
from saferank.statistics.duels import (
    Certificates,
    copy_certificates,
    crowded,
    new_certificates,
    wins_of,
)
from saferank.verbs import Floats, Ints

STAKES = (0.05, 0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.3)
"""The eta of the mixture."""

N_STAKES = len(STAKES)

EVEN_WEIGHTS = (1 / N_STAKES,) * N_STAKES
SLOT_WEIGHTS = (0.01, 0.04, 0.15, 0.25, 0.25, 0.18, 0.10, 0.02)
"""Weights of the stakes: of small catalogues, and of large ones, whose pairs are chosen because they look different."""

ODDS = 1 << 10
"""Odds are rounded up to a multiple of one over this."""

CERTAIN = 30.0
"""The evidence of a certified pair."""

NEAR_EVEN = 0.15
"""Below this slope |lead| / information the evidence is the normal approximation, else the best of the bets."""

DENSE_ITEMS = 64
"""Up to this many items a matrix of pairs is faster and not larger than the hash table."""

_EMPTY = -1
_SMALL = 1e-12


class BetTable(NamedTuple):
    """What the logarithms of capital change by."""

    stakes: Floats  # [8]
    costs: Floats  # [1 + ODDS, 8]: log(1 + p0 (exp(eta) - 1)) at p0 = row / ODDS
    gains: Floats  # [1 + ODDS, 8]: eta - cost, what a won bet adds
    losses: Floats  # [1 + ODDS, 8]: -cost, what a lost bet adds
    shares: Floats  # [8] weight of each stake in the mean, times 8
    needed: Floats  # [1] log(8/alpha): the logarithm of the sum of shares times exp(capital) that certifies


class Book(NamedTuple):
    """The bets on pairs: a row for each pair {low, high}, a side for each of the two items."""

    capital: Floats  # [row, side, stake] logarithm of the capital staked on the item of that side
    lead: Floats  # [row] sum of y - p0 seen from the lower item
    information: Floats  # [row] sum of p0 (1 - p0)
    wins: Ints  # [row, side] how often that item was clicked and the other not


class DenseBets(NamedTuple):
    """A row for every ordered pair of a small catalogue; those with low < high are used."""

    book: Book
    n_items: Ints  # [1]
    certificates: Certificates


class HashedBets(NamedTuple):
    """Rows only for the pairs that met, by linear probing; at most half of the rows are used."""

    book: Book
    low: Ints  # smaller item of the pair, or -1
    high: Ints
    certificates: Certificates
    used: Ints  # [1] rows in use


@functools.cache
def bet_table(alpha: float, weights: tuple[float, ...] = EVEN_WEIGHTS) -> BetTable:
    """The table for a level and for these weights of the stakes; shared, not to be written."""
    if len(weights) != N_STAKES or min(weights) < 0.0 or not math.isclose(sum(weights), 1.0):
        raise ValueError(f"the weights of the stakes must be {N_STAKES} numbers that sum to 1, not {weights}")
    stakes, shares = np.array(STAKES), np.array(weights) * N_STAKES
    p0 = np.arange(ODDS + 1)[:, None] / ODDS
    costs = np.log1p(p0 * np.expm1(stakes))
    gains, losses = _by_cache_line(stakes - costs), _by_cache_line(-costs)
    table = BetTable(stakes, costs, gains, losses, shares, np.array([math.log(N_STAKES / alpha)]))
    for part in table:
        part.flags.writeable = False
    return table


def _by_cache_line(table: Floats) -> Floats:
    """A copy of which every row of eight numbers is one cache line of 64 bytes."""
    block = np.empty(table.size + 7)
    first = -block.ctypes.data // 8 % 8
    aligned: Floats = block[first : first + table.size].reshape(table.shape)
    aligned[:] = table
    return aligned


def new_book(rows: int) -> Book:
    """No bet yet."""
    return Book(np.zeros((rows, 2, N_STAKES)), np.zeros(rows), np.zeros(rows), np.zeros((rows, 2), np.int64))


def new_dense_bets(n_items: int) -> DenseBets:
    """No bet yet, room for all pairs."""
    count = np.full(1, n_items, np.int64)
    return DenseBets(new_book(n_items * n_items), count, new_certificates(n_items * (n_items - 1)))


def new_hashed_bets(capacity: int) -> HashedBets:
    """No bet yet; ``capacity`` is a power of two."""
    empty = np.full((2, capacity), _EMPTY, np.int64)
    used = np.zeros(1, np.int64)
    return HashedBets(new_book(capacity), empty[0].copy(), empty[1].copy(), new_certificates(capacity), used)


def new_bets(n_items: int) -> DenseBets | HashedBets:
    """The store that suits the size of the catalogue."""
    return new_dense_bets(n_items) if n_items <= DENSE_ITEMS else new_hashed_bets(1 << 12)


@verb
def row_of(bets: Any, i: int, j: int) -> int:
    """The row of a pair; for a pair that never met the row where it would be."""
    raise NotImplementedError


@verb
def claim_row(bets: Any, i: int, j: int) -> int:
    """The row of a pair, which is the pair's from now on."""
    raise NotImplementedError


@implements(row_of, DenseBets)
def _dense_row_of(bets: DenseBets, i: int, j: int) -> int:
    return int(min(i, j) * bets.n_items[0] + max(i, j))


@implements(claim_row, DenseBets)
def _dense_claim_row(bets: DenseBets, i: int, j: int) -> int:
    return int(min(i, j) * bets.n_items[0] + max(i, j))


@implements(row_of, HashedBets)
def _hashed_row_of(bets: HashedBets, i: int, j: int) -> int:
    low, high = min(i, j), max(i, j)
    mask = len(bets.low) - 1
    mixed = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(high) * np.uint64(0xC2B2AE3D27D4EB4F)
    row = np.int64(mixed >> np.uint64(32)) & mask
    while bets.low[row] != _EMPTY and (bets.low[row] != low or bets.high[row] != high):
        row = (row + 1) & mask
    return int(row)


@implements(claim_row, HashedBets)
def _hashed_claim_row(bets: HashedBets, i: int, j: int) -> int:
    row = _hashed_row_of(bets, i, j)
    if bets.low[row] == _EMPTY:
        bets.low[row] = min(i, j)
        bets.high[row] = max(i, j)
        bets.used[0] += 1
    return row


@implements(wins_of, DenseBets)
def _dense_wins_of(bets: DenseBets, i: int, j: int) -> int:
    return int(bets.book.wins[_dense_row_of(bets, i, j), int(i > j)])


@implements(wins_of, HashedBets)
def _hashed_wins_of(bets: HashedBets, i: int, j: int) -> int:
    return int(bets.book.wins[_hashed_row_of(bets, i, j), int(i > j)])


@kernel
def _largest_of(c: tuple[float, float, float, float, float, float, float, float]) -> float:
    """The largest of eight numbers and 0."""
    pairs = max(c[0], c[1]), max(c[2], c[3]), max(c[4], c[5]), max(c[6], c[7])  # at the same time
    halves = max(pairs[0], pairs[1]), max(pairs[2], pairs[3])
    return max(0.0, halves[0], halves[1])


@kernel
def _add(capital: Floats, row: int, side: int, steps: Floats, at: int) -> float:
    """Add a row of a table to the logarithms of a capital; returns the largest, at least 0.

    All eight are read before any is written: otherwise the compiler has to take them one by one, for the table and the
    capital might be the same memory.
    """
    c = (
        capital[row, side, 0] + steps[at, 0],
        capital[row, side, 1] + steps[at, 1],
        capital[row, side, 2] + steps[at, 2],
        capital[row, side, 3] + steps[at, 3],
        capital[row, side, 4] + steps[at, 4],
        capital[row, side, 5] + steps[at, 5],
        capital[row, side, 6] + steps[at, 6],
        capital[row, side, 7] + steps[at, 7],
    )
    capital[row, side, 0], capital[row, side, 1], capital[row, side, 2], capital[row, side, 3] = c[0], c[1], c[2], c[3]
    capital[row, side, 4], capital[row, side, 5], capital[row, side, 6], capital[row, side, 7] = c[4], c[5], c[6], c[7]
    return _largest_of(c)


@kernel
def settle_bet(table: BetTable, book: Book, row: int, side: int, p0: float) -> bool:
    """The item of ``side`` stood at the clicked place, which had probability p0. True when it has won: ``has_won``."""
    scaled = p0 * ODDS
    won, lost = math.ceil(scaled), ODDS - math.floor(scaled)
    most = _add(book.capital, row, side, table.gains, won)
    _add(book.capital, row, 1 - side, table.losses, lost)
    lead = 1.0 - p0
    book.lead[row] += lead if side == 0 else -lead
    book.information[row] += p0 * lead
    book.wins[row, side] += 1
    return most + LOG_STAKES >= table.needed[0] and has_won(table, book, row, side)


LOG_STAKES = math.log(N_STAKES)


@kernel
def _largest(book: Book, row: int, side: int) -> float:
    c = book.capital[row, side]
    return _largest_of((c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]))


@seldom
def has_won(table: BetTable, book: Book, row: int, side: int) -> bool:
    """True when the mean capital staked on the item of ``side`` has reached 1/alpha."""
    if _largest(book, row, side) + LOG_STAKES < table.needed[0]:  # exponentials are slow
        return False
    total = 0.0
    for g in range(N_STAKES):
        total += table.shares[g] * math.exp(book.capital[row, side, g])
    return bool(math.log(total) >= table.needed[0])


@kernel
def evidence(bets: Any, i: int, j: int) -> float:
    """Signed evidence that i is better than j: about minus the logarithm of the chance that equal items look so."""
    row = row_of(bets, i, j)
    book, sign = bets.book, 1.0 if i < j else -1.0
    lead, information = book.lead[row], book.information[row]
    if information < _SMALL:
        return 0.0
    if abs(lead) < NEAR_EVEN * information:
        return sign * math.copysign(lead * lead / (2.0 * information), lead)
    return sign * (_largest(book, row, 0) - _largest(book, row, 1))


@implements(crowded, DenseBets)
def _dense_crowded(bets: DenseBets, n_new: int) -> bool:
    return False


@implements(crowded, HashedBets)
def _hashed_crowded(bets: HashedBets, n_new: int) -> bool:
    return bool(2 * (bets.used[0] + n_new) > len(bets.low))


def with_more_items(bets: DenseBets | HashedBets, n_items: int) -> DenseBets | HashedBets:
    """The same bets with room for ``n_items`` items."""
    if isinstance(bets, HashedBets) or int(bets.n_items[0]) == n_items:
        return bets
    larger: DenseBets | HashedBets = _copied(bets, new_bets(n_items))
    return larger


def as_hashed(bets: DenseBets | HashedBets) -> HashedBets:
    """The same bets in a hash table."""
    if isinstance(bets, HashedBets):
        return bets
    hashed: HashedBets = _copied(bets, new_hashed_bets(1 << 12))  # a matrix has at most 2016 pairs
    return hashed


def _copied(bets: DenseBets, bigger: Any) -> Any:
    """The bets of a matrix in an empty store that has room for them."""
    size = int(bets.n_items[0])
    pairs = [(low, high) for low in range(size) for high in range(low + 1, size)]
    for low, high in pairs:
        row = _dense_row_of(bets, low, high)
        if bets.book.wins[row].any():
            _copy_row(bets.book, row, bigger.book, claim_row(bigger, low, high))
    copy_certificates(bets.certificates, bigger.certificates)
    return bigger


@kernel
def _copy_rows(old: HashedBets, new: HashedBets) -> None:
    for row in range(len(old.low)):
        if old.low[row] != _EMPTY:
            target = _hashed_claim_row(new, old.low[row], old.high[row])
            new.book.lead[target], new.book.information[target] = old.book.lead[row], old.book.information[row]
            for side in range(2):
                new.book.wins[target, side] = old.book.wins[row, side]
                for g in range(N_STAKES):
                    new.book.capital[target, side, g] = old.book.capital[row, side, g]


def with_more_rows(bets: HashedBets) -> HashedBets:
    """The same bets in a table of twice the size."""
    bigger = new_hashed_bets(2 * len(bets.low))
    _copy_rows(bets, bigger)
    copy_certificates(bets.certificates, bigger.certificates)
    return bigger


def _copy_row(old: Book, row: int, new: Book, target: int) -> None:
    for source, copy in zip(old, new, strict=True):
        copy[target] = source[row]
