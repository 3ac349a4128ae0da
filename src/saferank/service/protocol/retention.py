"""Retention: closed pages that are older than ``keep_days`` are deleted; what they taught stays.

A kept snapshot stands for the pages before it, and a replay begins with it. So pages go only when there is a snapshot
that is old enough, and snapshots are kept a few times in every ``keep_days``. Done by the holder of a shard under its
lease, a few pages at a time.
"""

import json
import logging
from collections.abc import Awaitable, Callable

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import DAY_MS
from saferank.service.knowledge.fold import read_head
from saferank.service.protocol.contexts import terms_of
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.store.contract import (
    CATALOGUE_MS,
    SHARDS,
    ContextRow,
    Lease,
    Snapshot,
    StaleLeaseError,
    Store,
    StoreError,
)

FIRST_SECONDS = 60.0
PAUSE_SECONDS = 3600.0
SLICE = 500
"""Pages or event ids that are deleted in one transaction."""
SLICE_PAUSE_SECONDS = 0.05
SNAPSHOTS = 4
"""Snapshots that are kept in ``keep_days``: pages go at most a quarter of that time late."""
_EVENTS_SHARD = 0
"""Event ids are of no context: who holds this shard forgets them."""


class Retention:
    """Deletes what is old enough, of the contexts of the shards that this server holds."""

    def __init__(self, store: Store, clock: Clock, heartbeat: Heartbeat, keep_days: float) -> None:
        self._store, self._clock, self._heartbeat = store, clock, heartbeat
        self._keep_ms = round(keep_days * DAY_MS)
        self.deleted = 0  # pages
        self.events = 0
        self.catalogues = 0

    async def run(self) -> None:
        """Delete until cancelled."""
        await self._clock.sleep(FIRST_SECONDS)
        while True:
            await self.delete_old()
            await self._clock.sleep(PAUSE_SECONDS)

    async def delete_old(self) -> None:
        """Delete everything that is old enough now."""
        if not self._keep_ms:
            return
        limit = await self._heartbeat.measured() - self._keep_ms
        leases = dict(self._heartbeat.leases)
        ageing = await self._store.contexts_with_pages_before(
            list(leases), limit + self._keep_ms - self._keep_ms // SNAPSHOTS
        )
        for number in ageing:
            try:
                await self._delete_of(number, leases[number % SHARDS], limit)
            except StaleLeaseError:
                pass  # another server has the shard by now
            except StoreError as problem:  # damage: the pages of this context stay, those of others must go
                log(logging.ERROR, "old pages cannot be deleted", context_number=number, detail=str(problem))
        if _EVENTS_SHARD in leases:
            unused = limit - 2 * CATALOGUE_MS
            self.events += await self._in_slices(lambda: self._store.prune_events(limit, SLICE))
            self.catalogues += await self._in_slices(lambda: self._store.prune_catalogues(unused, SLICE))

    async def _delete_of(self, number: int, lease: Lease, limit: int) -> None:
        row = await self._store.context(number)
        if row is None:
            return
        await self._keep_snapshot(number, lease, limit)
        snapshot = await self._old_enough(number, limit)
        if snapshot is None:
            return
        before, switches = await self._needed_from(row, snapshot), self._heartbeat.switches
        deleted = await self._in_slices(
            lambda: self._store.prune(lease, row.id, snapshot, before, switches.acknowledged, SLICE)
        )
        self.deleted += deleted
        if deleted:
            log(logging.INFO, "old pages deleted", tenant=row.tenant, context=row.name, pages=deleted)

    async def _keep_snapshot(self, context: int, lease: Lease, limit: int) -> None:
        """Keep the newest publication when the newest snapshot is a while behind it, or when nothing else will come."""
        publication = await self._store.publication(context)
        if publication is None:
            return
        kept = await self._store.snapshot_heads(context)
        read_head(publication.body)  # what stands for deleted pages must be whole
        behind = publication.through - (kept[-1].through if kept else 0)
        if behind >= self._keep_ms // SNAPSHOTS or (behind and publication.through <= limit):
            await self._store.keep_publication(lease, context)

    async def _old_enough(self, context: int, limit: int) -> Snapshot | None:
        """The newest snapshot that is old enough, and that no rollback since then went back beyond."""
        kept = [snapshot for snapshot in await self._store.snapshot_heads(context) if snapshot.through <= limit]
        for snapshot in reversed(kept):
            rollbacks = self._heartbeat.switches.rollbacks(context, snapshot.operation)
            if not rollbacks:
                return snapshot
            versions = [json.loads(row.body)["version"] for row in rollbacks]
            if min(versions) > await self._version(context, snapshot):
                return snapshot
        return None

    async def _version(self, context: int, snapshot: Snapshot) -> int:
        kept = {row.number: row for row in await self._store.snapshots(context)}
        return int(read_head(kept[snapshot.number].body)["version"])

    async def _needed_from(self, row: ContextRow, snapshot: Snapshot) -> int:
        """Pages issued before this may be deleted.

        A server that continues from a snapshot reads the visitors of its window. It needs none when the snapshot is the
        newest publication and the window, long since over, had no other page.
        """
        window = terms_of(row).window_ms
        begin = snapshot.through // window * window
        newest = await self._store.publication(row.id)
        if newest is None or newest.number != snapshot.number:
            return begin
        following = await self._store.pages_between(row.id, snapshot.through, begin + window - 1)
        return begin if following else snapshot.through + 1

    async def _in_slices(self, delete: Callable[[], Awaitable[int]]) -> int:
        """Delete slice after slice, with pauses, until one is not full; how much was deleted."""
        deleted, slice_ = 0, SLICE
        while slice_ == SLICE:
            slice_ = await delete()
            deleted += slice_
            await self._clock.sleep(SLICE_PAUSE_SECONDS)
        return deleted
