"""Closing: pages whose windows have ended are closed, folded in display order, and what they teach is published.

Only the holder of a shard does this, under the epoch of its lease. The fold is carried on in memory and published when
the certificates change, and otherwise every few seconds. A crash in between costs nothing: the next holder continues
from the newest publication, and comes to the same, because the fold does not depend on how it is cut.
"""

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from saferank.service import limits
from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import ARMS
from saferank.service.knowledge.fold import Fold, pack
from saferank.service.knowledge.warm_up import prepare
from saferank.service.protocol.all_contexts import Guard
from saferank.service.protocol.contexts import Context, Contexts, DeletedVersionError, fold_at_version, recall_visitors
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.service.protocol.switches import UNDOING
from saferank.service.protocol.writer import Writer
from saferank.store.contract import (
    SHARDS,
    AlarmRow,
    Lease,
    OperationKind,
    OperationRow,
    PageRow,
    Publication,
    StaleLeaseError,
    Store,
    StoreError,
    StoreUnavailableError,
)
from saferank.store.page_record import issued_at

TICK_SECONDS, LONGEST_TICK = 0.25, 2.0
PATIENCE = 0.01
"""A context is closed again after this share of its window: a few pages at a time cost more and teach no sooner."""
CLOSING_SHARE = 0.2
"""Closing takes at most this share of the time: with many contexts it comes round less often, for more pages each."""
PUBLISH_MS = 10_000
"""What changes no certificate is published after so long."""
PUBLISH_SHARE = 0.1
"""Packing takes at most about this share of the time: with many or large contexts they are published less often."""
GRACE_MS = 1000
"""With several servers: pages without clicks that others have not written yet are waited for so long."""
SEARCH_MS = 10_000
"""So often due pages are looked for from the beginning."""
RETRY_MS = 60_000
"""A context that could not be closed is tried again after so long."""
ARM_COUNTS = ("arm_pages_total", "arm_clicked_pages_total", "arm_clicks_total")
"""Closed pages by arm: what the three numbers of a fold's tallies are called in the metrics."""
_MANY = 5000
"""This number of pages that were due at once is worth a line in the logs: a server has been away."""
_AT_ONCE = 100
"""Pages that are folded before callers are let in: a few milliseconds. Those of one millisecond stay together."""


