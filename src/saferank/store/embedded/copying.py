"""The whole SQLite store as rows: read in one transaction beside a running server, written in one."""

import asyncio
import sqlite3
from collections.abc import AsyncIterable, Iterator
from contextlib import closing
from pathlib import Path

from saferank.store.contract import CHUNK, COPIED, Chunk, PageRow, StoreError
from saferank.store.embedded.file import for_reading, for_writing, insert
from saferank.store.embedded.groups import clicks_of, packed_clicks
from saferank.store.page_record import first_id
from saferank.store.sql import statements


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
