"""The server: its parts, its loops and the calls that it answers, put together here. HTTP stands before it.

``new_server(settings)`` names the store, ``await server.start()`` opens it, ``await server.rank`` answers at once,
``await server.feedback`` when the clicks are durable, ``await server.stop()`` puts everything away. Every call raises
``Problem`` for what the caller did wrong, and changes nothing then; StoreUnavailableError while the store does not
answer. All of it runs on one event loop, without locks.

Parts know each other only as far as their arguments say. Calls share much, so they are given the server; they name its
type alone, and nothing else imports it but what stands before it.
"""

import asyncio
import json
import logging
import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from saferank._version import __version__
from saferank.service import limits
from saferank.service.calls import audit, effect, feedback, operate, overview, rank
from saferank.service.calls.forget import Forgetting
from saferank.service.calls.summary import Summary
from saferank.service.clock import Clock, SystemClock
from saferank.service.identifiers import TOKEN_KEYS, Ids, Tokens, tokens_of
from saferank.service.json_logs import log, sign_lines
from saferank.service.knowledge.arms import DAY_MS, ComparedArms, waits_for_traffic
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.view import Catalogues, Views
from saferank.service.knowledge.warm_up import warm_up
from saferank.service.protocol.all_contexts import AllContexts, Guard
from saferank.service.protocol.closer import Closer
from saferank.service.protocol.contexts import Context, Contexts, Limits
from saferank.service.protocol.heartbeat import Follower, Heartbeat
from saferank.service.protocol.retention import Retention
from saferank.service.protocol.switches import Release, Switches
from saferank.service.protocol.writer import Writer
from saferank.service.settings import Settings, masked
from saferank.service.wire.calls import ForgetCall
from saferank.service.wire.problems import Problem
from saferank.service.wire.views import ForgetView, SwitchView
from saferank.statistics.effect import Interval
from saferank.store.contract import ALL_TENANTS, AlarmRow, OperationKind, Store, StoreError, StoreUnavailableError
from saferank.store.opening import is_shared, open_store
from saferank.store.page_record import SERVER_SIZE

_ALONE = "alone"
"""The only server of an embedded store is the same one after a restart: it need not wait for its own lease to end."""


_COUNTED = (
    "pages_total", "pages_explored_total", "feedback_accepted_total", "feedback_duplicate_total", "feedback_late_total",
    "feedback_not_as_shown_total", "feedback_refused_total",
)  # fmt: skip


def new_server(settings: Settings) -> "Server":
    """A server on the store that the settings name; it is opened by ``start``."""
    name = None if is_shared(settings.store) else _ALONE
    server = Server(settings, open_store(settings.store), SystemClock(), name)
    sign_lines(server.name)
    return server


class Server:
    """A server on a store that others may share."""

    tokens: Tokens
    session_key: bytes

    # the calls are functions of a server, each in the module of its subject
    rank, feedback = rank.rank, feedback.feedback
    list_contexts, show_context = overview.list_contexts, overview.show_context
    effect, shadow = effect.effect, effect.shadow
    leader_at, changes, impression = audit.leader_at, audit.changes, audit.impression
    export, export_bounds = audit.export, audit.export_bounds
    kill, rollback, reset = operate.kill, operate.rollback, operate.reset
    set_context, set_traffic = operate.set_context, operate.set_traffic

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
        self.follower = Follower(store, self.heartbeat, self.contexts)
        self.retention = Retention(store, clock, self.heartbeat, settings.keep_days)
        self.forgetting = Forgetting(store, clock, self.heartbeat)
        self._alarms: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self.overview = Summary(self).overview

    @property
    def window_ms(self) -> int:
        """How long pages of new contexts are open."""
        return max(1, round(self.settings.window_seconds * 1000))

    def waits_for_traffic(self, compared: ComparedArms, terms: Terms) -> bool:
        """True while a context has too few clicks to learn from (least_traffic): it gets production's ranking."""
        least = self.settings.least_traffic
        return least > 0 and waits_for_traffic(compared.days, self.now() // DAY_MS, terms.lifetime_ms, least)

    async def start(self, loops: bool = True) -> None:
        """Open the store, say that this server is there, and begin; StoreError says why not.

        Without loops, the caller drives them. To warm up may take minutes: it is done once it is known that the store
        can be used, and before others count on this server.
        """
        await self.store.open()
        try:
            warm_up(self.settings.policy, self.settings.rule)
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
            parts = (self.heartbeat, self.writer, self.closer, self.follower, self.retention, self.forgetting)
            self._loops = [asyncio.create_task(self._guarded(part.run)) for part in parts]

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
            await self.store.add_operation(ALL_TENANTS, 0, OperationKind.RELEASE, json.dumps(release._asdict()))
            await self.heartbeat.hear()

    async def _guarded(self, run: Callable[[], Awaitable[None]]) -> None:
        """A loop must not end: whatever went wrong is logged, and it begins again."""
        while True:
            try:
                await run()
            except StoreUnavailableError:
                pass  # the heartbeat says so
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

    async def settle(self) -> None:
        """Have everything written that was answered by now; StoreUnavailableError when the store does not take it."""
        await self.writer.flush()
        for task in list(self._alarms):
            await task

    def not_ready(self) -> str | None:
        """Why promises cannot be kept at present, or None."""
        if "leapt ahead" in (self.heartbeat.failing or ""):
            return "the store's clock has leapt ahead; the log of this server says what to do"
        if self.writer.failing is not None or self.heartbeat.failing is not None:
            return "the store does not take writes; the log of this server says why"
        return None if self.heartbeat.is_fresh() else "the store was not heard from lately"

    async def kill_all_tenants(self, on: bool, why: str) -> SwitchView:
        """Turn the switch of all tenants."""
        return await self.kill(ALL_TENANTS, None, on, why)

    async def forget(self, tenant: str, call: ForgetCall) -> ForgetView:
        """Have the pages of a session or a source deleted."""
        return await self.forgetting.ask(tenant, call, self.session_key)

    def counters(self) -> Mapping[str, float | Mapping[str, float]]:
        """What this process has counted since its start, and how things stand."""
        commits, closer = self.writer.counts, self.closer
        effect = self.guard.interval(self.now()) or Interval(math.nan, math.nan, math.nan)
        return {
            **{name: self.counts[name] for name in _COUNTED},
            "pages_closed_total": closer.closed,
            "pages_left_out_total": commits.left_out,
            **closer.arms,
            "pages_deleted_total": self.retention.deleted,
            "leader_changes_total": closer.versions,
            "alarms_total": self.counts["alarms_total"] + closer.alarms + self.guard.stops,
            "guardrail_stops_total": self.guard.stops,
            "effect_clicks": effect.estimate,
            "effect_clicks_low": effect.low,
            "effect_clicks_high": effect.high,
            "contexts": len(self.contexts),
            "kill_switches_on": self.switches.count,
            "servers": self.heartbeat.servers,
            "shards_held": len(self.heartbeat.leases),
            "fresh": self.heartbeat.is_fresh(),
            "pending_writes": self.writer.pending,
            "commits_total": commits.commits,
            "commit_failures_total": commits.failures,
            "committed_events_total": commits.rows,
            "commit_seconds_total": commits.seconds,
            "last_commit_events": commits.last_rows,
            "last_commit_seconds": commits.last_seconds,
        }
