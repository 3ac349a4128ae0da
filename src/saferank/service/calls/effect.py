"""Served pages beside the holdout: intervals that hold at every look, and how far the guardrail is from stopping."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from saferank.service.knowledge.arms import (
    NO_PAGES,
    Balance,
    ShadowCounts,
    context_guardrail,
    tenant_guardrail,
    total,
)
from saferank.service.protocol.all_contexts import EFFECT_ERROR, Compared, Whole, guarded_whole, whole_of
from saferank.service.protocol.switches import Switch
from saferank.service.wire.calls import moment
from saferank.service.wire.views import ArmView, ClickBoundsView, EffectView, GuardrailView, IntervalView, ShadowView
from saferank.statistics.effect import ArmComparison, Guardrail, Interval, difference, relative_difference

if TYPE_CHECKING:
    from saferank.service.server import Server


async def effect(server: "Server", tenant: str, name: str | None) -> EffectView:
    """One context, since it was opened or switched on again after a stop of the guardrail; or (None) a tenant.

    The sums of all contexts are added, so contexts without a difference add up to none.
    """
    if name is None:
        return effect_over(server, tenant, await server.all_contexts.of_tenant(tenant))
    context = await server.known_context(tenant, name)
    compared, switches = context.fold.compared, server.switches
    drop = switches.guardrail(context.number, server.settings.guardrail_drop)
    whole = Whole(compared.now, compared.most, compared.balance)
    if switches.restarts(context.row, context.fold.operation):
        whole = Whole(NO_PAGES, compared.most, Balance())
    rule = context_guardrail(drop, context.number, compared.most) if drop else None
    share = switches.in_force(server.settings, tenant, context.number).holdout_share
    return _effect_view(whole, rule, switches.switch(tenant, context.number), share)


async def shadow(server: "Server", tenant: str, name: str | None) -> ShadowView:
    """What closed shadow pages counted: of a context, or (None) of all of a tenant."""
    if name is not None:
        return shadow_view((await server.known_context(tenant, name)).fold.shadow)
    return shadow_view(total(one.shadow for _, one in await server.all_contexts.of_tenant(tenant)))


def effect_over(server: "Server", tenant: str, contexts: Compared) -> EffectView:
    """These contexts of a tenant together."""
    settings, switches = server.settings, server.switches
    whole, rule, guarded = whole_of(contexts, switches), None, None
    if settings.guardrail_drop:
        rule = tenant_guardrail(settings.guardrail_drop, whole.most)
        guarded = guarded_whole(contexts, switches).clicks
    shares = (switches.in_force(settings, tenant, row.id).holdout_share for row, _ in contexts)
    share = max(shares, default=settings.holdout_share)
    return _effect_view(whole, rule, switches.switch(tenant, 0), share, guarded)


def _effect_view(
    whole: Whole,
    rule: Guardrail | None,
    switch: Switch | None,
    share: float,
    guarded: ArmComparison | None = None,  # what the guardrail looks at, if that is something else
) -> EffectView:
    (clicks, clicked), most = whole.outcomes, whole.most
    why_not = None
    if whole.balance.is_off:
        why_not = whole.balance.sentence(clicks.holdout.pages, clicks.holdout.pages + clicks.served.pages)
    elif not clicks.weight and not share:
        why_not = "no page is held out: set holdout_share, for example to 0.1, to compare and to use the guardrail"
    elif not clicks.weight:
        why_not = "no counted page has closed yet: a page counts when its window has ended"
    view = EffectView(
        served=arm_view([clicks.served.pages, clicked.served.total, clicks.served.total]),
        holdout=arm_view([clicks.holdout.pages, clicked.holdout.total, clicks.holdout.total]),
        error=EFFECT_ERROR,
        guardrail=None if rule is None else _guardrail(rule, guarded or clicks, switch),
        why_not=why_not,
        promised=clicks.holdout.pages - whole.balance.excess,
    )
    if why_not is None:
        view.clicks = _interval(difference(clicks, EFFECT_ERROR, most))
        view.clicks_relative = _interval(relative_difference(clicks, EFFECT_ERROR, most))
        view.clicked_pages = _interval(difference(clicked, EFFECT_ERROR))
    return view


def arm_view(tally: Sequence[float]) -> ArmView:
    """Pages of an arm, those with clicks, and clicks."""
    pages, clicked, clicks = map(int, tally)
    return ArmView(pages=pages, clicked_pages=clicked, clicks=clicks)


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


# --- how far the policy's pages are from production's, and the known part of their clicks, without showing them ---


def shadow_view(counts: ShadowCounts) -> ShadowView:
    """The counts as means and bounds."""
    pages, differing = counts.pages, counts.pages - counts.same
    return ShadowView(
        pages=pages,
        same=counts.same,
        differing=differing,
        differing_share=_mean(differing, pages),
        exchanged_pairs=_mean(counts.exchanged_pairs, pages),
        new_items=_mean(counts.new_items, pages),
        clicks=_mean(counts.clicks, pages),
        clicks_where_same=_mean(counts.same_clicks, counts.same),
        clicks_where_differing=_mean(counts.clicks - counts.same_clicks, differing),
        would_have_got=_bounds(counts, 0, 0),
        would_have_got_read_from_the_top=_bounds(counts, counts.top_clicks, counts.top_places),
        would_have_got_by_place=_bounds(counts, counts.kept_clicks, counts.kept_places),
    )


def _bounds(counts: ShadowCounts, clicks: int, places: int) -> ClickBoundsView | None:
    """Of differing pages the clicks on some places are known; every other place may have been clicked or not."""
    if counts.pages == 0:
        return None
    known = counts.same_clicks + clicks
    return ClickBoundsView(low=known / counts.pages, high=(known + counts.places - places) / counts.pages)


def _mean(amount: int, pages: int) -> float | None:
    return amount / pages if pages else None
