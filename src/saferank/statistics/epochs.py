r"""Epochs of bets: certificates with a lifetime, for pages drawn from a known law in a world that changes.

Time is cut into epochs of D pages. For every ordered pair (i, j) and every stake there are four logarithms of capital:

* ``CURRENT``: bets on pages of this epoch; ``PREVIOUS``: bets on pages of this epoch and the one before. Each is the
  capital of an e-process that began at 1 with its epoch, and only these two certify.
* ``SOFT`` evidence is carried from epoch to epoch, scaled down where it has grown too large, so it says which item is
  likely the better one *now*. It orders pages and never certifies.
* ``SURGE``: the same bets, but never below 0: how much speaks for i over j since the time when least did (CUSUM). When
  it is large against what was believed, the world has changed: what was believed is withdrawn.

Without an end of epochs there is one logarithm, which does all: it certifies and it orders pages. A pair that is
certified, directly or by what follows, is then not bet on any more, so no certificate is ever contradicted.

What is played, and why it is right: docs/algorithms/drift.md.
"""

from saferank._kernel import kernel, seldom
from saferank.statistics.bets import (
    CURRENT,
    N_STAKES,
    PREVIOUS,
    SOFT,
    SURGE,
    Bets,
    BetTable,
    entry_of,
    evidence,
    evidence_in,
    has_won,
    largest,
)
from saferank.statistics.certificates import (
    ADDED,
    NOTHING,
    TAKEN,
    certify_over,
    close,
    expire,
    forget_closure,
    give,
    leads_from,
    surely,
)
from saferank.statistics.pairs import row_of

HELD_OVER = 8.0
"""At the beginning of an epoch soft evidence is scaled to this at most."""

CALMED = 1.0
"""After an alarm soft evidence is scaled to this at most."""

OPPOSED = 1.5
"""Soft evidence of more than this against a surge makes it an alarm."""


@kernel
def has_epochs(bets: Bets) -> bool:
    """True when certificates end."""
    return bool(bets.kinds[0] > 1)


@kernel
def end_of_fresh(bets: Bets) -> int:
    """The last round in which a certificate of this epoch holds."""
    return int(bets.epoch[0] + 2 * bets.epoch[1])


@kernel
def still_counts(bets: Bets, now: int) -> bool:
    """True for a page of this epoch or the one before; older ones say nothing any more."""
    return bool(now > bets.epoch[0] - bets.epoch[1])


@kernel
def is_settled(bets: Bets, i: int, j: int) -> bool:
    """True when i is certified over j and need not be compared with it: by what follows from this epoch's certificates.

    One that is held over from the epoch before has to be earned again.
    """
    return surely(bets.fresh, i, j) if bets.kinds[0] > 1 else surely(bets.closure, i, j)


@kernel
def is_bet_on(bets: Bets, i: int, j: int) -> bool:
    """True unless the order of the two is certified for good."""
    return bool(bets.kinds[0] > 1 or not (surely(bets.closure, i, j) or surely(bets.closure, j, i)))


@seldom
def certify(table: BetTable, bets: Bets, i: int, j: int, now: int) -> int:
    """Certify i over j if its bets have won; returns what that changed among the certificates.

    This epoch's stream certifies until the end of the next epoch. That of the epoch before certifies until the end of
    this one, and only orders that are not certain either way.
    """
    row, side, expires = row_of(bets, i, j), int(i > j), end_of_fresh(bets)
    newest = CURRENT if has_epochs(bets) else SOFT
    certain = surely(bets.closure, i, j) or surely(bets.closure, j, i)
    if certain and not has_epochs(bets):
        return NOTHING
    if not has_won(table, bets, row, newest, side):
        if certain or not has_epochs(bets) or not has_won(table, bets, row, PREVIOUS, side):
            return NOTHING
        expires -= bets.epoch[1]
    changed = give(bets.certificates, bets.closure, (i, j), expires, now)
    if has_epochs(bets) and changed == TAKEN:
        close(bets.certificates, bets.fresh, end_of_fresh(bets))
    elif has_epochs(bets) and changed == ADDED and expires == end_of_fresh(bets):
        certify_over(bets.fresh, i, j)
    return changed


@seldom
def scale_soft(bets: Bets, most: float) -> None:
    """Scale the soft evidence of every pair to at most ``most``: it is linear in what the table holds."""
    for row in range(1, bets.pairs.used[0]):
        size = abs(evidence_in(bets, row))
        if size > most:
            share = most / size
            bets.lead[row] *= share
            bets.information[row] *= share
            for side in range(2):
                for g in range(N_STAKES):
                    bets.capital[entry_of(bets, row, SOFT, side), g] *= share


@kernel
def _forget_soft(bets: Bets, row: int) -> None:
    bets.lead[row] = bets.information[row] = 0.0
    for side in range(2):
        for g in range(N_STAKES):
            bets.capital[entry_of(bets, row, SOFT, side), g] = 0.0


@kernel
def _withdraw(bets: Bets, entry: int) -> None:
    """What was won on a certificate is given up; a capital that is lowered stays a supermartingale."""
    i, j = bets.certificates.better[entry], bets.certificates.worse[entry]
    row, side = row_of(bets, i, j), int(i > j)
    bets.certificates.expires[entry] = 0
    for g in range(N_STAKES):
        for kind in (CURRENT, PREVIOUS):
            place = entry_of(bets, row, kind, side)
            bets.capital[place, g] = min(0.0, bets.capital[place, g])


@seldom
def sound_alarm(bets: Bets, i: int, j: int) -> bool:
    """Look at the surge of i over j; True when it speaks against what was believed: an alarm.

    Then the certificates by which j is over i are withdrawn, and all soft evidence is scaled down.
    """
    row, certificates = row_of(bets, i, j), bets.certificates
    surge = entry_of(bets, row, SURGE, int(i > j))
    if not has_epochs(bets) or largest(bets.capital, surge) <= bets.levels[0]:
        return False
    for g in range(N_STAKES):
        bets.capital[surge, g] = 0.0
    against = evidence(bets, j, i)
    if against > 0.0:
        _forget_soft(bets, row)
    if against <= OPPOSED and not surely(bets.closure, j, i):
        return False
    for entry in range(certificates.first[0], certificates.given[0]):
        if leads_from(certificates, bets.closure, entry, j, i):
            _withdraw(bets, entry)
    close(certificates, bets.closure, 1)
    close(certificates, bets.fresh, end_of_fresh(bets))
    scale_soft(bets, CALMED)
    certificates.alarms[0] += 1
    return True


@seldom
def begin_epoch(bets: Bets, issued: int) -> bool:
    """After ``issued`` pages: if the next one belongs to a later epoch, begin that; True when it does."""
    start, length, capital = bets.epoch[0], bets.epoch[1], bets.capital
    if issued < start + length:
        return False
    ended = (issued - start) // length
    bets.epoch[0] += ended * length
    for row in range(1, bets.pairs.used[0]):
        for side in range(2):
            bets.pairs.wins[2 * row + side] = 0
            current, previous = entry_of(bets, row, CURRENT, side), entry_of(bets, row, PREVIOUS, side)
            for g in range(N_STAKES):
                capital[previous, g] = capital[current, g] if ended == 1 else 0.0
                capital[current, g] = 0.0
    scale_soft(bets, HELD_OVER)
    if expire(bets.certificates, bets.epoch[0] + 1):
        close(bets.certificates, bets.closure, 1)
    forget_closure(bets.fresh)
    return True
