"""The contract on one SQLite file. One process at a time: a lock file beside it."""

import asyncio
import functools
import sqlite3
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from saferank.store.contract import (
    CATALOGUE_MS,
    CHUNK,
    COPIED,
    SHARDS,
    AlarmRow,
    Chunk,
    ContextRow,
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
from saferank.store.embedded.file import Clock, Readers, StoreLock, WriterThread, for_many, in_a_sentence
from saferank.store.embedded.groups import clicks_of, packed_clicks, write_group
from saferank.store.page_record import CATALOGUE_PLACE, TIME_BYTES, first_id
from saferank.store.sql import SqlStore, statements

T = TypeVar("T")
P = ParamSpec("P")

_FORGOTTEN_MS = 86_400_000


def _writing(
    work: "Callable[Concatenate[SqliteStore, sqlite3.Connection, P], T]", *, told: bool = False
) -> "Callable[Concatenate[SqliteStore, P], Coroutine[Any, Any, T]]":
    """A call of the contract: the function below runs in a transaction of the writer. ``told``: waiters wake."""

    @functools.wraps(work)
    async def call(self: "SqliteStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._writer is None:
            raise StoreUnavailableError(f"{self.name}: is not open for writing")
        result = await self._writer.run(functools.partial(work, self), *args, **kwargs)
        if told:
            self._changed.set()
        return result

    return call


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

    _clicks = staticmethod(clicks_of)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        if self._readers is None:
            raise StoreUnavailableError(f"{self.name}: is not open")
        return self._readers.run(work)

    def _rows(self, statement: str, *arguments: Any) -> asyncio.Future[list[tuple[Any, ...]]]:
        return self._read(lambda on: on.execute(self._sql[statement], arguments).fetchall())

    # --- servers, time, leases ---

    @_writing
    def heartbeat(self, on: sqlite3.Connection, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        """Renew what the server holds, let go of what is beyond its share, take free shards up to its share."""
        sql, now = self._sql, self._clock()
        facts = {"server": server, "acknowledged": acknowledged, "now": now, "until": now + lease_ms}
        on.execute(sql["set_server"], facts)
        on.execute(sql["forget_servers"], (now - _FORGOTTEN_MS,))
        (alive,) = on.execute(sql["count_servers"], (now,)).fetchone()
        share = -(-SHARDS // alive)
        on.execute(sql["let_go"], {**facts, "share": share})
        held = on.execute(sql["renew"], facts).rowcount
        on.execute(sql["take"], {**facts, "free": share - held})
        leases = tuple(Lease(*row) for row in on.execute(sql["leases"], (server, now)))
        (operation,) = on.execute(sql["last_operation"]).fetchone()
        return HeartbeatReply(now, now + lease_ms, operation, leases, alive)

    @_writing
    def leave(self, on: sqlite3.Connection, server: str) -> None:
        on.execute(self._sql["leave_shards"], (server,))
        on.execute(self._sql["leave"], (server,))

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        return await self._all(ServerRow, "servers", self._clock() - ended_ms)

    def _fence(self, on: sqlite3.Connection, lease: Lease, context: int) -> None:
        """StaleLeaseError unless the lease is the newest of the shard of a context."""
        row = on.execute(self._sql["epoch"], (lease.shard,)).fetchone()
        if context % SHARDS != lease.shard or row is None or row[0] != lease.epoch:
            raise StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")

    # --- contexts and pages ---

    @_writing
    def open_context(self, on: sqlite3.Connection, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        found = on.execute(self._sql["find_context"], (tenant, name)).fetchone()
        if found is not None:
            return ContextRow(*found)
        if on.execute(self._sql["count_contexts"], (tenant,)).fetchone()[0] >= most:
            return None
        (last,) = on.execute(self._sql["last_context"]).fetchone()
        row = ContextRow(last + 1, tenant, name, terms, self._clock())
        for_many(on, self._sql["add_context"], [row])
        return row

    @_writing
    def write(self, on: sqlite3.Connection, group: Group) -> Written:
        return write_group(on, group, self._clock())

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

    @_writing
    def close_through(self, on: sqlite3.Connection, lease: Lease, context: int, through: int) -> int:
        self._fence(on, lease, context)
        (closed,) = on.execute(self._sql["close_through"], {"through": through, "context": context}).fetchone()
        return int(closed)

    @functools.partial(_writing, told=True)
    def publish(
        self,
        on: sqlite3.Connection,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        """Replace the publication of a context by the next one, and note when its next page will be due."""
        sql, context = self._sql, publication.context
        self._fence(on, lease, context)
        row = on.execute(sql["publication"], (context,)).fetchone()
        if row == publication:
            return
        if publication.number != (row[1] if row else 0) + 1:
            raise StaleLeaseError(f"publication {publication.number} of context {context} is not the next")
        on.execute(sql["set_publication"], (*publication, self._clock()))
        for_many(on, sql["add_version"], versions)
        for_many(on, sql["add_alarm"], alarms)
        for_many(on, sql["put_snapshot"], [publication] if keep else [])
        following = on.execute(sql["first_page"], (context, first_id(publication.through + 1))).fetchone()
        if following is None:
            on.execute(sql["end_waiting"], (context,))
        else:
            on.execute(sql["set_waiting"], (following[0], context))

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        keys = [(context,) for context in contexts]
        rows = await self._read(lambda on: for_many(on, self._sql["publications_in"], keys))
        return sorted(Publication(*row) for row in rows)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    # --- retention ---

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        rows = await self._rows("contexts_with_pages_before", first_id(before))
        return [number for (number,) in rows if number % SHARDS in set(shards)]

    @_writing
    def keep_publication(self, on: sqlite3.Connection, lease: Lease, context: int) -> None:
        self._fence(on, lease, context)
        on.execute(self._sql["keep_publication"], (context,))

    @_writing
    def prune(
        self,
        on: sqlite3.Connection,
        lease: Lease,
        context: int,
        snapshot: Snapshot,
        before: int,
        seen: int,
        most: int,
    ) -> int:
        self._fence(on, lease, context)
        if on.execute(self._sql["newer_operation"], (context, seen)).fetchone()[0]:
            return 0
        self._stand_for(on, context, snapshot)
        return on.execute(self._sql["forget_pages"], (context, first_id(before), most)).rowcount

    @_writing
    def delete_pages(
        self, on: sqlite3.Connection, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        self._fence(on, lease, context)
        self._stand_for(on, context, snapshot)
        rows = [(impression, context, first_id(snapshot.through + 1)) for impression in impressions]
        gone = [row[:1] for row in rows if on.execute(self._sql["delete_page"], row).rowcount]
        return Deleted(len(gone), len(for_many(on, self._sql["delete_events_in"], gone)))

    def _stand_for(self, on: sqlite3.Connection, context: int, snapshot: Snapshot) -> None:
        """From now on the log of a context begins with a snapshot."""
        on.execute(self._sql["set_pruned"], {"through": snapshot.through, "context": context})
        on.execute(self._sql["forget_snapshots"], (context, snapshot.number))

    @_writing
    def prune_events(self, on: sqlite3.Connection, before: int, most: int) -> int:
        return on.execute(self._sql["forget_events"], (before, most)).rowcount

    @_writing
    def prune_catalogues(self, on: sqlite3.Connection, before: int, most: int) -> int:
        behind = first_id(before + 2 * CATALOGUE_MS)
        facts = {"before": before, "behind": behind, "place": CATALOGUE_PLACE, "most": most}
        return on.execute(self._sql["forget_catalogues"], facts).rowcount

    # --- operations, alarms, facts ---

    @functools.partial(_writing, told=True)
    def add_operation(
        self, on: sqlite3.Connection, tenant: str, context: int, kind: OperationKind, body: str
    ) -> OperationRow:
        (last,) = on.execute(self._sql["last_operation"]).fetchone()
        row = OperationRow(last + 1, self._clock(), tenant, context, int(kind), body)
        for_many(on, self._sql["put_operation"], [row])
        return row

    @_writing
    def add_alarm(self, on: sqlite3.Connection, alarm: AlarmRow) -> None:
        for_many(on, self._sql["add_alarm"], [alarm])

    @_writing
    def put_meta(self, on: sqlite3.Connection, name: str, value: bytes) -> None:
        for_many(on, self._sql["put_meta"], [(name, value)])

    async def damage(self) -> Sequence[str]:
        return await self._read(lambda on: file.damage(on, self.path))

    # --- the whole store as rows: read in one transaction beside a running server, written in one ---

    async def dump(self) -> AsyncIterator[Chunk]:
        chunks = self._dumped()
        try:
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                yield chunk
        except (sqlite3.Error, OSError) as problem:
            in_a_sentence(self.path, problem)

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
        try:
            if connection.execute(self._sql["is_used"]).fetchone()[0]:
                raise StoreError(f"{self.path}: is not empty; restore into a new folder")
            connection.execute("BEGIN IMMEDIATE")
            async for chunk in chunks:
                await asyncio.to_thread(self._put, connection, chunk)
            await asyncio.to_thread(self._finish, connection)
        except (sqlite3.Error, OSError) as problem:
            in_a_sentence(self.path, problem)
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
