"""What is done inside a transaction of SQLite: leases, groups, closing, publishing, retention, copying."""

import asyncio
import sqlite3
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from saferank.store.contract import (
    CATALOGUE_MS,
    CHUNK,
    COPIED,
    MOST_EVENT_IDS,
    SHARDS,
    AlarmRow,
    Chunk,
    ClickReport,
    ContextRow,
    Deleted,
    Group,
    Heartbeat,
    Lease,
    Mark,
    OperationKind,
    OperationRow,
    Outcome,
    PageRow,
    Publication,
    StaleLeaseError,
    StoreError,
    VersionRow,
    Written,
)
from saferank.store.embedded.file import for_reading, for_writing, insert, select_in
from saferank.store.page_record import CATALOGUE_PLACE, TIME_BYTES, first_id
from saferank.store.sql import statements

_FORGOTTEN_MS = 86_400_000


def heartbeat(connection: sqlite3.Connection, server: str, acknowledged: int, lease_ms: int, now: int) -> Heartbeat:
    """Renew what the server holds, let go of what is beyond its share, take free shards up to its share."""
    sql, until = statements("embedded"), now + lease_ms
    facts = {"server": server, "acknowledged": acknowledged, "now": now, "until": until}
    connection.execute(sql["set_server"], facts)
    connection.execute(sql["forget_servers"], (now - _FORGOTTEN_MS,))
    (alive,) = connection.execute(sql["count_servers"], (now,)).fetchone()
    share = -(-SHARDS // alive)
    connection.execute(sql["let_go"], {**facts, "share": share})
    held = connection.execute(sql["renew"], facts).rowcount
    connection.execute(sql["take"], {**facts, "free": share - held})
    leases = tuple(Lease(*row) for row in connection.execute(sql["leases"], (server, now)))
    (operation,) = connection.execute(sql["last_operation"]).fetchone()
    return Heartbeat(now, until, operation, leases, alive)


def leave(connection: sqlite3.Connection, server: str) -> None:
    """Free the shards of a server and forget it."""
    sql = statements("embedded")
    connection.execute(sql["leave_shards"], (server,))
    connection.execute(sql["leave"], (server,))


def fence(connection: sqlite3.Connection, lease: Lease, context: int) -> None:
    """StaleLeaseError unless the lease is the newest of the shard of a context."""
    row = connection.execute(statements("embedded")["epoch"], (lease.shard,)).fetchone()
    if context % SHARDS != lease.shard or row is None or row[0] != lease.epoch:
        raise StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")


# --- A group of reports and pages, written in one transaction of SQLite ---


def write_group(connection: sqlite3.Connection, group: Group, now: int) -> Written:
    """Merge the reports, add the pages that are open; inside a transaction."""
    sql = statements("embedded")
    insert(connection, sql["add_catalogue"], [(*row, now) for row in group.catalogues])
    merge = _Merge(connection, group, now)
    outcomes = tuple(merge.report(report) for report in group.reports)
    left_out = sum(not merge.add(page) for page in group.pages)
    merge.write(connection)
    return Written(outcomes, now, left_out)


class _Merge:
    """What the store holds of the pages and events of a group, and what becomes of it."""

    def __init__(self, connection: sqlite3.Connection, group: Group, now: int) -> None:
        pages = [*(report.page for report in group.reports), *group.pages]
        self._now = now
        self._closed = _closed(connection, pages)
        self._clicks, self._ids = _clicks(connection, pages)
        self._events = _events(connection, group)
        self._changed: dict[bytes, PageRow] = {}
        self._new: dict[int, int] = {}  # context: the earliest end of a window of a new page
        self._delivered: list[tuple[bytes, str, bytes, int]] = []

    def report(self, report: ClickReport) -> Outcome:
        """An event that is known is answered as such even when its page is closed by now: it was counted."""
        page = report.page
        known = None if report.event_id is None else self._events.get((page.impression, report.event_id))
        if known is not None:
            return Outcome.DUPLICATE if known == report.digest else Outcome.CONFLICT
        if not self._is_open(page):
            return Outcome.LATE
        new = self._merge(page)
        if report.event_id is not None and (new or self._ids.get(page.impression, 0) < MOST_EVENT_IDS):
            self._events[page.impression, report.event_id] = report.digest
            self._delivered.append((page.impression, report.event_id, report.digest, self._now))
            self._ids[page.impression] = self._ids.get(page.impression, 0) + 1
            self._changed[page.impression] = page._replace(clicks=self._clicks[page.impression])
            new = True
        return Outcome.ACCEPTED if new else Outcome.DUPLICATE

    def add(self, page: PageRow) -> bool:
        """Add an issued page unless it is there; False when it is closed."""
        if not self._is_open(page):
            return False
        if page.impression not in self._clicks:
            self._merge(page)
        return True

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring it into the file."""
        sql = statements("embedded")
        insert(connection, sql["add_delivery"], self._delivered)
        rows = [_page_row(page, self._ids.get(page.impression, 0)) for page in self._changed.values()]
        insert(connection, sql["add_page"], rows)
        insert(connection, sql["add_waiting"], list(self._new.items()))

    def _is_open(self, page: PageRow) -> bool:
        issued_at = int.from_bytes(page.impression[:TIME_BYTES], "big")
        return issued_at > self._closed[page.context] and self._now < page.closes_at

    def _merge(self, page: PageRow) -> bool:
        """True when the page or one of its clicks is new."""
        known = self._clicks.get(page.impression)
        clicks = page.clicks | (known or 0)
        if clicks == known:
            return False
        if known is None:
            self._new[page.context] = min(page.closes_at, self._new.get(page.context, page.closes_at))
        self._clicks[page.impression] = clicks
        self._changed[page.impression] = page._replace(clicks=clicks)
        return True


def packed_clicks(clicks: int) -> bytes:
    """The clicks of a page, which may be more than a number of SQLite holds."""
    return clicks.to_bytes((clicks.bit_length() + 7) // 8, "little")


def clicks_of(data: bytes) -> int:
    """The clicks that were packed."""
    return int.from_bytes(data, "little")


def _page_row(page: PageRow, ids: int) -> tuple[Any, ...]:
    return (*page[:-1], packed_clicks(page.clicks), ids)


def _closed(connection: sqlite3.Connection, pages: list[PageRow]) -> Mapping[int, int]:
    contexts = {page.context for page in pages}
    found = dict(select_in(connection, statements("embedded")["closed_through_in"], [(number,) for number in contexts]))
    for number in contexts - found.keys():
        raise KeyError(f"there is no context {number}")
    return found


def _clicks(connection: sqlite3.Connection, pages: list[PageRow]) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """By page that is there: its clicks, and how many event ids of it are kept."""
    keys = [(impression,) for impression in {page.impression for page in pages}]
    rows = select_in(connection, statements("embedded")["clicks_in"], keys)
    clicks = {impression: clicks_of(data) for impression, data, _ in rows}
    return clicks, {impression: ids for impression, _, ids in rows}


def _events(connection: sqlite3.Connection, group: Group) -> dict[tuple[bytes, str], bytes]:
    keys = {(report.page.impression, report.event_id) for report in group.reports if report.event_id is not None}
    rows = select_in(connection, statements("embedded")["deliveries_in"], list(keys))
    return {(impression, event_id): digest for impression, event_id, digest in rows}


# --- closing and publishing in SQLite. The functions run inside a transaction of the writer ---


def due(connection: sqlite3.Connection, shards: Sequence[int], after: int, now: int) -> list[int]:
    """Contexts with pages that are not published and whose windows have ended."""
    sql, wanted = statements("embedded"), set(shards)
    rows = [row for row in connection.execute(sql["waiting"], (now,)) if row[0] % SHARDS in wanted]
    return [
        context
        for context, through in rows
        if connection.execute(sql["ended_page"], (context, first_id(max(after, through) + 1), now)).fetchone()
    ]


def close_through(connection: sqlite3.Connection, lease: Lease, context: int, through: int) -> int:
    """Close pages; the newest time that was given holds."""
    fence(connection, lease, context)
    facts = {"through": through, "context": context}
    (closed,) = connection.execute(statements("embedded")["close_through"], facts).fetchone()
    return int(closed)


def publish(
    connection: sqlite3.Connection, lease: Lease, publication: Publication, now: int,
    versions: Sequence[VersionRow], alarms: Sequence[AlarmRow], keep: bool,
) -> None:  # fmt: skip
    """Replace the publication of a context by the next one; a call that came twice changes nothing."""
    sql = statements("embedded")
    fence(connection, lease, publication.context)
    newest = newest_publication(connection, publication.context)
    if newest == publication:
        return
    if publication.number != (newest.number if newest else 0) + 1:
        raise StaleLeaseError(f"publication {publication.number} of context {publication.context} is not the next")
    connection.execute(sql["set_publication"], (*publication, now))
    insert(connection, sql["add_version"], versions)
    insert(connection, sql["add_alarm"], alarms)
    if keep:
        insert(connection, sql["add_snapshot"], [publication])
    _wait_for_next(connection, publication)


def newest_publication(connection: sqlite3.Connection, context: int) -> Publication | None:
    """The newest knowledge of a context."""
    row = connection.execute(statements("embedded")["publication"], (context,)).fetchone()
    return None if row is None else Publication(*row)


def publications(connection: sqlite3.Connection, contexts: Sequence[int]) -> list[Publication]:
    """The newest knowledge of some contexts."""
    rows = select_in(connection, statements("embedded")["publications_in"], [(context,) for context in contexts])
    return sorted(Publication(*row) for row in rows)


def _wait_for_next(connection: sqlite3.Connection, publication: Publication) -> None:
    """Note when the first page that is not published will be due."""
    sql, context = statements("embedded"), publication.context
    following = connection.execute(sql["first_page"], (context, first_id(publication.through + 1))).fetchone()
    if following is None:
        connection.execute(sql["end_waiting"], (context,))
    else:
        connection.execute(sql["set_waiting"], (following[0], context))


def open_context(
    connection: sqlite3.Connection, tenant: str, name: str, terms: str, most: int, now: int
) -> ContextRow | None:
    """The context of this name, made if there is none and the tenant may have one more."""
    sql = statements("embedded")
    found = find_context(connection, tenant, name)
    if found is not None or connection.execute(sql["count_contexts"], (tenant,)).fetchone()[0] >= most:
        return found
    (last,) = connection.execute(sql["last_context"]).fetchone()
    row = ContextRow(last + 1, tenant, name, terms, now)
    insert(connection, sql["add_context"], [row])
    return row


def find_context(connection: sqlite3.Connection, tenant: str, name: str) -> ContextRow | None:
    """A context by name."""
    row = connection.execute(statements("embedded")["find_context"], (tenant, name)).fetchone()
    return None if row is None else ContextRow(*row)


def add_operation(
    connection: sqlite3.Connection, tenant: str, context: int, kind: OperationKind, body: str, now: int
) -> OperationRow:
    """The next operation."""
    sql = statements("embedded")
    (last,) = connection.execute(sql["last_operation"]).fetchone()
    row = OperationRow(last + 1, now, tenant, context, int(kind), body)
    insert(connection, sql["put_operation"], [row])
    return row


# --- retention and deletion in SQLite. All functions run inside a transaction of the writer ---


def keep_publication(connection: sqlite3.Connection, lease: Lease, context: int) -> None:
    """The newest publication becomes a snapshot as well."""
    fence(connection, lease, context)
    connection.execute(statements("embedded")["keep_publication"], (context,))


def prune(
    connection: sqlite3.Connection, lease: Lease, context: int, mark: Mark, before: int, seen: int, most: int
) -> int:
    """Delete the oldest pages of a context, which a kept snapshot stands for from now on."""
    sql = statements("embedded")
    fence(connection, lease, context)
    if connection.execute(sql["newer_operation"], (context, seen)).fetchone()[0]:
        return 0
    _stand_for(connection, context, mark)
    return connection.execute(sql["forget_pages"], (context, first_id(before), most)).rowcount


def delete_pages(
    connection: sqlite3.Connection, lease: Lease, context: int, mark: Mark, impressions: Sequence[bytes]
) -> Deleted:
    """Delete single pages, which a kept snapshot stands for from now on, and their event ids."""
    sql, behind = statements("embedded"), first_id(mark.through + 1)
    fence(connection, lease, context)
    _stand_for(connection, context, mark)
    rows = [(impression, context, behind) for impression in impressions]
    gone = [row[:1] for row in rows if connection.execute(sql["delete_page"], row).rowcount]
    return Deleted(len(gone), len(select_in(connection, sql["delete_events_in"], gone)))


def prune_catalogues(connection: sqlite3.Connection, before: int, most: int) -> int:
    """Delete catalogues that were written last before a time and that nothing names."""
    behind = first_id(before + 2 * CATALOGUE_MS)
    facts = {"before": before, "behind": behind, "place": CATALOGUE_PLACE, "most": most}
    return connection.execute(statements("embedded")["forget_catalogues"], facts).rowcount


def _stand_for(connection: sqlite3.Connection, context: int, mark: Mark) -> None:
    """From now on the log of a context begins with a snapshot."""
    sql = statements("embedded")
    connection.execute(sql["set_pruned"], {"through": mark.through, "context": context})
    connection.execute(sql["forget_snapshots"], (context, mark.number))


# --- the whole SQLite store as rows: read in one transaction beside a running server, written in one ---


def dumped(path: Path) -> Iterator[Chunk]:
    """All rows as of one moment. In WAL mode whoever reads sees the moment of BEGIN, and writers are not held up."""
    sql = statements("embedded")
    with closing(for_reading(path)) as connection:
        connection.execute("BEGIN")
        for table in COPIED:
            cursor, found = connection.execute(sql[f"copy_{table}"]), True
            while found:
                rows = cursor.fetchmany(CHUNK)
                yield Chunk(table, [(*row[:-1], clicks_of(row[-1])) for row in rows] if table == "page" else rows)
                found = len(rows) == CHUNK


async def fill(path: Path, chunks: AsyncIterable[Chunk], now: int) -> None:
    """Write all rows in one transaction of its own connection; the caller has the lock of the store."""
    connection = await asyncio.to_thread(for_writing, path)
    try:
        if connection.execute(statements("embedded")["is_used"]).fetchone()[0]:
            raise StoreError(f"{path}: is not empty; restore into a new folder")
        connection.execute("BEGIN IMMEDIATE")
        async for chunk in chunks:
            await asyncio.to_thread(_put, connection, chunk)
        await asyncio.to_thread(_finish, connection, now)
    finally:
        await asyncio.to_thread(connection.close)  # what is not committed is rolled back


def _put(connection: sqlite3.Connection, chunk: Chunk) -> None:
    table, rows = chunk
    if table == "page":
        rows = [(*page[:-1], packed_clicks(page.clicks)) for page in map(PageRow._make, rows)]
    insert(connection, statements("embedded")[f"put_{table}"], rows)


def _finish(connection: sqlite3.Connection, now: int) -> None:
    """Note what follows from the rows, and commit."""
    sql = statements("embedded")
    connection.execute(sql["touch_catalogues"], (now,))
    for context, through in connection.execute(sql["published_through"]).fetchall():
        following = connection.execute(sql["first_page"], (context, first_id(through + 1))).fetchone()
        if following is not None:
            insert(connection, sql["add_waiting"], [(context, following[0])])
    connection.execute("COMMIT")
