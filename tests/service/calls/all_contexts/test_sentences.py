"""The answer in sentences."""

from typing import Any

import pytest

from saferank.service.calls.summary import overview_sentence
from saferank.service.wire.views import (
    ArmView,
    EffectView,
    ExploringView,
    FeedbackHealthView,
    FunnelView,
    GuardrailView,
    IntervalView,
    OverviewView,
    SafetyView,
    SwitchView,
    TrafficView,
)

SERVED = ArmView(pages=9000, clicked_pages=3000, clicks=3780)
HOLDOUT = ArmView(pages=1000, clicked_pages=300, clicks=400)


def effect(low: float | None = None, high: float | None = None, **more: Any) -> EffectView:
    relative = None if low is None else IntervalView(estimate=0.05, low=low, high=high)
    return EffectView(served=SERVED, holdout=HOLDOUT, error=0.05, clicks_relative=relative, **more)


def said(effect_view: EffectView, alarms: int = 0, **more: Any) -> str:
    facts: dict[str, Any] = {
        "sentence": "", "now": "2026-03-01T12:00:00.000Z", "mode": "live", "policy": "safe-draw", "pages": 10_000,
        "served_share": 0.9, "exploring": ExploringView(proven=0.12, learning=0.312),
        "safety": SafetyView(checked=9000, over_limit=0, worst_page=0.5), "servers": [],
        "effect": effect_view, "bins": [], "markers": [],
        "funnel": FunnelView(
            contexts=0, with_evidence=0, changed_by_clicks=0, stopped=0, waiting=0, undecided_for_long=0
        ),
        "traffic": TrafficView(share=1.0), "unknowable": [],
        "changes": [], "alarms": [], "killed_everywhere": SwitchView(on=False),
        "feedback": FeedbackHealthView(closed_pages=0, clicked_pages=0, accepted=0, duplicate=0, late=0, refused={}),
    }  # fmt: skip
    return overview_sentence(OverviewView(**{**facts, **more}), alarms)


def test_the_whole_sentence() -> None:
    assert said(effect(0.012, 0.091)) == (
        "90 % of 10,000 pages were chosen by safe-draw. Its pages got 0.420 clicks a page against 0.400 in the "
        "holdout: better (+5.0 %; at every look between +1.2 % and +9.1 %). No alarm in the last 24 hours. "
        "In the last 7 days it changed 12 % of its pages because proven and 31.2 % to learn."
    )


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.02, 0.12, "no difference can be told yet (+5.0 %; at every look between \u22122.0 % and +12.0 %)"),
        (-0.3, -0.1, "worse (+5.0 %; at every look between \u221230.0 % and \u221210.0 %)"),
        (-0.1, None, "no difference can be told yet (+5.0 %; at every look above \u221210.0 %)"),
    ],
)
def test_an_interval_is_told_with_its_verdict(low: float, high: float | None, verdict: str) -> None:
    assert verdict in said(effect(low, high))


def test_why_nothing_can_be_said() -> None:
    assert "cannot be said: there is no holdout." in said(effect(why_not="there is no holdout"))
    assert "too few pages have been counted" in said(effect())
    assert said(effect(), served_share=None, pages=0, exploring=ExploringView(proven=None, learning=None)) == (
        "No page has been closed yet, so nothing can be said. No alarm in the last 24 hours."
    )


def test_alarms_and_stops_are_told() -> None:
    assert "1 alarm in the last 24 hours." in said(effect(), 1) and "2 alarms in" in said(effect(), 2)
    guardrail = GuardrailView(drop=0.03, error=0.05, log_evidence=3.2, needed=3.0, stopped=True)
    told = said(effect(-0.3, -0.1, guardrail=guardrail), killed_everywhere=SwitchView(on=True, why="guardrail"))
    assert (
        told.startswith("Stopped by the guardrail: served pages lost more than 3 %; production's own")
        and "worse (" in told
    )
    switch = SwitchView(on=True, since="2026-03-01T12:00:00.000Z", why="a fire")
    assert said(effect(), killed_everywhere=switch).startswith("Switched off everywhere (a fire): production's own")
    assert said(effect(), mode="shadow").startswith("Shadow mode") and said(effect(), mode="off").startswith("Off:")
