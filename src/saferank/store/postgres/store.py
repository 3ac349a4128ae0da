"""The contract on PostgreSQL. What must be one step is a function of the database (schema.sql)."""

import functools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from saferank.store.contract import (
    CATALOGUE_MS,
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
    Outcome,
    Publication,
    ServerRow,
    Snapshot,
    StaleLeaseError,
    VersionRow,
    Written,
)
from saferank.store.page_record import CATALOGUE_PLACE, first_id
from saferank.store.postgres import whole_rows
from saferank.store.postgres.connections import Connection, Connections, Listener, check, name_of
from saferank.store.postgres.whole_rows import as_array, clicks_of, columns, group_columns
from saferank.store.sql import SqlStore, statements

T = TypeVar("T")
P = ParamSpec("P")

_OUTCOMES = {int(outcome): outcome for outcome in Outcome}


def _in_transaction(
    work: "Callable[Concatenate[PostgresStore, Connection, P], Awaitable[T]]",
) -> "Callable[Concatenate[PostgresStore, P], Coroutine[Any, Any, T]]":
    """A call of the contract: the function below runs in one transaction."""

    @functools.wraps(work)
    async def call(self: "PostgresStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def transact(on: Connection) -> T:
            async with on.transaction():
                return await work(self, on, *args, **kwargs)

        return await self._connections.run(transact)

    return call


class PostgresStore(SqlStore):
    """The store in a database that other servers use as well."""

    is_remote = True
    _sql = statements("postgres")

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

    async def _rows(self, statement: str, *arguments: Any, **facts: Any) -> list[tuple[Any, ...]]:
        async def work(on: Connection) -> list[tuple[Any, ...]]:
            return await (await on.execute(self._sql[statement], facts or arguments, binary=True)).fetchall()

        return await self._connections.run(work)

    async def _do(self, statement: str, *arguments: Any, **facts: Any) -> int:
        """How many rows a statement changed."""
        sql = self._sql[statement]
        return (await self._connections.run(lambda on: on.execute(sql, facts or arguments))).rowcount

    _clicks = staticmethod(clicks_of)

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        ((now, until, newest, alive, shards, epochs),) = await self._rows(
            "heartbeat", server, acknowledged, lease_ms, SHARDS
        )
        leases = tuple(Lease(*pair, until) for pair in zip(shards or (), epochs or (), strict=True))
        return HeartbeatReply(now, until, newest, leases, alive)

    async def leave(self, server: str) -> None:
        await self._do("leave", server=server)

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        return await self._all(ServerRow, "servers", ended_ms)

    async def _fence(self, on: Connection, lease: Lease, context: int) -> None:
        """StaleLeaseError unless the lease is the newest of the shard of a context."""
        _check_shard(lease, context)
        if not await (await on.execute(self._sql["fence"], lease[:2])).fetchone():
            raise _stale(lease, context)

    # --- contexts and pages ---

    async def open_context(self, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        return await self.find_context(tenant, name) or await self._open_context(tenant, name, terms, most)

    @_in_transaction
    async def _open_context(self, on: Connection, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        await on.execute(self._sql["lock_contexts"])
        there = await (await on.execute(self._sql["find_context"], (tenant, name))).fetchone()
        if there is not None:
            return ContextRow(*there)
        number, count, now = await (await on.execute(self._sql["next_context"], (tenant,))).fetchone() or (0, 0, 0)
        if count >= most:
            return None
        row = ContextRow(number, tenant, name, terms, now)
        await on.execute(self._sql["add_context"], row)
        return row

    async def write(self, group: Group) -> Written:
        arguments = group_columns(group)
        if group.catalogues:
            return await self._write_with_catalogues(group, arguments)
        return await self._connections.run(lambda on: self._written(on, arguments))

    @_in_transaction
    async def _write_with_catalogues(self, on: Connection, group: Group, arguments: Sequence[Any]) -> Written:
        await on.execute(self._sql["add_catalogues"], columns(group.catalogues, 2))
        return await self._written(on, arguments)

    async def _written(self, on: Connection, arguments: Sequence[Any]) -> Written:
        row = await (await on.execute(self._sql["write_group"], arguments, binary=True)).fetchone()
        assert row is not None
        outcomes, now, left_out, missing = row
        if missing is not None:
            raise KeyError(f"there is no context {missing}")
        return Written(tuple(_OUTCOMES[outcome] for outcome in outcomes), now, left_out)

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        return [row[0] for row in await self._rows("due", shards=list(shards), all=SHARDS, after=after, now=now)]

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        _check_shard(lease, context)
        ((closed,),) = await self._rows("close_through", lease.shard, lease.epoch, context, through)
        if closed is None:
            raise _stale(lease, context)
        return int(closed)

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

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        return await self._all(Publication, "publications", as_array(contexts))

    async def wait(self, seconds: float) -> None:
        await self._listener.wait(seconds)

    # --- retention ---

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        facts = {"shards": list(shards), "all": SHARDS, "before": first_id(before)}
        return [row[0] for row in await self._rows("contexts_with_pages_before", **facts)]

    @_in_transaction
    async def keep_publication(self, on: Connection, lease: Lease, context: int) -> None:
        await self._fence(on, lease, context)
        await on.execute(self._sql["keep_publication"], (context,))

    @_in_transaction
    async def prune(
        self, on: Connection, lease: Lease, context: int, snapshot: Snapshot, before: int, seen: int, most: int
    ) -> int:
        await self._fence(on, lease, context)
        await on.execute(self._sql["hold_operations"])  # who adds one afterwards sees what is deleted here
        if await (await on.execute(self._sql["newer_operation"], (context, seen))).fetchone():
            return 0
        await self._stand_for(on, context, snapshot)
        return (await on.execute(self._sql["forget_pages"], (context, first_id(before), most))).rowcount

    @_in_transaction
    async def delete_pages(
        self, on: Connection, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        await self._fence(on, lease, context)
        await self._stand_for(on, context, snapshot)
        facts = (context, first_id(snapshot.through + 1), list(impressions))
        gone = await (await on.execute(self._sql["delete_pages"], facts)).fetchall()
        events = await on.execute(self._sql["delete_events"], ([row[0] for row in gone],))
        return Deleted(len(gone), events.rowcount)

    async def _stand_for(self, on: Connection, context: int, snapshot: Snapshot) -> None:
        """From now on the log of a context begins with a snapshot."""
        await on.execute(self._sql["set_pruned"], {"through": snapshot.through, "context": context})
        await on.execute(self._sql["forget_snapshots"], (context, snapshot.number))

    async def prune_events(self, before: int, most: int) -> int:
        return await self._do("forget_events", before, most)

    async def prune_catalogues(self, before: int, most: int) -> int:
        behind = first_id(before + 2 * CATALOGUE_MS)
        return await self._do("forget_catalogues", before=before, behind=behind, place=CATALOGUE_PLACE, most=most)

    # --- operations, alarms, facts ---

    @_in_transaction
    async def add_operation(
        self, on: Connection, tenant: str, context: int, kind: OperationKind, body: str
    ) -> OperationRow:
        await on.execute(self._sql["lock_operations"])
        now, number = await (await on.execute(self._sql["next_operation"])).fetchone() or (0, 0)
        row = OperationRow(number, now, tenant, context, int(kind), body)
        await on.execute(self._sql["put_operation"], row)
        await on.execute(self._sql["notify"])
        return row

    async def add_alarm(self, alarm: AlarmRow) -> None:
        await self._do("add_alarm", *alarm)

    async def put_meta(self, name: str, value: bytes) -> None:
        await self._do("put_meta", name, value)

    async def damage(self) -> Sequence[str]:
        ((failures,),) = await self._rows("checksum_failures")
        if not failures:
            return []
        what = f"PostgreSQL has met {failures} blocks with a wrong checksum in this database (pg_stat_database)"
        return [f"{self.name}: is damaged ({what}). Restore the store from a backup"]

    def dump(self) -> AsyncIterator[Chunk]:
        return whole_rows.dumped(self._address, self.name)

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        await whole_rows.fill(self._address, self.name, chunks)


def _check_shard(lease: Lease, context: int) -> None:
    if context % SHARDS != lease.shard:
        raise _stale(lease, context)


def _stale(lease: Lease, context: int) -> StaleLeaseError:
    return StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")
