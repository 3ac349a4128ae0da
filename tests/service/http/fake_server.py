"""A server without a memory: for tests of the HTTP side alone."""

from collections.abc import AsyncIterator, Mapping

from saferank.service.calls.effect import shadow_view
from saferank.service.calls.export import EVERYTHING, Bounds
from saferank.service.http.metrics import SERVER_METRICS
from saferank.service.knowledge.arms import ShadowCounts
from saferank.service.settings import Settings
from saferank.service.wire.calls import (
    FeedbackAnswer,
    FeedbackCall,
    PageNotes,
    RankAnswer,
    RankCall,
    Safety,
    SettingsCall,
    TrafficCall,
    milliseconds,
)
from saferank.service.wire.exports import Facts
from saferank.service.wire.problems import Problem
from saferank.service.wire.views import (
    ArmView,
    ContextList,
    ContextView,
    EffectView,
    ExploringView,
    FeedbackHealthView,
    FunnelView,
    ImpressionView,
    LeaderAt,
    LeaderChange,
    LeaderChanges,
    OverviewView,
    SafetyView,
    ShadowView,
    SwitchView,
    TrafficView,
)

NOW = "2026-03-01T12:00:00.000Z"
LATER = "2026-03-01T12:30:00.000Z"


class FakeServer:
    """Shows production's ranking; accepts clicks on it for tokens that say which items they are for."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.seen: list[tuple[str, object]] = []
        self.reason: str | None = None
        self.fault: Exception | None = None

    async def start(self) -> None: ...

    async def stop(self) -> None:
        self.seen.append(("stop", None))

    def not_ready(self) -> str | None:
        return self.reason

    async def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        self._note(tenant, call)
        shown = call.base_ranking[: call.k]
        return RankAnswer(
            impression_id="page", token="token:" + ",".join(shown), ranking=shown, leader_version=0, closes_at=LATER,
            mode=call.mode or "live", safety=Safety(swaps=0, explored=None, allowance_ok=True),
            explanation=PageNotes(text="", arm="off", positions=[]),
        )  # fmt: skip

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        self._note(tenant, calls)
        return [self._one(call) for call in calls]

    def _one(self, call: FeedbackCall) -> FeedbackAnswer | Problem:
        if call.token is None:
            return Problem(404, "Unknown impression", f"there is no page {call.impression_id!r}", "impression_id")
        if not call.token.startswith("token:"):
            return Problem(401, "Bad token", "this token was not signed here", "token")
        for place, item in enumerate(call.clicks):
            if item not in call.token.removeprefix("token:").split(","):
                return Problem(422, "Item not shown", f"{item!r} was not on this page", f"clicks[{place}]")
        return FeedbackAnswer(accepted=True, duplicate=False, late=False, state="open", closes_at=LATER)

    async def kill(self, tenant: str, context: str | None, on: bool, why: str) -> SwitchView:
        self._note(tenant, (context, on, why))
        if context is not None:
            await self.show_context(tenant, context)
        return SwitchView(on=on, since=NOW, why=why)

    async def kill_all_tenants(self, on: bool, why: str) -> SwitchView:
        self._note("", (on, why))
        return SwitchView(on=on, since=NOW, why=why, by_operator=True)

    async def rollback(self, tenant: str, context: str, version: int, why: str) -> ContextView:
        return await self.show_context(tenant, context)

    async def reset(
        self, tenant: str, context: str, why: str, certificate_days: float | None = None, trust: float | None = None
    ) -> ContextView:
        self._note(tenant, (why, certificate_days, trust))
        return await self.show_context(tenant, context)

    async def set_context(self, tenant: str, context: str, call: SettingsCall) -> ContextView:
        self._note(tenant, call)
        return await self.show_context(tenant, context)

    async def set_traffic(self, tenant: str, call: TrafficCall) -> TrafficView:
        self._note(tenant, call)
        return TrafficView(share=call.share, since=NOW, why=call.why)

    async def overview(self, tenant: str) -> OverviewView:
        self._note(tenant, None)
        nothing = ArmView(pages=0, clicked_pages=0, clicks=0)
        return OverviewView(
            sentence="Nothing yet.", now=NOW, mode="live", policy="original", traffic=TrafficView(share=1.0),
            unknowable=[], pages=0, served_share=None,
            safety=SafetyView(checked=0, over_limit=0, worst_page=None), servers=[],
            exploring=ExploringView(proven=None, learning=None),
            effect=EffectView(served=nothing, holdout=nothing, error=0.05), bins=[], markers=[],
            funnel=FunnelView(
                contexts=0, with_evidence=0, changed_by_clicks=0, stopped=0, waiting=0, undecided_for_long=0
            ),
            changes=[], alarms=[], killed_everywhere=SwitchView(on=False),
            feedback=FeedbackHealthView(
                closed_pages=0, clicked_pages=0, accepted=0, duplicate=0, late=0, refused={}
            ),
        )  # fmt: skip

    async def list_contexts(self, tenant: str) -> ContextList:
        self._note(tenant, None)
        return ContextList(contexts=[], killed_everywhere=SwitchView(on=False))

    async def show_context(self, tenant: str, name: str) -> ContextView:
        self._note(tenant, name)
        if name.startswith("unknown"):
            raise Problem(404, "Unknown context", f"there is no context {name!r}", "context")
        return ContextView(
            name=name, k=1, policy="original", rule="paper:1e-5", window_seconds=1800, mode="live", leader_version=0,
            leader=["a"], base_ranking=["a"], candidates=[], pairs=[], versions=[], pages=0, open_pages=0, arms={},
            killed=SwitchView(on=False), killed_everywhere=SwitchView(on=False), certificate_days=14.0,
            trust=0.977, waiting=False, alarms={},
        )  # fmt: skip

    async def effect(self, tenant: str, name: str | None) -> EffectView:
        self._note(tenant, name)
        if name is not None:
            await self.show_context(tenant, name)
        none = ArmView(pages=0, clicked_pages=0, clicks=0)
        return EffectView(served=none, holdout=none, error=0.05, why_not="no page is held out")

    async def shadow(self, tenant: str, name: str | None) -> ShadowView:
        if name is not None:
            await self.show_context(tenant, name)
        return shadow_view(ShadowCounts())

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        await self.show_context(tenant, name)
        return LeaderAt(context=name, version=0, leader=["a"], since=NOW)

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        await self.show_context(tenant, name)
        return LeaderChanges(context=name, changes=[LeaderChange(version=0, leader=["a"], at=NOW, cause="opened")])

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        self._note(tenant, impression_id)
        raise Problem(404, "Unknown impression", f"there is no page {impression_id!r}", "impression_id")

    async def export_bounds(self, tenant: str, cursor: str | None) -> Bounds:
        return Bounds() if cursor is None else Bounds(1, 7)

    async def export(self, tenant: str, context: str | None, bounds: Bounds = EVERYTHING) -> AsyncIterator[Facts]:
        if context is not None:
            await self.show_context(tenant, context)
        for seq in range(max(0, bounds.after), 3):
            yield {"seq": seq}

    def now(self) -> int:
        return milliseconds(NOW)

    def counters(self) -> Mapping[str, float | Mapping[str, float]]:
        return {name: {"explore": 1.0} if name.startswith("arm_") else 1.0 for name in SERVER_METRICS}

    def _note(self, tenant: str, what: object) -> None:
        if self.fault is not None:
            raise self.fault
        self.seen.append((tenant, what))
