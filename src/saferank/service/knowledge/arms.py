"""The kinds of pages that are served, served pages beside the holdout, the guardrails, and what shadow pages tell."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.service.wire.views import Arm
from saferank.statistics.effect import ArmComparison, Guardrail, from_numbers
from saferank.statistics.effect.stakes import log_evidence, stakes_for
from saferank.store.page_record import BASE, LEADER, OVER, PageRecord
from saferank.store.record_columns import ARM, FLAGS, ISSUED_AT, SHARE, USED, ClosedPages, Columns, K, is_pinned
from saferank.verbs import Flags, Floats, Ints

ARMS: tuple[Arm, ...] = get_args(Arm)
EXPLORE, HOLDOUT, OFF, SHADOW, REPEAT = range(5)

assert ARMS == ("explore", "holdout", "off", "shadow", "repeat")


@kernel
def takes_part(arm: int, share: float) -> bool:
    """True for pages of which a visitor's first in a window counts: explored or in the holdout by its coin.

    The share may be a number or its bits. A page that was to be explored and failed its check is production's
    (``off``), and keeps its share: to leave it out of the comparison would depend on the coin.
    """
    return bool(arm in (EXPLORE, HOLDOUT) or share > 0)


# --- served pages beside the holdout, as the fold of a context keeps them (docs/engineers/effect.md) ---
# Counted pages are compared when a coin could have put them into the holdout. All of it is sums in the log's order, so
# a replay and a server that takes over come to the same numbers, bit for bit.


MOST_CLICKS = 10
"""Clicks of one page that are compared at most; those beyond are left out, in both arms alike.

The bound of the outcome is fixed for the life of a comparison, and evidence is paid for by it: with a bound of 100 a
loss of half of the clicks would be found several times later. Ten covers nearly all pages that people click on.
"""

MOST_BINS = 400
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
DAY_HOURS, FINE_HOURS = 24, 48
"""Pages are summed by the hour in the first two days of a context, and by the day afterwards."""

Outcomes = tuple[ArmComparison, ArmComparison]
"""Clicks, and pages with a click."""

NO_PAGES: Outcomes = (ArmComparison(), ArmComparison())


def _no_sums() -> Floats:
    return np.zeros((2, len(ArmComparison().numbers())))


def _outcomes(sums: Floats) -> Outcomes:
    clicks, clicked = sums.tolist()
    return from_numbers(clicks), from_numbers(clicked)


BALANCE_ERROR = 1e-6
"""Probability, over all time, that a context whose arms are as the coins put them is said to be out of balance."""

BALANCE_NEEDED = -math.log(BALANCE_ERROR)


class Balance(NamedTuple):
    """Compared pages in the holdout beside what their coins promised: a sequential test of the ratio of the arms.

    A page adds d = (1 in the holdout, else 0) - share to the excess, and d^2 to the square. While the coins decide, the
    excess is a martingale; bets on both signs (``stakes.py``) reach 1/error with probability at most the error. An arm
    that loses pages on their way, or callers that keep the pages they like, is found before it is taken for an effect.
    """

    excess: float = 0.0
    square: float = 0.0

    @property
    def is_off(self) -> bool:
        """True when the coins do not explain the ratio. It may be in balance again later."""
        more = log_evidence(stakes_for(0.5), self.excess, self.square)
        fewer = log_evidence(stakes_for(1.0), -self.excess, self.square)
        return float(max(more, fewer)) - math.log(2) >= BALANCE_NEEDED

    def sentence(self, holdout: int, pages: int) -> str:
        """What is wrong, for people."""
        return (
            f"{holdout} of {pages} compared pages are in the holdout and the coins promised "
            f"{holdout - self.excess:.0f}: pages of one arm are lost or picked on their way, so what they tell "
            "of clicks is withheld"
        )


def summed(balances: Iterable[Balance]) -> Balance:
    """Several contexts together: every page has a coin of its own."""
    found = list(balances)
    return Balance(math.fsum(one.excess for one in found), math.fsum(one.square for one in found))


class CountedPages(NamedTuple):
    """The compared columns of counted pages of one day, in order."""

    issued_at: Ints
    served: Flags  # False: it is in the holdout
    share: Floats  # its chance to be in the holdout when it was issued; 0: none
    clicks: Ints
    chosen: Flags  # by the policy ...
    change: Ints  # ... and how: UNCHANGED, PROVEN or LEARNING


def empty_columns(size: int) -> CountedPages:
    """Room for counted pages."""
    issued_at, clicks, change = np.zeros((3, size), np.int64)
    served, chosen = np.zeros((2, size), np.bool_)
    return CountedPages(issued_at, served, np.zeros(size), clicks, chosen, change)


UNCHANGED, PROVEN, LEARNING = range(3)
"""A page that the policy chose is production's; or another because certificates prove it better; or to learn."""


