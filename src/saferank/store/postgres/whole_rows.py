"""Rows as the columns that the functions of the database take, retention and deletion, and the whole store as rows."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel

from saferank.store.contract import (
    CATALOGUE_MS,
    CHUNK,
    COPIED,
    Chunk,
    Deleted,
    Group,
    Lease,
    Mark,
    PageRow,
    StaleLeaseError,
    StoreError,
    StoreUnavailableError,
)
from saferank.store.page_record import CATALOGUE_PLACE, first_id
from saferank.store.postgres.connections import DAMAGE, Connection, connect, damaged, first_line
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
    impressions, contexts, ends, records, servers, numbers, clicks = columns(pages, 7)
    return [
        impressions, as_array(contexts), as_array(ends), records, _texts(servers), as_array(numbers),
        _texts([f"x{value:0{_DIGITS}x}" for value in clicks]),
    ]  # fmt: skip


def as_array(values: Sequence[int]) -> str:
    """An array as PostgreSQL reads it. psycopg's lists take most of the time of a group."""
    return "{" + ",".join(map(str, values)) + "}"


def _texts(values: Sequence[str | None]) -> str:
    """An array as PostgreSQL reads it."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """The columns of rows that have so many."""
    return [[row[place] for row in rows] for place in range(width)]


# --- retention and deletion in PostgreSQL, by the holder of a shard ---


async def keep_publication(on: Connection, lease: Lease, context: int) -> None:
    """The newest publication becomes a snapshot as well."""
    async with on.transaction():
        await _fence(on, lease)
        await on.execute(statements("postgres")["keep_publication"], (context,))


async def prune(on: Connection, lease: Lease, context: int, mark: Mark, before: int, seen: int, most: int) -> int:
    """Delete the oldest pages of a context, which a kept snapshot stands for from now on."""
    sql = statements("postgres")
    async with on.transaction():
        await _fence(on, lease)
        await on.execute(sql["hold_operations"])  # who adds one afterwards sees what is deleted here
        if await (await on.execute(sql["newer_operation"], (context, seen))).fetchone():
            return 0
        await _stand_for(on, context, mark)
        return (await on.execute(sql["forget_pages"], (context, first_id(before), most))).rowcount


async def delete_pages(on: Connection, lease: Lease, context: int, mark: Mark, impressions: Sequence[bytes]) -> Deleted:
    """Delete single pages, which a kept snapshot stands for from now on, and their event ids."""
    sql, behind = statements("postgres"), first_id(mark.through + 1)
    async with on.transaction():
        await _fence(on, lease)
        await _stand_for(on, context, mark)
        gone = await (await on.execute(sql["delete_pages"], (context, behind, list(impressions)))).fetchall()
        events = await on.execute(sql["delete_events"], ([row[0] for row in gone],))
        return Deleted(len(gone), events.rowcount)


async def prune_catalogues(on: Connection, before: int, most: int) -> int:
    """Delete catalogues that were written last before a time and that nothing names."""
    behind = first_id(before + 2 * CATALOGUE_MS)
    facts = {"before": before, "behind": behind, "place": CATALOGUE_PLACE, "most": most}
    return (await on.execute(statements("postgres")["forget_catalogues"], facts)).rowcount


async def _stand_for(on: Connection, context: int, mark: Mark) -> None:
    """From now on the log of a context begins with a snapshot."""
    sql = statements("postgres")
    await on.execute(sql["set_pruned"], {"through": mark.through, "context": context})
    await on.execute(sql["forget_snapshots"], (context, mark.number))


async def _fence(on: Connection, lease: Lease) -> None:
    """StaleLeaseError unless the lease is the newest of its shard."""
    if not await (await on.execute(statements("postgres")["fence"], lease[:2])).fetchone():
        raise StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold any more")


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
                        yield Chunk(table, [(*row[:-1], int(row[-1], 2)) for row in rows] if table == "page" else rows)
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
    try:
        connection = await connect(address)
        try:
            await connection.execute(statements("postgres")["no_limits"])
            yield connection
        finally:
            await connection.close()
    except DAMAGE as problem:
        raise damaged(name, problem) from problem
    except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
        raise StoreUnavailableError(f"{name}: {first_line(problem)}") from problem
