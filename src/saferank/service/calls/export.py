"""The log of a tenant in the order of time, as facts and as lines: contexts, pages, versions, operations."""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast, get_args

from saferank.errors import ArgumentError, UsageError, unknown, writing
from saferank.files import check_output_file, replacing
from saferank.service import identifiers
from saferank.service.knowledge.arms import ARMS
from saferank.service.knowledge.view import unpack_catalogue
from saferank.service.wire.calls import moment
from saferank.service.wire.exports import PAGE_FORMATS, ExportFormat, Facts, line_of, lines_of
from saferank.store.contract import (
    ALL_TENANTS,
    ContextRow,
    OperationKind,
    PageRow,
    Store,
    StoreError,
    StoreUnavailableError,
)
from saferank.store.opening import open_store
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import RecordColumns

_ORDER = ("opened", "page", "version", "kill", "guardrail", "unkill", "rollback", "reset", "settings", "traffic")
"""Lines of the same millisecond are in this order."""

_UNTOLD = (OperationKind.RELEASE, OperationKind.KEYS, OperationKind.FORGET)
"""Operations of those who run the servers, and requests to forget somebody."""

Placed = tuple[int, int, Facts]
"""Time, order within the time, and facts."""


class Bounds(NamedTuple):
    """What an export tells: everything after a time and until another."""

    after: int = -1
    through: int = 1 << 47

    @property
    def cursor(self) -> str:
        """Where the next export goes on; callers need not know what it means."""
        return f"c1.{self.through:012x}"


EVERYTHING = Bounds()
_CURSOR = re.compile("c1[.]([0-9a-f]{12})")
START = "start"
"""The cursor of an export from the beginning."""


def time_of(cursor: str) -> int:
    """Through when the export went that gave a cursor; ValueError for any other text."""
    if cursor == START:
        return -1
    given = _CURSOR.fullmatch(cursor)
    if given is None:
        raise ValueError(f"{cursor[:50]!r} is not a cursor of an export; begin with {START!r}")
    return int(given[1], 16)


async def log_of(
    store: Store, rows: Mapping[int, ContextRow], tenant: str | None, bounds: Bounds = EVERYTHING
) -> AsyncIterator[Facts]:
    """What happened in these contexts within bounds, and to a tenant's own switches if one is named."""
    found = [one for one in await _rare(store, rows, tenant) if bounds.after < one[0] <= bounds.through]
    rare = deque(sorted(found, key=_place))  # stable: versions of one context and millisecond keep their order
    async for page, record in _pages_of(store, rows, bounds):
        told = _page(record, page.clicks, rows[page.context].name)
        while rare and _place(rare[0]) < _place(told):
            yield rare.popleft()[2]
        yield told[2]
    for one in rare:
        yield one[2]


async def _pages_of(
    store: Store, contexts: Mapping[int, object], bounds: Bounds = EVERYTHING
) -> AsyncIterator[tuple[PageRow, PageRecord]]:
    """The pages of these contexts that were issued within bounds, with their records, in display order."""
    after, end = identifiers.last_id(bounds.after), identifiers.last_id(bounds.through)
    async for pages in store.all_pages(next(iter(contexts)) if len(contexts) == 1 else None, after):
        told = [page for page in pages if page.context in contexts and page.impression <= end]
        records = RecordColumns([page.record for page in told])
        records.check()
        for number, page in enumerate(told):
            yield page, records.record(number)
        if pages[-1].impression > end:
            return


def _place(one: Placed) -> tuple[int, int]:
    return one[:2]


def _placed(at: int, kind: str, number: int, facts: Facts) -> Placed:
    order = _ORDER.index(kind) << 40 | number
    return at, order, {"seq": at, "kind": kind, "at": moment(at), **facts}


