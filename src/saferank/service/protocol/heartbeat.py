"""The heartbeat of a server, and following what other servers publish and operators do."""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.protocol.contexts import Context, Contexts
from saferank.service.protocol.switches import Switches
from saferank.store.contract import Lease, OperationKind, OperationRow, Store, StoreError, StoreUnavailableError

# --- the heartbeat: the store's time, the lease of this server's freshness, its shards, and what operators did ---
# A server that has not heard from the store for ``freshness_seconds`` serves production's rankings. The lease is
# counted from before the heartbeat was sent, and begins only when every operation that the heartbeat tells of is
# obeyed. So the store's record of the lease ends later than the server's own, and a server that waits for it to run
# out is safe.
#
# A lease is only as good as the clock that measures it. The monotonic and the wall clock are compared all the time:
# when one of them has jumped since the last heartbeat, or has stood still, the server is not fresh and its time stands
# still until the next heartbeat has measured the store's time again. What must not be done early waits for that
# (``measured``).


BEAT_SECONDS = 1.0
MARGIN = 0.02
"""A server ends its lease by this share of it before the store does: clocks run at different speeds, and one may have
jumped by less than what is noticed."""
LONGEST_JUMP = 0.01
"""A clock that has jumped by more than this share of the lease is noticed."""
LARGEST_LEAP = 10.0
"""Seconds by which the store's clock may run ahead of both clocks of a server between two heartbeats: more than a call
may take. Beyond, the store's clock was set, and its time is not taken over: windows would be closed that are open. A
server that starts on a remote store has its wall clock alone to go by."""
MOST_AHEAD_MS = 1000
"""A server that finds itself ahead of the store's time by more than this goes back; otherwise its time stands still."""


class ClockReading(NamedTuple):
    """What a look at the clocks says."""

    now: int  # milliseconds of the store's clock; they do not go back, unless this server's clock was far ahead
    is_fresh: bool  # the store was heard from lately: otherwise somebody may have pulled a switch


