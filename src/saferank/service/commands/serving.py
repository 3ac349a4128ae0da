"""From the record of a page to the answer of a rank call."""

from collections.abc import Sequence

from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.commands.propensities import first_place_chances
from saferank.service.knowledge.arms import ARMS, EXPLORE, HOLDOUT, REPEAT, SHADOW
from saferank.service.knowledge.evidence import reversed_pairs
from saferank.service.wire.calls import Mode, PageNotes, PositionNote, RankAnswer, RankCall, Safety
from saferank.store.page_record import PageRecord

_ALTERNATIVES = 3
"""So many of the items that could have stood at a place are named."""


def answer_of(record: PageRecord, token: str, leader: Sequence[str], call: RankCall) -> RankAnswer:
    """What the caller is told; ``leader`` is empty for production's page."""
    explored = [item for item in record.shown if item not in leader] if leader else []
    return RankAnswer(
        impression_id=identifiers.to_text(record.impression),
        token=token,
        ranking=list(record.shown),
        leader_version=record.knowledge,
        closes_at=moment(record.closes_at),
        mode=_mode(record.arm),
        safety=Safety(
            swaps=reversed_pairs(record.shown, leader), explored=explored[0] if explored else None, allowance_ok=True
        ),
        explanation=notes_of(record, leader) if call.explain else None,
    )


def _mode(arm: int) -> Mode:
    if arm in (EXPLORE, HOLDOUT, REPEAT):
        return "live"
    return "shadow" if arm == SHADOW else "off"


def notes_of(record: PageRecord, leader: Sequence[str]) -> PageNotes:
    """What every position is doing there."""
    arm, chances = ARMS[record.arm], first_place_chances(record)
    if not leader:
        text = "production's ranking, as it is"
        notes = [
            PositionNote(position=at, item=item, role=text, first=float(at == 1))
            for at, item in enumerate(record.shown, 1)
        ]
        return PageNotes(text=text, arm=arm, positions=notes)
    text = (
        f"page {record.round} from version {record.knowledge}: the leader with {reversed_pairs(record.shown, leader)} "
        "pairs in the other order, by chance, to compare them fairly"
    )
    notes = [
        PositionNote(position=place + 1, item=item, role=_role(record, leader, place), first=chances[place])
        for place, item in enumerate(record.shown)
    ]
    return PageNotes(text=text, arm=arm, positions=notes)


def _role(record: PageRecord, leader: Sequence[str], place: int) -> str:
    rank = "of the leader" if record.row[place] in leader else "unranked"
    others = [other for other in range(len(record.row)) if other != place and _compared(record, place, other)]
    if not others:
        return f"{rank}, stands alone on this page"
    if record.law.drawn and record.law.weight[place] > 0:
        return f"{rank}, {_chances(record, place, others)}"
    names = ", ".join(record.row[other] for other in others)
    return f"{rank}, compared with {names}"


def _compared(record: PageRecord, place: int, other: int) -> bool:
    return record.law.start[place] == record.law.start[other]


def _chances(record: PageRecord, place: int, others: list[int]) -> str:
    """Of a page that was drawn: how likely its item was at this place given those above, and what else was."""
    weight = record.law.weight
    left = [other for other in others if other > place]
    total = weight[place] + sum(weight[other] for other in left)
    chances = sorted(((weight[other] / total, record.row[other]) for other in left), reverse=True)[:_ALTERNATIVES]
    instead = ", ".join(f"{item} {chance:.1%}" for chance, item in chances if chance >= 0.0005)
    return f"drawn with chance {weight[place] / total:.1%}" + (f"; instead {instead}" if instead else "")
