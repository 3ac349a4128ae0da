"""The engine: one server of the service, without HTTP. All of it runs on one event loop, without locks.

``open_engine(settings)`` names the store, ``await engine.start()`` opens it, ``await engine.rank`` answers at once,
``await engine.feedback`` when the clicks are durable, ``await engine.stop()`` puts everything away.
"""

from collections.abc import AsyncIterator, Mapping

from saferank.service.clock import Clock, SystemClock
from saferank.service.commands.feedback import Feedback
from saferank.service.commands.operations import Operations
from saferank.service.commands.ranking import Ranking
from saferank.service.knowledge.warm_up import warm_up
from saferank.service.protocol.server import Server
from saferank.service.queries.all_contexts.standings import Standings
from saferank.service.queries.all_contexts.summary import Summary
from saferank.service.queries.audit import Audit
from saferank.service.queries.counters import counters
from saferank.service.queries.effect import EffectQueries
from saferank.service.queries.overview import Overview
from saferank.service.queries.shadow import Shadow
from saferank.service.settings import Settings, is_shared
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall, SettingsCall
from saferank.service.wire.effect_views import EffectView, OverviewView
from saferank.service.wire.problems import Problem
from saferank.service.wire.shadow_views import ShadowView
from saferank.service.wire.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges, SwitchView
from saferank.store.contract import EVERYBODY, Store
from saferank.store.opening import open_store

_ALONE = "alone"
"""The only server of an embedded store is the same one after a restart: it need not wait for its own lease to end."""


def open_engine(settings: Settings) -> "Engine":
    """An engine on the store that the settings name; it is opened by ``start``."""
    name = None if is_shared(settings.store) else _ALONE
    return Engine(settings, open_store(settings.store), SystemClock(), name)


class Engine:
    """The service without HTTP (``EngineInterface``)."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, name: str | None = None) -> None:
        self.server = Server(settings, store, clock, name)
        self._ranking, self._feedback = Ranking(self.server), Feedback(self.server)
        standings = Standings(self.server)
        self._operations, self._overview = Operations(self.server), Overview(self.server, standings)
        self._effect, self._shadow = EffectQueries(self.server, standings), Shadow(self.server)
        self._audit, self._summary = Audit(self.server), Summary(self.server, standings, self._effect)

    async def start(self, loops: bool = True) -> None:
        """Open the store, close what became due meanwhile, and begin; without loops, the caller drives them."""
        settings = self.server.settings
        await self.server.start(loops, prepare=lambda: warm_up(settings.policy, settings.rule))

    async def stop(self) -> None:
        """Close what is due, write everything, publish, and leave."""
        await self.server.stop()

    def not_ready(self) -> str | None:
        """Why promises cannot be kept at present, or None."""
        failing = self.server.writer.failing or self.server.heart.failing
        if failing is not None:
            return f"the store does not take writes: {failing}"
        return None if self.server.heart.is_fresh() else "the store was not heard from lately"

    # --- the loops, one step each ---

    async def beat(self) -> None:
        """A heartbeat."""
        await self.server.heart.attempt()

    async def close_due(self) -> None:
        """Close and fold what is due, and publish everything."""
        await self.server.closer.close_due(everything=True)

    async def follow(self) -> None:
        """Read what others published."""
        await self.server.follower.follow()

    async def flush(self) -> None:
        """Write what waits."""
        await self.server.writer.flush()

    # --- the two calls ---

    async def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show."""
        return await self._ranking.rank(tenant, call)

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Record clicks; returns once they are durable."""
        return await self._feedback.feedback(tenant, calls)

    # --- operators ---

    async def kill(self, tenant: str, context: str | None, on: bool, why: str) -> SwitchView:
        """Serve production's ranking from now on, in one context or (None) in all of the tenant; or end that."""
        return await self._operations.kill(tenant, context, on, why)

    async def kill_all_tenants(self, on: bool, why: str) -> SwitchView:
        """Serve production's ranking to all tenants from now on; or end that."""
        return await self._operations.kill(EVERYBODY, None, on, why)

    async def rollback(self, tenant: str, context: str, version: int, why: str) -> ContextView:
        """Back to an earlier leader."""
        await self._operations.rollback(tenant, context, version, why)
        return await self._overview.context(tenant, context)

    async def reset(self, tenant: str, context: str, why: str, certificate_days: float | None = None) -> ContextView:
        """Forget everything that was learnt in a context; it takes the present terms of the settings."""
        await self._operations.reset(tenant, context, why, certificate_days)
        return await self._overview.context(tenant, context)

    async def set_context(self, tenant: str, context: str, call: SettingsCall) -> ContextView:
        """Give a context a mode and a holdout share of its own, or take them away."""
        await self._operations.set_context(tenant, context, call)
        return await self._overview.context(tenant, context)

    # --- readers ---

    async def overview(self, tenant: str) -> OverviewView:
        """All contexts at a glance."""
        return await self._summary.overview(tenant)

    async def contexts(self, tenant: str) -> ContextList:
        """All contexts."""
        return await self._overview.contexts(tenant)

    async def context(self, tenant: str, name: str) -> ContextView:
        """One context."""
        return await self._overview.context(tenant, name)

    async def effect(self, tenant: str, name: str | None) -> EffectView:
        """Served pages beside the holdout, in one context or (None) in all of the tenant."""
        return await (self._effect.everything(tenant) if name is None else self._effect.context(tenant, name))

    async def shadow(self, tenant: str, name: str | None) -> ShadowView:
        """What shadow pages tell, of one context or (None) of all."""
        return await (self._shadow.everywhere(tenant) if name is None else self._shadow.context(tenant, name))

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version or a moment; now if None."""
        return await self._audit.leader_at(tenant, name, at)

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All changes of the leader, with evidence."""
        return await self._audit.changes(tenant, name)

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The full story of a page."""
        return await self._audit.impression(tenant, impression_id)

    def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """The log as JSON lines."""
        return self._audit.export(tenant, context, since)

    def now(self) -> int:
        """The store's time in milliseconds, as far as this server knows it."""
        return self.server.now()

    def counters(self) -> Mapping[str, float | Mapping[str, float]]:
        """What the metrics page shows."""
        return counters(self.server)
