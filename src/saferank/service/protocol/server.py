"""One server: everything that its calls share, and its loops."""

import asyncio
import functools
import json
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from saferank._version import __version__
from saferank.service import limits
from saferank.service.clock import Clock
from saferank.service.identifiers import Ids, Visitor, traffic_draw
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import DAY_MS, ComparedArms, waits_for_traffic
from saferank.service.knowledge.catalogues import Catalogues
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.view import Views
from saferank.service.protocol.all_contexts import AllContexts
from saferank.service.protocol.closer import Closer
from saferank.service.protocol.contexts import Context, Contexts, Limits
from saferank.service.protocol.guard import Guard
from saferank.service.protocol.heartbeat import Follower, Heartbeat
from saferank.service.protocol.retention import Retention
from saferank.service.protocol.switches import Release, Switches
from saferank.service.protocol.writer import Writer
from saferank.service.settings import Settings, masked
from saferank.service.tokens import TOKEN_KEYS, Tokens, tokens_of
from saferank.service.wire.calls import Mode
from saferank.service.wire.problems import Problem
from saferank.service.wire.views import TrafficView
from saferank.store.contract import EVERYBODY, AlarmRow, OperationKind, Store, StoreError, StoreUnavailableError
from saferank.store.page_record import SERVER_SIZE

P = ParamSpec("P")
T = TypeVar("T")


