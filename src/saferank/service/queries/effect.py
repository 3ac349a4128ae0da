"""Served pages beside the holdout: intervals that hold at every look, and how far the guardrail is from stopping."""

import math
from collections.abc import Sequence

from saferank.service.clock import moment
from saferank.service.knowledge.arms.compared_arms import NO_PAGES, Outcomes
from saferank.service.knowledge.arms.guardrails import context_guardrail, tenant_guardrail
from saferank.service.protocol.effects import EFFECT_ERROR
from saferank.service.protocol.server import Server, unavailable
from saferank.service.protocol.switches import Switch
from saferank.service.queries.all_contexts.standings import Standing, Standings
from saferank.service.wire.effect_views import EffectView, GuardrailView, IntervalView
from saferank.service.wire.views import ArmView
from saferank.statistics.effect import ArmComparison, Guardrail, Interval, difference, merged, relative_difference
from saferank.store.contract import ContextRow, StoreUnavailableError

Contexts = Sequence[tuple[ContextRow, Standing]]


class EffectQueries:
    """Reads the comparisons of contexts: what is in memory here, and what was published of the rest."""

    def __init__(self, server: Server, standings: Standings) -> None:
        self._server, self._standings = server, standings

    async def context(self, tenant: str, name: str) -> EffectView:
        """One context, since it was opened or switched on again after a stop of the guardrail."""
        server, context = self._server, await self._server.known_context(tenant, name)
        settings, compared = server.settings, context.fold.compared
        pending = server.switches.restarts(context.row, context.fold.operation)
        outcomes = NO_PAGES if pending else compared.now
        rule = None
        number, guardrail = context.number, server.switches.guardrail
        drop, error = guardrail(number, settings.guardrail_drop, settings.guardrail_error)
        if drop:
            rule = context_guardrail(drop, error, number, compared.most)
        switch, share = server.switches.switch(tenant, context.number), server.holdout_share(context.number)
        return self._view(outcomes, compared.most, rule, switch, share)

    async def everything(self, tenant: str) -> EffectView:
        """All contexts of a tenant together: their sums are added, so contexts without a difference add up to none."""
        try:
            return self.over(tenant, await self._standings.of_tenant(tenant))
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem

    def compared(self, contexts: Contexts) -> Contexts:
        """Those of a tenant's contexts whose sums are in the comparison over all of them."""
        restarts = self._server.switches.restarts
        return [
            (row, standing)
            for row, standing in contexts
            if not restarts(row, standing.operation, whole=True)  # nobody has emptied those yet
        ]

    def over(self, tenant: str, contexts: Contexts) -> EffectView:
        """These contexts of a tenant together."""
        settings, switches = self._server.settings, self._server.switches
        arms = [standing.compared for _, standing in self.compared(contexts)]
        most = max((part.most for part in arms), default=1)
        clicks, clicked = (merged(*(part.whole[place] for part in arms)) for place in (0, 1))
        rule = None
        if settings.guardrail_drop:
            rule = tenant_guardrail(settings.guardrail_drop, settings.guardrail_error, most)
        shares = (self._server.holdout_share(row.id) for row, _ in contexts)
        share = max(shares, default=settings.holdout_share)
        return self._view((clicks, clicked), most, rule, switches.switch(tenant, 0), share)

    def _view(
        self, outcomes: Outcomes, most: int, rule: Guardrail | None, switch: Switch | None, share: float
    ) -> EffectView:
        clicks, clicked = outcomes
        view = EffectView(
            served=_arm(clicks.served.pages, clicked.served.total, clicks.served.total),
            holdout=_arm(clicks.holdout.pages, clicked.holdout.total, clicks.holdout.total),
            error=EFFECT_ERROR,
            guardrail=None if rule is None else _guardrail(rule, clicks, switch),
            why_not=_why_not(clicks, share),
        )
        if not clicks.weight:
            return view
        return view.model_copy(
            update={
                "clicks": _interval(difference(clicks, EFFECT_ERROR, most)),
                "clicks_relative": _interval(relative_difference(clicks, EFFECT_ERROR, most)),
                "clicked_pages": _interval(difference(clicked, EFFECT_ERROR)),
            }
        )


def _why_not(clicks: ArmComparison, share: float) -> str | None:
    if clicks.weight:
        return None
    if not share:
        return "no page is held out: set holdout_share, for example to 0.1, to compare and to use the guardrail"
    return "no counted page has closed yet: a page counts when its window has ended"


def _arm(pages: int, clicked: float, clicks: float) -> ArmView:
    return ArmView(pages=pages, clicked_pages=int(clicked), clicks=int(clicks))


def _interval(found: Interval) -> IntervalView:
    """Numbers that JSON knows: nothing for those that are not finite."""
    estimate, high = (value if math.isfinite(value) else None for value in (found.estimate, found.high))
    return IntervalView(estimate=estimate, low=found.low, high=high)


def _guardrail(rule: Guardrail, clicks: ArmComparison, switch: Switch | None) -> GuardrailView:
    stopped_at = switch.guardrail_at if switch is not None else 0
    return GuardrailView(
        drop=rule.drop,
        error=rule.error,
        log_evidence=rule.log_evidence(clicks),
        needed=-math.log(rule.error),
        stopped=bool(stopped_at),
        stopped_at=moment(stopped_at) if stopped_at else None,
    )
