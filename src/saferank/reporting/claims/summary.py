"""The verdicts as a table and in one sentence, and differences in standard errors as people write them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from saferank.reporting.claims.places import PHRASES
from saferank.reporting.claims.questions import Claim, NotRun
from saferank.reporting.claims.verdicts import FAILS, HOLDS, UNDECIDED, Verdict
from saferank.reporting.looks import model_name

_WORDS = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
}


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words, with its verdict under each click model."""

    text: str
    cells: list[Claim | None]
    reasons: list[str]
    """For every cell why it has no claim; empty where it has one."""


def claim_tables(
    claims: Sequence[Claim], models: Sequence[str], not_run: Sequence[NotRun] = ()
) -> dict[str, list[ClaimRow]]:
    """Rows by place, for the given click models; places without any claim are left out."""
    why = {(each.question, each.model): f"not run: {each.reason}" for each in not_run}
    wanted = [claim for claim in claims if claim.model in models]
    tables: dict[str, list[ClaimRow]] = {}
    for question, group in groupby(wanted, key=lambda claim: claim.question):
        by_model = {claim.model: claim for claim in group}
        only = ", ".join(map(model_name, question.models or ()))
        without = f"claimed under {only} only" if only else "not run"
        reasons = ["" if model in by_model else why.get((question, model), without) for model in models]
        row = ClaimRow(question.text, [by_model.get(model) for model in models], reasons)
        tables.setdefault(PHRASES[question.place], []).append(row)
    return tables


def headline(claims: Sequence[Claim], data: str) -> str:
    """How many claims hold on these data, and how many of the others there are.

    >>> headline([], "a synthetic log")
    'None of the claims of the paper could be judged on a synthetic log.'
    """
    if not claims:
        return f"None of the claims of the paper could be judged on {data}."
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in _WORDS}
    if counts[HOLDS] == len(claims):
        many = f"All {len(claims)} claims of the paper that were run hold" if len(claims) > 1 else "The one claim holds"
        return f"{many} on {data}."
    held = f"{counts[HOLDS]} of the {len(claims)} claims of the paper that were run {_verb(HOLDS, counts[HOLDS])}"
    rest = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in (FAILS, UNDECIDED) if counts[verdict]]
    return f"On {data}, {held}, {' and '.join(rest)}."


def _verb(verdict: Verdict, count: int) -> str:
    return _WORDS[verdict][0 if count == 1 else 1]


def in_standard_errors(difference: float | None) -> str:
    """A difference in standard errors.

    >>> in_standard_errors(21.81), in_standard_errors(-2.345), in_standard_errors(1e9), in_standard_errors(None)
    ('21.8 standard errors', '-2.3 standard errors', 'without noise', 'standard error unknown')
    """
    if difference is None:
        return "standard error unknown"
    if abs(difference) > 1e6:
        return "without noise"
    return f"{difference:,.1f} standard errors"
