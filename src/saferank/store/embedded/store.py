"""The contract on one SQLite file. One process at a time: a lock file beside it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from saferank.store.contract import (
    SHARDS,
    AlarmRow,
    Chunk,
    ContextRow,
    Deleted,
    Group,
    Heartbeat,
    Lease,
    Mark,
    OperationKind,
    OperationRow,
    PageRow,
    Publication,
    ServerRow,
    StoreUnavailableError,
    VersionRow,
    Written,
)
from saferank.store.embedded import transactions
from saferank.store.embedded.file import (
    Clock,
    Readers,
    StoreLock,
    WriterThread,
    check,
    damage,
    file_at,
    insert,
    make_folder,
    not_before,
    sentences,
    wall_clock,
)
from saferank.store.embedded.transactions import clicks_of, write_group
from saferank.store.page_record import TIME_BYTES, first_id
from saferank.store.sql import statements

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_CHUNK = 1000
_MARGIN_MS = 10_000
"""A publication is stamped before it is committed; who asks in between must find it the next time."""


class SqliteStore:
    """The store in a folder, or a backup. Read-only it needs no lock, and the server of the store may keep writing."""

    def __init__(self, address: str | Path, clock: Clock | None = None, *, readonly: bool = False) -> None:
        self.path = file_at(address)
        self.name = str(self.path)
        self._clock, self._readonly = clock or wall_clock(), readonly
        self._lock: StoreLock | None = None
        self._writer: WriterThread | None = None
        self._readers: Readers | None = None
        self._changed = asyncio.Event()

    async def open(self) -> None:
        """Lock the file and make or check it; StoreError says why it cannot be used."""
        await asyncio.to_thread(self._open)
        newest = await self._read(_newest_time)
        self._clock = not_before(self._clock, newest)

    def _open(self) -> None:
        if self._readonly:
            check(self.path)
        else:
            make_folder(self.path)
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

    async def _read(self, work: Work[T]) -> T:
        if self._readers is None:
            raise StoreUnavailableError(f"{self.name}: is not open")
        return await self._readers.run(work)

    async def _write(self, work: Work[T]) -> T:
        if self._writer is None:
            raise StoreUnavailableError(f"{self.name}: is not open for writing")
        return await self._writer.run(work)

    async def _rows(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        sql = statements("embedded")[statement]
        return await self._read(lambda connection: connection.execute(sql, arguments).fetchall())

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> Heartbeat:
        return await self._write(lambda on: transactions.heartbeat(on, server, acknowledged, lease_ms, self._clock()))

    async def leave(self, server: str) -> None:
        await self._write(partial(transactions.leave, server=server))

    async def servers(self) -> Sequence[ServerRow]:
        return [ServerRow(*row) for row in await self._rows("servers", self._clock())]

    # --- contexts and catalogues ---

    async def open_context(self, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        return await self._write(lambda on: transactions.open_context(on, tenant, name, terms, most, self._clock()))

    async def find_context(self, tenant: str, name: str) -> ContextRow | None:
        return await self._read(lambda on: transactions.find_context(on, tenant, name))

    async def context(self, number: int) -> ContextRow | None:
        rows = await self._rows("context", number)
        return ContextRow(*rows[0]) if rows else None

    async def contexts(self) -> Sequence[ContextRow]:
        return [ContextRow(*row) for row in await self._rows("contexts")]

    async def catalogue(self, digest: bytes) -> bytes | None:
        rows = await self._rows("catalogue", digest)
        return bytes(rows[0][0]) if rows else None

    # --- pages ---

    async def write(self, group: Group) -> Written:
        return await self._write(lambda on: write_group(on, group, self._clock()))

    async def page(self, impression: bytes) -> PageRow | None:
        pages = await self._pages("page", impression)
        return pages[0] if pages else None

    async def _pages(self, statement: str, *arguments: Any) -> list[PageRow]:
        rows = await self._rows(statement, *arguments)
        return [PageRow._make((*row[:-1], clicks_of(row[-1]))) for row in rows]

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        return await self._read(lambda on: transactions.due(on, shards, after, now))

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        return await self._write(lambda on: transactions.close_through(on, lease, context, through))

    async def pages_between(self, context: int, after: int, through: int) -> Sequence[PageRow]:
        return await self._pages("pages_between", context, first_id(after + 1), first_id(through + 1))

    async def count_pages(self, context: int, after: int) -> int:
        ((found,),) = await self._rows("count_pages", context, first_id(after + 1))
        return int(found)

    async def publish(
        self,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        await self._write(
            lambda on: transactions.publish(on, lease, publication, self._clock(), versions, alarms, keep)
        )
        self._changed.set()

    async def publication(self, context: int) -> Publication | None:
        return await self._read(lambda on: transactions.newest_publication(on, context))

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        return await self._read(lambda on: transactions.publications(on, contexts))

    async def published(self, since: int) -> Mapping[int, int]:
        return dict(await self._rows("published", since - _MARGIN_MS))

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

    async def keep_publication(self, lease: Lease, context: int) -> None:
        await self._write(lambda on: transactions.keep_publication(on, lease, context))

    async def prune(self, lease: Lease, context: int, mark: Mark, before: int, seen: int, most: int) -> int:
        return await self._write(lambda on: transactions.prune(on, lease, context, mark, before, seen, most))

    async def delete_pages(self, lease: Lease, context: int, mark: Mark, impressions: Sequence[bytes]) -> Deleted:
        return await self._write(lambda on: transactions.delete_pages(on, lease, context, mark, impressions))

    async def pruned_through(self, context: int) -> int:
        rows = await self._rows("pruned_through", context)
        return int(rows[0][0]) if rows else 0

    async def prune_events(self, before: int, most: int) -> int:
        sql = statements("embedded")["forget_events"]
        return await self._write(lambda on: on.execute(sql, (before, most)).rowcount)

    async def prune_catalogues(self, before: int, most: int) -> int:
        return await self._write(lambda on: transactions.prune_catalogues(on, before, most))

    # --- operations ---

    async def add_operation(self, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        row = await self._write(lambda on: transactions.add_operation(on, tenant, context, kind, body, self._clock()))
        self._changed.set()
        return row

    async def operations(self, after: int) -> Sequence[OperationRow]:
        return [OperationRow(*row) for row in await self._rows("operations", after)]

    async def add_alarm(self, alarm: AlarmRow) -> None:
        await self._write(lambda on: insert(on, statements("embedded")["add_alarm"], [alarm]))

    # --- the past ---

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        rows = await self._rows("versions", context, -1 if newest is None else newest)
        return [VersionRow(*row) for row in reversed(rows)]

    async def snapshot_before(self, context: int, through: int) -> Publication | None:
        rows = await self._rows("snapshot_before", context, through)
        return Publication(*rows[0]) if rows else None

    async def snapshots(self, context: int) -> Sequence[Publication]:
        return [Publication(*row) for row in await self._rows("snapshots", context)]

    async def marks(self, context: int) -> Sequence[Mark]:
        return [Mark(*row) for row in await self._rows("marks", context)]

    async def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[PageRow]:
        while True:
            if context is None:
                pages = await self._pages("pages_after", after, _CHUNK)
            else:
                pages = await self._pages("pages_of_context_after", context, after, _CHUNK)
            for page in pages:
                yield page
            if len(pages) < _CHUNK:
                return
            after = pages[-1].impression

    async def alarms(self, context: int) -> Sequence[AlarmRow]:
        return [AlarmRow(*row) for row in await self._rows("alarms", context)]

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        return [AlarmRow(*row) for row in await self._rows("newest_alarms", most)]

    async def damage(self) -> Sequence[str]:
        return await self._read(lambda on: damage(on, self.path))

    async def meta(self, name: str) -> bytes | None:
        rows = await self._rows("meta", name)
        return bytes(rows[0][0]) if rows else None

    async def put_meta(self, name: str, value: bytes) -> None:
        await self._write(lambda on: insert(on, statements("embedded")["put_meta"], [(name, value)]))

    async def dump(self) -> AsyncIterator[Chunk]:
        with sentences(self.path):
            chunks = transactions.dumped(self.path)
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                yield chunk

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        with sentences(self.path):
            await transactions.fill(self.path, chunks, self._clock())


def _newest_time(connection: sqlite3.Connection) -> int:
    sql = statements("embedded")
    (newest,) = connection.execute(sql["newest_time"]).fetchone()
    row = connection.execute(sql["newest_page"]).fetchone()
    return max(int(newest), 0 if row is None else int.from_bytes(row[0][:TIME_BYTES], "big"))
