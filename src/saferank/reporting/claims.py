"""The claims of the paper, as data, and what the results say about each.

Verdicts: what a measured difference says about a claim.

With a difference d in the claimed direction and its standard error e: the claim *holds* when d >= t e, it *does not
hold* when d <= -t e, and otherwise it is *undecided*. t is 3, or what Student's t asks for where runs are few (4.1 for
ten runs of one query): a claim about equal means passes with probability 0.13 %. Exact numbers need no errors:
"never violates" holds for no violation at all and fails for a single one.

A *question* is who is compared with whom on which queries; under a click model it becomes a *claim* with a verdict, or
it is *not run*. Questions are asked under the paper's two click models, and under others that the results have.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from saferank.reporting.frames import in_order, sound
from saferank.reporting.looks import PAPER_MODELS, model_name, policy_name
from saferank.reporting.numbers import Measured, student
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import ReportError, Run

ALL, OPTIMAL, NONE_OF_BEST = "all", "optimal", "none_of_best"
PHRASES = {
    ALL: "on all queries",
    OPTIMAL: "on the query whose original ranking is optimal",
    NONE_OF_BEST: "on the query whose original ranking holds none of the best",
}
PAPER_SAYS = {
    ALL: "all four learn and end below OriginalRank, TopRank and UniRank below KL-UCB-BR, and KL-UCB-BR below "
    "BubbleRank; but TopRank and UniRank violate safety, which the other two never do.",
    OPTIMAL: "OriginalRank has no regret; KL-UCB-BR and BubbleRank, which are safe, end below TopRank and UniRank, and "
    "KL-UCB-BR ends below BubbleRank.",
    NONE_OF_BEST: "TopRank and UniRank end below KL-UCB-BR, and KL-UCB-BR below BubbleRank; under CM, KL-UCB-BR "
    "improves clearly on OriginalRank, and BubbleRank hardly.",
}
"""What the paper says of its three figures, in words; ``PAPER`` has it as data."""
_SHORTFALL = {OPTIMAL: "wrong_pairs", NONE_OF_BEST: "best_missing"}


@dataclass(frozen=True)
class Place:
    """Some queries of a run and the curves of every policy on them."""

    key: str
    curves: list[Pooled]
    instance: str | None = None
    lapses: Mapping[str, str] = field(default_factory=dict)
    """By model: what the original ranking has that it should not, in words; nothing where the query is as it should."""

    @property
    def proper(self) -> list[Pooled]:
        """The curves under the click models under which the queries are what the place says."""
        return [curve for curve in self.curves if curve.model not in self.lapses]

    def curve(self, policy: str, model: str) -> Pooled | None:
        """One curve, if it was run."""
        return next((c for c in self.curves if (c.policy, c.model) == (policy, model)), None)


def places_of(run: Run, chosen: Mapping[str, str]) -> dict[str, Place]:
    """All queries, and the characteristic ones that the results name or that were ``chosen`` (instance ids by key)."""
    found = {ALL: Place(ALL, _curves(run))}
    for key in (OPTIMAL, NONE_OF_BEST):
        place = _chosen(run, key, chosen[key]) if key in chosen else _named(run, key)
        if place is not None:
            found[key] = place
    return found


def _curves(run: Run, instance: str | None = None) -> list[Pooled]:
    means = run.means if instance is None else run.means.filter(instance=instance)
    return sorted(pooled(means), key=lambda curve: run.models.index(curve.model))


def _chosen(run: Run, key: str, name: str) -> Place:
    instance = sound(name)
    known = in_order(run.means, "instance")
    if instance not in known:
        some = ", ".join(map(repr, known[:5])) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
        raise ReportError(f"{run.path}: no results of instance {instance!r}; there are {some}")
    return Place(key, _curves(run, instance), instance)


def _named(run: Run, key: str) -> Place | None:
    """The query that ``saferank reproduce`` found, if its results are there."""
    special = run.reproduction.get("special")
    facts: Any = special.get(key) if isinstance(special, dict) else None
    if not isinstance(facts, dict) or facts.get("instance") not in in_order(run.means, "instance"):
        return None
    measure = facts.get(_SHORTFALL[key])
    counts = {m: n for m, n in measure.items() if isinstance(n, int)} if isinstance(measure, dict) else {}
    lapses = {model: words for model, n in counts.items() if (words := _lapse(key, n, run.first("positions")))}
    return Place(key, _curves(run, facts["instance"]), facts["instance"], lapses)


def _lapse(key: str, count: int, positions: int) -> str:
    """What keeps a query from being optimal or without any of the best; nothing when it is."""
    if key == OPTIMAL:
        return "" if count == 0 else "1 wrong pair" if count == 1 else f"{count} wrong pairs"
    return "" if count >= positions else f"{positions - count} of the best {positions}"


Verdict = Literal["holds", "does not hold", "undecided"]
HOLDS: Verdict = "holds"
FAILS: Verdict = "does not hold"
UNDECIDED: Verdict = "undecided"

CHANCE_OF_VERDICT = 0.0027
"""Of a verdict where there is no difference, half of it to either side: three standard errors of many runs."""

CLEARLY, HARDLY = 0.5, 0.9
"""Shares of another regret: at most half is clearly less, nine tenths and more is hardly less."""

_TIE = 1e-9
"""Differences of a smaller share are rounding, not results."""
_ZERO_REGRET = 1e-6


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it rests on; ``difference`` is positive in the direction of the claim."""

    verdict: Verdict
    numbers: str
    difference: float
    stderr: float | None

    @property
    def standard_errors(self) -> float | None:
        """The difference in standard errors; infinite without noise, None without an error."""
        if self.stderr is None:
            return None
        if self.stderr == 0:
            return math.copysign(math.inf, self.difference) if self.difference else 0.0
        return self.difference / self.stderr


