"""A literal server that follows the protocol between servers, without policies, tokens and HTTP.

It shows that the protocol is right and that the simulation notices when it is not. The knowledge of a context is the
plain list of what was folded, so that a click that is missing or counted twice is seen. Guards are small methods, which
mutants (``mutants.py``) replace.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence

from saferank.store.contract import (
    ClickReport,
    Group,
    Lease,
    OperationKind,
    Outcome,
    PageRow,
    Publication,
    StaleLeaseError,
    StoreUnavailableError,
)
from tests.acceptance.faults.monitor import Monitor
from tests.acceptance.faults.network import Link
from tests.acceptance.faults.virtual_loop import Host

LEASE_MS, WINDOW_MS = 360, 200
HEARTBEAT, CLOSING, BACKGROUND, FOLLOWING, KILL_POLL = 0.12, 0.1, 0.1, 0.3, 0.04
LONGEST_JUMP_MS = 50
TENANT = "shop"


def folded(publication: Publication | None, context: int, pages: Sequence[PageRow], through: int) -> Publication:
    """The fold: knowledge is the list of pages in display order with their clicks."""
    known = [] if publication is None else json.loads(publication.body)
    known += [[page.impression.hex(), page.clicks] for page in pages]
    number = 1 if publication is None else publication.number + 1
    return Publication(context, number, through, 0, json.dumps(known).encode())


def digest_of(publication: Publication | None) -> str:
    """What a page names as the knowledge that it was made from."""
    return "" if publication is None else hashlib.blake2b(publication.body, digest_size=8).hexdigest()


class ModelServer:
    """One server on one host."""

    margin = LONGEST_JUMP_MS  # a lease ends earlier for its server than for the store by what clocks may hide

    def __init__(self, host: Host, store: Link, monitor: Monitor) -> None:
        self.host, self.store, self.monitor = host, store, monitor
        self.offset: int | None = None  # the store's clock minus ours
        self.fresh_until = -1  # our clock: until then we may explore
        self.clocks_apart = 0
        self.obeyed = 0
        self.killed: set[int] = set()
        self.leases: dict[int, Lease] = {}
        self.known: dict[int, Publication] = {}
        self.folds: dict[int, tuple[Lease, Publication | None]] = {}
        self.issued = 0
        self.unwritten: list[PageRow] = []
        self.reports: list[tuple[ClickReport, asyncio.Future[Outcome]]] = []
        self.something = asyncio.Event()
        self.timer = False

    def start(self) -> None:
        for work in (self._beat_on(), self._close_on(), self._follow_on(), self._write_on()):
            self.host.run(work)

    # --- the calls ---

    async def rank(self, context: int) -> PageRow:
        """A page; whether it explores is decided in the last step."""
        if self.offset is None:
            raise StoreUnavailableError("the server has not started: it does not know the time")
        now, known = self.host.monotonic() + self.offset, self.known.get(context)
        self.issued += 1
        impression = now.to_bytes(6, "big") + self.host.number.to_bytes(2, "big") + self.issued.to_bytes(8, "big")
        number = 0 if known is None else known.number
        row = PageRow(impression, context, now + WINDOW_MS, b"")
        self.unwritten.append(row)
        self._write_soon()
        explored = self.may_explore(context)
        self.monitor.page_issued(self.host.name, row, explored, number, digest_of(known))
        return row

    async def feedback(self, page: PageRow, clicks: int, event_id: str | None) -> Outcome:
        """Answered after the commit."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.reports.append((ClickReport(page._replace(clicks=clicks), TENANT, event_id), done))
        self.something.set()
        return await done

    async def switch(self, context: int, kind: OperationKind) -> None:
        """Returns when every live server obeys, or has lost its lease."""
        row = await self.store.add_operation(TENANT, context, kind, "{}")
        await self.obey()
        await self.obeyed_by_all(row.number)
        if kind == OperationKind.KILL:
            self.monitor.kill_returned(context, row.number)

    async def obeyed_by_all(self, number: int) -> None:
        while True:
            servers = await self.store.servers()
            if all(row.acknowledged >= number for row in servers if row.server != self.host.name):
                return
            await asyncio.sleep(KILL_POLL)

    # --- freshness ---

    def may_explore(self, context: int) -> bool:
        return context not in self.killed and self.fresh()

    def fresh(self) -> bool:
        """Heard from the store within the lease, by clocks that did not jump since."""
        now = self.host.monotonic()
        return now < self.fresh_until and not self.jumped(now)

    def jumped(self, now: int) -> bool:
        return abs(self.host.wall() - now - self.clocks_apart) > LONGEST_JUMP_MS

    async def _beat_on(self) -> None:
        while True:
            try:
                acknowledged = self.obeyed
                await self.beat()
                if self.obeyed > acknowledged:
                    continue  # who waits for our acknowledgement need not wait for the next turn
            except StoreUnavailableError:
                pass
            await asyncio.sleep(HEARTBEAT)

    async def beat(self) -> None:
        sent, wall = self.host.monotonic(), self.host.wall()
        answer = await self.store.heartbeat(self.host.name, self.obeyed, LEASE_MS)
        received = self.host.monotonic()
        await self.catch_up(answer.operations)
        self.clocks_apart = wall - sent
        self.offset = answer.now - received
        self.fresh_until = self.lease_from(sent, received) + LEASE_MS - self.margin
        self.leases = {lease.shard: lease for lease in answer.leases}

    def lease_from(self, sent: int, received: int) -> int:
        """The store counts the lease from when the request came, which is not before it was sent."""
        return sent

    async def catch_up(self, newest: int) -> None:
        """What the store knew when it renewed the lease must be obeyed before the lease counts."""
        if newest > self.obeyed:
            await self.obey()

    async def obey(self) -> None:
        for row in await self.store.operations(self.obeyed):
            if row.number > self.obeyed:
                self.obeyed = row.number
                (self.killed.add if row.kind == OperationKind.KILL else self.killed.discard)(row.context)

    # --- writing ---

    def _write_soon(self) -> None:
        if not self.timer:
            self.timer = True
            asyncio.get_running_loop().call_later(BACKGROUND, self.something.set)

    async def _write_on(self) -> None:
        while True:
            await self.something.wait()
            self.something.clear()
            self.timer = False
            reports, self.reports = self.reports, []
            pages, self.unwritten = self.unwritten, []
            if reports or pages:
                await self._write(reports, pages)

    async def _write(self, reports: list[tuple[ClickReport, "asyncio.Future[Outcome]"]], pages: list[PageRow]) -> None:
        try:
            written = await self.store.write(Group([report for report, _ in reports], pages))
        except StoreUnavailableError as problem:
            self.unwritten = pages + self.unwritten
            self._write_soon()
            for _, done in reports:
                done.set_exception(problem)
            return
        for (_, done), outcome in zip(reports, written.outcomes, strict=True):
            done.set_result(outcome)

    # --- closing ---

    async def _close_on(self) -> None:
        while True:
            await asyncio.sleep(CLOSING)
            try:
                if self.leases:
                    await self._close()
            except StaleLeaseError:
                self.leases, self.folds = {}, {}
            except StoreUnavailableError:
                self.folds = {}  # it may have been published or not

    async def _close(self) -> None:
        assert self.offset is not None
        now = self.host.monotonic() + self.offset
        for context in await self.store.due(sorted(self.leases), 0, now):
            lease = self.leases.get(context % len(self.store.store.shards))
            if lease is not None:
                await self._close_context(lease, context, now - WINDOW_MS)

    async def _close_context(self, lease: Lease, context: int, through: int) -> None:
        through = await self.store.close_through(lease, context, through)
        old = await self._fold(lease, context)
        pages = await self.store.pages_between(context, 0 if old is None else old.through, through)
        if pages:
            new = folded(old, context, pages, through)
            await self.store.publish(lease, new, [])
            self.folds[context] = (lease, new)

    async def _fold(self, lease: Lease, context: int) -> Publication | None:
        """The newest knowledge: ours, if we made it under this lease, else what is published."""
        held = self.folds.get(context)
        if held is not None and held[0].epoch == lease.epoch:
            return held[1]
        found: Publication | None = await self.store.publication(context)
        return found

    # --- following ---

    async def _follow_on(self) -> None:
        while True:
            await self.store.wait(FOLLOWING)
            try:
                await self._follow()
            except StoreUnavailableError:
                continue

    async def _follow(self) -> None:
        await self.obey()
        for context, number in (await self.store.published(0)).items():
            if context not in self.known or self.known[context].number < number:
                self.take(context, await self.store.publication(context))

    def take(self, context: int, publication: Publication) -> None:
        if self.is_newer(publication, self.known.get(context)):
            self.known[context] = publication

    def is_newer(self, new: Publication, old: Publication | None) -> bool:
        return old is None or new.number > old.number