class Sums(NamedTuple):
    """Sums that a fold keeps."""

    tallies: Ints  # [arm, which] closed pages, those with clicks, clicks
    facts: Ints  # [4] the worst page, checked pages, illegal ones, pages with clicks of these pages


def counted_pages(pages: ClosedPages, counted: Flags, sums: Sums) -> CountedPages:
    """Add pages to the sums; those that count, as columns."""
    columns, found = pages.columns, empty_columns(int(counted.sum()))
    _count(columns, pages.words, columns.numbers.view(np.float64), pages.at, counted, sums, found)
    return found


@kernel
def _bits_in(words: NDArray[np.uint64]) -> int:
    found = 0
    for number in range(len(words)):
        word = words[number]
        while word:
            word &= word - np.uint64(1)
            found += 1
    return found


@kernel
def _differs_from_base(columns: Columns, at: int) -> bool:
    """True for a page that names production's page and chose another."""
    row, chosen, differs = columns.numbers[at], 0, False
    if row[FLAGS] & BASE:
        for place in range(row[K]):
            if not is_pinned(columns, at, place):
                differs |= columns.base[at, place] != chosen
                chosen += 1
    return differs


@kernel
def _count(
    columns: Columns, words: NDArray[np.uint64], floats: Floats, at: Ints, counted: Flags, sums: Sums, out: CountedPages
) -> None:
    size = 0
    for place in range(len(at)):
        number = at[place]
        row, clicks = columns.numbers[number], _bits_in(words[number])
        arm = row[ARM]
        tally = sums.tallies[arm if counted[place] or not takes_part(arm, row[SHARE]) else REPEAT]
        tally[0] += 1
        tally[1] += int(clicks > 0)
        tally[2] += clicks
        if arm == EXPLORE:
            sums.facts[0] = max(sums.facts[0], row[USED])
            sums.facts[1] += 1
        sums.facts[2] += int(row[USED] == OVER)
        sums.facts[3] += int(clicks > 0)
        if counted[place]:
            out.issued_at[size], out.share[size], out.clicks[size] = row[ISSUED_AT], floats[number, SHARE], clicks
            out.served[size], out.chosen[size], out.change[size] = arm != HOLDOUT, arm == EXPLORE, UNCHANGED
            if _differs_from_base(columns, number):
                out.change[size] = PROVEN if row[FLAGS] & LEADER else LEARNING
            size += 1


@dataclass
class Bin:
    """The counted pages of an hour or a UTC day: sums of those that were compared, and why the policy's pages differed.

    ``estimates`` are weight times the mean clicks of a page, served and holdout: their ratio over any bins and contexts
    is the estimate of ``relative_difference``. Plain means would compare pages that no coin has made comparable.
    """

    served: list[int] = field(default_factory=lambda: [0, 0, 0])  # compared: pages, those with clicks, clicks
    holdout: list[int] = field(default_factory=lambda: [0, 0, 0])
    estimates: list[float] = field(default_factory=lambda: [0.0, 0.0])
    chosen: list[int] = field(default_factory=lambda: [0, 0, 0])  # by the policy: UNCHANGED, PROVEN, LEARNING pages
    clicked: int = 0  # closed pages with clicks, of all arms: the traffic that there is to learn from

    def facts(self) -> tuple[list[int], list[int], list[float], list[int], int]:
        """For a publication; ``Bin(*facts)`` gives it back exactly."""
        return self.served, self.holdout, self.estimates, self.chosen, self.clicked

    def add(self, other: "Bin") -> None:
        """Add the sums of another bin."""
        self.served, self.holdout = _sums(self.served, other.served), _sums(self.holdout, other.holdout)
        self.estimates = _sums(self.estimates, other.estimates)
        self.chosen = _sums(self.chosen, other.chosen)
        self.clicked += other.clicked

    def compare_again(self) -> None:
        """Forget what was compared."""
        self.served, self.holdout, self.estimates = [0, 0, 0], [0, 0, 0], [0.0, 0.0]

    @property
    def lift(self) -> float | None:
        """Clicks a page of the served relative to the holdout, minus 1; None while nothing can be said."""
        served, holdout = self.estimates
        return served / holdout - 1 if served > 0 and holdout > 0 else None


