"""The contract on PostgreSQL. What must be one step is a function of the database (schema.sql)."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from psycopg import IsolationLevel

from saferank.store.contract import (
    CHUNK,
    COPIED,
    SHARDS,
    AlarmRow,
    Chunk,
    Deleted,
    Group,
    HeartbeatReply,
    Lease,
    Outcome,
    Publication,
    ServerRow,
    Snapshot,
    StaleLeaseError,
    StoreError,
    VersionRow,
    Written,
)
from saferank.store.page_record import first_id
from saferank.store.postgres.connections import Connection, Connections, Listener, check, connect, in_sentences, name_of
from saferank.store.sql import Done, On, SqlStore, check_shard, in_transaction, stale, statements

T = TypeVar("T")

_OUTCOMES = {int(outcome): outcome for outcome in Outcome}
_DIGITS = 32  # of the clicks of a page, bit(128)


def _as_array(values: Sequence[int]) -> str:
    """An array as PostgreSQL reads it. psycopg's lists take most of the time of a group."""
    return "{" + ",".join(map(str, values)) + "}"


def _clicks_of(bits: str) -> int:
    """The clicks of a page, which PostgreSQL tells as binary digits."""
    return int(bits, 2)


class PostgresStore(SqlStore):
    """The store in a database that other servers use as well. Read-only it is not made when it is not there."""

    is_remote = True
    _sql = statements("postgres")

    def __init__(self, address: str, *, readonly: bool = False) -> None:
        self._address, self.name, self._makes = address, name_of(address), not readonly
        self._connections = Connections(address, self.name)
        self._listener = Listener(address)

    async def open(self) -> None:
        """Check the server and its schema; StoreError says why it cannot be used."""
        await check(self._address, self.name, makes=self._makes)
        await self._listener.start()

    async def close(self) -> None:
        """Let go of everything."""
        await self._listener.stop()
        await self._connections.close()

    async def _rows(self, statement: str, *arguments: Any, **facts: Any) -> list[tuple[Any, ...]]:
        async def work(on: Connection) -> list[tuple[Any, ...]]:
            return await (await on.execute(self._sql[statement], facts or arguments, binary=True)).fetchall()

        return await self._connections.run(work)

    async def _transact(self, work: Callable[[On], Awaitable[T]]) -> T:
        async def within(connection: Connection) -> T:
            async def on(statement: str, *arguments: Any, **facts: Any) -> Done:
                cursor = await connection.execute(self._sql[statement], facts or arguments, binary=True)
                return Done(await cursor.fetchall() if cursor.description else [], cursor.rowcount)

            async with connection.transaction():
                return await work(on)

        return await self._connections.run(within)

    _clicks, _list = staticmethod(_clicks_of), staticmethod(_as_array)

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        ((now, until, newest, alive, shards, epochs),) = await self._rows(
            "heartbeat", server, acknowledged, lease_ms, SHARDS
        )
        leases = tuple(Lease(*pair, until) for pair in zip(shards or (), epochs or (), strict=True))
        return HeartbeatReply(now, until, newest, leases, alive)

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        return await self._all(ServerRow, "servers", ended_ms)

    # --- pages ---

    async def write(self, group: Group) -> Written:
        arguments = group_columns(group)
        if not group.catalogues:
            return _written(await self._rows("write_group", *arguments))
        return await self._write_with_catalogues(group, arguments)

    @in_transaction
    async def _write_with_catalogues(self, on: On, group: Group, arguments: Sequence[Any]) -> Written:
        await on("add_catalogues", *_columns(group.catalogues, 2))
        return _written((await on("write_group", *arguments)).rows)

    # --- closing and publishing, by the holder of a shard ---

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        check_shard(lease, context)
        ((closed,),) = await self._rows("close_through", lease.shard, lease.epoch, context, through)
        if closed is None:
            raise stale(lease, context)
        return int(closed)

    async def publish(
        self,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        check_shard(lease, publication.context)
        news = _columns([row[1:] for row in versions], 7) + _columns(alarms, 4)
        ((newest,),) = await self._rows("publish", lease.shard, lease.epoch, *publication, keep, *news)
        if newest is None:
            raise stale(lease, publication.context)
        if newest and (newest != publication.number or await self.publication(publication.context) != publication):
            raise StaleLeaseError(f"publication {publication.number} of context {publication.context} is not the next")

    async def wait(self, seconds: float) -> None:
        await self._listener.wait(seconds)

    # --- retention ---

    @in_transaction
    async def delete_pages(
        self, on: On, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        await self._fence(on, lease, context)
        await self._stand_for(on, context, snapshot)
        gone = (await on("delete_pages", context, first_id(snapshot.through + 1), list(impressions))).rows
        return Deleted(len(gone), (await on("delete_events", [row[0] for row in gone])).changed)

    # --- damage and backups ---

    async def damage(self) -> Sequence[str]:
        ((failures,),) = await self._rows("checksum_failures")
        if not failures:
            return []
        what = f"PostgreSQL has met {failures} blocks with a wrong checksum in this database (pg_stat_database)"
        return [f"{self.name}: is damaged ({what}). Restore the store from a backup"]

    # --- the whole store: read in one repeatable-read transaction, filled in one ---
    # These take as long as they take: their connection has none of the time limits of the service's own.

    async def dump(self) -> AsyncIterator[Chunk]:
        """All rows as of one moment; servers keep writing. PostgreSQL checks the blocks that it reads."""
        async with self._unlimited() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            async with connection.transaction():
                for table in COPIED:
                    async with connection.cursor(name=f"copy_{table}") as cursor:
                        await cursor.execute(self._sql[f"copy_{table}"])
                        found = True
                        while found:
                            rows = await cursor.fetchmany(CHUNK)
                            yield self._chunk(table, rows)
                            found = len(rows) == CHUNK

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        """Write all rows, or none; StoreError unless the store is empty and no server uses it."""
        sql = self._sql
        async with self._unlimited() as connection, connection.transaction(), connection.cursor() as cursor:
            await cursor.execute(sql["lock_schema"])
            used, servers = await (await cursor.execute(sql["is_used"])).fetchone() or (True, 0)
            if servers:
                raise StoreError(f"{self.name}: {servers} servers are running on it; stop them first")
            if used:
                raise StoreError(f"{self.name}: is not empty; restore into a new database")
            async for table, rows in chunks:
                if table == "page":
                    await cursor.execute(sql["put_pages"], _page_columns(rows))
                else:
                    await cursor.executemany(sql[f"put_{table}"], rows)
            await cursor.execute(sql["wait_for_next"])

    @asynccontextmanager
    async def _unlimited(self) -> AsyncIterator[Connection]:
        with in_sentences(self.name):
            connection = await connect(self._address)
            try:
                await connection.execute(self._sql["no_limits"])
                yield connection
            finally:
                await connection.close()


def _written(rows: Sequence[tuple[Any, ...]]) -> Written:
    """What became of a group."""
    ((outcomes, now, left_out, missing),) = rows
    if missing is not None:
        raise KeyError(f"there is no context {missing}")
    return Written(tuple(_OUTCOMES[outcome] for outcome in outcomes), now, left_out)


# --- rows as the columns that the functions of the database take ---


def group_columns(group: Group) -> list[Any]:
    """The columns of a group: its reports, then its pages."""
    reports = group.reports
    pages = [*(report.page for report in reports), *group.pages]
    none = [None] * len(group.pages)
    return [
        len(reports),
        *_page_columns(pages),
        _texts([*(report.event_id for report in reports), *none]),
        [*(report.digest for report in reports), *none],
    ]


def _page_columns(pages: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The columns of pages."""
    impressions, contexts, ends, records, clicks = _columns(pages, 5)
    bits = _texts([f"x{value:0{_DIGITS}x}" for value in clicks])
    return [impressions, _as_array(contexts), _as_array(ends), records, bits]


def _texts(values: Sequence[str | None]) -> str:
    """An array as PostgreSQL reads it."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """The columns of rows that have this number of them."""
    return [[row[place] for row in rows] for place in range(width)]
