"""The engine: one server of the service, without HTTP. All of it runs on one event loop, without locks.

``open_engine(settings)`` names the store, ``await engine.start()`` opens it, ``await engine.rank`` answers at once,
``await engine.feedback`` when the clicks are durable, ``await engine.stop()`` puts everything away. Every call raises
``Problem`` for what the caller did wrong, and changes nothing then.
"""

import math
from collections.abc import Mapping
from functools import partial

from saferank.service.calls.audit import Audit
from saferank.service.calls.effect import EffectQueries
from saferank.service.calls.feedback import Feedback
from saferank.service.calls.forget import Forgetting
from saferank.service.calls.operate import Operations
from saferank.service.calls.overview import Overview
from saferank.service.calls.rank import Ranking
from saferank.service.calls.summary import Summary
from saferank.service.clock import Clock, SystemClock
from saferank.service.json_logs import sign_lines
from saferank.service.knowledge.warm_up import warm_up
from saferank.service.protocol.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import ForgetCall
from saferank.service.wire.views import ForgetView
from saferank.statistics.effect import Interval
from saferank.store.contract import EVERYBODY, Store
from saferank.store.opening import is_shared, open_store

_ALONE = "alone"
"""The only server of an embedded store is the same one after a restart: it need not wait for its own lease to end."""


def open_engine(settings: Settings) -> "Engine":
    """An engine on the store that the settings name; it is opened by ``start``."""
    name = None if is_shared(settings.store) else _ALONE
    engine = Engine(settings, open_store(settings.store), SystemClock(), name)
    sign_lines(engine.server.name)
    return engine


class Engine:
    """The service without HTTP: its parts, put together."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, name: str | None = None) -> None:
        self.server = server = Server(settings, store, clock, name)
        looking, effects, audit = Overview(server), EffectQueries(server), Audit(server)
        acting = Operations(server, looking)
        self.stop, self.now, self.counters = server.stop, server.now, partial(_counters, server)
        # the loops, one step each
        self.beat, self.follow, self.flush = server.heartbeat.attempt, server.follower.follow, server.writer.flush
        self.close_due = partial(server.closer.close_due, everything=True)
        # the two calls
        self.rank, self.feedback = Ranking(server).rank, Feedback(server).feedback
        # operators
        self.kill, self.kill_all_tenants = acting.kill, partial(acting.kill, EVERYBODY, None)
        self.rollback, self.reset = acting.rollback, acting.reset
        self.set_context, self.set_traffic = acting.set_context, acting.set_traffic
        self.forgetting = Forgetting(store, clock, server.heartbeat)
        # readers
        self.overview = Summary(server, effects).overview
        self.contexts, self.context = looking.contexts, looking.context
        self.effect, self.shadow = effects.effect, effects.shadow
        self.leader_at, self.changes = audit.leader_at, audit.changes
        self.impression, self.export, self.export_bounds = audit.impression, audit.export, audit.export_bounds

    async def start(self, loops: bool = True) -> None:
        """Open the store, close what became due meanwhile, and begin; without loops, the caller drives them."""
        settings = self.server.settings
        prepare = partial(warm_up, settings.policy, settings.rule)
        await self.server.start(loops, prepare, [self.forgetting.run])

    def not_ready(self) -> str | None:
        """Why promises cannot be kept at present, or None."""
        if "leapt ahead" in (self.server.heartbeat.failing or ""):
            return "the store's clock has leapt ahead; the log of this server says what to do"
        if self.server.writer.failing is not None or self.server.heartbeat.failing is not None:
            return "the store does not take writes; the log of this server says why"
        return None if self.server.heartbeat.is_fresh() else "the store was not heard from lately"

    async def forget(self, tenant: str, call: ForgetCall) -> ForgetView:
        """Have the pages of a session or a source deleted."""
        return await self.forgetting.ask(tenant, call, self.server.session_key)


_COUNTED = (
    "pages_total", "pages_explored_total", "feedback_accepted_total", "feedback_duplicate_total", "feedback_late_total",
    "feedback_not_as_shown_total", "feedback_refused_total",
)  # fmt: skip


def _counters(server: Server) -> Mapping[str, float | Mapping[str, float]]:
    """What this process has counted since its start, and how things stand."""
    commits, closer = server.writer.counts, server.closer
    effect = server.guard.interval(server.now()) or Interval(math.nan, math.nan, math.nan)
    return {
        **{name: server.counts[name] for name in _COUNTED},
        "pages_closed_total": closer.closed,
        "pages_left_out_total": commits.left_out,
        **closer.arms,
        "pages_deleted_total": server.retention.deleted,
        "leader_changes_total": closer.versions,
        "alarms_total": server.counts["alarms_total"] + closer.alarms + server.guard.stops,
        "guardrail_stops_total": server.guard.stops,
        "effect_clicks": effect.estimate,
        "effect_clicks_low": effect.low,
        "effect_clicks_high": effect.high,
        "contexts": len(server.contexts),
        "kill_switches_on": server.switches.count,
        "servers": server.heartbeat.servers,
        "shards_held": len(server.heartbeat.leases),
        "fresh": server.heartbeat.is_fresh(),
        "pending_writes": server.writer.pending,
        "commits_total": commits.commits,
        "commit_failures_total": commits.failures,
        "committed_events_total": commits.rows,
        "commit_seconds_total": commits.seconds,
        "last_commit_events": commits.last_rows,
        "last_commit_seconds": commits.last_seconds,
    }