@kernel
def _compare_page(arms: Floats, served: bool, share: float, outcome: float, most: float) -> tuple[float, float]:
    """``with_page`` on ten numbers, to the last digit; what the page adds to the estimates, served and holdout."""
    mean = min((arms[1] + arms[5] + 0.5) / (arms[0] + arms[4] + 1.0), most / 2.0)
    weight, first = share * (1.0 - share), 4 if served else 0
    score = (share if served else 1.0 - share) * (outcome - mean)
    arms[first] += 1.0
    arms[first + 1] += outcome
    arms[first + 2] += score
    arms[first + 3] += score * score
    arms[8] += weight
    arms[9] += weight * mean
    return weight * mean + (score if served else 0.0), weight * mean + (0.0 if served else score)


@kernel
def _compare_pages(
    pages: CountedPages, begin: int, since: int, most: int, limit: float, arms: Floats, balance: Floats, into: Floats
) -> int:
    """Compare pages from ``begin`` on, until the square of the excess is ``limit`` times the square; the next page.

    ``into`` are the sums of a bin: of the served and of the holdout pages, those with clicks, clicks; two estimates;
    pages that the policy chose, by change.
    """
    for number in range(begin, len(pages.share)):
        share, served = pages.share[number], pages.served[number]
        if pages.chosen[number]:
            into[8 + pages.change[number]] += 1.0
        if pages.issued_at[number] > since and 0.0 < share <= 0.5:
            outcome, tally = min(pages.clicks[number], most), 0 if served else 3
            clicked = min(outcome, 1)
            into[tally] += 1.0
            into[tally + 1] += clicked
            into[tally + 2] += outcome
            distance = -share if served else 1.0 - share
            balance[0] += distance
            balance[1] += distance * distance
            of_served, of_holdout = _compare_page(arms[0], served, share, outcome, most)
            into[6] += of_served
            into[7] += of_holdout
            _compare_page(arms[1], served, share, clicked, 1.0)
            if limit > 0.0 and balance[0] * balance[0] >= limit * balance[1]:
                return number + 1
    return len(pages.share)


Number = TypeVar("Number", int, float)


def _sums(one: list[Number], other: list[Number]) -> list[Number]:
    return [mine + theirs for mine, theirs in zip(one, other, strict=True)]


