"""Delete the pages of a session or of a source. What they taught stays, as sums.

Retention's way for single pages: the newest publication of a context is kept as the snapshot that a replay begins with,
and pages that are in it may go. While servers run, a deletion is an operation that the holders of the shards carry out
(``Forgetting``); on a store that no server uses, ``forget`` does it at once, after a check whether all pages can go.

A server that continues from the snapshot does not find the visitor in its newest window. That changes nothing: all
pages of the visitor in it are gone, new ones come in later windows, and one that a crash had taken and whose token
brings it back counts once.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from saferank.errors import ArgumentError
from saferank.service.clock import Clock, SystemClock
from saferank.service.identifiers import Visitor, visitor
from saferank.service.json_logs import log
from saferank.service.knowledge.fold import to_json
from saferank.service.protocol.contexts import terms_of
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.service.protocol.switches import Switches
from saferank.service.wire.calls import ForgetCall, moment
from saferank.service.wire.views import ForgetView
from saferank.store.contract import (
    FINAL_MS,
    SHARDS,
    ContextRow,
    Lease,
    OperationKind,
    OperationRow,
    PageRow,
    Snapshot,
    StaleLeaseError,
    Store,
)
from saferank.store.page_record import issued_at
from saferank.store.record_columns import RecordColumns

SLICE = 500
"""Pages that are deleted in one transaction."""
LOOK_MS = 10_000
"""So often a server looks what it can delete."""
_NAME = "saferank forget"
_LEASE_SECONDS = 30.0


class NotForgottenError(ValueError):
    """Why not everything was deleted, and what to do."""


@dataclass
class Forgotten:
    """What was deleted."""

    pages: int = 0
    contexts: int = 0
    events: int = 0

    def sentences(self) -> list[str]:
        """For people."""
        if not self.pages:
            return ["the log has no page of it: nothing was removed"]
        return [
            f"removed {self.pages} pages of {self.contexts} contexts, and {self.events} event ids",
            "what stays: sums that were learnt from these pages (comparisons of items, counters, marks of votes of 4 "
            "bytes, the number of pages of a source on the newest day) and the ids of pages that made a new version",
            "replay begins with the newest publication of these contexts; earlier versions cannot be gone back to",
            "backups that were made before still have the pages",
        ]


class _Found(NamedTuple):
    """Pages of a visitor, all of one context."""

    row: ContextRow
    snapshot: Snapshot  # the newest publication ...
    learnt: Sequence[PageRow]  # ... the pages that are in it and may go ...
    left: Sequence[PageRow]  # ... and those that are not in it yet
    waits: bool  # for a rollback, which may need pages

    @property
    def is_done(self) -> bool:
        """True when everything may go."""
        return not self.left and not (self.waits and self.learnt)


async def forget(store: Store, tenant: str, session: str | None = None, source: str | None = None) -> Forgotten:
    """Open a store, delete the pages of a session, of a source or of either, and their event ids.

    ``session`` and ``source`` are as rank calls named them. NotForgottenError, before anything is deleted, when a
    server uses the store, when the tenant has no contexts, or when some of the pages are not in a publication yet; and
    when a server that was started meanwhile has taken over.
    """
    if session is None and source is None:
        raise ArgumentError("session", "name a session, a source or both")
    await store.open()
    try:
        key, alive = await store.meta("session_key"), await store.servers()
        if key is None:
            raise NotForgottenError("the store has no session key; it was not made by a service")
        if alive:
            until = moment(max(row.lease_until for row in alive))
            raise NotForgottenError(
                f"{len(alive)} servers use this store; stop them first (one that was killed counts until {until})"
            )
        try:
            return await _forget(store, tenant, visitor(key, tenant, session, None, source))
        finally:
            await store.leave(_NAME)
    except StaleLeaseError as problem:
        raise NotForgottenError("a server was started meanwhile; pages may be left: stop it and try again") from problem
    finally:
        await store.close()


async def _forget(store: Store, tenant: str, who: Visitor) -> Forgotten:
    """Delete as the holder of all shards; nothing unless everything can go."""
    rows = await store.contexts()
    mine = [row for row in rows if row.tenant == tenant]
    if not mine:
        tenants = ", ".join(sorted({row.tenant for row in rows})) or "none"
        raise NotForgottenError(f"tenant {tenant!r} has no contexts; tenants that have some: {tenants}")
    keys_unread = partial(asyncio.sleep, 0)  # those of tokens: a deletion needs none
    heartbeat = Heartbeat(_NAME, store, SystemClock(), Switches(), _LEASE_SECONDS, keys_unread)
    await heartbeat.beat()
    forgetting, total = Forgetting(store, SystemClock(), heartbeat), Forgotten()
    everything = [await forgetting.find(row, who) for row in mine]
    for found in everything:
        _check(found)
    for found in everything:
        await forgetting.delete(found, total)
    return total


class Forgetting:
    """Carries out what operators asked to delete, in the contexts of the shards that this server holds.

    Pages issued until the request go: those that were learnt from at once, those in open windows when they were. How
    far a shard has come is a fact of the store, so a server that takes it over goes on.
    """

    def __init__(self, store: Store, clock: Clock, heartbeat: Heartbeat) -> None:
        self._store, self._clock, self._heartbeat = store, clock, heartbeat
        self._next: dict[tuple[int, int], int] = {}  # by shard and request: when to look again
        self._done: dict[int, tuple[int, int]] = {}  # by shard: epoch of the lease, and the newest request that is done
        self.pages = 0

    async def ask(self, tenant: str, call: ForgetCall, key: bytes) -> ForgetView:
        """Have the pages of a session or a source deleted; durable when this returns. ``key`` is that of sessions."""
        who = visitor(key, tenant, call.session_id, None, call.source)
        body = to_json({"visitor": who.key.hex(), "source": who.source.hex(), "why": call.why})
        row = await self._store.add_operation(tenant, 0, OperationKind.FORGET, body)
        await self._heartbeat.hear()
        windows = [terms_of(row).window_ms for row in await self._store.contexts() if row.tenant == tenant]
        return ForgetView(done_by=moment(row.at + max(windows, default=0) + FINAL_MS + 2 * LOOK_MS))

    async def run(self) -> None:
        """Carry out until cancelled."""
        while True:
            await self.carry_out()
            await self._clock.sleep(LOOK_MS / 1000)

    async def carry_out(self) -> None:
        """Delete what can be deleted now."""
        if not self._heartbeat.switches.forgets:
            return
        now = await self._heartbeat.measured()
        for shard, lease in list(self._heartbeat.leases.items()):
            with suppress(StaleLeaseError):  # another server has the shard by now
                await self._carry_out(shard, lease, now)

    async def _carry_out(self, shard: int, lease: Lease, now: int) -> None:
        store, name = self._store, f"forgotten/{shard}"
        if self._done.get(shard, (-1, 0))[0] != lease.epoch:
            self._done[shard] = lease.epoch, int(await store.meta(name) or 0)
        for row in self._heartbeat.switches.forgets:
            if row.number <= self._done[shard][1]:
                continue
            again = self._next.get((shard, row.number), 0)
            if now >= again:
                again = self._next[shard, row.number] = await self._obey(row, shard, now)
            if again:
                return
            await store.put_meta(name, b"%d" % row.number)
            self._done[shard] = lease.epoch, row.number

    async def _obey(self, request: OperationRow, shard: int, now: int) -> int:
        """Delete what can be deleted of a request in a shard; when to look again, 0: never."""
        facts, again = json.loads(request.body), 0
        who = Visitor(bytes.fromhex(facts["visitor"]), bytes.fromhex(facts["source"]))
        for row in await self._store.contexts():
            if row.tenant != request.tenant or row.id % SHARDS != shard or row.opened_at > request.at:
                continue
            found, total = await self.find(row, who, request.at), Forgotten()
            if not found.waits:
                await self.delete(found, total)
            if total.pages:
                self.pages += total.pages
                log(logging.WARNING, "pages forgotten", tenant=row.tenant, context=row.name, pages=total.pages)
            final = request.at + terms_of(row).window_ms + FINAL_MS  # no page of then can be written any more
            if not found.is_done or now < final:
                again = max(again, final, now + LOOK_MS)
        return again

    async def find(self, row: ContextRow, who: Visitor, until: int = 1 << 62) -> _Found:
        """The pages of a visitor in a context that were issued until a time; all of its pages are read."""
        theirs = list[PageRow]()
        async for pages in self._store.all_pages(row.id):
            which = RecordColumns([page.record for page in pages]).of_visitor(who.key, who.source)
            theirs += [pages[number] for number in which.tolist() if issued_at(pages[number].impression) <= until]
            await self._clock.sleep(0)  # rank calls go first
        newest = await self._store.publication(row.id)
        snapshot = Snapshot(0, 0, 0) if newest is None else Snapshot(newest.number, newest.through, newest.operation)
        learnt = [page for page in theirs if issued_at(page.impression) <= snapshot.through]
        left = [page for page in theirs if issued_at(page.impression) > snapshot.through]
        return _Found(row, snapshot, learnt, left, bool(self._heartbeat.switches.rollbacks(row.id, snapshot.operation)))

    async def delete(self, found: _Found, total: Forgotten) -> None:
        """Delete the pages that were learnt from, and their event ids, behind a snapshot that is kept; count them."""
        row, snapshot, learnt = found.row, found.snapshot, found.learnt
        if not learnt:
            return
        total.contexts += 1
        await self._store.keep_publication(await self._lease(row.id), row.id)
        for start in range(0, len(learnt), SLICE):
            some = [page.impression for page in learnt[start : start + SLICE]]
            gone = await self._store.delete_pages(await self._lease(row.id), row.id, snapshot, some)
            total.pages += gone.pages
            total.events += gone.events

    async def _lease(self, context: int) -> Lease:
        """The lease of the shard of a context; StaleLeaseError when another server has it."""
        await self._heartbeat.measured()
        lease = self._heartbeat.leases.get(context % SHARDS)
        if lease is None:
            raise StaleLeaseError(f"another server holds the shard of context {context}")
        return lease


def _check(found: _Found) -> None:
    """NotForgottenError unless everything that was found may go."""
    name, left = found.row.name, found.left
    if left:
        until = moment(max(page.closes_at for page in left))
        raise NotForgottenError(
            f"{len(left)} of the pages in context {name!r} have not been learnt from yet: start the service "
            f"when their windows are over ({until}), stop it and try again"
        )
    if not found.is_done:
        raise NotForgottenError(f"context {name!r} waits for a rollback: start the service, stop it and try again")