def ends_below(low: Measured, high: Measured, share: float = 1.0) -> Judgement:
    """Claimed: ``low`` is less than ``share`` of ``high``.

    >>> ends_below(Measured(10.0, 1.0), Measured(20.0, 1.0)).verdict
    'holds'
    """
    return _judged(-1.0, low, high, share)


def stays_above(high: Measured, low: Measured, share: float = 1.0) -> Judgement:
    """Claimed: ``high`` is more than ``share`` of ``low``.

    >>> stays_above(Measured(9.0, 0.1), Measured(20.0, 0.1), HARDLY).verdict
    'does not hold'
    """
    return _judged(1.0, high, low, share)


def never(violations: Measured) -> Judgement:
    """Claimed: not a single violation.

    >>> never(Measured(0.0, 0.0)).verdict, never(Measured(0.01, 0.01)).verdict
    ('holds', 'does not hold')
    """
    verdict = HOLDS if violations.mean == 0 else FAILS
    return Judgement(verdict, f"{violations} a run", 0.0 - violations.mean, violations.stderr)


def some(violations: Measured) -> Judgement:
    """Claimed: there are violations, more than noise.

    >>> some(Measured(5.0, 1.0)).verdict, some(Measured(2.0, 1.0)).verdict, some(Measured(0.0, 0.0)).verdict
    ('holds', 'undecided', 'does not hold')
    """
    known = violations.mean > 0
    verdict = _verdict(violations.mean, violations.stderr, violations.mean, violations.freedom) if known else FAILS
    return Judgement(verdict, f"{violations} a run", violations.mean, violations.stderr)


def zero(regret: Measured) -> Judgement:
    """Claimed: no regret, up to the rounding of sums.

    >>> zero(Measured(-1e-12, 0.0)).verdict, zero(Measured(3.0, 0.0)).verdict
    ('holds', 'does not hold')
    """
    there = abs(regret.mean) >= _ZERO_REGRET
    return Judgement(FAILS if there else HOLDS, str(regret), -regret.mean if there else 0.0, regret.stderr)


def _judged(sign: float, left: Measured, right: Measured, share: float) -> Judgement:
    found, scale = left.minus(right, share), max(abs(left.mean), abs(right.mean))
    verdict = _verdict(sign * found.mean, found.stderr, scale, found.freedom)
    difference = 0.0 if abs(found.mean) <= _TIE * scale else sign * found.mean
    part = "" if share == 1.0 else f"{share:g} × "  # noqa: RUF001 (a multiplication sign is meant)
    return Judgement(verdict, f"{left} against {part}{right}", difference, found.stderr)


def _verdict(difference: float, stderr: float | None, scale: float, freedom: float) -> Verdict:
    if stderr is None or abs(difference) <= _TIE * scale:
        return UNDECIDED
    needed = student(CHANCE_OF_VERDICT, freedom) * stderr
    return UNDECIDED if abs(difference) < needed else HOLDS if difference > 0 else FAILS


SAFE, UNSAFE = ("kl-ucb-br", "bubble-rank"), ("top-rank", "uni-rank")


