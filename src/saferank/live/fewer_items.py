"""A learner without some of its items: what it knows of the others stays.

Certificates with a lifetime are kept for every pair, so there is a largest number of items. In a catalogue whose items
come and go, those that left long ago must make room. Evidence on a pair of items that stay is kept as it is, and so are
their certificates. What follows from certificates through an item that goes stays certain: "a over b" that was known by
"a over x" and "x over b" becomes a certificate that ends with the first of the two.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from saferank.live.learner import Learner
from saferank.policies.safe_draw.appeal import Appeal
from saferank.statistics.certificate_table import CertificateTable, new_certificate_table
from saferank.statistics.duels import Certificates, new_certificates
from saferank.statistics.lifetime_bets import LifetimeBets, new_lifetime_bets
from saferank.statistics.lifetimes import LifetimeDuels, new_lifetime_duels
from saferank.statistics.rates import Rates
from saferank.verbs import Ints

Numbers = NDArray[np.int64]


def can_lose_items(learner: Learner) -> bool:
    """True for evidence that is kept for every pair: there is a largest number of items, and some can be left out."""
    return isinstance(learner.state.duels, LifetimeBets | LifetimeDuels)


def without_items(learner: Learner, gone: Iterable[int]) -> Learner:
    """The learner, which ``can_lose_items``, without the items of these numbers.

    The others keep their order. Production's ranking, which is not known here, is the first of them.
    """
    left = set(gone)
    kept = np.array([number for number in range(len(learner.items)) if number not in left], np.int64)
    old, items = learner.state, learner.names(kept)
    duels = _fewer_duels(old.duels, kept, learner.n_positions)
    fresh = Learner(
        learner.kind.name,
        original=items[: learner.n_positions],
        candidates=items[learner.n_positions :],
        rule=learner.rule,
        horizon=learner.horizon,
        lifetime=learner.lifetime,
        examination=learner.setup.examination,
    )
    fresh.state = fresh.state._replace(round=old.round.copy(), learned=old.learned.copy(), duels=duels)
    if hasattr(old, "appeal") and hasattr(fresh.state, "appeal"):
        fresh.state = fresh.state._replace(appeal=_fewer_appeal(old.appeal, kept))
    fresh.regroup(learner.present[kept])
    if hasattr(old, "rates") and hasattr(fresh.state, "rates"):
        fresh.state = fresh.state._replace(rates=_fewer_rates(old.rates, kept))
    return fresh


def _fewer_duels(duels: LifetimeDuels | LifetimeBets, kept: Numbers, n_positions: int) -> LifetimeDuels | LifetimeBets:
    if isinstance(duels, LifetimeBets):
        return _fewer_bets(duels, kept)
    fewer = new_lifetime_duels(len(kept), n_positions, int(duels.epoch[1]))
    return fewer._replace(
        wins=duels.wins[np.ix_(kept, kept)],
        epoch=duels.epoch.copy(),
        table=_fewer_certificates(duels.table, kept),
        changed=np.ones(1, np.int64),
        certificates=_fewer_given(duels.certificates, kept, len(duels.pool), len(fewer.certificates.better)),
    )


def _fewer_bets(bets: LifetimeBets, kept: Numbers) -> LifetimeBets:
    before = int(bets.n_items[0])
    fewer = new_lifetime_bets(len(kept), int(bets.epoch[1]))
    rows = (kept[:, None] * before + kept).ravel()
    tables = zip((*bets.book, *_streams(bets)), (*fewer.book, *_streams(fewer)), strict=True)
    for old, new in tables:
        new[...] = old[rows]
    return fewer._replace(
        epoch=bets.epoch.copy(),
        table=_fewer_certificates(bets.table, kept),
        certificates=_fewer_given(bets.certificates, kept, before, len(fewer.certificates.better)),
    )


def _streams(bets: LifetimeBets) -> tuple[NDArray[np.float64], ...]:
    return bets.current, bets.previous, bets.surge


def _fewer_certificates(table: CertificateTable, kept: Numbers) -> CertificateTable:
    fewer, expires = new_certificate_table(len(kept)), table.expires.copy()
    for item in sorted(set(range(len(expires))) - set(kept.tolist())):
        above, below = np.flatnonzero(expires[:, item]), np.flatnonzero(expires[item])
        through = np.minimum(expires[above, item][:, None], expires[item, below])
        expires[np.ix_(above, below)] = np.maximum(expires[np.ix_(above, below)], through)
        expires[item], expires[:, item] = 0, 0
    fewer.expires[...] = expires[np.ix_(kept, kept)]
    fewer.dropped[...] = table.dropped[np.ix_(kept, kept)]
    fewer.above[...] = table.above[np.ix_(kept, kept)]
    fewer.alarms[0] = table.alarms[0]
    return fewer


def _new_numbers(kept: Numbers, before: int) -> Ints:
    """By old number of an item: its new one, -1 for one that goes."""
    numbers = np.full(before, -1, np.int64)
    numbers[kept] = np.arange(len(kept))
    return numbers


def _fewer_given(given: Certificates, kept: Numbers, before: int, room: int) -> Certificates:
    """The certificates that were ever given, those among items that stay."""
    size, numbers = int(given.given[0]), _new_numbers(kept, before)
    better, worse, rounds = numbers[given.better[:size]], numbers[given.worse[:size]], given.round[:size]
    both = (better >= 0) & (worse >= 0)
    fewer = new_certificates(max(room, 2 * int(both.sum())))
    for array, values in zip(fewer[:3], (better, worse, rounds), strict=True):
        array[: both.sum()] = values[both]
    fewer.given[0] = both.sum()
    return fewer


def _fewer_appeal(appeal: Appeal, kept: Numbers) -> Appeal:
    size = int(appeal.n_tried[0])
    tried = _new_numbers(kept, len(appeal.clicks))[appeal.tried[:size]]
    tried = tried[tried >= 0]
    return appeal._replace(
        clicks=appeal.clicks[kept],
        exposure=appeal.exposure[kept],
        guess=appeal.guess[kept],
        place_clicks=appeal.place_clicks.copy(),
        pages=appeal.pages.copy(),
        tried=np.append(tried, np.zeros(len(kept) - len(tried), np.int64)),
        n_tried=np.array([len(tried)], np.int64),
    )


def _fewer_rates(rates: Rates, kept: Numbers) -> Rates:
    return rates._replace(clicks=rates.clicks[kept], exposure=rates.exposure[kept])
