"""The story of a page, as the store tells it."""

import json
from collections.abc import Sequence
from typing import Literal

from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.knowledge.arms import ARMS, EXPLORE, SHADOW, takes_part
from saferank.service.knowledge.catalogues import Catalogue, items_of
from saferank.service.knowledge.certified import Certified, exchanged
from saferank.service.knowledge.evidence import reversed_pairs
from saferank.service.knowledge.sharing import Names, joined, shares
from saferank.service.knowledge.visits.visitors import window_number
from saferank.service.protocol.contexts import Context, terms_of
from saferank.service.protocol.server import Server
from saferank.service.queries.export import items_of_bits
from saferank.service.queries.leaders import versions_of
from saferank.service.wire.views import ImpressionView
from saferank.store.contract import OperationKind, PageRow, VersionRow
from saferank.store.page_record import PageRecord, glance

_UNDOING = ("rollback", "reset")
"""Causes of versions that take away something that was learnt."""


async def story(server: Server, context: Context, page: PageRow, record: PageRecord) -> ImpressionView:
    """All about a page."""
    versions = list(await versions_of(server, context))
    first = record.arm == EXPLORE and await _is_first(server, page, record)
    counted = first and not _rolled_back(versions, record)
    base, candidates = await server.contexts.known_catalogue(record.catalogue) or (list(record.production), [])
    leader = leader_of_page(context, versions, record, (base, candidates))
    clicked = items_of_bits(record.shown, page.clicks)
    state: Literal["open", "closed"] = "closed" if record.issued_at <= context.fold.through else "open"
    return ImpressionView(
        impression_id=identifiers.to_text(record.impression),
        context=record.context,
        arm=ARMS[record.arm],
        counted=counted,
        state=state,
        issued_at=moment(record.issued_at),
        closes_at=moment(record.closes_at),
        closed_at=None if state == "open" else moment(record.closes_at),
        round=record.round,
        policy=record.policy,
        rule=_rule(server, context, versions, record.knowledge),
        leader_version=record.knowledge,
        leader=leader,
        base_ranking=base,
        candidates=candidates,
        ranking=list(record.shown),
        would_have_shown=list(record.row[: record.k]) if record.arm == SHADOW and record.row else None,
        hidden=list(record.hidden),
        groups=groups_of(record),
        challenger=None if record.challenger is None else record.row[record.challenger],
        coins=record.coins.hex() if record.row else "",
        request_id=record.request_id,
        clicks=clicked,
        explanation=_sentences(record, leader, counted, state, clicked),
    )


def _rule(server: Server, context: Context, versions: Sequence[VersionRow], version: int) -> str:
    """The rule that decided at a version: that of the newest reset before it, or of the opening."""
    rule = terms_of(context.row).rule
    before = {made.at for made in versions if made.cause == "reset" and made.version <= version}
    for operation in server.switches.undoing(context.number, 0):
        if operation.kind == OperationKind.RESET and operation.at in before:
            rule = json.loads(operation.body).get("terms", {}).get("rule", rule)
    return str(rule)


def leader_of_page(context: Context, versions: list[VersionRow], record: PageRecord, lists: Catalogue) -> list[str]:
    """The leader that the certificates of the page's version make of its base ranking."""
    items = items_of(lists)
    sizes = _held_by_size([made for made in versions if made.version <= record.knowledge])
    held = sizes.pop(record.k, {})
    knowledge = context.fold.knowledge.get(record.k)
    numbered = [] if knowledge is None else [str(item) for item in knowledge.learner.items]
    named = dict.fromkeys([*numbered, *items, *(item for pair in held for item in pair)])
    index = {item: number for number, item in enumerate(named)}
    told = [pair for k in sorted(sizes) for pair in sorted(sizes[k])]
    told = told if knowledge is None or shares(knowledge.learner) else []
    certified = joined(Certified((index[better], index[worse]) for better, worse in held), told, index)
    base = [index[item] for item in lists[0][: record.k]]
    names = list(index)
    return [names[place] for place in exchanged(certified, base, sum(1 << index[item] for item in items)).row]


def _held_by_size(versions: Sequence[VersionRow]) -> dict[int, dict[Names, None]]:
    """The certificates of every page size after these versions."""
    sizes: dict[int, dict[Names, None]] = {}
    undone_at = None
    for made in versions:
        if made.cause in _UNDOING and made.at != undone_at:  # the first of a rollback or reset; all sizes follow
            undone_at = made.at
            sizes.clear()
        _apply(sizes.setdefault(json.loads(made.evidence)["k"], {}), made)
    return sizes


def _apply(held: dict[Names, None], made: VersionRow) -> None:
    """What a version did to the certificates that hold."""
    changed = json.loads(made.evidence)
    for better, worse, _, _ in changed["lost"]:
        held.pop((better, worse), None)
    held.update({(better, worse): None for better, worse, _, _ in changed["gained"]})


async def _is_first(server: Server, page: PageRow, record: PageRecord) -> bool:
    """True unless the visitor had another page that counts in this window."""
    if not record.visitor:
        return True
    begin = window_number(record.issued_at, record.window_ms) * record.window_ms
    for other in await server.store.pages_between(page.context, begin - 1, record.issued_at):
        if other.impression >= page.impression:
            break
        facts = glance(other.record)
        if facts.visitor == record.visitor and takes_part(facts.arm, facts.share):
            return False
    return True


def _rolled_back(versions: list[VersionRow], record: PageRecord) -> bool:
    """True when a rollback or a reset came while the page was open."""
    return any(
        made.cause in _UNDOING and json.loads(made.evidence)["through"] < record.issued_at <= made.at
        for made in versions
    )


def groups_of(record: PageRecord) -> list[list[str]]:
    """Items that are compared with one another."""
    start = record.law.start
    return [
        [item for item, label in zip(record.row, start, strict=True) if label == group]
        for group in dict.fromkeys(start)
    ]


def _sentences(record: PageRecord, leader: list[str], counted: bool, state: str, clicked: list[str]) -> str:
    swaps = reversed_pairs(record.shown, leader)
    arms = {
        "explore": f"The leader of version {record.knowledge} with {swaps} pairs in the other order, to compare them.",
        "holdout": "Production's ranking, for comparison: the session is in the holdout share.",
        "off": "Production's ranking: the service was switched off, or could not check or write a page.",
        "shadow": "Production's ranking; what the learner would have shown is noted.",
    }
    clicks = f"Clicked: {', '.join(clicked)}." if clicked else "No clicks."
    if not counted:
        fate = "Nothing is learnt from it."
    elif not clicked:
        fate = "A page without clicks changes nothing."
    else:
        fate = "Its clicks count when its window closes." if state == "open" else "Its clicks were learnt."
    return f"{arms[ARMS[record.arm]]} {clicks} {fate}"