def while_available(call: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A call whose caller is told so (Problem 503) when the store does not answer."""

    @functools.wraps(call)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await call(*args, **kwargs)
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem

    return answered


def unavailable(problem: StoreUnavailableError | StoreError) -> Problem:
    """What a caller is told while the store does not answer: not where it is and who uses it."""
    log(logging.WARNING, "a call was refused: the store does not answer", detail=str(problem))
    return Problem(503, "Not available", "the store does not answer at present; try again", retry_after=1)


class Server:
    """A server on a store that others may share."""

    tokens: Tokens
    session_key: bytes

    def __init__(self, settings: Settings, store: Store, clock: Clock, name: str | None = None) -> None:
        self.settings, self.store, self.clock = settings, store, clock
        self.run = secrets.token_bytes(SERVER_SIZE)  # whose pages are numbered without gaps
        self.name = name or self.run.hex()
        self.switches, self.catalogues, self.ids = Switches(), Catalogues(), Ids()
        self.counts: Counter[str] = Counter()
        self.reports: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by tenant: what became of them
        self.refusals: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of reports, by tenant and reason
        self.issued = 0  # pages of this run
        self.simulated: str | None = None  # of a demo: what is, in a sentence
        freshness = settings.freshness_seconds
        self.heartbeat = Heartbeat(self.name, store, clock, self.switches, freshness, self._read_token_keys)
        self.now = self.heartbeat.now  # the store's time
        self.writer = Writer(store, clock, self.catalogues, limits.MAX_PENDING)
        memory = settings.max_loaded_mb * 1_000_000
        self.views = Views()
        largest = Limits(limits.MAX_LOADED_CONTEXTS, memory - memory // 4)
        self.contexts = Contexts(store, self.catalogues, largest, self.views.forget)
        self.all_contexts = AllContexts(store, clock, self.heartbeat, self.contexts)
        self.guard = Guard(settings, store, self.heartbeat, self.all_contexts)
        self.closer = Closer(store, clock, self.heartbeat, self.contexts, self.writer, self.guard)
        self.follower = Follower(store, clock, self.heartbeat, self.contexts)
        self.retention = Retention(store, clock, self.heartbeat, settings.keep_days)
        self._alarms: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    @property
    def window_ms(self) -> int:
        """How long pages of new contexts are open."""
        return max(1, round(self.settings.window_seconds * 1000))

    def mode(self, context: int) -> Mode:
        """What calls for a context get that name no mode."""
        return self.switches.settings(context).mode or self.settings.mode

    def holdout_share(self, context: int) -> float:
        """Share of a context's pages that are production's, to compare with."""
        own = self.switches.settings(context).holdout_share
        return self.settings.holdout_share if own is None else own

    def traffic(self, tenant: str) -> TrafficView:
        """The share of a tenant's visitors whose pages the policy may choose: as an operator or the settings say."""
        return self.switches.traffic.get(tenant) or TrafficView(share=self.settings.traffic_share)

    def is_chosen_for(self, tenant: str, who: Visitor) -> bool:
        """True when the policy may choose the pages of a visitor: one who is in a share is in every larger one."""
        share = self.traffic(tenant).share
        return share >= 1.0 or traffic_draw(self.session_key, who, tenant) < share

    def waits_for_traffic(self, compared: ComparedArms, terms: Terms) -> bool:
        """True while a context has too few clicks to learn from (least_traffic): it gets production's ranking."""
        least = self.settings.least_traffic
        return least > 0 and waits_for_traffic(compared.days, self.now() // DAY_MS, terms.lifetime_ms, least)

    async def start(
        self,
        loops: bool = True,
        prepare: Callable[[], None] = lambda: None,
        others: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """Open the store, prepare, say that this server is there, and begin; StoreError says why not.

        ``prepare`` may take minutes. It runs once it is known that the store can be used, and before others count on
        this server. ``others`` are loops besides the server's own.
        """
        await self.store.open()
        try:
            prepare()
            await self._begin()
            if not loops:
                await self.closer.close_due()  # otherwise its loop begins with that, while calls are answered
        except BaseException as problem:
            with suppress(StoreError, StoreUnavailableError):
                await self.store.leave(self.name)  # it may have been heard: no other server must wait for it
            await self.store.close()
            if isinstance(problem, StoreUnavailableError):
                raise StoreError(f"{masked(self.settings.store)}: cannot be used now: {problem}") from problem
            raise
        if loops:
            parts = (self.heartbeat, self.writer, self.closer, self.follower, self.retention)
            self._loops = [asyncio.create_task(self._guarded(run)) for run in (*(part.run for part in parts), *others)]

    async def _begin(self) -> None:
        key = await self.store.meta("session_key")
        if key is None:
            raise StoreError(f"{masked(self.settings.store)}: has no session key; it was not made by a service")
        self.session_key = key
        await self._read_token_keys()
        await self.heartbeat.beat()
        await self._note_release()
        for sentence in self.settings.unknowable:
            log(logging.WARNING, sentence)

    async def _read_token_keys(self) -> None:
        self.tokens = tokens_of(await self.store.meta(TOKEN_KEYS))

    async def _note_release(self) -> None:
        """Write down what this server runs, if the last start was of something else: pictures over time mark it."""
        release = Release(__version__, self.settings.policy, self.settings.rule)
        if self.switches.release != release:
            await self.store.add_operation(EVERYBODY, 0, OperationKind.RELEASE, json.dumps(release._asdict()))
            await self.heartbeat.hear()

    async def _guarded(self, run: Callable[[], Awaitable[None]]) -> None:
        """A loop must not end: whatever went wrong is logged, and it begins again."""
        while True:
            try:
                await run()
            except Exception as problem:
                log(logging.ERROR, "a background task failed; it begins again", error=problem)
                await self.clock.sleep(1.0)

    async def stop(self) -> None:
        """Close due windows, write and publish everything, and leave."""
        for loop in self._loops:
            loop.cancel()
        for loop in self._loops:
            with suppress(asyncio.CancelledError):
                await loop
        try:
            await self.writer.flush()
            await self.closer.close_due(everything=True)
            await self.store.leave(self.name)
        except StoreUnavailableError as problem:
            raise StoreError(f"{masked(self.settings.store)}: did not take the last writes: {problem}") from problem
        finally:
            await self.store.close()

    @while_available
    async def known_context(self, tenant: str, name: str) -> Context:
        """A context by name; Problem 404 for an unknown one."""
        context = await self.contexts.find(tenant, name)
        if context is None:
            raise Problem(404, "Unknown context", f"there is no context {name!r}; rank opens one", "context")
        return context

    def alarm(self, kind: str, context: Context, detail: str) -> None:
        """Something that must not happen: counted, logged for the operator, and written."""
        self.counts["alarms_total"] += 1
        log(logging.ERROR, "alarm", kind=kind, tenant=context.row.tenant, context=context.row.name, detail=detail)
        task = asyncio.ensure_future(self._write_alarm(AlarmRow(self.now(), context.number, kind, detail)))
        self._alarms.add(task)
        task.add_done_callback(self._alarms.discard)

    async def _write_alarm(self, alarm: AlarmRow) -> None:
        with suppress(StoreUnavailableError):  # it is in the logs
            await self.store.add_alarm(alarm)

    @while_available
    async def settle(self) -> None:
        """Have everything written that was answered by now; Problem 503 when the store does not take it."""
        await self.writer.flush()
        for task in list(self._alarms):
            await task
