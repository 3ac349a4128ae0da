"""The verdicts on the claims as a table and a sentence, and again under another reading of the paper.

A reading is a variant of a policy, like ``bubble-rank:shown-only``. Its curves take the place of the policy's own, and
every claim about the special queries is judged again: some that failed may hold, others that held may not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polars import DataFrame, col, lit

from saferank.reporting.claims import (
    ALL,
    FAILS,
    HOLDS,
    PHRASES,
    UNDECIDED,
    Claim,
    NotRun,
    Place,
    Question,
    judge_claims,
)
from saferank.reporting.frames import in_order
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.pooling import pooled
from saferank.table import MarkedCell, Row, TextTable

WORDS = {
    "all-candidates": "candidates: all unranked items, beaten ones too",
    "shown-only": "duels: none with an item that is not shown",
}
"""What is different in a reading, by the name of the variant."""

_MEANS = {
    "shown-only": (
        "The bottom item and the challenger are never on a page together. We count an item that is not shown as not "
        "clicked, so a click on one of the two is a duel that it wins. In this way better items come onto the page. If "
        "hidden items take part in no duel, BubbleRank can only reorder the page that it was given, and a page "
        "of bad items stays bad. The paper's text does not settle it: it sets the clicks below the last position to 0, "
        "which is our reading, and explains this figure with what the other reading does. The other reading is played "
        "for BubbleRank alone: without these duels KL-UCB-BR could learn nothing about items that are not ranked."
    ),
}


@dataclass(frozen=True)
class Reading:
    """Another reading of a policy: which claims it changes on the special queries."""

    policy: str
    words: str
    means: str
    changed: list[tuple[Claim, Claim]]
    """The claims with another verdict: as they are in the report, and under this reading."""


@dataclass(frozen=True)
class OtherReading:
    """Why a claim does not hold, by a reading under which it does."""

    claim: Claim
    under: Claim
    reading: Reading

    @property
    def also(self) -> list[tuple[Claim, Claim]]:
        """What else the reading changes."""
        return [pair for pair in self.reading.changed if pair[0] is not self.claim]


def readings_of(places: Mapping[str, Place], variants: DataFrame, rule: str | None) -> list[Reading]:
    """Every reading that was run on the special queries with the rule of the run."""
    own = variants.filter(col("policy").str.contains(":"), col("rule").eq_missing(lit(rule)))
    found = [_reading(places, name, own.filter(policy=name)) for name in in_order(own, "policy")]
    return [reading for reading in found if reading.changed]


def explain(claims: Sequence[Claim], readings: Sequence[Reading]) -> list[OtherReading]:
    """For each claim that does not hold, the readings under which it does; undecided claims are a matter of noise."""
    pairs = [(reading, ours, other) for reading in readings for ours, other in reading.changed]
    return [
        OtherReading(ours, other, reading)
        for claim in claims
        for reading, ours, other in pairs
        if ours == claim and ours.verdict == FAILS and other.verdict == HOLDS
    ]


def _reading(places: Mapping[str, Place], name: str, means: DataFrame) -> Reading:
    policy, _, change = name.partition(":")
    there = {key: place for key, place in places.items() if key != ALL and place.instance is not None}
    exchanged = {key: _exchanged(place, policy, means) for key, place in there.items()}
    base = replace(places[ALL], curves=[])
    before, _ = judge_claims({ALL: base, **there})
    after, _ = judge_claims({ALL: base, **exchanged})
    again = {(claim.question, claim.model): claim for claim in after}
    pairs = [(claim, again.get((claim.question, claim.model))) for claim in before]
    changed = [(ours, other) for ours, other in pairs if other is not None and other.verdict != ours.verdict]
    return Reading(policy_name(policy), WORDS.get(change, change), _MEANS.get(change, ""), changed)


def _exchanged(place: Place, policy: str, means: DataFrame) -> Place:
    """The place with the curves of a reading; a click model under which it was not run keeps none of the policy."""
    curves = [replace(curve, policy=policy) for curve in pooled(means.filter(instance=place.instance))]
    return replace(place, curves=[*(curve for curve in place.curves if curve.policy != policy), *curves])


_WITHOUT_NOISE = 1e6
"""Standard errors beyond which a difference has hardly any."""
_WORDS = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
}


LOOKS = {HOLDS: "holds", FAILS: "fails", UNDECIDED: "open"}


def claims_table(
    claims: Sequence[Claim],
    models: Sequence[str],
    not_run: Sequence[NotRun] = (),
    weak: Mapping[str, str] | None = None,
) -> TextTable:
    """Every claim with its verdict under these click models, by place; places without any claim are left out.

    ``weak`` is what stands below the name of a click model that does not fit.
    """
    why = {(each.question, each.model): f"not run: {each.reason}" for each in not_run}
    found = {(claim.question, claim.model): claim for claim in claims if claim.model in models}

    def cell(question: Question, model: str) -> MarkedCell:
        claim = found.get((question, model))
        if claim is None:
            only = ", ".join(map(model_name, question.models or ()))
            without = f"claimed under {only} only" if only else "not run"
            return MarkedCell("-", detail=why.get((question, model), without))
        difference = claim.standard_errors
        noisy = difference is not None and 0 < abs(difference) < _WITHOUT_NOISE
        return MarkedCell(claim.verdict, LOOKS[claim.verdict], f"({difference:,.1f})" if noisy else "", claim.numbers)

    rows: list[Row] = []
    for place, phrase in PHRASES.items():
        questions = dict.fromkeys(question for question, _ in found if question.place == place)
        rows += [[f"{phrase[:1].upper()}{phrase[1:]}"]] if questions else []
        rows += [[question.text, *(cell(question, model) for model in models)] for question in questions]
    columns: Row = ["claim", *(MarkedCell(model_name(model), detail=(weak or {}).get(model, "")) for model in models)]
    title = "The paper's claims; in brackets the difference in standard errors"
    return TextTable(title, columns, rows, names=len(columns), key="claims")


def headline(claims: Sequence[Claim], data: str, not_run: int = 0) -> str:
    """How many of all claims hold on these data, how many do not, and how many were not run.

    >>> headline([], "a synthetic log", 42)
    'None of the 42 claims of the paper could be judged on a synthetic log.'
    """
    total = len(claims) + not_run
    if not claims:
        return f"None of the {f'{total} ' if total else ''}claims of the paper could be judged on {data}."
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in _WORDS}
    said = {verdict: _WORDS[verdict][count != 1] for verdict, count in counts.items()}
    rest = [f"{counts[verdict]} {said[verdict]}" for verdict in (FAILS, UNDECIDED) if counts[verdict]]
    rest += [f"{not_run} {'was' if not_run == 1 else 'were'} not run"] if not_run else []
    held = f"{counts[HOLDS]} of {total} claims of the paper {said[HOLDS]} on {data}"
    return f"{', '.join([held, *rest])}."


def in_standard_errors(difference: float | None) -> str:
    """A difference in standard errors.

    >>> in_standard_errors(21.81), in_standard_errors(-2.345), in_standard_errors(1e9), in_standard_errors(None)
    ('21.8 standard errors', '-2.3 standard errors', 'without noise', 'standard error unknown')
    """
    if difference is None:
        return "standard error unknown"
    if abs(difference) > _WITHOUT_NOISE:
        return "without noise"
    return f"{difference:,.1f} standard errors"