class Heartbeat:
    """Keeps the lease of a server's freshness, the leases of its shards and the store's time."""

    def __init__(
        self,
        server: str,
        store: Store,
        clock: Clock,
        switches: Switches,
        freshness_seconds: float,
        read_keys: Callable[[], Awaitable[None]],
    ) -> None:
        self.server, self.switches, self._read_keys = server, switches, read_keys
        self.leases: dict[int, Lease] = {}  # by shard
        self.servers = 1
        self.failing: str | None = None
        self._store, self._clock, self._freshness = store, clock, freshness_seconds
        self._fresh_until = -math.inf  # by the monotonic clock
        self._offset = 0.0  # milliseconds of the store's clock at monotonic time 0
        self._apart = math.nan  # wall clock minus monotonic clock when the last heartbeat was sent
        self._now = 0
        self._heard: tuple[float, float, float] | None = None  # seconds of the store's, monotonic and wall clock

    def reading(self) -> ClockReading:
        """One look at the clocks."""
        monotonic = self._clock.monotonic()
        jumped = self._jumped(monotonic)
        if not jumped:
            self._now = max(self._now, int(self._offset + 1000 * monotonic))
        return ClockReading(self._now, not jumped and monotonic < self._fresh_until)

    def now(self) -> int:
        """Milliseconds of the store's clock."""
        return self.reading().now

    async def measured(self) -> int:
        """The store's time for what must not happen early: asked for again if the lease ran out or a clock jumped."""
        if not self.is_fresh():
            await self.beat()
        return self.now()

    def is_fresh(self) -> bool:
        """True while the store was heard from lately."""
        return self.reading().is_fresh

    def _jumped(self, monotonic: float) -> bool:
        """True when the two clocks have not advanced alike since the last heartbeat."""
        most, wall = LONGEST_JUMP * self._freshness, self._clock.wall()
        ahead = wall - monotonic - self._apart
        if ahead > most:  # or this process was not running between the two readings
            ahead = wall - self._clock.monotonic() - self._apart
        return abs(ahead) > most

    async def beat(self) -> None:
        """Tell the store that this server is alive, and learn what it must know; StoreUnavailableError."""
        while True:
            sent = self._clock.monotonic()
            apart = self._clock.wall() - sent
            acknowledged = self.switches.acknowledged
            beat = await self._store.heartbeat(self.server, acknowledged, round(1000 * self._freshness))
            self._check_leap(beat.now / 1000)
            self._measure(beat.now, sent)
            if beat.operations < acknowledged:  # a new one would get a number that is obeyed already
                raise StoreUnavailableError(
                    f"operation {acknowledged} is obeyed here, but the store has only {beat.operations}: it lost some. "
                    "Restore it, or restart all servers to go on without them"
                )
            if beat.operations > acknowledged:
                await self._obey(await self._store.operations(acknowledged))
            self.leases = {lease.shard: lease for lease in beat.leases}
            self.servers = beat.servers
            self._apart, self._fresh_until = apart, sent + (1 - MARGIN) * self._freshness
            if self.switches.acknowledged == acknowledged:
                return  # otherwise the server acknowledges at once: an operator may wait for it

    def _check_leap(self, store: float) -> None:
        """StoreUnavailableError when the store's clock has leapt ahead since it was heard last.

        The two clocks of this server say how long ago that was. One of them may have been set: the longer time counts.
        A server that starts on a remote store expects the time of its wall clock. The time of an embedded store is this
        machine's, and continues where it was when that clock is set back.
        """
        monotonic, wall = self._clock.monotonic(), self._clock.wall()
        heard = self._heard or (wall if self._store.is_remote else store, monotonic, wall)
        leap = store - heard[0] - max(monotonic - heard[1], wall - heard[2])
        if leap > LARGEST_LEAP:
            raise StoreUnavailableError(
                f"its clock has leapt ahead by {leap:.0f} s; no window is closed by that time. Set it right; if the "
                "new time is the right one, set the clocks of all servers and restart them"
            )
        self._heard = store, monotonic, wall

    def _measure(self, now: int, sent: float) -> None:
        """The store's clock said this at some moment since ``sent``."""
        received = self._clock.monotonic()
        self._offset = now - 1000 * received
        ahead = self._now - now - 1000 * max(0.0, received - sent)  # it may have been set back meanwhile
        if ahead > MOST_AHEAD_MS:
            log(logging.WARNING, "the clock of this server was ahead of the store's time", milliseconds=round(ahead))
            self._now = now

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
            await self._obey(operations)
            await self.beat()

    async def _obey(self, operations: Sequence[OperationRow]) -> None:
        if any(row.kind == OperationKind.KEYS for row in operations):
            await self._read_keys()
        self.switches.obey(operations)


# --- following: what other servers publish and what operators do is known here within a second, mostly at once ---


WAIT_SECONDS = 1.0


class Follower:
    """Keeps the contexts that are in use up to date."""

    def __init__(self, store: Store, heartbeat: Heartbeat, contexts: Contexts) -> None:
        self._store, self._heartbeat, self._contexts = store, heartbeat, contexts
        self._since = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            await self._store.wait(WAIT_SECONDS)
            await self.follow()

    async def follow(self) -> None:
        """Obey new operations, and read what was published of contexts that are in use and not held here."""
        await self._heartbeat.hear()
        now = self._heartbeat.now()
        for number, newest in (await self._store.published(self._since)).items():
            context = self._contexts.numbered(number)
            if context is not None and context.held_in < 0 and context.published < newest:
                try:
                    await self._read(context)
                except StoreError as problem:  # damage: the context stays as it is, others must not wait for it
                    log(logging.ERROR, "a publication cannot be read", context=context.row.name, detail=str(problem))
        self._since = now

    async def _read(self, context: Context) -> None:
        publication = await self._store.publication(context.number)
        if publication is None or publication.number <= context.published or context.held_in >= 0:
            return
        fold = await self._contexts.fold_of(context.row, publication)
        context.fold, context.published = fold, publication.number
        self._contexts.measure(context)
