"""What the HTTP side asks of the engine: the only door between the two."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from saferank.service.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.problems import Problem
from saferank.service.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges, SwitchView


class EngineInterface(Protocol):
    """Everything raises ``Problem`` for what the caller did wrong, and changes nothing then."""

    async def start(self) -> None:
        """Restore the state; afterwards calls are answered."""

    async def stop(self) -> None:
        """Flush and close; afterwards nothing may be called."""

    def not_ready(self) -> str | None:
        """Why the service cannot keep its promises at present (a disk that does not write), or None."""

    def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show. Runs on the event loop and awaits nothing."""

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Record clicks; returns once they are on disk."""

    async def kill(self, tenant: str, context: str | None, on: bool, why: str) -> SwitchView:
        """Serve production's ranking from now on, in one context or (None) in all of the tenant; or end that."""

    async def rollback(self, tenant: str, context: str, version: int, why: str) -> ContextView:
        """Back to an earlier leader."""

    def contexts(self, tenant: str) -> ContextList:
        """All contexts."""

    def context(self, tenant: str, name: str) -> ContextView:
        """One context."""

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version (``7``) or a moment (RFC 3339); now if None."""

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All changes of the leader, with evidence."""

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The full story of a page."""

    def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """The log as JSON lines without line ends; Problem on the first step if the context is unknown."""

    def counters(self) -> Mapping[str, float]:
        """What the metrics page shows: name (see metrics.py) -> value."""
