"""The whole SQLite store as neutral rows: read in one transaction beside a running server, written in one."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from saferank.store.checksums import page_sum, sealed_clicks, unsealed_pages
from saferank.store.contract import PageRow, StoreError
from saferank.store.embedded.file import for_reading, insert
from saferank.store.faults import check_operations, check_pages
from saferank.store.page_record import first_id
from saferank.store.sql import statements
from saferank.store.tables import CHUNK, TABLES, Chunk, Row, checked, checked_context, summed


def dumped(path: Path, name: str) -> Iterator[Chunk]:
    """All rows as of one moment. In WAL mode whoever reads sees the moment of BEGIN, and writers are not held up."""
    sql = statements("embedded")
    with closing(for_reading(path)) as connection:
        connection.execute("BEGIN")
        check_pages(name, *connection.execute(sql["written_and_found"]).fetchone())
        check_operations(name, *connection.execute(sql["operations_written_and_found"]).fetchone())
        for table in TABLES:
            cursor, found = connection.execute(sql[f"copy_{table}"]), True
            while found:
                rows = cursor.fetchmany(CHUNK)
                yield Chunk(table, [_neutral(name, table, row) for row in rows])
                found = len(rows) == CHUNK


def fill(connection: sqlite3.Connection, chunks: Iterable[Chunk], name: str, now: int) -> None:
    """Write all rows; inside a transaction."""
    sql = statements("embedded")
    if connection.execute(sql["is_used"]).fetchone()[0]:
        raise StoreError(f"{name}: is not empty; restore into a new folder")
    for table, rows in chunks:
        insert(connection, sql[f"put_{table}"], [_stored(table, row) for row in rows])
        if table == "page":
            connection.execute(sql["count_written"], (len(rows),))
    connection.execute(sql["touch_catalogues"], (now,))
    for context, through in connection.execute(sql["published_through"]).fetchall():
        following = connection.execute(sql["first_page"], (context, first_id(through + 1))).fetchone()
        if following is not None:
            insert(connection, sql["add_waiting"], [(context, following[0])])


def _neutral(name: str, table: str, row: Row) -> Row:
    """A row of the file; DamagedStoreError when it is not as it was written."""
    if table == "page":
        return unsealed_pages(name, [row])[0]
    if table == "context":
        return checked_context(name, row)
    return checked(name, table, row)


def _stored(table: str, row: Row) -> Row:
    """A row for the file."""
    if table == "page":
        page = PageRow._make(row)
        return (*page[:-1], sealed_clicks(page.impression, page.clicks), page_sum(page))
    return (*summed(table, row), *(~time for time in row[-2:])) if table == "context" else summed(table, row)
