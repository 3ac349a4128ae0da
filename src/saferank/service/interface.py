"""What the HTTP side asks of the engine: the only door between the two."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall, SettingsCall
from saferank.service.wire.effect_views import EffectView, OverviewView
from saferank.service.wire.problems import Problem
from saferank.service.wire.shadow_views import ShadowView
from saferank.service.wire.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges, SwitchView


class EngineInterface(Protocol):
    """Everything raises ``Problem`` for what the caller did wrong, and changes nothing then."""

    async def start(self) -> None:
        """Restore the state; afterwards calls are answered."""

    async def stop(self) -> None:
        """Flush and close; afterwards nothing may be called."""

    def not_ready(self) -> str | None:
        """Why the service cannot keep its promises at present (a disk that does not write), or None."""

    async def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show."""

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Record clicks; returns once they are on disk."""

    async def kill(self, tenant: str, context: str | None, on: bool, why: str) -> SwitchView:
        """Serve production's ranking from now on, in one context or (None) in all of the tenant; or end that."""

    async def kill_all_tenants(self, on: bool, why: str) -> SwitchView:
        """Serve production's ranking to all tenants from now on; or end that."""

    async def rollback(self, tenant: str, context: str, version: int, why: str) -> ContextView:
        """Back to an earlier leader."""

    async def reset(self, tenant: str, context: str, why: str, certificate_days: float | None = None) -> ContextView:
        """Forget everything that was learnt in a context; it takes the present terms of the settings."""

    async def set_context(self, tenant: str, context: str, call: SettingsCall) -> ContextView:
        """Give a context a mode and a holdout share of its own, or take them away."""

    async def overview(self, tenant: str) -> OverviewView:
        """All contexts at a glance."""

    async def contexts(self, tenant: str) -> ContextList:
        """All contexts."""

    async def context(self, tenant: str, name: str) -> ContextView:
        """One context."""

    async def effect(self, tenant: str, name: str | None) -> EffectView:
        """Served pages beside the holdout, in one context or (None) in all of the tenant."""

    async def shadow(self, tenant: str, name: str | None) -> ShadowView:
        """What shadow pages tell, of one context or (None) of all."""

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version (``7``) or a moment (RFC 3339); now if None."""

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All changes of the leader, with evidence."""

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The full story of a page."""

    def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """The log as JSON lines without line ends; Problem on the first step if the context is unknown."""

    def now(self) -> int:
        """The store's time in milliseconds, as far as this server knows it."""

    def counters(self) -> Mapping[str, float | Mapping[str, float]]:
        """What the metrics page shows: name (see metrics.py) -> value, or values by arm."""
