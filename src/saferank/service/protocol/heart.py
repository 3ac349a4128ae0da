"""The heartbeat: the store's time, the lease of this server's freshness, its shards, and what operators did.

A server that has not heard from the store for ``freshness_seconds`` serves production's rankings. The lease is counted
from before the heartbeat was sent, and begins only when every operation that the heartbeat tells of is obeyed. So the
store's record of the lease ends later than the server's own, and whoever waits for it to run out is safe.
"""

import logging
import math

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.protocol.switches import Switches
from saferank.store.contract import Lease, Store, StoreUnavailableError

BEAT_SECONDS = 1.0
MARGIN = 0.02
"""A server ends its lease by this share of it before the store does: two clocks run at different speeds."""


class Heart:
    """The life of a server as its store sees it."""

    def __init__(self, server: str, store: Store, clock: Clock, switches: Switches, freshness_seconds: float) -> None:
        self.server, self.switches = server, switches
        self.leases: dict[int, Lease] = {}  # by shard
        self.servers = 1
        self.failing: str | None = None
        self._store, self._clock, self._freshness = store, clock, freshness_seconds
        self._fresh_until = -math.inf  # by the monotonic clock
        self._offset = 0.0  # milliseconds of the store's clock at monotonic time 0
        self._now = 0

    def now(self) -> int:
        """Milliseconds of the store's clock. They never go back."""
        self._now = max(self._now, int(self._offset + 1000 * self._clock.monotonic()))
        return self._now

    def is_fresh(self) -> bool:
        """True while the store was heard from lately: otherwise somebody may have pulled a switch."""
        return self._clock.monotonic() < self._fresh_until

    async def beat(self) -> None:
        """Tell the store that this server is alive, and learn what it must know; StoreUnavailableError."""
        while True:
            sent = self._clock.monotonic()
            acknowledged = self.switches.acknowledged
            beat = await self._store.heartbeat(self.server, acknowledged, round(1000 * self._freshness))
            self._offset = beat.now - 1000 * self._clock.monotonic()
            if beat.operations > acknowledged:
                self.switches.obey(await self._store.operations(acknowledged))
            self.leases = {lease.shard: lease for lease in beat.leases}
            self.servers = beat.servers
            self._fresh_until = max(self._fresh_until, sent + (1 - MARGIN) * self._freshness)
            if self.switches.acknowledged == acknowledged:
                return  # otherwise whoever waits for the acknowledgement gets it at once

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await self.attempt()
            await self._clock.sleep(BEAT_SECONDS)

    async def attempt(self) -> None:
        """Beat once; a store that does not answer is logged and tried again."""
        try:
            await self.beat()
        except StoreUnavailableError as problem:
            if self.failing is None:
                log(logging.ERROR, "the store does not answer; trying again", detail=str(problem))
            self.failing = str(problem)
        else:
            if self.failing is not None:
                log(logging.WARNING, "the store answers again")
            self.failing = None

    async def hear(self) -> None:
        """Obey operations that were added since the last heartbeat, and acknowledge them."""
        operations = await self._store.operations(self.switches.acknowledged)
        if operations:
            self.switches.obey(operations)
            await self.beat()