class Closer:
    """Closes and folds the contexts of the shards that this server holds."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        heartbeat: Heartbeat,
        contexts: Contexts,
        writer: Writer,
        guard: Guard,
    ) -> None:
        self._store, self._clock, self._heartbeat, self._contexts = store, clock, heartbeat, contexts
        self._writer, self._guard = writer, guard
        self._epochs: dict[int, int] = {}  # by shard in which due pages were looked for: epoch of the lease
        self._looked_through = 0  # as of the last look
        self._searched_at = 0
        self._postponed: set[int] = set()  # contexts with pages to be closed that were closed a moment ago
        self._publish_after: float = PUBLISH_MS
        self._retry_at: dict[int, int] = {}  # by number of a context that could not be closed
        self._closing = asyncio.Lock()
        self.closed = 0
        self.arms: dict[str, Counter[str]] = {name: Counter(dict.fromkeys(ARMS, 0)) for name in ARM_COUNTS}
        self.versions = 0
        self.alarms = 0

    async def run(self) -> None:
        """Close due windows now, and then until cancelled."""
        pause = 0.0
        while True:
            await self._clock.sleep(pause)
            began = self._clock.monotonic()
            try:
                await self.close_due()
            except StoreUnavailableError:
                pass  # the heartbeat says so
            except Exception as problem:  # the store as a whole; what is wrong with one context ends in _set_aside
                log(logging.ERROR, "closing failed", error=problem)
            took = self._clock.monotonic() - began
            pause = min(LONGEST_TICK, max(TICK_SECONDS, took * (1 - CLOSING_SHARE) / CLOSING_SHARE))

    async def close_due(self, everything: bool = False) -> None:
        """Close due windows; ``everything`` publishes what is not published as well."""
        async with self._closing:
            if self._writer.pages:
                await self._writer.write_once(with_pages=True)
            now = await self._heartbeat.measured()
            leases = dict(self._heartbeat.leases)
            aged, unpublished, longest_window = self._look_over(leases, now)
            found = self._postponed | await self._due(leases, now, longest_window)
            due = found if everything else {number for number in found if self._is_time(number, now)}
            self._postponed = found - due
            self._publish_after = self._publish_interval(unpublished, due)
            ahead = {*self._to_undo(leases), *aged}
            ahead |= {context.number for context in unpublished if everything or self._is_to_publish(context, now)}
            for number in sorted((due | ahead | self._retry_at.keys()) - self._resting(leases, now)):
                await self._attempt(number, leases, now, everything)
                await asyncio.sleep(0)
            await self._guard.look_at_tenants()

    def _look_over(self, leases: dict[int, Lease], now: int) -> tuple[list[int], list[Context], int]:
        """Walk once over the contexts in use.

        Returns the numbers of those whose certificates may have to end although there was no page, those whose folds
        are ahead of what was published, and the longest window. Contexts whose shard another server has, or had
        meanwhile, are let go: as long as they are held here, this server does not follow their publications, and would
        serve by what it knew then, also after a rollback.
        """
        aged, unpublished, longest = list[int](), list[Context](), 0
        for context in self._contexts:
            lease, terms = leases.get(context.number % SHARDS), context.fold.terms
            if context.held_in >= 0 and (lease is None or lease.epoch != context.held_in):
                self._let_go(context)
                continue
            longest = max(longest, terms.window_ms)
            if lease is not None and terms.epoch_at(now - terms.window_ms) > context.fold.epoch:
                aged.append(context.number)
            if context.dirty:
                unpublished.append(context)
        return aged, unpublished, longest or now

    async def _due(self, leases: dict[int, Lease], now: int, longest_window: int) -> set[int]:
        """Contexts with pages to be closed. Shards that are new here are searched from the beginning."""
        if now - self._searched_at >= SEARCH_MS:  # others may have contexts with longer windows than any known here
            self._epochs, self._searched_at = {}, now
        new = [shard for shard, lease in leases.items() if self._epochs.get(shard) != lease.epoch]
        old = list(leases.keys() - new)
        late = GRACE_MS if self._heartbeat.servers > 1 else 0
        due: set[int] = set()
        if new:
            due.update(await self._store.due(new, 0, now - late))
        if old:
            since = self._looked_through - longest_window - late
            due.update(await self._store.due(old, max(0, since), now - late))
        self._epochs = {shard: lease.epoch for shard, lease in leases.items()}
        self._looked_through = now - late
        return due

    def _is_time(self, number: int, now: int) -> bool:
        context = self._contexts.numbered(number)
        return context is None or now - context.closed_at >= PATIENCE * context.terms.window_ms

    def _to_undo(self, leases: dict[int, Lease]) -> list[int]:
        contexts, switches = self._contexts, self._heartbeat.switches
        found = []
        for number in switches.contexts_undone():
            context = contexts.numbered(number)
            if number % SHARDS in leases and (context is None or switches.undoing(number, context.fold.operation)):
                found.append(number)
        return found

    def _publish_interval(self, unpublished: Sequence[Context], due: set[int]) -> float:
        """Milliseconds between two publications of a context, as long as its certificates stay the same."""
        to_pack = {*unpublished, *filter(None, map(self._contexts.numbered, due))}
        return max(PUBLISH_MS, 1000 * sum([context.packing for context in to_pack]) / PUBLISH_SHARE)

    def _is_to_publish(self, context: Context, now: int) -> bool:
        return now - context.published_at >= self._publish_after

    def _resting(self, leases: dict[int, Lease], now: int) -> set[int]:
        """Contexts that could not be closed a moment ago. Those of other servers by now are forgotten."""
        for number in [number for number in self._retry_at if number % SHARDS not in leases]:
            del self._retry_at[number], self._contexts.set_aside[number]
        return {number for number, at in self._retry_at.items() if now < at}

    async def _attempt(self, number: int, leases: dict[int, Lease], now: int, everything: bool) -> None:
        try:
            context = self._contexts.numbered(number) or await self._load(number)
            if context is not None and number % SHARDS in leases:
                await self._close(context, leases[number % SHARDS], now, everything)
        except BaseException as problem:  # a cancelled call as well: the store may have taken some of it
            context = self._contexts.numbered(number)
            if context is not None:
                self._let_go(context)
            if isinstance(problem, StaleLeaseError):
                return
            if isinstance(problem, StoreUnavailableError) or not isinstance(problem, Exception):
                raise
            await self._set_aside(number, context, problem, now)
        else:
            self._take_back(number)

    async def _set_aside(self, number: int, context: Context | None, problem: Exception, now: int) -> None:
        """A context that cannot be closed gets production's ranking and is tried again later; others are closed."""
        new = number not in self._contexts.set_aside
        detail = f"cannot be closed ({type(problem).__name__}): {problem}"
        self._contexts.set_aside[number], self._retry_at[number] = detail, now + RETRY_MS
        who = {} if context is None else {"tenant": context.row.tenant, "context": context.row.name}
        bug = None if isinstance(problem, StoreError) else problem
        log(logging.ERROR, "alarm", error=bug, kind="not_closed", number=number, **who, detail=detail)
        if new:
            self.alarms += 1
            with suppress(StoreError, StoreUnavailableError):  # it is in the logs
                await self._store.add_alarm(AlarmRow(now, number, "not_closed", detail))

    def _take_back(self, number: int) -> None:
        if self._retry_at.pop(number, None) is not None:
            del self._contexts.set_aside[number]
            log(logging.WARNING, "a context that could not be closed is closed again", number=number)

    def _let_go(self, context: Context) -> None:
        """Another server may continue with it: what is ahead of the publication is forgotten, and looked for again."""
        context.dirty, context.held_in = False, -1
        self._contexts.forget(context)
        self._epochs.pop(context.number % SHARDS, None)

    async def _load(self, number: int) -> Context | None:
        row = await self._store.context(number)
        return None if row is None else await self._contexts.load(row)

    # --- one context ---

    async def _close(self, context: Context, lease: Lease, now: int, everything: bool) -> None:
        if context.held_in != lease.epoch:
            await self._take_over(context, lease)
        context.closed_at = now
        await self._compare_again(context, lease, now)
        late = GRACE_MS if self._heartbeat.servers > 1 else 0
        closed = await self._store.close_through(lease, context.number, now - late - context.terms.window_ms)
        pages = await self._store.pages_between(context.number, context.fold.through, closed)
        before = [tally[:] for tally in context.fold.tallies]
        if len(pages) >= _MANY:
            log(logging.INFO, "folding many pages", context=context.row.name, pages=len(pages), through=closed)
        for chunk, through in _chunks(pages, closed):
            context.fold.fold(chunk, through)
            await asyncio.sleep(0)
        self.closed += len(pages)
        self._count(before, context.fold)
        context.dirty = context.dirty or bool(pages) or bool(context.fold.versions)
        operations = self._heartbeat.switches.to_carry_out(context.row, context.fold.operation)
        for operation in operations:
            await self._carry_out(context, operation)
        news = context.fold.versions or context.fold.alarm_rows or operations
        if news or (context.dirty and (everything or self._is_to_publish(context, now))):
            await self._publish(context, lease, now, bool(operations))
        await self._guard.look(context)

    async def _compare_again(self, context: Context, lease: Lease, now: int) -> None:
        """Begin comparisons again before pages are folded that belong to the new ones."""
        operations = self._heartbeat.switches.to_carry_out(context.row, context.fold.operation)
        restarts = list(itertools.takewhile(lambda row: row.kind not in UNDOING, operations))
        for operation in restarts:
            await self._carry_out(context, operation)
        if restarts:
            await self._publish(context, lease, now, keep=True)  # replay carries them out where this was kept

    def _count(self, before: list[list[int]], fold: Fold) -> None:
        for arm, old, new in zip(ARMS, before, fold.tallies, strict=True):
            for name, was, now in zip(ARM_COUNTS, old, new, strict=True):
                self.arms[name][arm] += now - was

    async def _take_over(self, context: Context, lease: Lease) -> None:
        """Go on from the newest publication, and from the visitors of its newest window."""
        publication = await self._store.publication(context.number)
        fold = await self._contexts.fold_of(context.row, publication)
        await recall_visitors(self._store, fold)
        context.fold, context.published = fold, 0 if publication is None else publication.number
        context.kept_at, context.held_in = fold.pages, lease.epoch

    async def _carry_out(self, context: Context, operation: OperationRow) -> None:
        if operation.kind == OperationKind.ROLLBACK:
            await self._roll_back(context, operation)
        elif operation.kind == OperationKind.RESET:
            facts = json.loads(operation.body)
            await prepare(context.terms._replace(**facts.get("terms") or {}))
            context.fold.reset(operation.number, operation.at, **facts)
        else:
            context.fold.compare_again(operation.number, operation.at, whole=operation.context == 0)

    async def _roll_back(self, context: Context, operation: OperationRow) -> None:
        facts, fold = json.loads(operation.body), context.fold
        if facts["version"] > fold.version:  # the operator saw a version that this server has not come to
            raise StaleLeaseError(f"context {context.number} has no version {facts['version']} yet")
        try:
            saved = await fold_at_version(self._store, self._contexts, context, facts["version"])
        except DeletedVersionError as problem:  # it was there when the operator asked; replay leaves it out as well
            fold.operation = operation.number
            fold.alarm_rows.append(AlarmRow(operation.at, context.number, "rollback_refused", str(problem)))
            return
        fold.roll_back(saved, operation.number, operation.at, facts["why"])

    async def _publish(self, context: Context, lease: Lease, now: int, keep: bool) -> None:
        fold = context.fold
        keep = keep or fold.pages - context.kept_at >= limits.SNAPSHOT_EVERY
        began = self._clock.monotonic()
        body = await asyncio.to_thread(pack, fold)  # only closing changes a fold, and it waits
        context.packing = self._clock.monotonic() - began
        publication = Publication(context.number, context.published + 1, fold.through, fold.operation, body)
        await self._store.publish(lease, publication, list(fold.versions), list(fold.alarm_rows), keep)
        versions, alarms = fold.take_news()
        context.published, context.published_at, context.dirty = publication.number, now, False
        context.kept_at = fold.pages if keep else context.kept_at
        self._contexts.measure(context)
        self.versions += len(versions)
        self.alarms += len(alarms)
        for alarm in alarms:
            tenant, name = context.row.tenant, context.row.name
            log(logging.ERROR, "alarm", kind=alarm.kind, tenant=tenant, context=name, detail=alarm.detail)


def _chunks(pages: Sequence[PageRow], closed: int) -> Iterator[tuple[Sequence[PageRow], int]]:
    """Pages in runs of about ``_AT_ONCE``, each with the time that it leads to; the last one to ``closed``.

    A fold stands for a time. Cut within a millisecond it would stand for pages that are not in it, or not for pages
    that are, and a server that resumes from it would skip some or count some twice.
    """
    start, end = 0, _AT_ONCE
    while end < len(pages):
        before, at = issued_at(pages[end - 1].impression), issued_at(pages[end].impression)
        if before < at:
            yield pages[start:end], before
            start, end = end, end + _AT_ONCE
        else:
            end += 1
    yield pages[start:], closed
