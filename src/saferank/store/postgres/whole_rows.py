"""Rows as the columns that the functions of the database take, and the whole store as rows."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg import IsolationLevel

from saferank.store.contract import CHUNK, COPIED, Chunk, Group, PageRow, StoreError
from saferank.store.postgres.connections import Connection, connect, in_sentences
from saferank.store.sql import statements

_DIGITS = 32  # of the clicks of a page, bit(128)


def group_columns(group: Group) -> list[Any]:
    """The columns of a group: its reports, then its pages."""
    reports = group.reports
    pages = [*(report.page for report in reports), *group.pages]
    none = [None] * len(group.pages)
    return [
        len(reports),
        *page_columns(pages),
        _texts([*(report.event_id for report in reports), *none]),
        [*(report.digest for report in reports), *none],
    ]


def page_columns(pages: Sequence[PageRow]) -> list[Any]:
    """The columns of pages."""
    impressions, contexts, ends, records, clicks = columns(pages, 5)
    bits = _texts([f"x{value:0{_DIGITS}x}" for value in clicks])
    return [impressions, as_array(contexts), as_array(ends), records, bits]


def as_array(values: Sequence[int]) -> str:
    """An array as PostgreSQL reads it. psycopg's lists take most of the time of a group."""
    return "{" + ",".join(map(str, values)) + "}"


def _texts(values: Sequence[str | None]) -> str:
    """An array as PostgreSQL reads it."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def clicks_of(bits: str) -> int:
    """The clicks of a page, which PostgreSQL tells as binary digits."""
    return int(bits, 2)


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """The columns of rows that have this number of them."""
    return [[row[place] for row in rows] for place in range(width)]


# --- the whole PostgreSQL store: read in one repeatable-read transaction, filled in one ---
# These take as long as they take: their connection has none of the time limits of the service's own.


async def dumped(address: str, name: str) -> AsyncIterator[Chunk]:
    """All rows as of one moment; servers keep writing. PostgreSQL checks every block that it reads from the disk."""
    sql = statements("postgres")
    async with _unlimited(address, name) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        async with connection.transaction():
            for table in COPIED:
                async with connection.cursor(name=f"copy_{table}") as cursor:
                    await cursor.execute(sql[f"copy_{table}"])
                    found = True
                    while found:
                        rows = await cursor.fetchmany(CHUNK)
                        yield Chunk(
                            table, [(*row[:-1], clicks_of(row[-1])) for row in rows] if table == "page" else rows
                        )
                        found = len(rows) == CHUNK


async def fill(address: str, name: str, chunks: AsyncIterable[Chunk]) -> None:
    """Write all rows, or none; StoreError unless the store is empty and no server uses it."""
    sql = statements("postgres")
    async with _unlimited(address, name) as connection, connection.transaction(), connection.cursor() as cursor:
        await cursor.execute(sql["lock_schema"])
        used, servers = await (await cursor.execute(sql["is_used"])).fetchone() or (True, 0)
        if servers:
            raise StoreError(f"{name}: {servers} servers are running on it; stop them first")
        if used:
            raise StoreError(f"{name}: is not empty; restore into a new database")
        async for table, rows in chunks:
            if table == "page":
                await cursor.execute(sql["put_pages"], page_columns([PageRow._make(row) for row in rows]))
            else:
                await cursor.executemany(sql[f"put_{table}"], rows)
        await cursor.execute(sql["wait_for_next"])


@asynccontextmanager
async def _unlimited(address: str, name: str) -> AsyncIterator[Connection]:
    with in_sentences(name):
        connection = await connect(address)
        try:
            await connection.execute(statements("postgres")["no_limits"])
            yield connection
        finally:
            await connection.close()
