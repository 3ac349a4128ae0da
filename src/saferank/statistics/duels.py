"""Duels: for every pair of items, how often each was clicked when the other, compared with it, was not.

With ``wins(i, j)`` such rounds for i over j, the paper's statistics are ``n = wins(i, j) + wins(j, i)`` and
``s(i, j) = wins(i, j) - wins(j, i)``. There are two stores, both over the one table of pairs (``pairs.py``).

* ``Duels``: the paper's. A pair is certain while the decision rule says so of its wins, and which pairs were ever
  declared decided is remembered, each with its round: its *certificate*.
* ``LifetimeDuels``, for worlds that change: certificates have a lifetime. Time is cut into epochs of D rounds, and wins
  are those of pages issued in this one. A pair that the rule decides is certified until the end of the next epoch, so
  the certificate holds while the pair is compared again, and never longer than 2 D rounds after the first page that
  spoke for it. What is certain is what follows from the certificates that hold (``certificates.py``), not what the
  present wins say. Why it is right: docs/algorithms/drift.md.

They are two types, and kernels are compiled for the types of their arguments: a policy without a lifetime runs exactly
the code that it would run if there were no other.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.statistics.certificates import (
    ENDLESS,
    NOTHING,
    Certificates,
    Closure,
    close,
    closure_full,
    copy_certificates,
    expire,
    give,
    held_through,
    keep_certificate,
    list_full,
    new_certificates,
    new_closure,
    surely,
    with_longer_list,
    with_more_numbers,
    with_more_unnumbered,
)
from saferank.statistics.pairs import (
    Pairs,
    all_rows,
    count_win,
    duel_of,
    forget_wins,
    moved,
    moved_column,
    new_pairs,
    pairs_full,
    row_of,
    wins_by_row,
)
from saferank.verbs import Flags, Impression, Ints

DIRECT_DUELS = 256
"""Up to this number of items every pair has its row."""

FIRST_PAIRS = 2048
"""Beyond, there is room for this number of pairs at first."""


class Duels(NamedTuple):
    """Wins, and what they have ever certified."""

    pairs: Pairs
    certified: Flags  # by 2 row + side: that item was ever declared better than the other
    certificates: Certificates


class LifetimeDuels(NamedTuple):
    """What this epoch says, and what is certified."""

    pairs: Pairs  # wins in pages of this epoch
    epoch: Ints  # [2] pages issued before this epoch began, pages of an epoch
    certificates: Certificates  # all that were ever given, in every epoch again
    closure: Closure  # what follows from those that hold


AnyDuels = Duels | LifetimeDuels


def new_duels(n_items: int, n_pairs: int = FIRST_PAIRS, direct_items: int = DIRECT_DUELS) -> Duels:
    """No duel fought yet; room for ``n_pairs``, if the catalogue is too large for a row for each."""
    return _with_pairs(new_pairs(n_items, n_pairs, direct_items))


def _with_pairs(pairs: Pairs) -> Duels:
    return Duels(pairs, np.zeros(pairs.wins.shape, np.bool_), new_certificates(pairs.wins.size))


def new_lifetime_duels(n_items: int, lifetime: int, n_pairs: int = FIRST_PAIRS) -> LifetimeDuels:
    """No duel fought yet; an epoch has ``lifetime`` pages."""
    return LifetimeDuels(
        pairs=new_pairs(n_items, n_pairs, DIRECT_DUELS),
        epoch=np.array([0, lifetime], np.int64),
        certificates=new_certificates(256),
        closure=new_closure(n_items),
    )


def duels_for(n_items: int, lifetime: int | None) -> AnyDuels:
    """The store of a policy; ``lifetime`` is that of its certificates, None for no end."""
    return new_duels(n_items) if lifetime is None else new_lifetime_duels(n_items, lifetime)


# --- the certified order ---


@verb
def surely_better(duels: Any, lead_needed: Ints, i: int, j: int) -> bool:
    """beats(i, j): i is certain to be better; false for a pair that never met."""
    raise NotImplementedError


@verb
def compared_enough(duels: Any, lead_needed: Ints, i: int, j: int) -> bool:
    """True when i is so certain to be better that the two need not be compared any more."""
    raise NotImplementedError


@kernel
def _decided_by_wins(duels: Duels, lead_needed: Ints, i: int, j: int) -> bool:
    """The decision rule on the present statistics."""
    wins, losses = duel_of(duels, i, j)
    return bool(wins - losses >= lead_needed[np.uint32(wins + losses)])


implements(surely_better, Duels)(_decided_by_wins)
implements(compared_enough, Duels)(_decided_by_wins)


class Decided(NamedTuple):
    """What the decision rule says of the present wins, for a derivation that asks for the certified order."""

    duels: Duels
    lead_needed: Ints


@verb
def is_sure(certain: Any, i: int, j: int) -> bool:
    """True when i is certain to be better: it follows from certificates (``Closure``), or wins say so (``Decided``)."""
    raise NotImplementedError


implements(is_sure, Closure)(surely)


@implements(is_sure, Decided)
def _is_decided(certain: Decided, i: int, j: int) -> bool:
    return _decided_by_wins(certain.duels, certain.lead_needed, i, j)


@implements(surely_better, LifetimeDuels)
def _follows(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    return surely(duels.closure, i, j)


@implements(compared_enough, LifetimeDuels)
def _certified_in_this_epoch(duels: LifetimeDuels, lead_needed: Ints, i: int, j: int) -> bool:
    """A certificate of an epoch before has to be earned again, so only one of this epoch ends the comparison."""
    return surely(duels.closure, i, j) and held_through(duels.certificates, i, j, end_of_certificates(duels))


# --- a page is learnt ---


@verb
def record(policy: Any, evidence: Any, winner: int, loser: int, now: int) -> bool:
    """Count a win in round ``now``; True when it changes what the policy believes of the pair."""
    raise NotImplementedError


@verb
def add_win(duels: Any, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    """Count a win in round ``now``; when it leaves the pair decided keep the certificate.

    True when it changes the certified order.
    """
    raise NotImplementedError


@implements(add_win, Duels)
def _add_lasting_win(duels: Duels, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    """True when the pair became decided by it, or open again."""
    row, side = count_win(duels, winner, loser), int(winner > loser)
    wins, losses = duels.pairs.wins[2 * row + side], duels.pairs.wins[2 * row + 1 - side]
    lead, n = wins - losses, np.uint32(wins + losses)
    if lead < lead_needed[n]:
        return bool(1 - lead >= lead_needed[n - 1] and -lead < lead_needed[n])
    if not duels.certified[2 * row + side]:
        duels.certified[2 * row + side] = True
        keep_certificate(duels.certificates, winner, loser, now, ENDLESS)
    return bool(lead - 1 < lead_needed[n - 1])


@implements(add_win, LifetimeDuels)
def _add_win_of_epoch(duels: LifetimeDuels, lead_needed: Ints, winner: int, loser: int, now: int) -> bool:
    if now <= duels.epoch[0]:  # a page of an epoch before, answered late: it says nothing of this one
        return False
    row, side = count_win(duels, winner, loser), int(winner > loser)
    wins, losses = duels.pairs.wins[2 * row + side], duels.pairs.wins[2 * row + 1 - side]
    if wins - losses < lead_needed[np.uint32(wins + losses)]:
        return False
    return give(duels.certificates, duels.closure, (winner, loser), end_of_certificates(duels), now) != NOTHING


@kernel
def is_certified(duels: Duels, i: int, j: int) -> bool:
    """True when i was ever declared better than j."""
    return bool(duels.certified[2 * row_of(duels, i, j) + int(i > j)])


@kernel
def record_and_certify(policy: Any, evidence: Any, winner: int, loser: int, now: int) -> bool:
    """Count a win by the rule of the policy; True when it changes the certified order."""
    return add_win(evidence.duels, policy.lead_needed, winner, loser, now)


@kernel
def fight(policy: Any, evidence: Any, impression: Impression, clicks: Ints) -> bool:
    """Record every duel of a page: pairs of one group of which exactly one item was clicked.

    True when a record changed what the policy believes of a pair.
    """
    ranking, now = impression.ranking, impression.round[0]
    n_positions, changed = len(clicks), False
    for a in range(n_positions):
        if clicks[a]:
            for b in range(impression.start[a], impression.end[a]):
                if b >= n_positions or not clicks[b]:
                    changed |= record(policy, evidence, ranking[a], ranking[b], now)
    return changed


# --- epochs ---


@kernel
def end_of_certificates(duels: LifetimeDuels) -> int:
    """The last round in which a certificate of this epoch holds."""
    return int(duels.epoch[0] + 2 * duels.epoch[1])


@kernel
def begin_epoch(duels: LifetimeDuels, issued: int) -> bool:
    """After ``issued`` pages: if the next one belongs to a later epoch, begin that; True when it does."""
    start, length = duels.epoch[0], duels.epoch[1]
    if issued < start + length:
        return False
    duels.epoch[0] += (issued - start) // length * length
    forget_wins(duels)
    if expire(duels.certificates, duels.epoch[0] + 1):
        close(duels.certificates, duels.closure, 1)
    return True


# --- room for more ---


@verb
def crowded(duels: Any, n_new: int) -> bool:
    """True when ``n_new`` more pairs, or what they may certify, might not fit."""
    raise NotImplementedError


@implements(crowded, Duels)
def _pairs_crowded(duels: Duels, n_new: int) -> bool:
    """A pair is certified once in either direction at most, and there is room for that."""
    return pairs_full(duels, n_new)


@implements(crowded, LifetimeDuels)
def _crowded(duels: LifetimeDuels, n_new: int) -> bool:
    return pairs_full(duels, n_new) or list_full(duels.certificates, n_new) or closure_full(duels.closure, 2 * n_new)


def with_room(duels: Any, n_new: int) -> Any:
    """The same duels with room for ``n_new`` more pairs and what they may certify."""
    if pairs_full(duels, n_new):
        rows = all_rows(duels)
        duels = _with_table(duels, rows, new_pairs(1, 2 * len(rows) + n_new, direct_items=0))
    if isinstance(duels, Duels):
        return duels
    while list_full(duels.certificates, n_new):
        duels = duels._replace(certificates=with_longer_list(duels.certificates))
    while closure_full(duels.closure, 2 * n_new):
        duels = duels._replace(closure=with_more_numbers(duels.closure))
    return duels


def with_more_items(duels: Any, n_items: int, direct_items: int = DIRECT_DUELS) -> Any:
    """The same duels with room for ``n_items`` items."""
    if isinstance(duels, LifetimeDuels):
        duels = duels._replace(closure=with_more_unnumbered(duels.closure, n_items))
    if len(duels.pairs.slots):
        return duels
    rows = all_rows(duels)
    if n_items > direct_items:
        rows = rows[wins_by_row(duels)[rows].any(axis=1)]
    return _with_table(duels, rows, new_pairs(n_items, max(FIRST_PAIRS, 2 * len(rows)), direct_items))


def _with_table(duels: Any, rows: Ints, bigger: Pairs) -> Any:
    """These rows of the duels in a larger table."""
    pairs = moved(duels, rows, bigger)
    if isinstance(duels, LifetimeDuels):
        return duels._replace(pairs=pairs)
    larger = _with_pairs(pairs)
    copy_certificates(duels.certificates, larger.certificates)
    return larger._replace(certified=moved_column(duels.certified, duels.pairs, rows, pairs))
