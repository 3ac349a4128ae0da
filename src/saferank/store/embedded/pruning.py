"""Retention and deletion in SQLite. All functions but ``scrub`` run inside a transaction of the writer."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from saferank.store.checksums import row_sum, sealed
from saferank.store.contract import CATALOGUE_MS, ContextRow, Deleted, Lease, Mark, Publication, VersionRow
from saferank.store.embedded.file import insert, select_in
from saferank.store.embedded.leases import fence
from saferank.store.embedded.publishing import publish
from saferank.store.page_record import CATALOGUE_PLACE, first_id
from saferank.store.sql import statements


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
    gone = connection.execute(sql["forget_pages"], (context, first_id(before), most)).rowcount
    connection.execute(sql["count_written"], (-gone,))
    return gone


def delete_pages(
    connection: sqlite3.Connection,
    lease: Lease,
    context: int,
    mark: Mark,
    impressions: Sequence[bytes],
    digests: Sequence[bytes],
) -> Deleted:
    """Delete single pages, which a kept snapshot stands for from now on, and event ids by digest."""
    sql, behind = statements("embedded"), first_id(mark.through + 1)
    fence(connection, lease, context)
    _stand_for(connection, context, mark)
    rows = [(impression, context, behind) for impression in impressions]
    pages = connection.executemany(sql["delete_page"], rows).rowcount if rows else 0
    connection.execute(sql["count_written"], (-pages,))
    return Deleted(pages, len(select_in(connection, sql["delete_events_in"], [(digest,) for digest in digests])))


def prune_catalogues(connection: sqlite3.Connection, before: int, most: int) -> int:
    """Delete catalogues that were written last before a time and that nothing names."""
    behind = first_id(before + 2 * CATALOGUE_MS)
    facts = {"before": before, "behind": behind, "place": CATALOGUE_PLACE, "most": most}
    return connection.execute(statements("embedded")["forget_catalogues"], facts).rowcount


def rewrite(
    connection: sqlite3.Connection, lease: Lease, row: ContextRow, publication: Publication | None,
    versions: Sequence[VersionRow], alarms: Mapping[str, str], now: int, name: str,
) -> None:  # fmt: skip
    """Replace what a context was opened with and what is known of it; its log begins with the publication."""
    sql = statements("embedded")
    if publication is None:
        fence(connection, lease, row.id)
    else:
        publish(connection, lease, publication, now, name, (), (), True)
        _stand_for(connection, row.id, Mark(publication.number, publication.through, publication.operation))
    connection.execute(sql["set_terms"], (row.terms, row_sum(row), row.id))
    insert(connection, sql["set_version"], [sealed(version) for version in versions])
    connection.executemany(sql["set_alarm"], [(new, row.id, old) for old, new in alarms.items()])


def scrub(path: Path) -> None:
    """Write the file again without what was deleted, and empty its log."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute(statements("embedded")["scrub"])
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _stand_for(connection: sqlite3.Connection, context: int, mark: Mark) -> None:
    """From now on the log of a context begins with a snapshot."""
    sql = statements("embedded")
    connection.execute(sql["set_pruned"], {"through": mark.through, "context": context})
    connection.execute(sql["forget_snapshots"], (context, mark.number))
