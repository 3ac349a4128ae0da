"""The contract of ``saferank.store.contract`` in plain Python: the reference that the real stores are compared with.

One event loop, no threads, nothing durable: a call is one step, so it is atomic. It is written to be obviously right,
not fast. The deterministic simulation of servers (tests/simulated) uses it as the store.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from saferank.store.contract import (
    CATALOGUE_MS,
    MOST_EVENT_IDS,
    SHARDS,
    AlarmRow,
    CatalogueRow,
    ClickReport,
    ContextRow,
    Deleted,
    Group,
    HeartbeatReply,
    Lease,
    OperationKind,
    OperationRow,
    Outcome,
    PageRow,
    Publication,
    ServerRow,
    Snapshot,
    StaleLeaseError,
    Store,
    VersionRow,
    Written,
)
from saferank.store.page_record import CATALOGUE_PLACE, TIME_BYTES

META = {"session_key": bytes(range(32)), "token_keys": json.dumps({"k1": "5a" * 32}).encode()}


@dataclass
class Server:
    """A server that was heard from."""

    lease_until: int
    acknowledged: int


@dataclass
class Shard:
    """Who may close and fold the contexts of a shard, and until when."""

    epoch: int = 0
    holder: str = ""
    until: int = 0


@dataclass
class Context:
    """What the store keeps of a context besides its pages."""

    row: ContextRow
    closed_through: int = 0
    pruned_through: int = 0
    publication: Publication | None = None
    published_at: int = 0
    versions: list[VersionRow] = field(default_factory=list)
    snapshots: list[Publication] = field(default_factory=list)
    alarms: list[AlarmRow] = field(default_factory=list)


def issued_at(impression: bytes) -> int:
    """The time of issue that an id begins with."""
    return int.from_bytes(impression[:TIME_BYTES], "big")


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class MemoryStore:
    """A store that several servers of one event loop may share."""

    is_remote = True

    def __init__(
        self, clock: Callable[[], int] = wall_clock, meta: Mapping[str, bytes] = META, shards: int = SHARDS
    ) -> None:
        self.clock, self._meta = clock, dict(meta)
        self.live: dict[str, Server] = {}
        self.shards = [Shard() for _ in range(shards)]
        self.of_id: dict[int, Context] = {}
        self.pages: dict[bytes, PageRow] = {}
        self.events: dict[tuple[bytes, str], bytes] = {}  # (impression, event_id): digest
        self.event_times: dict[tuple[bytes, str], int] = {}
        self.ids: Counter[bytes] = Counter()  # event ids by page
        self.bodies: dict[bytes, bytes] = {}
        self.used_at: dict[bytes, int] = {}  # by catalogue
        self.done: list[OperationRow] = []
        self.alarm_rows: list[AlarmRow] = []
        self._waiting, self._changes, self._seen = asyncio.Event(), 0, 0

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of."""

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        now = self.clock()
        self.live[server] = Server(now + lease_ms, acknowledged)
        alive = self._alive(now)
        share = -(-len(self.shards) // len(alive))
        self._share_out(server, share, now, now + lease_ms)
        leases = tuple(
            Lease(number, shard.epoch, shard.until)
            for number, shard in enumerate(self.shards)
            if shard.holder == server and shard.until > now
        )
        return HeartbeatReply(now, now + lease_ms, self._newest_operation(), leases, len(alive))

    def _share_out(self, server: str, share: int, now: int, until: int) -> None:
        """Renew what the server holds, let go of what is beyond its share, take free shards up to its share."""
        held = [shard for shard in self.shards if shard.holder == server and shard.until > now]
        for shard in held[:share]:
            shard.until = until
        for shard in held[share:]:
            shard.holder, shard.until = "", 0
        free = [shard for shard in self.shards if shard.until <= now]
        for shard in free[: max(0, share - len(held))]:
            shard.epoch, shard.holder, shard.until = shard.epoch + 1, server, until

    async def leave(self, server: str) -> None:
        self.live.pop(server, None)
        for shard in self.shards:
            if shard.holder == server:
                shard.holder, shard.until = "", 0

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        alive = self._alive(self.clock() - ended_ms)
        return [ServerRow(name, row.lease_until, row.acknowledged) for name, row in sorted(alive.items())]

    def _alive(self, now: int) -> dict[str, Server]:
        return {name: row for name, row in self.live.items() if row.lease_until > now}

    # --- contexts and catalogues ---

    async def open_context(self, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        found = await self.find_context(tenant, name)
        if found is not None:
            return found
        if Counter(context.row.tenant for context in self.of_id.values())[tenant] >= most:
            return None
        row = ContextRow(len(self.of_id) + 1, tenant, name, terms, self.clock())
        self.of_id[row.id] = Context(row)
        return row

    async def find_context(self, tenant: str, name: str) -> ContextRow | None:
        rows = [context.row for context in self.of_id.values()]
        return next((row for row in rows if (row.tenant, row.name) == (tenant, name)), None)

    async def context(self, number: int) -> ContextRow | None:
        return self.of_id[number].row if number in self.of_id else None

    async def contexts(self) -> Sequence[ContextRow]:
        return [context.row for context in self.of_id.values()]

    async def catalogue(self, digest: bytes) -> bytes | None:
        return self.bodies.get(digest)

    # --- pages ---

    async def write(self, group: Group) -> Written:
        now = self.clock()
        self._check(group)
        for row in group.catalogues:
            self._add_catalogue(row)
            if self.used_at.get(row.digest, 0) < now - CATALOGUE_MS // 2:
                self.used_at[row.digest] = now
        outcomes = tuple(self._report(report, now) for report in group.reports)
        left_out = [page for page in group.pages if not self._is_open(page, now)]
        for page in group.pages:
            if self._is_open(page, now):
                self.pages.setdefault(page.impression, page)
        return Written(outcomes, now, len(left_out))

    def _check(self, group: Group) -> None:
        """All of a group or nothing: what would fail half-way fails before anything is written."""
        for page in (*group.pages, *(report.page for report in group.reports)):
            if page.context not in self.of_id:
                raise KeyError(f"there is no context {page.context}")

    def _add_catalogue(self, row: CatalogueRow) -> None:
        self.bodies.setdefault(row.digest, row.body)

    def _report(self, report: ClickReport, now: int) -> Outcome:
        """An event that is known is answered as such even when its page is closed by now: it was counted."""
        page, event = report.page, (report.page.impression, report.event_id or "")
        if report.event_id is not None and event in self.events:
            return Outcome.DUPLICATE if self.events[event] == report.digest else Outcome.CONFLICT
        if not self._is_open(page, now):
            return Outcome.LATE
        old = self.pages.get(page.impression)
        new = old is None or bool(page.clicks & ~old.clicks)
        if report.event_id is not None and (new or self.ids[page.impression] < MOST_EVENT_IDS):
            self.events[event], self.event_times[event] = report.digest, now
            self.ids[page.impression] += 1
            new = True
        self.pages[page.impression] = page if old is None else old._replace(clicks=old.clicks | page.clicks)
        return Outcome.ACCEPTED if new else Outcome.DUPLICATE

    def _is_open(self, page: PageRow, now: int) -> bool:
        return issued_at(page.impression) > self.of_id[page.context].closed_through and now < page.closes_at

    async def page(self, impression: bytes) -> PageRow | None:
        return self.pages.get(impression)

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        found = set()
        for page in self.pages.values():
            issued = issued_at(page.impression)
            mine = page.context % len(self.shards) in shards
            if mine and issued > after and page.closes_at <= now and not self._is_published(page.context, issued):
                found.add(page.context)
        return sorted(found)

    def _is_published(self, context: int, issued: int) -> bool:
        publication = self.of_id[context].publication
        return publication is not None and issued <= publication.through

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        self._fence(lease, context)
        known = self.of_id[context]
        known.closed_through = max(known.closed_through, through)
        return known.closed_through

    async def pages_between(self, context: int, after: int, through: int) -> Sequence[PageRow]:
        return [
            page
            for _, page in sorted(self.pages.items())
            if page.context == context and after < issued_at(page.impression) <= through
        ]

    async def count_pages(self, context: int, after: int) -> int:
        return len(await self.pages_between(context, after, self.clock() + 10**9))

    async def publish(
        self,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        """A publication that is there already, word for word, is a call that came twice: nothing is written."""
        self._fence(lease, publication.context)
        context = self.of_id[publication.context]
        if publication == context.publication:
            return
        if publication.number != (context.publication.number if context.publication else 0) + 1:
            raise StaleLeaseError(f"publication {publication.number} of context {publication.context} is not the next")
        context.publication, context.published_at = publication, self.clock()
        context.versions += versions
        self._sound(alarms)
        if keep:
            context.snapshots.append(publication)
        self._tell()

    def _fence(self, lease: Lease, context: int) -> None:
        assert context % len(self.shards) == lease.shard
        epoch = self.shards[lease.shard].epoch
        if epoch != lease.epoch:
            raise StaleLeaseError(f"shard {lease.shard} is in epoch {epoch}, the lease is of epoch {lease.epoch}")

    async def publication(self, context: int) -> Publication | None:
        return self.of_id[context].publication

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        found = [self.of_id[number].publication for number in sorted(contexts) if number in self.of_id]
        return [publication for publication in found if publication is not None]

    async def published(self, since: int) -> Mapping[int, int]:
        return {
            number: context.publication.number
            for number, context in self.of_id.items()
            if context.publication is not None and context.published_at >= since
        }

    async def wait(self, seconds: float) -> None:
        if self._changes == self._seen:
            self._waiting = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._waiting.wait()
        self._seen = self._changes

    def _tell(self) -> None:
        """Wake who waits; who does not wait now will not wait the next time."""
        self._changes += 1
        self._waiting.set()

    # --- retention ---

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        old = {page.context for page in self.pages.values() if issued_at(page.impression) < before}
        return sorted(number for number in old if number % len(self.shards) in shards)

    async def keep_publication(self, lease: Lease, context: int) -> None:
        self._fence(lease, context)
        known = self.of_id[context]
        if known.publication is not None and known.publication not in known.snapshots:
            known.snapshots.append(known.publication)

    async def prune(self, lease: Lease, context: int, snapshot: Snapshot, before: int, seen: int, most: int) -> int:
        self._fence(lease, context)
        if any(row.context == context and row.number > seen for row in self.done):
            return 0
        self._stand_for(context, snapshot)
        old = sorted(p.impression for p in self.pages.values() if p.context == context)
        gone = [impression for impression in old if issued_at(impression) < before][:most]
        for impression in gone:
            del self.pages[impression]
        return len(gone)

    async def delete_pages(
        self, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        self._fence(lease, context)
        self._stand_for(context, snapshot)
        gone = [impression for impression in impressions if self._may_go(impression, context, snapshot)]
        for impression in gone:
            del self.pages[impression]
        events = [event for event in self.events if event[0] in gone]
        for event in events:
            del self.events[event], self.event_times[event]
        return Deleted(len(gone), len(events))

    def _may_go(self, impression: bytes, context: int, snapshot: Snapshot) -> bool:
        found = self.pages.get(impression)
        return found is not None and found.context == context and issued_at(impression) <= snapshot.through

    def _stand_for(self, context: int, snapshot: Snapshot) -> None:
        """From now on the log of a context begins with a snapshot."""
        known = self.of_id[context]
        known.pruned_through = max(known.pruned_through, snapshot.through)
        known.snapshots = [row for row in known.snapshots if row.number >= snapshot.number]

    async def pruned_through(self, context: int) -> int:
        return self.of_id[context].pruned_through

    async def prune_events(self, before: int, most: int) -> int:
        old = sorted((at, event) for event, at in self.event_times.items() if at < before)[:most]
        for _, event in old:
            del self.events[event], self.event_times[event]
        return len(old)

    async def prune_catalogues(self, before: int, most: int) -> int:
        named = {json.loads(context.row.terms).get("catalogue") for context in self.of_id.values()}
        old = [page for page in self.pages.values() if issued_at(page.impression) < before + 2 * CATALOGUE_MS]
        named |= {page.record[CATALOGUE_PLACE - 1 :][:16].hex() for page in old}
        gone = [digest for digest, at in self.used_at.items() if at < before and digest.hex() not in named][:most]
        for digest in gone:
            del self.used_at[digest], self.bodies[digest]
        return len(gone)

    # --- operations ---

    async def add_operation(self, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        row = OperationRow(self._newest_operation() + 1, self.clock(), tenant, context, int(kind), body)
        self.done.append(row)
        self._tell()
        return row

    async def operations(self, after: int) -> Sequence[OperationRow]:
        return [row for row in self.done if row.number > after]

    def _newest_operation(self) -> int:
        return self.done[-1].number if self.done else 0

    async def add_alarm(self, alarm: AlarmRow) -> None:
        self._sound([alarm])

    def _sound(self, alarms: Sequence[AlarmRow]) -> None:
        self.alarm_rows += alarms
        for alarm in alarms:
            if alarm.context:
                self.of_id[alarm.context].alarms.append(alarm)

    # --- the past ---

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        rows = self.of_id[context].versions
        return list(rows) if newest is None else rows[len(rows) - min(newest, len(rows)) :]

    async def snapshots(self, context: int) -> Sequence[Publication]:
        return list(self.of_id[context].snapshots)

    async def snapshot_heads(self, context: int) -> Sequence[Snapshot]:
        return [Snapshot(row.number, row.through, row.operation) for row in self.of_id[context].snapshots]

    async def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[Sequence[PageRow]]:
        pages = [self.pages[impression] for impression in sorted(self.pages) if impression > after]
        yield [page for page in pages if context in (None, page.context)]

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        return self.alarm_rows[::-1][:most]

    async def damage(self) -> Sequence[str]:
        return []

    async def meta(self, name: str) -> bytes | None:
        return self._meta.get(name)

    async def put_meta(self, name: str, value: bytes) -> None:
        self._meta[name] = value


def _keeps_the_contract(store: MemoryStore) -> Store:
    """For the type checker: every method of the contract is there, with its types."""
    return store