@dataclass(frozen=True)
class Question:
    """Something that the paper says, before it is looked up."""

    place: str
    who: str
    says: str
    than: str | None = None
    models: tuple[str, ...] | None = None  # None: under every click model

    @property
    def text(self) -> str:
        """The claim in words, without queries and click model."""
        return f"{policy_name(self.who)} {_SAYINGS[self.says].format(than=policy_name(self.than or ''))}"


_SAYINGS = {
    "ends below": "ends below {than}",
    "never violates": "never violates safety",
    "violates": "violates safety",
    "has no regret": "has no regret",
    "improves clearly": "improves clearly on {than} (at most half its regret)",
    "hardly improves": "hardly improves on {than} (at least nine tenths of its regret)",
}

PAPER: tuple[Question, ...] = (
    *(Question(ALL, who, "ends below", "original") for who in SAFE + UNSAFE),
    *(Question(ALL, who, "ends below", "kl-ucb-br") for who in UNSAFE),
    Question(ALL, "kl-ucb-br", "ends below", "bubble-rank"),
    *(Question(ALL, who, "never violates") for who in SAFE),
    *(Question(ALL, who, "violates") for who in UNSAFE),
    Question(OPTIMAL, "original", "has no regret"),
    *(Question(OPTIMAL, who, "ends below", than) for who in SAFE for than in UNSAFE),
    Question(OPTIMAL, "kl-ucb-br", "ends below", "bubble-rank"),
    *(Question(NONE_OF_BEST, who, "ends below", "kl-ucb-br") for who in UNSAFE),
    Question(NONE_OF_BEST, "kl-ucb-br", "ends below", "bubble-rank"),
    Question(NONE_OF_BEST, "kl-ucb-br", "improves clearly", "original", models=("cm",)),
    Question(NONE_OF_BEST, "bubble-rank", "hardly improves", "original", models=("cm",)),
)


@dataclass(frozen=True)
class Asked:
    """A question under one click model."""

    question: Question
    model: str

    @property
    def sentence(self) -> str:
        """The whole claim in words."""
        return f"Under {model_name(self.model)}, {PHRASES[self.question.place]}, {self.question.text}"

    @property
    def of_the_paper(self) -> bool:
        """False under click models that the paper did not look at."""
        return self.model in PAPER_MODELS


@dataclass(frozen=True, kw_only=True)
class Claim(Judgement, Asked):
    """A claim under one click model, and what the results say about it."""


@dataclass(frozen=True)
class NotRun(Asked):
    """A claim that the results say nothing about, and why."""

    reason: str


def judge_claims(places: Mapping[str, Place]) -> tuple[list[Claim], list[NotRun]]:
    """Every claim that the results can judge, and those that they cannot."""
    answers = [_answer(question, model, places.get(question.place)) for question, model in _asked(places)]
    claims = [answer for answer in answers if isinstance(answer, Claim)]
    return claims, [answer for answer in answers if isinstance(answer, NotRun)]


def _asked(places: Mapping[str, Place]) -> Iterator[tuple[Question, str]]:
    models = dict.fromkeys((*PAPER_MODELS, *(curve.model for curve in places[ALL].curves)))
    for question in PAPER:
        yield from ((question, model) for model in question.models or models)


def _answer(question: Question, model: str, place: Place | None) -> Claim | NotRun:
    if place is None:
        return NotRun(question, model, "the results do not say which query that is")
    if model in place.lapses:
        nearest = f"the nearest, query {place.instance}, has {place.lapses[model]}"
        return NotRun(question, model, f"no query is quite like that: {nearest}")
    curves = {policy: place.curve(policy, model) for policy in (question.who, question.than) if policy}
    missing = [policy_name(policy) for policy, curve in curves.items() if curve is None]
    if missing:
        return NotRun(question, model, f"there are no results of {' and '.join(missing)} under {model_name(model)}")
    found = [curve for curve in curves.values() if curve is not None]
    return Claim(question=question, model=model, **vars(_JUDGES[question.says](*found)))


_JUDGES: dict[str, Callable[..., Judgement]] = {
    "ends below": lambda who, than: ends_below(who.regret.end, than.regret.end),
    "improves clearly": lambda who, than: ends_below(who.regret.end, than.regret.end, CLEARLY),
    "hardly improves": lambda who, than: stays_above(who.regret.end, than.regret.end, HARDLY),
    "never violates": lambda who: never(who.violations.end),
    "violates": lambda who: some(who.violations.end),
    "has no regret": lambda who: zero(who.regret.end),
}
