"""The claims of the paper, as data, and what the results say about each.

A *question* is who is compared with whom on which queries; under a click model it becomes a *claim* with a verdict, or
it is *not run*. Questions are asked under the paper's two click models, and under others that the results have.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from saferank.reporting.claims.places import ALL, NONE_OF_BEST, OPTIMAL, PHRASES, Place
from saferank.reporting.claims.verdicts import (
    CLEARLY,
    HARDLY,
    Judgement,
    Verdict,
    ends_below,
    never,
    some,
    stays_above,
    zero,
)
from saferank.reporting.looks import PAPER_MODELS, model_name, policy_name
from saferank.reporting.numbers import Measured
from saferank.reporting.pooling import Pooled

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
class Claim:
    """A claim under one click model, and what the results say about it."""

    question: Question
    model: str
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """``holds``, ``does not hold`` or ``undecided``."""
        return self.judgement.verdict

    @property
    def numbers(self) -> str:
        """What was compared, with standard errors."""
        return self.judgement.numbers

    @property
    def standard_errors(self) -> float | None:
        """The difference in standard errors, positive in the direction of the claim."""
        return self.judgement.standard_errors

    @property
    def sentence(self) -> str:
        """The whole claim in words."""
        return _sentence(self.question, self.model)

    @property
    def of_the_paper(self) -> bool:
        """False under click models that the paper did not look at."""
        return self.model in PAPER_MODELS


@dataclass(frozen=True)
class NotRun:
    """A claim that the results say nothing about, and why."""

    question: Question
    model: str
    reason: str

    @property
    def sentence(self) -> str:
        """The whole claim in words."""
        return _sentence(self.question, self.model)

    @property
    def of_the_paper(self) -> bool:
        """False under click models that the paper did not look at."""
        return self.model in PAPER_MODELS


def _sentence(question: Question, model: str) -> str:
    return f"Under {model_name(model)}, {PHRASES[question.place]}, {question.text}"


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
        return NotRun(question, model, f"no query is quite like that: the nearest has {place.lapses[model]}")
    curves = {policy: place.curve(policy, model) for policy in (question.who, question.than) if policy}
    missing = [policy_name(policy) for policy, curve in curves.items() if curve is None]
    if missing:
        return NotRun(question, model, f"there are no results of {' and '.join(missing)} under {model_name(model)}")
    found = [curve for curve in curves.values() if curve is not None]
    return Claim(question, model, _JUDGES[question.says](*found))


def final_regret(curve: Pooled) -> Measured:
    """Regret at the last checkpoint."""
    return Measured(float(curve.regret[-1]), None if curve.regret_stderr is None else float(curve.regret_stderr[-1]))


def final_violations(curve: Pooled) -> Measured:
    """Violations a run up to the last checkpoint."""
    stderr = curve.violations_stderr
    return Measured(float(curve.violations[-1]), None if stderr is None else float(stderr[-1]))


def _ends_below(who: Pooled, than: Pooled) -> Judgement:
    return ends_below(final_regret(who), final_regret(than))


def _improves_clearly(who: Pooled, than: Pooled) -> Judgement:
    return ends_below(final_regret(who), final_regret(than), CLEARLY)


def _hardly_improves(who: Pooled, than: Pooled) -> Judgement:
    return stays_above(final_regret(who), final_regret(than), HARDLY)


_JUDGES: dict[str, Callable[..., Judgement]] = {
    "ends below": _ends_below,
    "improves clearly": _improves_clearly,
    "hardly improves": _hardly_improves,
    "never violates": lambda who: never(final_violations(who)),
    "violates": lambda who: some(final_violations(who)),
    "has no regret": lambda who: zero(final_regret(who)),
}
