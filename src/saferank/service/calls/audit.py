"""What happened: versions of leaders, the full story of a page, and the log."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from saferank.service import identifiers
from saferank.service.calls.export import EVERYTHING, Bounds, items_of_bits, log_of, time_of
from saferank.service.calls.legality import CertificatesAtVersion, call_of
from saferank.service.calls.rank import reversed_pairs
from saferank.service.knowledge.arms import ARMS, EXPLORE, SHADOW, takes_part
from saferank.service.knowledge.certified import Certified, exchanged
from saferank.service.knowledge.view import Catalogue, items_of
from saferank.service.protocol.contexts import Context, terms_of
from saferank.service.wire.calls import milliseconds, moment
from saferank.service.wire.exports import Facts
from saferank.service.wire.problems import Problem
from saferank.service.wire.views import ImpressionView, LeaderAt, LeaderChange, LeaderChanges, PairView
from saferank.store.contract import FINAL_MS, SHARDS, OperationKind, PageRow, VersionRow
from saferank.store.page_record import PageRecord, woven
from saferank.store.record_columns import ARM, SHARE, RecordColumns, unpacked

if TYPE_CHECKING:
    from saferank.service.server import Server

# --- versions of a context, for answers ---


_MOST_PAIRS = 100


def leader_change(row: VersionRow) -> LeaderChange:
    """A leader and what brought it about."""
    return LeaderChange(
        version=row.version,
        leader=json.loads(row.leader),
        at=moment(row.at),
        cause=row.cause,  # type: ignore[arg-type]  # checked by the model
        impression_id=None if row.impression is None else identifiers.to_text(row.impression),
        evidence=_pairs(row, "gained"),
        lost=_pairs(row, "lost"),
        why=row.why,
    )


def _pairs(row: VersionRow, which: str) -> list[PairView]:
    pairs = json.loads(row.evidence)[which][:_MOST_PAIRS]
    return [PairView(better=better, worse=worse, s=s, n=n, decided=which == "gained") for better, worse, s, n in pairs]


async def versions_of(server: "Server", context: Context, newest: int | None = None) -> Sequence[VersionRow]:
    """Versions oldest first, all or (``newest``) the newest ones; those that are not published yet included."""
    rows = list(await server.store.versions(context.number, newest))
    last = rows[-1].version if rows else 0
    rows += [row for row in context.fold.versions if row.version > last]
    return rows if newest is None else rows[-newest:]


# --- the story of a page, as the store tells it ---


_UNDOING = ("rollback", "reset")
"""Causes of versions that take away something that was learnt."""


async def story(server: "Server", context: Context, page: PageRow, record: PageRecord) -> ImpressionView:
    """All about a page."""
    versions = list(await versions_of(server, context))
    first = record.arm == EXPLORE and await _is_first(server, page, record)
    counted = first and not _rolled_back(versions, record)
    base, candidates = await server.contexts.known_catalogue(record.catalogue) or (list(record.production), [])
    leader = leader_of_page(versions, record, (base, candidates), context.known.index)
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
        would_have_shown=list(record.chosen) if record.arm == SHADOW and record.row else None,
        hidden=list(record.hidden),
        groups=groups_of(record),
        challenger=None if record.challenger is None else record.row[record.challenger],
        coins=record.coins.hex() if record.row else "",
        request_id=record.request_id,
        clicks=clicked,
        explanation=_sentences(record, leader, counted, state, clicked),
    )


def _rule(server: "Server", context: Context, versions: Sequence[VersionRow], version: int) -> str:
    """The rule that decided at a version: that of the newest reset before it, or of the opening."""
    rule = terms_of(context.row).rule
    before = {made.at for made in versions if made.cause == "reset" and made.version <= version}
    for operation in server.switches.undoing(context.number, 0):
        if operation.kind == OperationKind.RESET and operation.at in before:
            rule = json.loads(operation.body).get("terms", {}).get("rule", rule)
    return str(rule)


def leader_of_page(
    versions: Sequence[VersionRow], record: PageRecord, lists: Catalogue, numbers: Mapping[str, int]
) -> list[str]:
    """The leader that the certificates of the page's version make of its base ranking.

    ``numbers`` are those of the context: of two outside items that may replace another, the one with the smaller does.
    """
    held: dict[tuple[str, str], None] = {}
    for made in versions:
        if made.version <= record.knowledge:
            if made.cause in _UNDOING:
                held.clear()
            changed = json.loads(made.evidence)
            for better, worse, _, _ in changed["lost"]:
                held.pop((better, worse), None)
            held.update({(better, worse): None for better, worse, _, _ in changed["gained"]})
    known = sorted(numbers, key=lambda item: numbers[item])
    names = list(dict.fromkeys([*known, *items_of(lists), *(item for pair in held for item in pair)]))
    index = {item: number for number, item in enumerate(names)}
    certified = Certified((index[better], index[worse]) for better, worse in held)
    call, _ = call_of(CertificatesAtVersion(certified, index), lists, record.k, record.pins)
    row = exchanged(certified, call.base, call.present).row
    return list(woven(tuple(names[number] for number in row), lists[0][: record.k], record.pins))


async def _is_first(server: "Server", page: PageRow, record: PageRecord) -> bool:
    """True unless the visitor had another page that counts in this window."""
    if not record.visitor:
        return True
    begin = record.issued_at // record.window_ms * record.window_ms
    others = await server.store.pages_between(page.context, begin - 1, record.issued_at)
    before = RecordColumns([other.record for other in others if other.impression < page.impression])
    theirs = before.select(before.of_visitor(record.visitor))
    return not any(map(takes_part, theirs.column(ARM).tolist(), theirs.column(SHARE).tolist()))


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
        fate = "A page without clicks proves nothing; it counts for what is tried next."
    else:
        fate = "Its clicks count when its window closes." if state == "open" else "Its clicks were learnt."
    return f"{arms[ARMS[record.arm]]} {clicks} {fate}"


# --- questions about the past: the leader then, the story of a page, everything ---


async def changes(server: "Server", tenant: str, name: str) -> LeaderChanges:
    """All leaders of a context, oldest first."""
    context = await server.known_context(tenant, name)
    rows = await versions_of(server, context)
    return LeaderChanges(context=name, changes=[leader_change(row) for row in rows])


async def leader_at(server: "Server", tenant: str, name: str, at: str | None) -> LeaderAt:
    """The leader at a version or a moment."""
    context = await server.known_context(tenant, name)
    rows = await versions_of(server, context)
    row = _row_at(rows, at)
    if row is None:
        detail = f"context {name!r} has versions 1 to {len(rows)}; there is no leader at {at!r}"
        raise Problem(404, "Unknown version", detail, "at")
    change, following = leader_change(row), next((other for other in rows if other.version > row.version), None)
    return LeaderAt(
        context=name,
        version=row.version,
        leader=change.leader,
        since=change.at,
        until=None if following is None else moment(following.at),
    )


async def impression(server: "Server", tenant: str, impression_id: str) -> ImpressionView:
    """The story of a page."""
    impression = identifiers.impression_id(impression_id)
    await server.settle()
    page = None if impression is None else await server.store.page(impression)
    record = None if page is None else unpacked(page.record)
    if page is None or record is None or record.tenant != tenant:
        raise Problem(404, "Unknown impression", f"there is no impression {impression_id}", "impression_id")
    context = await server.known_context(tenant, record.context)
    return await story(server, context, page, record)


async def export_bounds(server: "Server", tenant: str, cursor: str | None) -> Bounds:
    """What an export tells that goes on from a cursor: only what can change no more, so nothing is told too early.

    Pages are told once no click can come and no page be written any more: the store refuses both after the end of
    a window, and ``FINAL_MS`` later everything is committed. Pages that are not folded yet are waited for, because
    they may bring versions about. Without a cursor everything is told as it is now.
    """
    if cursor is None:
        return Bounds()
    try:
        after = time_of(cursor)
    except ValueError as problem:
        raise Problem(422, "Not a cursor", str(problem), "cursor") from problem
    store, set_aside = server.store, server.contexts.set_aside
    now = await server.heartbeat.measured()
    mine = {row.id: row for row in await store.contexts() if row.tenant == tenant}
    unfolded = set(await store.due(range(SHARDS), 0, now)) & (mine.keys() - set_aside)
    folded = {found.context: found.through for found in await store.publications(sorted(unfolded))}
    window = max((terms_of(row).window_ms for row in mine.values()), default=0)
    through = min([now - window - FINAL_MS, *(folded.get(number, mine[number].opened_at) for number in unfolded)])
    return Bounds(after, max(after, through))


async def export(
    server: "Server", tenant: str, context: str | None, bounds: Bounds = EVERYTHING
) -> AsyncIterator[Facts]:
    """What happened to a tenant, oldest first; pages are read a few hundred at a time."""
    known = None if context is None else await server.known_context(tenant, context)
    await server.settle()
    rows = [row for row in await server.store.contexts() if row.tenant == tenant] if known is None else [known.row]
    async for facts in log_of(server.store, {row.id: row for row in rows}, None if known else tenant, bounds):
        yield facts


def _row_at(rows: Sequence[VersionRow], at: str | None) -> VersionRow | None:
    if at is None:
        return rows[-1]
    if at.isascii() and at.isdigit() and len(at) < 16:
        return next((row for row in rows if row.version == int(at)), None)
    try:
        time = milliseconds(at)
    except ValueError as problem:
        raise Problem(422, "Not a version or moment", f"{problem}, nor a version like 7", "at") from problem
    return next((row for row in reversed(rows) if row.at <= time), None)
