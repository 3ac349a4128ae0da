"""What means hide: single queries, and the worst pages in clicks, beside the original ranking.

A policy is *better* or *worse* on a query when its regret differs from OriginalRank's by more than chance (Student's t
at 5 %); else they are *equal*. A single repetition does not tell. On a query where the original ranking is the best
one, OriginalRank has no regret: the share is infinite there, and every policy that explores is worse.

Safety in clicks: expected clicks beside those of the original ranking, on the worst page and summed up early on.

The measures are those of the runs: ``worst_page`` is the smallest ratio of a single page, ``clicks_relative`` the ratio
of all pages so far. Violations count pairs that are the wrong way round; this says what they cost.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saferank.reporting.looks import curve_name, policy_name
from saferank.reporting.numbers import freedom_of, is_clear, plainly
from saferank.reporting.runs import Key, measure_of
from saferank.simulation.results import Result
from saferank.simulation.runs import Runs
from saferank.verbs import Floats, Ints

ORIGINAL = "original"
_NOTHING = 1e-6
BETTER, EQUAL, WORSE = "better", "equal", "worse"


@dataclass(frozen=True)
class Share:
    """One policy on one query: its regret as a share of OriginalRank's, infinite where that has none."""

    instance: str
    share: float
    outcome: str | None  # None: a single repetition does not tell


@dataclass(frozen=True)
class Spread:
    """One policy under one click model over all queries, sorted by share."""

    policy: str
    model: str
    shares: list[Share]
    high: float | None  # regret that 99 % of the runs stay below; None without runs
    worst: float | None  # the largest regret of a run
    worst_on: str | None

    @property
    def judged(self) -> bool:
        """False where single repetitions leave everything open."""
        return all(each.outcome is not None for each in self.shares)

    def count(self, outcome: str) -> int | str:
        """On how many queries; a dash where nothing is judged."""
        return sum(each.outcome == outcome for each in self.shares) if self.judged else "-"

    @property
    def counts(self) -> str:
        """Better, equal, worse.

        >>> Spread("p", "cm", [Share("q", 0.5, BETTER), Share("r", 2.0, WORSE)], None, None, None).counts
        '1 / 0 / 1'
        """
        if not self.judged:
            return "-"
        return " / ".join(str(self.count(outcome)) for outcome in (BETTER, EQUAL, WORSE))

    @property
    def median(self) -> str:
        """The share in the middle."""
        return in_words(float(np.median([each.share for each in self.shares])))

    @property
    def largest(self) -> str:
        """The largest share that is finite, and how many are not."""
        finite = [each.share for each in self.shares if math.isfinite(each.share)]
        return in_words(max(finite)) if finite else "-"

    @property
    def name(self) -> str:
        """The policy's title."""
        return curve_name(self.policy)

    @property
    def tail(self) -> str:
        """Regret of the run at 99 % and of the worst run."""
        if self.high is None or self.worst is None:
            return "-"
        return f"{plainly(round(self.high, 1))} / {plainly(round(self.worst, 1))}"


def spreads(results: Sequence[Result], runs: Mapping[Key, Runs] | None = None) -> dict[str, list[Spread]]:
    """By click model the spread of every policy but OriginalRank; models without OriginalRank are left out."""
    original = {(r.model, r.instance): r for r in results if r.policy == ORIGINAL}
    others = [r for r in results if r.policy != ORIGINAL and (r.model, r.instance) in original]
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in others:
        groups.setdefault((result.model, result.policy), []).append(result)
    found: dict[str, list[Spread]] = {}
    for (model, policy), group in groups.items():
        shares = [share_of(result, original[model, result.instance]) for result in group]
        tail = _tail(group, runs)
        spread = Spread(policy, model, sorted(shares, key=lambda each: each.share), *tail)
        found.setdefault(model, []).append(spread)
    return found


def share_of(result: Result, original: Result) -> Share:
    """A policy beside OriginalRank at the last round."""
    own, base = result.regret_mean[-1], original.regret_mean[-1]
    errors = [result.regret_stderr[-1], original.regret_stderr[-1]]
    known = [(error, one.repetitions - 1) for error, one in zip(errors, (result, original), strict=True) if error]
    difference = own - base if abs(own - base) > _NOTHING else 0.0
    stderr = None if None in errors else math.hypot(*(error for error, _ in known))
    runs = min(result.repetitions, original.repetitions)
    clear = is_clear(difference, stderr, freedom_of(known) if known else runs - 1)
    outcome = None if clear is None else EQUAL if not clear else BETTER if difference < 0 else WORSE
    share = own / base if base > _NOTHING else (1.0 if difference == 0 else math.inf)
    return Share(result.instance, share, outcome)


