"""From a page to the answer of a rank call."""

from typing import NamedTuple

from saferank.service import identifiers
from saferank.service.arms import EXPLORE, HOLDOUT, REPEAT, SHADOW
from saferank.service.calls import Mode, PageNotes, PositionNote, RankAnswer, RankCall, Safety
from saferank.service.clock import moment
from saferank.service.pages import Facts, OpenPage, swaps_of, unpack
from saferank.service.tokens import Claim, Tokens


class ServedPage(NamedTuple):
    """A page that may leave."""

    impression: bytes
    token: str
    claim: Claim


def served(tokens: Tokens, tenant: str, context: str, impression: bytes, facts: Facts, items: list[str]) -> ServedPage:
    """A page with its token."""
    shadow = facts.arm == SHADOW or not facts.numbers
    row = facts.names if shadow else tuple(items[number] for number in facts.numbers)
    claim = Claim(
        tenant=tenant,
        context=context,
        impression=impression,
        arm=facts.arm,
        round=facts.round,
        leader_version=facts.leader_version,
        window_ms=facts.window_ms,
        exchanged=0 if shadow else facts.exchanged,
        session=facts.session,
        coins=facts.coins,
        row=row,
        n_shown=facts.n_shown,
        group_ends=() if shadow else facts.group_ends,
        challenger=None if shadow else facts.challenger,
    )
    return ServedPage(impression, tokens.sign(claim), claim)


def reopened(tokens: Tokens, page: OpenPage) -> ServedPage:
    """An open page once more."""
    context = page.context
    return served(tokens, context.tenant, context.name, page.id, unpack(page.body), context.items)


def answer_of(page: ServedPage, call: RankCall) -> RankAnswer:
    """What the caller is told."""
    claim = page.claim
    explored = claim.challenger is not None and claim.challenger < claim.n_shown
    return RankAnswer(
        impression_id=identifiers.to_text(page.impression),
        token=page.token,
        ranking=list(claim.shown),
        leader_version=claim.leader_version,
        closes_at=moment(claim.closes_at),
        mode=_mode(claim.arm),
        safety=Safety(
            swaps=swaps_of(claim.exchanged, claim.group_ends, claim.n_shown),
            explored=claim.row[claim.challenger] if explored and claim.challenger is not None else None,
            allowance_ok=True,
        ),
        explanation=notes_of(claim) if call.explain else None,
    )


def _mode(arm: int) -> Mode:
    if arm in (EXPLORE, HOLDOUT, REPEAT):
        return "live"
    return "shadow" if arm == SHADOW else "off"


def notes_of(claim: Claim) -> PageNotes:
    """What every position is doing there."""
    if not claim.group_ends:
        text = "production's ranking, as it is"
        return PageNotes(text=text, positions=[_note(claim, place, text) for place in range(claim.n_shown)])
    notes, start = [], 0
    for end in claim.group_ends:
        notes += [_note(claim, place, _role(claim, place, start, end)) for place in range(start, end)]
        start = end
    swaps = swaps_of(claim.exchanged, claim.group_ends, claim.n_shown)
    text = (
        f"page {claim.round} under leader version {claim.leader_version}: the leader with {swaps} pairs of "
        f"neighbours exchanged by chance, to compare them fairly"
    )
    return PageNotes(text=text, positions=notes[: claim.n_shown])


def _note(claim: Claim, place: int, role: str) -> PositionNote:
    return PositionNote(position=place + 1, item=claim.row[place], role=role)


def _role(claim: Claim, place: int, start: int, end: int) -> str:
    if end - start == 1:
        return "stands alone on this page"
    others = ", ".join(claim.row[other] for other in range(start, end) if other != place)
    if claim.challenger == place:
        return f"unranked, tried here, compared with {others}"
    if claim.challenger is not None and start <= claim.challenger < end:
        return f"of the leader, compared with {others}, which challenges it from outside"
    return f"compared with {others}"
