r"""Bets whose certificates have a lifetime, for pages drawn from a known law in a world that changes.

Time is cut into epochs of D pages. For every ordered pair (i, j) and every stake there are four logarithms of capital:

* ``current``: bets on pages of this epoch; ``previous``: bets on pages of this epoch and the one before. Each is the
  capital of an e-process that began at 1 with its epoch, and only these two certify.
* ``book``: soft evidence. It is carried from epoch to epoch, scaled down where it has grown too large, so it says which
  item is likely the better one *now*. It orders pages and never certifies.
* ``surge``: the same bets, but never below 0: how much speaks for i over j since the time when least did (CUSUM). When
  it is large against what was believed, the world has changed: what was believed is withdrawn.

What is played, and why it is right: docs/algorithms/drift.md.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import implements, kernel, seldom
from saferank.statistics.bets import (
    LOG_STAKES,
    N_STAKES,
    ODDS,
    BetTable,
    Book,
    claim_row,
    evidence,
    new_book,
    row_of,
)
from saferank.statistics.certificate_table import (
    CertificateTable,
    close,
    expire,
    give,
    holds,
    leads_from,
    new_certificate_table,
    with_more_rows,
)
from saferank.statistics.duels import (
    Certificates,
    copy_certificates,
    crowded,
    keep_certificate,
    new_certificates,
    wins_of,
)
from saferank.verbs import Floats, Ints

HELD_OVER = 8.0
"""At the beginning of an epoch soft evidence is scaled to this at most."""

CALMED = 1.0
"""After an alarm soft evidence is scaled to this at most."""

SURGE = 7.0
"""The surge of a pair above which what was believed of it is looked at."""

OPPOSED = 1.5
"""Soft evidence of at least this much against a surge makes it an alarm."""


_BLOCK = 512
"""Numbers that are looked at together when rows in use are searched for."""


class LifetimeBets(NamedTuple):
    """A row for every ordered pair; those with low < high are used."""

    book: Book  # soft evidence; wins are those on pages of this epoch
    n_items: Ints  # [1]
    epoch: Ints  # [2] pages issued before this epoch began, pages of an epoch
    current: Floats  # [row, side, stake] logarithm of the capital, from pages of this epoch
    previous: Floats  # [row, side, stake] the same, also from pages of the epoch before
    surge: Floats  # [row, side, stake]
    settled: Ints  # [pair, 2] winner and loser of the bets of the newest page
    n_settled: Ints  # [1]
    table: CertificateTable
    certificates: Certificates  # all that were ever given, in every epoch again


def new_lifetime_bets(n_items: int, lifetime: int) -> LifetimeBets:
    """No bet yet; an epoch has ``lifetime`` pages."""
    rows = n_items * n_items
    return LifetimeBets(
        book=new_book(rows),
        n_items=np.full(1, n_items, np.int64),
        epoch=np.array([0, lifetime], np.int64),
        current=np.zeros((rows, 2, N_STAKES)),
        previous=np.zeros((rows, 2, N_STAKES)),
        surge=np.zeros((rows, 2, N_STAKES)),
        settled=np.zeros((rows, 2), np.int64),
        n_settled=np.zeros(1, np.int64),
        table=new_certificate_table(n_items),
        certificates=new_certificates(max(64, 2 * rows)),
    )


@implements(row_of, LifetimeBets)
def _row_of(bets: LifetimeBets, i: int, j: int) -> int:
    return int(min(i, j) * bets.n_items[0] + max(i, j))


@implements(claim_row, LifetimeBets)
def _claim_row(bets: LifetimeBets, i: int, j: int) -> int:
    return int(min(i, j) * bets.n_items[0] + max(i, j))


@implements(wins_of, LifetimeBets)
def _wins_of(bets: LifetimeBets, i: int, j: int) -> int:
    return int(bets.book.wins[_row_of(bets, i, j), int(i > j)])


@implements(crowded, LifetimeBets)
def _crowded(bets: LifetimeBets, n_new: int) -> bool:
    return bool(bets.certificates.given[0] + n_new > len(bets.certificates.better))


@kernel
def end_of_fresh(bets: LifetimeBets) -> int:
    """The last round in which a certificate of this epoch holds."""
    return int(bets.epoch[0] + 2 * bets.epoch[1])


@kernel
def is_fresh(bets: LifetimeBets, i: int, j: int) -> bool:
    """True when i was certified over j in this epoch."""
    return bool(bets.table.expires[i, j] == end_of_fresh(bets))


@kernel
def still_counts(bets: LifetimeBets, now: int) -> bool:
    """True for a page of this epoch or the one before; what is older says nothing any more."""
    return bool(now > bets.epoch[0] - bets.epoch[1])


@kernel
def settle_pair(table: BetTable, bets: LifetimeBets, i: int, j: int, p0: float, now: int) -> None:
    """Item i stood at the clicked place of page ``now``, which had probability p0, and j did not."""
    row, side, scaled, this_epoch = _row_of(bets, i, j), int(i > j), p0 * ODDS, now > bets.epoch[0]
    won, lost, book = math.ceil(scaled), ODDS - math.floor(scaled), bets.book
    for g in range(N_STAKES):
        gain, cost = table.stakes[g] - table.costs[won, g], table.costs[lost, g]
        book.capital[row, side, g] += gain
        book.capital[row, 1 - side, g] -= cost
        bets.previous[row, side, g] += gain
        bets.previous[row, 1 - side, g] -= cost
        if this_epoch:
            bets.current[row, side, g] += gain
            bets.current[row, 1 - side, g] -= cost
        bets.surge[row, side, g] = max(0.0, bets.surge[row, side, g] + gain)
        bets.surge[row, 1 - side, g] = max(0.0, bets.surge[row, 1 - side, g] - cost)
    lead = 1.0 - p0
    book.lead[row] += lead if side == 0 else -lead
    book.information[row] += p0 * lead
    book.wins[row, side] += int(this_epoch)
    bets.settled[bets.n_settled[0], 0], bets.settled[bets.n_settled[0], 1] = i, j
    bets.n_settled[0] += 1


@kernel
def _largest(capital: Floats, row: int, side: int) -> float:
    most = 0.0
    for g in range(N_STAKES):
        most = max(most, capital[row, side, g])
    return most


@kernel
def _has_won(table: BetTable, capital: Floats, row: int, side: int) -> bool:
    """True when the mean capital staked on the item of ``side`` has reached 1/alpha."""
    if _largest(capital, row, side) + LOG_STAKES < table.needed[0]:
        return False
    total = 0.0
    for g in range(N_STAKES):
        total += table.shares[g] * math.exp(capital[row, side, g])
    return bool(math.log(total) >= table.needed[0])


@kernel
def _certify(table: BetTable, bets: LifetimeBets, i: int, j: int, now: int) -> bool:
    """Certify i over j if a stream says so; True when that changed which certificates there are.

    This epoch's stream certifies until the end of the next epoch. That of the epoch before certifies until the end of
    this one, and only what is not certain either way.
    """
    row, side, expires = _row_of(bets, i, j), int(i > j), end_of_fresh(bets)
    if not _has_won(table, bets.current, row, side):
        if holds(bets.table, i, j) or holds(bets.table, j, i) or not _has_won(table, bets.previous, row, side):
            return False
        expires -= bets.epoch[1]
    if not give(bets.table, i, j, expires):
        return False
    keep_certificate(bets.certificates, i, j, now)
    return True


@seldom
def certify_winners(table: BetTable, bets: LifetimeBets, now: int) -> bool:
    """Certify the pairs of the newest page whose bets have won; True when that changed which certificates there are."""
    changed = False
    for entry in range(bets.n_settled[0]):
        changed |= _certify(table, bets, bets.settled[entry, 0], bets.settled[entry, 1], now)
    return changed


@kernel
def _forget_soft(bets: LifetimeBets, row: int) -> None:
    bets.book.lead[row] = bets.book.information[row] = 0.0
    for side in range(2):
        for g in range(N_STAKES):
            bets.book.capital[row, side, g] = 0.0


@seldom
def scale_soft(bets: LifetimeBets, most: float) -> None:
    """Scale the soft evidence of every pair to at most ``most``: it is linear in what the book holds."""
    n_items, book = bets.n_items[0], bets.book
    for low in range(n_items):
        for high in range(low + 1, n_items):
            row, size = low * n_items + high, abs(evidence(bets, low, high))
            if size <= most:
                continue
            share = most / size
            book.lead[row] *= share
            book.information[row] *= share
            for side in range(2):
                for g in range(N_STAKES):
                    book.capital[row, side, g] *= share


@kernel
def _lower_streams(bets: LifetimeBets, i: int, j: int) -> None:
    """What was won on i over j is given up; a capital that is lowered stays a supermartingale."""
    row, side = _row_of(bets, i, j), int(i > j)
    for g in range(N_STAKES):
        bets.current[row, side, g] = min(0.0, bets.current[row, side, g])
        bets.previous[row, side, g] = min(0.0, bets.previous[row, side, g])


@kernel
def _sound_alarm(bets: LifetimeBets, i: int, j: int) -> bool:
    """Look at the surge of i over j; True when it speaks against what was believed: an alarm.

    Then the certificates by which j is over i are withdrawn, and all soft evidence is scaled down.
    """
    row, side, n_items = _row_of(bets, i, j), int(i > j), bets.n_items[0]
    if _largest(bets.surge, row, side) <= SURGE:
        return False
    for g in range(N_STAKES):
        bets.surge[row, side, g] = 0.0
    against = evidence(bets, j, i)
    if against > 0.0:
        _forget_soft(bets, row)
    if against <= OPPOSED and not holds(bets.table, j, i):
        return False
    for better in range(n_items):
        for worse in range(n_items):
            if leads_from(bets.table, better, worse, j, i):
                bets.table.expires[better, worse] = 0
                _lower_streams(bets, better, worse)
    close(bets.table)
    scale_soft(bets, CALMED)
    bets.table.alarms[0] += 1
    return True


@seldom
def sound_alarms(bets: LifetimeBets) -> bool:
    """Look at the winners of the newest page for alarms; True when there was one."""
    alarmed = False
    for entry in range(bets.n_settled[0]):
        alarmed |= _sound_alarm(bets, bets.settled[entry, 0], bets.settled[entry, 1])
    return alarmed


@seldom
def begin_epoch(bets: LifetimeBets, issued: int) -> bool:
    """After ``issued`` pages: if the next one belongs to a later epoch, begin that; True when it does."""
    start, length, book = bets.epoch[0], bets.epoch[1], bets.book
    if issued < start + length:
        return False
    ended = (issued - start) // length
    bets.epoch[0] += ended * length
    for row in range(len(book.lead)):
        for side in range(2):
            book.wins[row, side] = 0
            for g in range(N_STAKES):
                bets.previous[row, side, g] = bets.current[row, side, g] if ended == 1 else 0.0
                bets.current[row, side, g] = 0.0
    scale_soft(bets, HELD_OVER)
    expire(bets.table, bets.epoch[0] + 1)
    return True


def with_longer_list(bets: LifetimeBets) -> LifetimeBets:
    """The same bets with room for twice as many certificates."""
    longer = new_certificates(2 * len(bets.certificates.better))
    copy_certificates(bets.certificates, longer)
    return bets._replace(certificates=longer)


def _streams(bets: LifetimeBets) -> tuple[Floats, Floats, Floats]:
    return bets.current, bets.previous, bets.surge


def _rows_in_use(table: NDArray[Any]) -> Ints:
    """The numbers of the rows that are not 0, bit by bit. Blocks without any are passed over quickly."""
    words = np.ascontiguousarray(table).reshape(-1).view(np.uint64)
    whole = len(words) // _BLOCK * _BLOCK
    blocks = words[:whole].reshape(-1, _BLOCK)
    used = np.flatnonzero(blocks.max(axis=1))
    inside = np.flatnonzero(blocks[used])
    places = np.append(used[inside // _BLOCK] * _BLOCK + inside % _BLOCK, whole + np.flatnonzero(words[whole:]))
    return np.unique(places // (len(words) // len(table)))


def with_more_pairs(bets: LifetimeBets, n_items: int) -> LifetimeBets:
    """The same bets with room for the pairs of ``n_items`` items."""
    before = int(bets.n_items[0])
    if before == n_items:
        return bets
    bigger = new_lifetime_bets(n_items, int(bets.epoch[1]))
    pairs = (np.arange(before)[:, None] * n_items + np.arange(before)).ravel()
    for old, new in zip((*bets.book, *_streams(bets)), (*bigger.book, *_streams(bigger)), strict=True):
        used = _rows_in_use(old)  # few: writing zeros would take the memory of the whole table, and most of the time
        new[pairs[used]] = old[used]
    longest = max((bets.certificates, bigger.certificates), key=lambda kept: len(kept.better))
    if longest is bigger.certificates:
        copy_certificates(bets.certificates, longest)
    return bigger._replace(epoch=bets.epoch, table=with_more_rows(bets.table, n_items), certificates=longest)
