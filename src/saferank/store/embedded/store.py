"""The contract on one SQLite file. One process at a time: a lock file beside it."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar, cast

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
    OperationKind,
    OperationRow,
    PageRow,
    Publication,
    ServerRow,
    Snapshot,
    StaleLeaseError,
    StoreError,
    StoreUnavailableError,
    VersionRow,
    Written,
)
from saferank.store.embedded import file
from saferank.store.embedded.file import Clock, Readers, StoreLock, WriterThread, for_many, in_sentences
from saferank.store.embedded.groups import clicks_of, packed_clicks, write_group
from saferank.store.page_record import TIME_BYTES, first_id
from saferank.store.sql import Done, On, SqlStore, in_transaction, statements

T = TypeVar("T")

_FORGOTTEN_MS = 86_400_000


class SqliteStore(SqlStore):
    """The store in a folder, or a backup. Read-only it needs no lock, and the server of the store may keep writing."""

    is_remote = False
    _sql = statements("embedded")

    def __init__(self, address: str | Path, clock: Clock | None = None, *, readonly: bool = False) -> None:
        self.path = file.file_at(address)
        self.name = str(self.path)
        self._clock, self._readonly = clock or file.wall_clock(), readonly
        self._lock: StoreLock | None = None
        self._writer: WriterThread | None = None
        self._readers: Readers | None = None
        self._changed = asyncio.Event()

    async def open(self) -> None:
        """Lock the file and make or check it; StoreError says why it cannot be used."""
        await asyncio.to_thread(self._open)
        ((newest,),) = await self._rows("newest_time")
        issued = [int.from_bytes(row[0][:TIME_BYTES], "big") for row in await self._rows("newest_page")]
        self._clock = file.not_before(self._clock, max(newest, *issued, 0))

    def _open(self) -> None:
        if self._readonly:
            file.check(self.path)
        else:
            file.make_folder(self.path)
            self._lock = lock = StoreLock(self.path)
            try:
                self._writer = WriterThread(self.path, lock.after_crash)
            except BaseException:
                lock.release(clean=not lock.after_crash)
                raise
        self._readers = Readers(self.path)

    async def close(self) -> None:
        """Let go of everything."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        readers, writer, lock = self._readers, self._writer, self._lock
        self._readers = self._writer = self._lock = None
        whole = writer is None or writer.whole
        if writer is not None and not whole:
            writer.close()  # while there are readers SQLite does not copy the log into the file
        if readers is not None:
            readers.close()
        if writer is not None and whole:
            writer.close()
        if lock is not None:
            lock.release(clean=whole)

    _clicks, _list = staticmethod(clicks_of), staticmethod(json.dumps)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        if self._readers is None:
            raise StoreUnavailableError(f"{self.name}: is not open")
        return self._readers.run(work)

    def _rows(self, statement: str, *arguments: Any) -> asyncio.Future[list[tuple[Any, ...]]]:
        return self._read(lambda on: on.execute(self._sql[statement], arguments).fetchall())

    async def _transact(self, work: Callable[[On], Awaitable[T]]) -> T:
        """Statements are carried out in the thread that writes. None has to be waited for, so the work ends at once."""

        def within(connection: sqlite3.Connection) -> T:
            async def on(statement: str, *arguments: Any, **facts: Any) -> Done:
                row = f"VALUES ({', '.join('?' * len(arguments))})"
                sql = self._sql[statement].replace("VALUES (?)", row)
                cursor = connection.execute(sql, arguments or {"now": self._clock(), **facts})
                return Done(cursor.fetchall(), cursor.rowcount)

            try:
                work(on).__await__().send(None)
            except StopIteration as end:
                return cast(T, end.value)
            raise RuntimeError("a transaction of SQLite has waited for something else than its statements")

        return await self._write(within)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._writer is None:
            raise StoreUnavailableError(f"{self.name}: is not open for writing")
        return await self._writer.run(work)

    # --- servers, time, leases ---

    @in_transaction
    async def heartbeat(self, on: On, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        """Renew what the server holds, let go of what is beyond its share, take free shards up to its share."""
        now = self._clock()
        facts = {"server": server, "acknowledged": acknowledged, "now": now, "until": now + lease_ms}
        await on("set_server", **facts)
        await on("forget_servers", now - _FORGOTTEN_MS)
        ((alive,),) = (await on("count_servers", now)).rows
        share = -(-SHARDS // alive)
        await on("let_go", **facts, share=share)
        held = (await on("renew", **facts)).changed
        await on("take", **facts, free=share - held)
        leases = tuple(Lease(*row) for row in (await on("leases", server, now)).rows)
        ((operation,),) = (await on("last_operation")).rows
        return HeartbeatReply(now, now + lease_ms, operation, leases, alive)

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        return await self._all(ServerRow, "servers", self._clock() - ended_ms)

    async def write(self, group: Group) -> Written:
        return await self._write(lambda connection: write_group(connection, group, self._clock()))

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        return await self._read(lambda on: self._due(on, set(shards), after, now))

    def _due(self, on: sqlite3.Connection, shards: set[int], after: int, now: int) -> list[int]:
        rows = [row for row in on.execute(self._sql["waiting"], (now,)) if row[0] % SHARDS in shards]
        return [
            context
            for context, through in rows
            if on.execute(self._sql["ended_page"], (context, first_id(max(after, through) + 1), now)).fetchone()
        ]

    @in_transaction
    async def close_through(self, on: On, lease: Lease, context: int, through: int) -> int:
        await self._fence(on, lease, context)
        ((closed,),) = (await on("close_through", through=through, context=context)).rows
        return int(closed)

    async def publish(
        self,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        await self._publish(lease, publication, versions, alarms, keep)
        self._changed.set()

    @in_transaction
    async def _publish(
        self,
        on: On,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow],
        keep: bool,
    ) -> None:
        """Replace the publication of a context by the next one, and note when its next page will be due."""
        context = publication.context
        await self._fence(on, lease, context)
        newest = (await on("publication", context)).rows
        if newest == [publication]:
            return
        if publication.number != (newest[0][1] if newest else 0) + 1:
            raise StaleLeaseError(f"publication {publication.number} of context {context} is not the next")
        await on("set_publication", *publication, self._clock())
        for version in versions:
            await on("put_version", *version)
        for alarm in alarms:
            await on("put_alarm", *alarm)
        if keep:
            await on("put_snapshot", *publication)
        following = (await on("first_page", context, first_id(publication.through + 1))).rows
        if following:
            await on("set_waiting", *following[0], context)
        else:
            await on("end_waiting", context)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    @in_transaction
    async def delete_pages(
        self, on: On, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        await self._fence(on, lease, context)
        await self._stand_for(on, context, snapshot)
        behind = first_id(snapshot.through + 1)
        gone = [one for one in impressions if (await on("delete_page", one, context, behind)).changed]
        return Deleted(len(gone), sum([(await on("delete_events", one)).changed for one in gone]))

    # --- operations and damage ---

    async def add_operation(self, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        row = await super().add_operation(tenant, context, kind, body)
        self._changed.set()
        return row

    async def damage(self) -> Sequence[str]:
        return await self._read(lambda on: file.damage(on, self.path))

    # --- the whole store as rows: read in one transaction beside a running server, written in one ---

    async def dump(self) -> AsyncIterator[Chunk]:
        chunks = self._dumped()
        with in_sentences(self.path):
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                yield chunk

    def _dumped(self) -> Iterator[Chunk]:
        """All rows as of one moment. In WAL mode a reader sees the moment of BEGIN, and writers are not held up."""
        with closing(file.for_reading(self.path)) as connection:
            connection.execute("BEGIN")
            for table in COPIED:
                cursor, found = connection.execute(self._sql[f"copy_{table}"]), True
                while found:
                    rows = cursor.fetchmany(CHUNK)
                    yield Chunk(table, [(*row[:-1], clicks_of(row[-1])) for row in rows] if table == "page" else rows)
                    found = len(rows) == CHUNK

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        """Write all rows in one transaction of a connection of its own; this store has the lock."""
        connection = await asyncio.to_thread(file.for_writing, self.path)
        with in_sentences(self.path):
            try:
                if connection.execute(self._sql["is_used"]).fetchone()[0]:
                    raise StoreError(f"{self.path}: is not empty; restore into a new folder")
                connection.execute("BEGIN IMMEDIATE")
                async for chunk in chunks:
                    await asyncio.to_thread(self._put, connection, chunk)
                await asyncio.to_thread(self._finish, connection)
            finally:
                await asyncio.to_thread(connection.close)  # what is not committed is rolled back

    def _put(self, connection: sqlite3.Connection, chunk: Chunk) -> None:
        table, rows = chunk
        if table == "page":
            rows = [(*page[:-1], packed_clicks(page.clicks)) for page in map(PageRow._make, rows)]
        for_many(connection, self._sql[f"put_{table}"], rows)

    def _finish(self, connection: sqlite3.Connection) -> None:
        """Note what follows from the rows, and commit."""
        sql = self._sql
        connection.execute(sql["touch_catalogues"], (self._clock(),))
        for context, through in connection.execute(sql["published_through"]).fetchall():
            following = connection.execute(sql["first_page"], (context, first_id(through + 1))).fetchone()
            if following is not None:
                for_many(connection, sql["add_waiting"], [(context, following[0])])
        connection.execute("COMMIT")