async def _rare(store: Store, rows: Mapping[int, ContextRow], tenant: str | None) -> list[Placed]:
    """Everything but pages: there is little of it."""
    found = []
    for row in rows.values():
        terms = json.loads(row.terms)
        body = await store.catalogue(bytes.fromhex(terms["catalogue"]))
        lists = ([], []) if body is None else unpack_catalogue(body)
        facts = {"context": row.name, "k": terms["k"], "base_ranking": lists[0], "candidates": lists[1]}
        found.append(_placed(row.opened_at, "opened", row.id, facts))
        for version in await store.versions(row.id):
            if version.cause != "opened":
                evidence = json.loads(version.evidence)
                told = {"version": version.version, "cause": version.cause, "leader": json.loads(version.leader)}
                changed = {"gained": evidence["gained"], "lost": evidence["lost"]}
                found.append(_placed(version.at, "version", row.id, {"context": row.name, **told, **changed}))
    for operation in await store.operations(0):
        of_all = operation.context == 0 and tenant is not None and operation.tenant in (tenant, ALL_TENANTS)
        if (operation.context in rows or of_all) and operation.kind not in _UNTOLD:
            whose = {"all_tenants": True} if operation.tenant == ALL_TENANTS else {}
            name = rows[operation.context].name if operation.context else None
            kind = OperationKind(operation.kind).name.lower()
            facts = {"context": name, **whose, **json.loads(operation.body)}
            found.append(_placed(operation.at, kind, operation.number, facts))
    return found


def _page(record: PageRecord, clicks: int, context: str) -> Placed:
    facts = {
        "context": context,
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
    return _placed(record.issued_at, "page", 0, facts)


def items_of_bits(shown: tuple[str, ...], bits: int) -> list[str]:
    """The items whose bits are set."""
    return [item for place, item in enumerate(shown) if bits >> place & 1]


# --- the log of a store for which no service needs to be running ---


DECISIONS = "obp"
FORMATS = (*get_args(ExportFormat), DECISIONS)


def export(store: str, form: str, tenant: str | None, out: Path | BinaryIO, arm: str | None = None) -> None:
    """Write the log of a store (a folder or postgresql://...) as lines of JSON to a file or an open one.

    A file is written atomically: it is complete, or the old one stays. Without ``tenant`` all tenants are written.
    Raises ``UsageError`` for an unknown form and for a store that cannot be read.
    """
    if form not in FORMATS:
        raise ArgumentError("format", unknown("format", form, FORMATS))
    if arm not in (None, *ARMS):
        raise ArgumentError("arm", f"unknown arm {arm!r}; known ones: {', '.join(ARMS)}")
    if arm is not None and form not in PAGE_FORMATS:
        raise ArgumentError("arm", f"{form} has no arms to choose from; {' and '.join(PAGE_FORMATS)} have")
    try:
        opened = open_store(store, readonly=True)
        if not isinstance(out, Path):
            asyncio.run(_copy(opened, form, tenant, out, arm))
            return
        check_output_file(out)
        with writing(out), replacing(out) as file:
            asyncio.run(_copy(opened, form, tenant, file, arm))
    except (StoreError, StoreUnavailableError) as problem:
        raise UsageError(str(problem)) from problem


async def _copy(store: Store, form: str, tenant: str | None, file: BinaryIO, arm: str | None) -> None:
    await store.open()
    try:
        now = round(1000 * time.time())
        known = await store.contexts()
        rows = {row.id: row for row in known if tenant in (None, row.tenant)}
        if tenant is not None and not rows:
            tenants = ", ".join(sorted({row.tenant for row in known})) or "none"
            raise UsageError(f"tenant {tenant!r} has no contexts; tenants that have some: {tenants}")
        if form == DECISIONS:
            async for facts in _decisions(store, rows, now):
                file.write(f"{line_of(facts)}\n".encode())
            return
        for owner in sorted(
            {row.tenant for row in rows.values()} if tenant is None else {tenant}
        ):  # one after the other
            theirs = {number: row for number, row in rows.items() if row.tenant == owner}
            async for facts in log_of(store, theirs, owner):
                lines = lines_of(facts, cast(Any, form), moment(now), arm)
                file.writelines(f"{line}\n".encode() for line in lines)
    finally:
        await store.close()


async def _decisions(store: Store, rows: Mapping[int, ContextRow], now: int) -> AsyncIterator[Facts]:
    """The decisions of all closed pages (``propensities.py``), in the order of time."""
    from saferank.service.knowledge.propensities import decisions_of

    async for page, record in _pages_of(store, rows):
        if record.closes_at > now:
            continue
        for each in decisions_of(record):
            yield {
                "timestamp": moment(record.issued_at), "impression_id": identifiers.to_text(record.impression),
                "context": rows[page.context].name, "position": each.place + 1, "item_id": each.item,
                "other_item_id": each.other,
                "other_position": None if each.other_place is None else each.other_place + 1,
                "click": page.clicks >> each.place & 1, "propensity_score": each.propensity,
            }  # fmt: skip
