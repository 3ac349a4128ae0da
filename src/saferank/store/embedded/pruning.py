"""Retention and deletion in SQLite. All functions run inside a transaction of the writer."""

import sqlite3
from collections.abc import Sequence

from saferank.store.contract import CATALOGUE_MS, Deleted, Lease, Mark
from saferank.store.embedded.file import select_in
from saferank.store.embedded.leases import fence
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
    return connection.execute(sql["forget_pages"], (context, first_id(before), most)).rowcount


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
    return Deleted(pages, len(select_in(connection, sql["delete_events_in"], [(digest,) for digest in digests])))


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
