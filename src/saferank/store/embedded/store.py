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
    MOST_EVENT_IDS,
    SHARDS,
    AlarmRow,
    Chunk,
    ClickReport,
    Deleted,
    Group,
    HeartbeatReply,
    Lease,
    Outcome,
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
from saferank.store.page_record import first_id, issued_at
from saferank.store.sql import Done, On, SqlStore, in_transaction, statements

T = TypeVar("T")

_FORGOTTEN_MS = 86_400_000
_TOLD = ("set_publication", "add_operation")
"""Statements that end a ``wait``, as those of PostgreSQL notify."""


def _packed_clicks(clicks: int) -> bytes:
    """The clicks of a page, which may be more than a number of SQLite holds."""
    return clicks.to_bytes((clicks.bit_length() + 7) // 8, "little")


def _clicks_of(data: bytes) -> int:
    """The clicks that were packed."""
    return int.from_bytes(data, "little")


class SqliteStore(SqlStore):
    """The store in a folder, or a backup. Read-only it needs no lock, and the server of the store may keep writing."""

    is_remote = False
    _sql = statements("embedded")
    _clicks, _list = staticmethod(_clicks_of), staticmethod(json.dumps)

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
        issued = [issued_at(row[0]) for row in await self._rows("newest_page")]
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

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        if self._readers is None:
            raise StoreUnavailableError(f"{self.name}: is not open")
        return self._readers.run(work)

    def _rows(self, statement: str, *arguments: Any, **facts: Any) -> asyncio.Future[list[tuple[Any, ...]]]:
        return self._read(lambda on: on.execute(self._sql[statement], facts or arguments).fetchall())

    async def _transact(self, work: Callable[[On], Awaitable[T]]) -> T:
        """Statements are carried out in the thread that writes. None has to be waited for, so the work ends at once."""
        done = set[str]()

        def within(connection: sqlite3.Connection) -> T:
            async def on(statement: str, *arguments: Any, **facts: Any) -> Done:
                done.add(statement)
                row = f"VALUES ({', '.join('?' * len(arguments))})"
                sql = self._sql[statement].replace("VALUES (?)", row)
                cursor = connection.execute(sql, arguments or {"now": self._clock(), **facts})
                return Done(cursor.fetchall(), cursor.rowcount)

            try:
                work(on).__await__().send(None)
            except StopIteration as end:
                return cast(T, end.value)
            raise RuntimeError("a transaction of SQLite has waited for something else than its statements")

        result = await self._write(within)
        if not done.isdisjoint(_TOLD):
            self._changed.set()
        return result

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
        return await self._write(lambda connection: _write_group(connection, group, self._clock()))

    # --- closing and publishing, by the holder of a shard ---

    @in_transaction
    async def close_through(self, on: On, lease: Lease, context: int, through: int) -> int:
        await self._fence(on, lease, context)
        ((closed,),) = (await on("close_through", through=through, context=context)).rows
        return int(closed)

    @in_transaction
    async def publish(
        self,
        on: On,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
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

    # --- damage ---

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
                    yield self._chunk(table, rows)
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
            rows = [(*row[:-1], _packed_clicks(row[-1])) for row in rows]
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


# --- a group of reports and pages, written in one transaction ---


def _write_group(connection: sqlite3.Connection, group: Group, now: int) -> Written:
    """Merge the reports, add the pages that are open; inside a transaction."""
    rows = [(*row, now) for row in group.catalogues]
    for_many(connection, statements("embedded")["add_catalogue"], rows)
    merge = _Merge(connection, group, now)
    outcomes = tuple(map(merge.report, group.reports))
    added = sum(map(merge.add, group.pages))
    merge.write(connection)
    return Written(outcomes, now, len(group.pages) - added)


class _Merge:
    """What the store holds of the pages and events of a group, and what becomes of it."""

    def __init__(self, connection: sqlite3.Connection, group: Group, now: int) -> None:
        sql, self._now = statements("embedded"), now
        contexts, impressions, events = set[tuple[int]](), set[tuple[bytes]](), set[tuple[bytes, str]]()
        for page in group.pages:
            contexts.add((page.context,))
            impressions.add((page.impression,))
        for page, _, event_id in group.reports:
            contexts.add((page.context,))
            impressions.add((page.impression,))
            if event_id is not None:
                events.add((page.impression, event_id))
        self._closed: dict[int, int] = dict(for_many(connection, sql["closed_through_in"], list(contexts)))
        for (number,) in contexts:
            if number not in self._closed:
                raise KeyError(f"there is no context {number}")
        self._clicks: dict[bytes, int] = {}  # of pages that are there
        self._ids: dict[bytes, int] = {}  # how many event ids of them are kept
        for impression, clicks, ids in for_many(connection, sql["clicks_in"], list(impressions)):
            self._clicks[impression], self._ids[impression] = _clicks_of(clicks), ids
        self._events: dict[tuple[bytes, str], bytes] = {}
        for impression, event_id, digest in for_many(connection, sql["deliveries_in"], list(events)):
            self._events[impression, event_id] = digest
        self._changed: dict[bytes, PageRow] = {}
        self._new: dict[int, int] = {}  # context: the earliest end of a window of a new page
        self._delivered: list[tuple[bytes, str, bytes, int]] = []

    def report(self, report: ClickReport) -> Outcome:
        """An event that is known is answered as such even when its page is closed by now: it was counted."""
        page = report.page
        known = None if report.event_id is None else self._events.get((page.impression, report.event_id))
        if known is not None:
            return Outcome.DUPLICATE if known == report.digest else Outcome.CONFLICT
        if not self._is_open(page):
            return Outcome.LATE
        new = self._merge(page)
        if report.event_id is not None and (new or self._ids.get(page.impression, 0) < MOST_EVENT_IDS):
            self._events[page.impression, report.event_id] = report.digest
            self._delivered.append((page.impression, report.event_id, report.digest, self._now))
            self._ids[page.impression] = self._ids.get(page.impression, 0) + 1
            self._changed[page.impression] = page._replace(clicks=self._clicks[page.impression])
            new = True
        return Outcome.ACCEPTED if new else Outcome.DUPLICATE

    def add(self, page: PageRow) -> bool:
        """Add an issued page unless it is there; False when it is closed."""
        if not self._is_open(page):
            return False
        if page.impression not in self._clicks:
            self._merge(page)
        return True

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring it into the file."""
        sql, ids, pages = statements("embedded"), self._ids, self._changed.values()
        for_many(connection, sql["add_delivery"], self._delivered)
        rows = [(*page[:-1], _packed_clicks(page.clicks), ids.get(page.impression, 0)) for page in pages]
        for_many(connection, sql["add_page"], rows)
        for_many(connection, sql["add_waiting"], list(self._new.items()))

    def _is_open(self, page: PageRow) -> bool:
        return issued_at(page.impression) > self._closed[page.context] and self._now < page.closes_at

    def _merge(self, page: PageRow) -> bool:
        """True when the page or one of its clicks is new."""
        known = self._clicks.get(page.impression)
        clicks = page.clicks | (known or 0)
        if clicks == known:
            return False
        if known is None:
            self._new[page.context] = min(page.closes_at, self._new.get(page.context, page.closes_at))
        self._clicks[page.impression] = clicks
        self._changed[page.impression] = page._replace(clicks=clicks)
        return True
