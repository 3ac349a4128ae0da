"""Closing and publishing in SQLite. The functions run inside a transaction of the writer."""

import sqlite3
from collections.abc import Sequence

from saferank.store.contract import (
    SHARDS,
    AlarmRow,
    ContextRow,
    Lease,
    OperationKind,
    OperationRow,
    Publication,
    StaleLeaseError,
    VersionRow,
)
from saferank.store.embedded.file import insert, select_in
from saferank.store.embedded.leases import fence
from saferank.store.page_record import first_id
from saferank.store.sql import statements


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
