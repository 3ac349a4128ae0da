"""The whole PostgreSQL store: read in one repeatable-read transaction, filled in one, and written again.

These take as long as they take: their connection has none of the time limits of the service's own.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncCursor, IsolationLevel

from saferank.store.checksums import checked_page, damaged
from saferank.store.contract import Fault, Group, PageRow, StoreError, StoreUnavailableError
from saferank.store.faults import check_operations, check_pages, operation_faults, page_faults, time_faults
from saferank.store.postgres.columns import group_columns
from saferank.store.postgres.connections import Connection, connect, first_line
from saferank.store.sql import statements
from saferank.store.tables import CHUNK, TABLES, Chunk, Row, checked, checked_context, summed


async def dumped(address: str, name: str) -> AsyncIterator[Chunk]:
    """All rows as of one moment; servers keep writing."""
    sql = statements("postgres")
    async with _unlimited(address, name) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        async with connection.transaction():
            check_pages(name, *await _row(connection, "written_and_found"))
            check_operations(name, *await _row(connection, "operations_written_and_found"))
            for table in TABLES:
                async with connection.cursor(name=f"copy_{table}") as cursor:
                    await cursor.execute(sql[f"copy_{table}"])
                    found = True
                    while found:
                        rows = await cursor.fetchmany(CHUNK)
                        yield Chunk(table, [_neutral(name, table, row) for row in rows])
                        found = len(rows) == CHUNK


async def faults(address: str, name: str) -> list[Fault]:
    """Damage that no single row shows. Counting the pages of a large store takes longer than a call may."""
    async with _unlimited(address, name) as connection:
        written, found = await _row(connection, "written_and_found")
        operations = await _row(connection, "operations_written_and_found")
        (now,) = await _row(connection, "now")
        times = await (await connection.execute(statements("postgres")["times"])).fetchall()
    return [*page_faults(name, written, found), *operation_faults(name, *operations), *time_faults(name, times, now)]


async def _row(connection: Connection, statement: str) -> Row:
    row = await (await connection.execute(statements("postgres")[statement])).fetchone()
    assert row is not None
    return row


async def fill(address: str, name: str, chunks: Iterable[Chunk]) -> None:
    """Write all rows, or none; StoreError unless the store is empty and no server uses it."""
    sql = statements("postgres")
    async with _unlimited(address, name) as connection, connection.transaction(), connection.cursor() as cursor:
        await cursor.execute(sql["lock_schema"])
        used, servers = await (await cursor.execute(sql["is_used"])).fetchone() or (True, 0)
        if servers:
            raise StoreError(f"{name}: {servers} servers are running on it; stop them first")
        if used:
            raise StoreError(f"{name}: is not empty; restore into a new database")
        for table, rows in chunks:
            await _put(cursor, table, rows)
        await cursor.execute(sql["wait_for_next"])


@asynccontextmanager
async def _unlimited(address: str, name: str) -> AsyncIterator[Connection]:
    try:
        connection = await connect(address)
        try:
            await connection.execute(statements("postgres")["no_limits"])
            yield connection
        finally:
            await connection.close()
    except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
        raise StoreUnavailableError(f"{name}: {first_line(problem)}") from problem


async def _put(cursor: AsyncCursor[Row], table: str, rows: Sequence[Row]) -> None:
    sql = statements("postgres")
    if table == "page":
        await cursor.execute(sql["load_pages"], group_columns(Group(pages=[PageRow._make(row) for row in rows]))[1:9])
        await cursor.execute(sql["count_written"], (len(rows),))
    elif table == "context":
        await cursor.executemany(sql["put_context"], [(*summed(table, row), *(~t for t in row[-2:])) for row in rows])
    else:
        await cursor.executemany(sql[f"put_{table}"], [summed(table, row) for row in rows])


def _neutral(name: str, table: str, row: Row) -> Row:
    """A row of the database; DamagedStoreError when it is not as it was written."""
    if table == "page":
        *fields, found, clicks, whole = row
        if not whole:
            raise damaged(name, "clicks", fields[:1])
        return checked_page(name, PageRow._make((*fields, int(clicks, 2))), found)
    if table == "context":
        return checked_context(name, row)
    return checked(name, table, row)
