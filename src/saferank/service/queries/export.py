"""The log of a tenant as JSON lines, in the order of time: contexts, pages with their clicks, versions, operations."""

import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.knowledge.arms import ARMS
from saferank.service.knowledge.catalogues import unpack_catalogue
from saferank.store.contract import EVERYBODY, ContextRow, OperationKind, OperationRow, Store
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import RecordColumns

_ORDER = ("opened", "page", "version", "kill", "guardrail", "unkill", "rollback", "reset", "settings", "traffic")
"""Lines of the same millisecond are in this order."""

_UNTOLD = (OperationKind.RELEASE, OperationKind.KEYS, OperationKind.FORGET)
"""Operations of those who run the servers, and requests to forget somebody."""

Line = tuple[int, int, dict[str, Any]]
"""Time, order within the time, and facts."""


class Bounds(NamedTuple):
    """What an export tells: everything after a time and until another."""

    after: int = -1
    through: int = 1 << 47

    @property
    def cursor(self) -> str:
        """Where the next export goes on; callers need not know what it means."""
        return f"{_CURSOR}{self.through:012x}"


EVERYTHING = Bounds()
_CURSOR = "c1."
START = "start"
"""The cursor of an export from the beginning."""


def time_of(cursor: str) -> int:
    """Through when the export went that gave a cursor; ValueError for what is none."""
    if cursor == START:
        return -1
    if not cursor.startswith(_CURSOR) or len(cursor) != len(_CURSOR) + 12:
        raise ValueError(f"{cursor[:50]!r} is not a cursor of an export; begin with {START!r}")
    return int(cursor.removeprefix(_CURSOR), 16)


async def export_lines(
    store: Store, rows: Mapping[int, ContextRow], tenant: str | None, bounds: Bounds = EVERYTHING
) -> AsyncIterator[str]:
    """The lines of these contexts within bounds, and those of a tenant's own switches if one is named."""
    lines = [line for line in await _rare(store, rows, tenant) if bounds.after < line[0] <= bounds.through]
    rare = deque(sorted(lines, key=_place))  # stable: versions of one context and millisecond keep their order
    context = next(iter(rows)) if len(rows) == 1 else None
    after, end = identifiers.last_id(bounds.after), identifiers.last_id(bounds.through)
    async for pages in store.all_pages(context, after):
        told = [page for page in pages if page.context in rows and page.impression <= end]
        records = RecordColumns([page.record for page in told])
        records.check()
        for number, page in enumerate(told):
            line = _page(records.record(number), page.clicks, rows[page.context])
            while rare and _place(rare[0]) < _place(line):
                yield _text(rare.popleft())
            yield _text(line)
        if pages and pages[-1].impression > end:
            break
    for line in rare:
        yield _text(line)


def _place(line: Line) -> tuple[int, int]:
    return line[:2]


def _text(line: Line) -> str:
    return json.dumps(line[2], ensure_ascii=False, separators=(",", ":"))


def _line(at: int, kind: str, number: int, facts: dict[str, Any]) -> Line:
    order = _ORDER.index(kind) << 40 | number
    return at, order, {"seq": at, "kind": kind, "at": moment(at), **facts}


async def _rare(store: Store, rows: Mapping[int, ContextRow], tenant: str | None) -> list[Line]:
    """Everything but pages: there is little of it."""
    lines = []
    for row in rows.values():
        terms = json.loads(row.terms)
        body = await store.catalogue(bytes.fromhex(terms["catalogue"]))
        lists = ([], []) if body is None else unpack_catalogue(body)
        facts = {"context": row.name, "k": terms["k"], "base_ranking": lists[0], "candidates": lists[1]}
        lines.append(_line(row.opened_at, "opened", row.id, facts))
        for version in await store.versions(row.id):
            if version.cause != "opened":
                evidence = json.loads(version.evidence)
                told = {"version": version.version, "cause": version.cause, "leader": json.loads(version.leader)}
                changed = {"gained": evidence["gained"], "lost": evidence["lost"]}
                lines.append(_line(version.at, "version", row.id, {"context": row.name, **told, **changed}))
    for operation in await store.operations(0):
        of_all = operation.context == 0 and tenant is not None and operation.tenant in (tenant, EVERYBODY)
        if (operation.context in rows or of_all) and operation.kind not in _UNTOLD:
            lines.append(_operation(operation, rows))
    return lines


def _operation(row: OperationRow, rows: Mapping[int, ContextRow]) -> Line:
    name = rows[row.context].name if row.context else None
    whose = {"all_tenants": True} if row.tenant == EVERYBODY else {}
    facts = {"context": name, **whose, **json.loads(row.body)}
    return _line(row.at, OperationKind(row.kind).name.lower(), row.number, facts)


def _page(record: PageRecord, clicks: int, row: ContextRow) -> Line:
    facts = {
        "context": row.name,
        "impression_id": identifiers.to_text(record.impression),
        "arm": ARMS[record.arm],
        "policy": record.policy,
        "closes_at": moment(record.closes_at),
        "round": record.round,
        "leader_version": record.knowledge,
        "catalogue": record.catalogue.hex(),
        "base": list(record.production),
        "ranking": list(record.shown),
        "pinned": items_of_bits(record.production, record.pins),
        "row": list(record.row),
        "group_starts": list(record.law.start),
        "group_ends": list(record.law.end),
        "weights": list(record.law.weight),
        "visitor": record.visitor.hex() or None,
        "coins": record.coins.hex(),
        "request_id": record.request_id,
        "clicks": items_of_bits(record.shown, clicks),
    }
    return _line(record.issued_at, "page", 0, facts)


def items_of_bits(shown: tuple[str, ...], bits: int) -> list[str]:
    """The items whose bits are set."""
    return [item for place, item in enumerate(shown) if bits >> place & 1]
