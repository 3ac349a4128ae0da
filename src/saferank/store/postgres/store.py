"""The contract on PostgreSQL. What must be one step is a function of the database (schema.sql)."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any

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
    Outcome,
    PageRow,
    Publication,
    ServerRow,
    StaleLeaseError,
    VersionRow,
    Written,
)
from saferank.store.page_record import first_id
from saferank.store.postgres import whole_rows
from saferank.store.postgres.connections import Connection, Connections, Listener, check, name_of
from saferank.store.postgres.whole_rows import as_array, columns, group_columns
from saferank.store.sql import statements

_CHUNK = 1000
_MARGIN_MS = 10_000
"""A publication is stamped before it is committed; who asks in between must find it the next time. Its statement ends
within half of this time or not at all."""

_OUTCOMES = {int(outcome): outcome for outcome in Outcome}


class PostgresStore:
    """The store in a database that other servers use as well."""

    def __init__(self, address: str) -> None:
        self._address, self.name = address, name_of(address)
        self._connections = Connections(address, self.name)
        self._listener = Listener(address)

    async def open(self) -> None:
        """Check the server and its schema; StoreError says why it cannot be used."""
        await check(self._address, self.name)
        await self._listener.start()

    async def close(self) -> None:
        """Let go of everything."""
        await self._listener.stop()
        await self._connections.close()

    async def _rows(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        sql = statements("postgres")[statement]

        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(sql, arguments, binary=True)).fetchall()

        return await self._connections.run(work)

    async def _do(self, statement: str, *arguments: Any) -> None:
        sql = statements("postgres")[statement]
        await self._connections.run(lambda connection: connection.execute(sql, arguments))

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> Heartbeat:
        ((now, until, newest, alive, shards, epochs),) = await self._rows(
            "heartbeat", server, acknowledged, lease_ms, SHARDS
        )
        leases = tuple(Lease(*pair, until) for pair in zip(shards or (), epochs or (), strict=True))
        return Heartbeat(now, until, newest, leases, alive)

    async def leave(self, server: str) -> None:
        sql = statements("postgres")["leave"]
        await self._connections.run(lambda connection: connection.execute(sql, {"server": server}))

    async def servers(self) -> Sequence[ServerRow]:
        return [ServerRow(*row) for row in await self._rows("servers")]

    # --- contexts and catalogues ---

    async def open_context(self, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        found = await self.find_context(tenant, name)
        if found is not None:
            return found
        sql = statements("postgres")

        async def work(on: Connection) -> ContextRow | None:
            async with on.transaction():
                await on.execute(sql["lock_contexts"])
                there = await (await on.execute(sql["find_context"], (tenant, name))).fetchone()
                if there is not None:
                    return ContextRow(*there)
                number, count, now = await (await on.execute(sql["next_context"], (tenant,))).fetchone() or (0, 0, 0)
                if count >= most:
                    return None
                row = ContextRow(number, tenant, name, terms, now)
                await on.execute(sql["add_context"], row)
                return row

        return await self._connections.run(work)

    async def find_context(self, tenant: str, name: str) -> ContextRow | None:
        rows = await self._rows("find_context", tenant, name)
        return ContextRow(*rows[0]) if rows else None

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
        sql, arguments = statements("postgres"), group_columns(group)
        catalogues = [list(column) for column in zip(*group.catalogues, strict=True)]

        async def work(on: Connection) -> Written:
            if not catalogues:
                return await self._written(on, arguments)
            async with on.transaction():
                await on.execute(sql["add_catalogues"], catalogues)
                return await self._written(on, arguments)

        return await self._connections.run(work)

    async def _written(self, on: Connection, arguments: Sequence[Any]) -> Written:
        row = await (await on.execute(statements("postgres")["write_group"], arguments, binary=True)).fetchone()
        assert row is not None
        outcomes, now, left_out, missing = row
        if missing is not None:
            raise KeyError(f"there is no context {missing}")
        return Written(tuple(_OUTCOMES[outcome] for outcome in outcomes), now, left_out)

    async def page(self, impression: bytes) -> PageRow | None:
        rows = await self._rows("page", impression)
        return _page(rows[0]) if rows else None

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        sql = statements("postgres")["due"]
        facts = {"shards": list(shards), "all": SHARDS, "after": after, "now": now}

        async def work(connection: Connection) -> list[int]:
            return [row[0] for row in await (await connection.execute(sql, facts)).fetchall()]

        return await self._connections.run(work)

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        _check_shard(lease, context)
        ((closed,),) = await self._rows("close_through", lease.shard, lease.epoch, context, through)
        if closed is None:
            raise _stale(lease, context)
        return int(closed)

    async def pages_between(self, context: int, after: int, through: int) -> Sequence[PageRow]:
        rows = await self._rows("pages_between", context, first_id(after + 1), first_id(through + 1))
        return [_page(row) for row in rows]

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
        _check_shard(lease, publication.context)
        news = columns([row[1:] for row in versions], 7) + columns(alarms, 4)
        ((newest,),) = await self._rows("publish", lease.shard, lease.epoch, *publication, keep, *news)
        if newest is None:
            raise _stale(lease, publication.context)
        if newest and (newest != publication.number or await self.publication(publication.context) != publication):
            raise StaleLeaseError(f"publication {publication.number} of context {publication.context} is not the next")

    async def publication(self, context: int) -> Publication | None:
        rows = await self._rows("publication", context)
        return Publication(*rows[0]) if rows else None

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        rows = await self._rows("publications", as_array(contexts))
        return [Publication(*row) for row in rows]

    async def published(self, since: int) -> Mapping[int, int]:
        return dict(await self._rows("published", since - _MARGIN_MS))

    async def wait(self, seconds: float) -> None:
        await self._listener.wait(seconds)

    # --- retention ---

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        sql = statements("postgres")["contexts_with_pages_before"]
        facts = {"shards": list(shards), "all": SHARDS, "before": first_id(before)}

        async def work(connection: Connection) -> list[int]:
            return [row[0] for row in await (await connection.execute(sql, facts)).fetchall()]

        return await self._connections.run(work)

    async def keep_publication(self, lease: Lease, context: int) -> None:
        _check_shard(lease, context)
        await self._connections.run(lambda on: whole_rows.keep_publication(on, lease, context))

    async def prune(self, lease: Lease, context: int, mark: Mark, before: int, seen: int, most: int) -> int:
        _check_shard(lease, context)
        return await self._connections.run(lambda on: whole_rows.prune(on, lease, context, mark, before, seen, most))

    async def delete_pages(self, lease: Lease, context: int, mark: Mark, impressions: Sequence[bytes]) -> Deleted:
        _check_shard(lease, context)
        return await self._connections.run(lambda on: whole_rows.delete_pages(on, lease, context, mark, impressions))

    async def pruned_through(self, context: int) -> int:
        rows = await self._rows("pruned_through", context)
        return int(rows[0][0]) if rows else 0

    async def prune_events(self, before: int, most: int) -> int:
        sql = statements("postgres")["forget_events"]

        async def work(on: Connection) -> int:
            return (await on.execute(sql, (before, most))).rowcount

        return await self._connections.run(work)

    async def prune_catalogues(self, before: int, most: int) -> int:
        return await self._connections.run(lambda on: whole_rows.prune_catalogues(on, before, most))

    # --- operations ---

    async def add_operation(self, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        sql = statements("postgres")

        async def work(on: Connection) -> OperationRow:
            async with on.transaction():
                await on.execute(sql["lock_operations"])
                now, number = await (await on.execute(sql["next_operation"])).fetchone() or (0, 0)
                row = OperationRow(number, now, tenant, context, int(kind), body)
                await on.execute(sql["put_operation"], row)
                await on.execute(sql["notify"])
                return row

        return await self._connections.run(work)

    async def operations(self, after: int) -> Sequence[OperationRow]:
        return [OperationRow(*row) for row in await self._rows("operations", after)]

    async def add_alarm(self, alarm: AlarmRow) -> None:
        await self._do("add_alarm", *alarm)

    # --- the past ---

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        rows = await self._rows("versions", context, newest)
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
                rows = await self._rows("pages_after", after, _CHUNK)
            else:
                rows = await self._rows("pages_of_context_after", context, after, _CHUNK)
            for row in rows:
                yield _page(row)
            if len(rows) < _CHUNK:
                return
            after = rows[-1][0]

    async def alarms(self, context: int) -> Sequence[AlarmRow]:
        return [AlarmRow(*row) for row in await self._rows("alarms", context)]

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        return [AlarmRow(*row) for row in await self._rows("newest_alarms", most)]

    async def damage(self) -> Sequence[str]:
        ((failures,),) = await self._rows("checksum_failures")
        if not failures:
            return []
        what = f"PostgreSQL has met {failures} blocks with a wrong checksum in this database (pg_stat_database)"
        return [f"{self.name}: is damaged ({what}). Restore the store from a backup"]

    async def meta(self, name: str) -> bytes | None:
        rows = await self._rows("meta", name)
        return bytes(rows[0][0]) if rows else None

    async def put_meta(self, name: str, value: bytes) -> None:
        await self._do("put_meta", name, value)

    def dump(self) -> AsyncIterator[Chunk]:
        return whole_rows.dumped(self._address, self.name)

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        await whole_rows.fill(self._address, self.name, chunks)


def _page(row: tuple[Any, ...]) -> PageRow:
    return PageRow._make((*row[:-1], int(row[-1], 2)))


def _check_shard(lease: Lease, context: int) -> None:
    if context % SHARDS != lease.shard:
        raise _stale(lease, context)


def _stale(lease: Lease, context: int) -> StaleLeaseError:
    return StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")
