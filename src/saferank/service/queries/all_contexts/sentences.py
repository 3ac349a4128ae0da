"""The answer to "is it safe, is it better, was it worth it" in one sentence after the other, for people."""

from saferank.service.wire.effect_views import EffectView, IntervalView, OverviewView
from saferank.service.wire.views import ArmView

_MODES = {
    "shadow": "Shadow mode: production's page is shown, and the learner's page is logged beside it.",
    "off": "Off: production's own ranking is served.",
}


def overview_sentence(view: OverviewView, alarms_today: int) -> str:
    """How things stand over all contexts."""
    guardrail = view.effect.guardrail
    if guardrail is not None and guardrail.stopped:
        drop = _percent(guardrail.drop)
        first = f"Stopped by the guardrail: served pages lost more than {drop}; production's own ranking is served."
    elif view.killed_everywhere.on:
        where = "for all tenants" if view.killed_everywhere.by_operator else "everywhere"
        first = f"Switched off {where}{_because(view.killed_everywhere.why)}: production's own ranking is served."
    elif view.mode != "live":
        first = _MODES[view.mode]
    elif view.served_share is None:
        first = "No page has been closed yet, so nothing can be said."
    else:
        first = f"{_percent(view.served_share)} of {view.pages:,} pages were chosen by {view.policy}."
    effect = effect_sentence(view.effect) if view.pages else ""
    return " ".join(filter(None, [first, effect, _alarms(alarms_today), _cost(view)]))


def effect_sentence(effect: EffectView) -> str:
    """Served pages beside the holdout."""
    if effect.why_not is not None:
        return f"Whether that is better cannot be said: {effect.why_not}."
    interval = effect.clicks_relative or effect.clicks
    if interval is None or interval.estimate is None:
        return "Whether that is better cannot be said yet: too few pages have been counted."
    rates = f"{_rate(effect.served)} clicks a page against {_rate(effect.holdout)} in the holdout"
    unit = "%" if effect.clicks_relative else "clicks"
    return f"Its pages got {rates}: {_verdict(interval)} ({_range(interval, unit)})."


def _verdict(interval: IntervalView) -> str:
    if interval.low > 0:
        return "better"
    if interval.high is not None and interval.high < 0:
        return "worse"
    return "no difference can be told yet"


def _range(interval: IntervalView, unit: str) -> str:
    assert interval.estimate is not None
    scale, digits = (100, 1) if unit == "%" else (1, 3)
    estimate, low, high = (
        "" if end is None else f"{scale * end:+.{digits}f} {unit}".replace("-", "\N{MINUS SIGN}")
        for end in (interval.estimate, interval.low, interval.high)
    )
    return f"{estimate}; at every look " + (f"between {low} and {high}" if high else f"above {low}")


def _alarms(today: int) -> str:
    if today == 0:
        return "No alarm in the last 24 hours."
    return f"{today:,} alarm{'s' if today > 1 else ''} in the last 24 hours."


def _cost(view: OverviewView) -> str:
    if view.differing_share is None:
        return ""
    return f"{_percent(view.differing_share)} of the pages that it chose in the last 7 days differ from production's."


def _because(why: str | None) -> str:
    return f" ({why})" if why else ""


def _rate(arm: ArmView) -> str:
    return f"{arm.clicks / arm.pages:.3f}" if arm.pages else "no"


def _percent(share: float) -> str:
    """A share with one digit, without a zero behind the point.

    >>> _percent(0.0312), _percent(0.9), _percent(1.0)
    ('3.1 %', '90 %', '100 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"