def _tail(group: Sequence[Result], runs: Mapping[Key, Runs] | None) -> tuple[float | None, float | None, str | None]:
    """The 99 % quantile and the largest regret of all runs on all queries, and where the largest was."""
    if runs is None:
        return None, None, None
    finals = {r.instance: measure_of(runs[r.instance, r.model, r.policy], "regret")[:, -1] for r in group}
    where = max(finals, key=lambda instance: float(finals[instance].max()))
    together = np.concatenate(list(finals.values()))
    return float(np.quantile(together, 0.99)), float(together.max()), where


def in_words(share: float) -> str:
    """A share with two digits behind the point.

    >>> in_words(0.2314), in_words(math.inf)
    ('0.23', '∞')
    """
    return "∞" if math.isinf(share) else f"{share:,.2f}"


def finding(found: Mapping[str, Sequence[Spread]], policies: Sequence[str]) -> list[str]:
    """For each of these policies and click models on how many queries it is worse, in a sentence."""
    sentences = []
    for policy in policies:
        own = [each for of_model in found.values() for each in of_model if each.policy == policy and each.judged]
        each = [f"{s.count(WORSE)} of {len(s.shares)} under {s.model.upper()}" for s in own]
        if each:
            sentences.append(f"{curve_name(policy)} has more regret than {policy_name(ORIGINAL)} on {_and(each)}.")
    return sentences


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


PAGES = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Ratio:
    """Of all runs on all queries: the mean and the lowest."""

    mean: float
    lowest: float

    def __str__(self) -> str:
        """The mean, and the lowest in brackets.

        >>> str(Ratio(0.987, 0.5))
        '0.987 (0.500)'
        """
        return f"{self.mean:.3f} ({self.lowest:.3f})"


@dataclass(frozen=True)
class ClickRow:
    """One policy under one click model."""

    policy: str
    worst_page: Ratio
    after: list[Ratio]

    @property
    def name(self) -> str:
        """The policy's title."""
        return curve_name(self.policy)


@dataclass(frozen=True)
class ClickTable:
    """One click model: rows, and after how many pages the sums are taken."""

    model: str
    pages: list[int]
    rows: list[ClickRow]


def click_tables(runs: Mapping[Key, Runs], models: Sequence[str], policies: Sequence[str]) -> list[ClickTable]:
    """One table for each click model."""
    rounds = next(iter(runs.values())).rounds
    places = early_places(rounds)
    tables = []
    for model in models:
        found = {p: [own for (_, m, q), own in runs.items() if (m, q) == (model, p)] for p in policies}
        rows = [_row(policy, own, places) for policy, own in found.items() if own]
        tables.append(ClickTable(model, [int(rounds[place]) for place in places], rows))
    return tables


def early_places(rounds: Ints) -> list[int]:
    """The kept checkpoints nearest to 100, 1,000 and 10,000 pages that the run has, and the last one.

    >>> early_places(np.array([10, 121, 1000, 5000])), early_places(np.array([40]))
    ([1, 2, 3], [0])
    """
    wanted = [pages for pages in PAGES if pages <= rounds[-1]]
    nearest = [int(np.argmin(np.abs(np.log(rounds / pages)))) for pages in wanted]
    return list(dict.fromkeys([*nearest, len(rounds) - 1]))


def _row(policy: str, own: Sequence[Runs], places: Sequence[int]) -> ClickRow:
    worst = _together([measure_of(runs, "worst_page")[:, -1] for runs in own])
    sums = [_together([measure_of(runs, "clicks_relative")[:, place] for runs in own]) for place in places]
    return ClickRow(policy, worst, sums)


def _together(by_query: Sequence[Floats]) -> Ratio:
    """Queries weigh alike; all have the same number of runs."""
    values = np.concatenate(list(by_query))
    return Ratio(float(values.mean()), float(values.min()))
