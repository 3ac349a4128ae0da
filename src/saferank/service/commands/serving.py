"""From the record of a page to the answer of a rank call, with the chance of each item to be first."""

from collections.abc import Sequence

import numpy as np
from msgspec import UNSET

from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.knowledge.arms import ARMS, EXPLORE, HOLDOUT, REPEAT, SHADOW
from saferank.service.knowledge.evidence import reversed_pairs
from saferank.service.wire.calls import Mode, PageNotes, PositionNote, RankAnswer, RankCall, Safety
from saferank.store.page_record import PageRecord, free_positions
from saferank.verbs import Impression, new_impression

# --- how likely each item of a page was to be first, as far as the record of the page can tell ---
# Exact is the chance given the class of the page: the page itself, and every page that the draw could have made from it
# by exchanging the first item with another one. The law says how likely each of those is against the page, and the
# record says which of them the safety check would have let through. The chances of a class sum to 1.
#
# The chance over all pages is not in the record: pages that are not safe are drawn again, and by how much that raises
# the others depends on every page there is.


def first_place_chances(record: PageRecord) -> list[float]:
    """By place of the row: the chance of its item to be first. Production's page is certain, as is what is pinned."""
    if not record.row or record.instead:
        return [float(place == 0) for place in range(len(record.shown))]
    if record.pins & 1:
        return [0.0] * len(record.row)
    if not record.law.drawn:
        return _coins(record)
    page = _drawn(record)
    odds = [1.0, *(_odds(record, page, other) for other in range(1, len(record.row)))]
    total = sum(odds)
    return [odd / total for odd in odds]


def _coins(record: PageRecord) -> list[float]:
    """A group of places was shuffled: all its items alike. A certified pair is kept, which the record does not say."""
    group = [start == record.law.start[0] for start in record.law.start]
    return [float(inside) / sum(group) for inside in group]


def _odds(record: PageRecord, page: Impression, other: int) -> float:
    """How likely the page with the first item and another one exchanged was, against the page; 0 if it is not safe."""
    law = record.law
    if not law.exchanges[0] >> other & 1 or law.start[other] != law.start[0]:
        return 0.0
    return float(1.0 / odds_of_exchange(page, record.positions, (0, other), has_target(page)) - 1.0)


def _drawn(record: PageRecord) -> Impression:
    """The page as the law of draws knows it: places, groups and weights."""
    law, page = record.law, new_impression(record.positions, len(record.row))
    page.places[0], page.weight[:] = len(record.row), law.weight
    page.start[:], page.end[:] = np.frombuffer(law.start, np.uint8), np.frombuffer(law.end, np.uint8)
    page.exchanges[:] = np.array(law.exchanges, np.uint64).view(np.int64)
    return page


# --- from the record of a page to the answer of a rank call ---


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
        explanation=notes_of(record, leader) if call.explain else UNSET,
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
    place_at = {position: place for place, position in enumerate(free_positions(record.k, record.pins))}
    notes = []
    for position, item in enumerate(record.shown):
        place = place_at.get(position)
        role = _PINNED if place is None else _role(record, leader, place)
        first = float(position == 0) if place is None else chances[place]
        notes.append(PositionNote(position=position + 1, item=item, role=role, first=first))
    return PageNotes(text=text, arm=arm, positions=notes)


_PINNED = "pinned: stands where production has it, compared with nothing"


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