class ComparedArms:
    """The comparison of a context. Pages issued until ``since`` are not in it."""

    def __init__(self, most: int) -> None:
        self.most = most  # the largest outcome of a page
        # the numbers of clicks and of pages with a click
        self._now = _no_sums()  # since the context was switched on again after a stop, or from the beginning
        self._earlier = _no_sums()  # before, but since the whole tenant was switched on again
        self.since = 0
        self.balance, self.was_off = Balance(), False  # of the pages of now; if it was ever off, an alarm told
        self.bins: dict[int, Bin] = {}  # by the hour, since 1970, in which they begin; the oldest holds all before it
        self.fine_until = 0  # bins that begin before this hour are of one hour; 0: there are none yet

    @classmethod
    def of_page_size(cls, k: int) -> "ComparedArms":
        """The comparison of a context that was opened with pages of ``k`` items."""
        return cls(max(1, min(k, MOST_CLICKS)))

    @property
    def now(self) -> Outcomes:
        """The comparison of the context itself."""
        return _outcomes(self._now)

    @property
    def whole(self) -> Outcomes:
        """What the context adds to the comparison over all contexts of its tenant."""
        return _outcomes(self._earlier + self._now)

    @property
    def days(self) -> dict[int, Bin]:
        """By UTC day number."""
        return by_day(self.bins.items())

    def runs(self, issued_at: Ints) -> Iterator[slice]:
        """Where pages in display order are of one bin."""
        begin = 0
        while begin < len(issued_at):
            hour, size = self._span(int(issued_at[begin]))
            end = int(np.searchsorted(issued_at, (hour + size) * HOUR_MS))
            yield slice(begin, end)
            begin = end

    def _span(self, issued_at: int) -> tuple[int, int]:
        """The bin of a page: the hour in which it begins, and its hours."""
        hour = issued_at // HOUR_MS
        self.fine_until = self.fine_until or hour + FINE_HOURS
        return (hour, 1) if hour < self.fine_until else (hour // DAY_HOURS * DAY_HOURS, DAY_HOURS)

    def count(self, pages: CountedPages) -> tuple[int, str] | None:
        """Take in counted pages of one bin; when and how they brought the arms out of balance, if so."""
        into = self._bin(int(pages.issued_at[0]))
        balance = np.array(self.balance)
        sums = np.array([*into.served, *into.holdout, *into.estimates, *into.chosen], np.float64)
        done, told = 0, None
        while done < len(pages.share):
            limit = 0.0 if self.was_off else 2 * BALANCE_NEEDED  # below it no bet can have won
            done = _compare_pages(pages, done, self.since, self.most, limit, self._now, balance, sums)
            self.balance = Balance(*balance.tolist())
            if 0.0 < limit * self.balance.square <= self.balance.excess**2 and self.balance.is_off:
                n_holdout, n_served = self._now[0, [0, 4]].astype(np.int64).tolist()
                self.was_off, said = True, self.balance.sentence(n_holdout, n_holdout + n_served)
                told = int(pages.issued_at[done - 1]), said
        counts = sums.astype(np.int64).tolist()
        into.served, into.holdout, into.chosen, into.estimates = counts[:3], counts[3:6], counts[8:], sums[6:8].tolist()
        return told

    def count_clicked(self, issued_at: int, pages: int) -> None:
        """Take in closed pages with clicks of one bin."""
        if pages:
            self._bin(issued_at).clicked += pages

    def _bin(self, issued_at: int) -> Bin:
        hour, _ = self._span(issued_at)
        found = self.bins.get(hour)
        if found is None:
            found = self.bins[hour] = Bin()
            if len(self.bins) > MOST_BINS:
                oldest, next_oldest = sorted(self.bins)[:2]
                self.bins[next_oldest].add(self.bins.pop(oldest))
                found = self.bins[max(hour, next_oldest)]
        return found

    def restart(self, at: int, whole: bool) -> None:
        """Begin again with pages issued after a time; ``whole``: the part in the tenant's comparison as well.

        The tenant's comparison keeps what a context had before its own restart: sums that are dropped at a moment that
        depends on them would make its evidence worthless. Bins belong to the tenant's comparison.
        """
        for part in self.bins.values() if whole else ():
            part.compare_again()
        self._earlier = _no_sums() if whole else self._earlier + self._now
        self._now, self.since = _no_sums(), at
        self.balance, self.was_off = Balance(), False

    def facts(self) -> dict[str, Any]:
        """For a publication; ``compared_arms`` gives it back exactly."""
        return {
            "most": self.most,
            "now": self._now.tolist(),
            "earlier": self._earlier.tolist(),
            "since": self.since,
            "balance": [*self.balance, self.was_off],
            "fine_until": self.fine_until,
            "bins": [[hour, *part.facts()] for hour, part in sorted(self.bins.items())],
        }


def compared_arms(facts: dict[str, Any]) -> ComparedArms:
    """The comparison with these ``facts()``."""
    compared = ComparedArms(facts["most"])
    compared._now, compared._earlier = np.array(facts["now"], np.float64), np.array(facts["earlier"], np.float64)
    compared.since, compared.fine_until = facts["since"], facts["fine_until"]
    *balance, compared.was_off = facts["balance"]
    compared.balance = Balance(*balance)
    compared.bins = {hour: Bin(*part) for hour, *part in facts["bins"]}
    return compared


def by_day(bins: Iterable[tuple[int, Bin]]) -> dict[int, Bin]:
    """The sums of bins, each with the hour in which it begins, by UTC day number."""
    days: dict[int, Bin] = {}
    for hour, part in bins:
        days.setdefault(hour // DAY_HOURS, Bin()).add(part)
    return days


TRAFFIC_DAYS = 28
"""The count of clicked pages decays to 1/e in this number of days: a week of holidays does not switch a context off."""


def waits_for_traffic(days: Mapping[int, Bin], today: int, lifetime_ms: int, least: float) -> bool:
    """True while a context has too little to learn from: its clicked pages, projected over a certificate's lifetime.

    Asked at the end of each day before ``today`` (UTC day numbers): the wait ends at ``least`` and begins again below
    half of it. With certificates that never end, one click is enough.
    """
    decay, count, learns, last = math.exp(-1 / TRAFFIC_DAYS), 0.0, False, 0
    lifetime = lifetime_ms / DAY_MS * (1 - decay) if lifetime_ms else math.inf
    for number in [*sorted(number for number in days if number < today), today - 1]:
        count *= decay ** (number - last)  # it only falls in between: to ask at the end of a gap is enough
        learns = learns and count > 0 and count * lifetime >= least / 2
        count += days[number].clicked if number in days and number != last else 0
        learns = learns or (count > 0 and count * lifetime >= least)
        last = number
    return not learns


# --- the guardrails of a tenant: one for each context and one over all contexts share the error probability ---


GUARDRAIL_ERROR = 0.01
"""Probability, over all time, contexts and looks, that a guardrail stops without a loss: one service in 100. A
smaller one would find losses later."""


def context_guardrail(drop: float, number: int, most: int) -> Guardrail:
    """The guardrail of context ``number``, which counts contexts from 1 as they are opened.

    Over all contexts that there will ever be, error / (2 n (n + 1)) sums up to at most half of the error.
    """
    return Guardrail(drop, GUARDRAIL_ERROR / (2 * number * (number + 1)), most)


def tenant_guardrail(drop: float, most: int) -> Guardrail:
    """The guardrail over all contexts of a tenant has the other half."""
    return Guardrail(drop, GUARDRAIL_ERROR / 2, most)


# --- what shadow pages tell: production's page was shown, and the policy's page is in the record beside it ---
# A shadow page is counted when its window closes. The counts say how far the policy's pages are from production's, and
# how many clicks are known of them although no visitor saw them. The policy's page does not depend on the clicks: its
# coins are drawn before. So on the pages where the two agree, the clicks are those of the policy's page as well.
# On the others they are known only as far as a click model says that they do not depend on what differs.
#
# The policy's exact chance of drawing production's page would do better than asking whether it did. It is not in the
# record: pages that are not safe are drawn again, and by how much that raises the others depends on every page there
# is.


class ShadowCounts(NamedTuple):
    """Sums over closed shadow pages. Places count from 0; a click is counted at most once a place."""

    pages: int = 0
    same: int = 0  # the policy chose production's page
    clicks: int = 0  # on production's pages, all of them
    same_clicks: int = 0  # on those that the policy chose too
    exchanged_pairs: int = 0  # see exchanged_pairs()
    new_items: int = 0  # items of the policy's pages that production's did not show
    places: int = 0  # of differing pages: all places ...
    top_places: int = 0  # ... those above the first one that differs ...
    top_clicks: int = 0  # ... and the clicks on them
    kept_places: int = 0  # of differing pages: places with the same item on both
    kept_clicks: int = 0


def with_shadow_page(counts: ShadowCounts, record: PageRecord, clicks: int) -> ShadowCounts:
    """The counts with one more closed page of the shadow arm."""
    if len(record.row) < record.positions:  # it does not say what the policy chose
        return counts
    return total((counts, _counts_of(record, clicks)))


def total(counts: Iterable[ShadowCounts]) -> ShadowCounts:
    """The sums of several counts."""
    return ShadowCounts(*map(sum, zip(ShadowCounts(), *counts, strict=True)))


def _counts_of(record: PageRecord, clicks: int) -> ShadowCounts:
    shown, chosen, clicked = record.shown, record.chosen, clicks.bit_count()
    if shown == chosen:
        return ShadowCounts(pages=1, same=1, clicks=clicked, same_clicks=clicked)
    kept = [ours == theirs for ours, theirs in zip(shown, chosen, strict=True)]
    kept_bits = sum(1 << place for place, is_kept in enumerate(kept) if is_kept)
    top = kept.index(False)
    return ShadowCounts(
        pages=1,
        clicks=clicked,
        exchanged_pairs=exchanged_pairs(shown, chosen),
        new_items=len(set(chosen) - set(shown)),
        places=record.k,
        top_places=top,
        top_clicks=(clicks & ((1 << top) - 1)).bit_count(),
        kept_places=sum(kept),
        kept_clicks=(clicks & kept_bits).bit_count(),
    )


def exchanged_pairs(one: Sequence[str], other: Sequence[str]) -> int:
    """Pairs of items that two pages show in opposite orders; an item that is not on a page is below those that are.

    >>> exchanged_pairs("abc", "bac"), exchanged_pairs("abc", "abx"), exchanged_pairs("abc", "xab")
    (1, 1, 3)
    """
    end = len(one) + len(other)
    first = {item: place for place, item in enumerate(one)}
    second = {item: place for place, item in enumerate(other)}
    places = [(first.get(item, end), second.get(item, end)) for item in {**first, **second}]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(places, 2))
