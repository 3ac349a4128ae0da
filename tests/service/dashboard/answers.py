"""Answers of a service with a long past, for browsers: every one of them is checked by the models of the wire."""

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from saferank.service.calls.summary import overview_sentence
from saferank.service.wire.views import (
    AlarmView,
    ArmView,
    BinView,
    ChallengerView,
    ContextChangeView,
    ContextList,
    ContextSummary,
    ContextView,
    EffectView,
    ExploringView,
    FeedbackHealthView,
    FunnelView,
    GuardrailView,
    IntervalView,
    LeaderChange,
    MarkerView,
    OverviewView,
    PairView,
    SafetyView,
    ServerView,
    SwitchView,
    TrafficView,
)

NOW = datetime.now(UTC).replace(microsecond=0)
OFF = SwitchView(on=False)
FOUR = ["garden chairs", "lamps", "offers of the week", "tables"]
WORDS = ["red", "wooden", "garden", "office", "small", "kids", "folding", "cheap", "designer", "outdoor"]
THINGS = ["chair", "lamp", "table", "sofa", "shelf", "bed", "desk", "rug", "mirror", "stool"]


def _plain(view: msgspec.Struct) -> dict[str, Any]:
    """As the dashboard gets it."""
    plain: dict[str, Any] = msgspec.to_builtins(view)
    return plain


def ago(**time: float) -> str:
    return (NOW - timedelta(**time)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def arm(pages: int, rate: float) -> ArmView:
    return ArmView(pages=pages, clicked_pages=round(0.8 * rate * pages), clicks=round(rate * pages))


def names(count: int) -> list[str]:
    """Names of contexts, the busiest first."""
    found = [f"{word} {thing} {number}" for number in range(10) for word in WORDS for thing in THINGS]
    return FOUR if count == 4 else found[:count]


def context_list(count: int, **more: Any) -> dict[str, Any]:
    dice = random.Random(count)
    contexts = []
    for place, name in enumerate(names(count)):
        pages = round(40_000 / (1 + place) ** 0.7)
        moved, killed = dice.choice((0, 0, 2, 3)), place % 97 == 41
        facts: dict[str, Any] = {
            "name": name, "k": 5, "policy": "safe-draw", "mode": "off" if killed else "live", "killed": killed,
            "why": "a fault in the feed" if killed else None, "leader_version": 1 + 4 * moved + place % 3,
            "waiting": False,
            "leader": [f"item-{number}" for number in range(5)], "moved": moved, "pages": pages,
            "served": arm(round(0.9 * pages), dice.uniform(0.3, 0.45)), "alarms": int(place % 120 == 50),
            "holdout": arm(round(0.1 * pages), dice.uniform(0.3, 0.42)), "last_change": ago(hours=1 + 7 * place % 900),
        }  # fmt: skip
        contexts.append(ContextSummary(**facts))
    return _plain(msgspec.structs.replace(ContextList(contexts=contexts, killed_everywhere=OFF), **more))


def bins(count: int, lift: float, size: timedelta = timedelta(days=1)) -> list[BinView]:
    found: list[BinView] = []
    for number in range(count):
        gain = lift * (1 - math.exp(-number / 9)) * (1 if number else 0.1)
        noise = 1 + 0.04 * math.sin(5 * number) / (1 + number / 6)
        begin = (NOW - (count - 1 - number) * size).strftime("%Y-%m-%dT%H:00:00.000Z")
        served, holdout = arm(9000, 0.38 * (1 + gain) * noise), arm(1000, 0.38)
        clicks = served.clicks + sum(each.served.clicks for each in found)
        found.append(BinView(begin=begin, served=served, holdout=holdout, lift=clicks / (number + 1) / (9 * 380) - 1))
    return found


def effect(low: float, estimate: float, high: float, guardrail: GuardrailView | None = None) -> EffectView:
    return EffectView(
        served=arm(252_000, 0.38 * (1 + estimate)), holdout=arm(28_000, 0.38), error=0.05, guardrail=guardrail,
        promised=28_012.4,
        clicks=IntervalView(estimate=0.38 * estimate, low=0.38 * low, high=0.38 * high),
        clicks_relative=IntervalView(estimate=estimate, low=low, high=high),
        clicked_pages=IntervalView(estimate=0.3 * estimate, low=0.3 * low, high=0.3 * high),
    )  # fmt: skip


ARMED = GuardrailView(drop=0.03, error=0.05, log_evidence=-1.5, needed=3.0, stopped=False)
BETTER = effect(0.021, 0.058, 0.094, ARMED)
STOPPED = effect(
    -0.142, -0.083, -0.031,
    GuardrailView(drop=0.03, error=0.05, log_evidence=3.21, needed=3.0, stopped=True, stopped_at=ago(hours=2)),
)  # fmt: skip


def changes(count: int) -> list[ContextChangeView]:
    found = []
    for number, name in enumerate(names(count)[:20]):
        pair = PairView(
            better=f"item-{number + 3}", worse=f"item-{number}", s=41 + number, n=57 + 3 * number, decided=True
        )
        change = LeaderChange(
            version=3 + number, leader=["item-3", "item-1", "item-2"], at=ago(hours=2 + 5 * number), cause="page",
            evidence=[pair] * (1 + number % 3),
        )  # fmt: skip
        found.append(ContextChangeView(context=name, change=change))
    return found


MARKERS = [
    MarkerView(at=ago(days=20), kind="kill", context=None, text="load test of the shop"),
    MarkerView(at=ago(days=19.5), kind="unkill", context=None, text="over"),
    MarkerView(at=ago(days=12), kind="release", context=None, text="saferank 0.2.0 to 0.3.0"),
    MarkerView(at=ago(days=8), kind="rollback", context="lamps", text="back to version 4: wrong prices in the feed"),
]


def overview(count: int, alarms_today: int = 0, **more: Any) -> dict[str, Any]:
    some = round(0.7 * count)
    facts: dict[str, Any] = {
        "sentence": "", "now": ago(), "mode": "live", "policy": "safe-draw", "pages": 311_204, "served_share": 0.9004,
        "exploring": ExploringView(proven=0.221, learning=0.093), "effect": BETTER, "bins": bins(28, 0.065),
        "safety": SafetyView(checked=280_211, over_limit=0, worst_page=0.57), "markers": MARKERS,
        "servers": [ServerView(name=f"shop-{number}", here=number == 1, obeys=True) for number in (1, 2)],
        "funnel": FunnelView(
            contexts=count, with_evidence=some, changed_by_clicks=some // 2, stopped=count // 97,
            waiting=0, undecided_for_long=count - some,
        ),
        "traffic": TrafficView(share=1.0), "unknowable": [],
        "changes": changes(count), "killed_everywhere": OFF, "alarms": [],
        "feedback": FeedbackHealthView(
            closed_pages=311_204, clicked_pages=94_310, accepted=48_211, duplicate=912, late=403,
            refused={"item not shown": 31, "bad token": 12},
        ),
    }  # fmt: skip
    view = OverviewView(**{**facts, **more})
    return _plain(msgspec.structs.replace(view, sentence=overview_sentence(view, alarms_today)))


def with_alarm(count: int) -> dict[str, Any]:
    detail = "certificates of pages of 5 contradicted each other; dropped"
    alarm = AlarmView(at=ago(minutes=40), context=names(count)[1], kind="contradiction", detail=detail)
    return overview(count, 1, alarms=[alarm])


def stopped(count: int) -> dict[str, Any]:
    since = ago(hours=2)
    why = "guardrail: served pages lost more than 3 % against the holdout"
    marks = [*MARKERS, MarkerView(at=since, kind="guardrail", context=None, text="lost more than 3 %")]
    switch = SwitchView(on=True, since=since, why=why)
    return overview(count, effect=STOPPED, bins=bins(28, -0.09), markers=marks, killed_everywhere=switch)


def without_holdout(count: int) -> dict[str, Any]:
    why = "no page is held out: set holdout_share, for example to 0.1, to compare and to use the guardrail"
    nothing = EffectView(served=arm(280_000, 0.39), holdout=arm(0, 0.0), error=0.05, why_not=why)
    return overview(count, effect=nothing, bins=[], markers=[], served_share=1.0)


def empty() -> dict[str, Any]:
    none = FunnelView(
        contexts=0,
        with_evidence=0,
        changed_by_clicks=0,
        stopped=0,
        waiting=0,
        undecided_for_long=0,
        first_decision_days=None,
    )
    feedback = FeedbackHealthView(closed_pages=0, clicked_pages=0, accepted=0, duplicate=0, late=0, refused={})
    nothing = EffectView(served=arm(0, 0), holdout=arm(0, 0), error=0.05, why_not="no counted page has closed yet")
    return overview(
        4, pages=0, served_share=None, exploring=ExploringView(proven=None, learning=None), effect=nothing, bins=[],
        safety=SafetyView(checked=0, over_limit=0, worst_page=None), markers=[], funnel=none, changes=[],
        feedback=feedback,
    )  # fmt: skip


def context(name: str, n_items: int = 30) -> dict[str, Any]:
    """A context with a long history, of which the newest version was decided by clicks and brought a new item."""
    items = [f"{name.rstrip('s')}-{number}" for number in range(1, n_items + 1)]
    base, leader = items[:5], [items[6], items[0], items[2], items[1], items[3]]
    dice = random.Random(1)
    pairs = []
    for one in range(n_items):
        for other in range(one + 1, n_items):
            n = dice.choice((0, 0, 3, 20, 90))
            s = dice.randint(0, n)
            if n:
                pairs.append(PairView(better=items[one], worse=items[other], s=s - (s + n) % 2, n=n, decided=s > 55))
    proof = PairView(better=items[6], worse=items[4], s=52, n=66, decided=True)
    versions = [
        LeaderChange(version=4, leader=leader, at=ago(hours=3), cause="page", evidence=[proof], impression_id="0" * 26),
        LeaderChange(
            version=3, leader=[*base[:1], items[2], items[1], *base[3:]], at=ago(days=1), cause="expired", lost=[proof],
        ),
        LeaderChange(
            version=2, leader=[items[0], items[2], items[1], items[3], items[9]], at=ago(days=2), cause="page",
            evidence=[PairView(better=items[2], worse=items[1], s=-9, n=47, decided=True)],
        ),
        LeaderChange(version=1, leader=base, at=ago(days=9), cause="opened"),
    ]  # fmt: skip
    view = ContextView(
        name=name, k=5, policy="safe-draw", rule="anytime:1e-5", certificate_days=14, trust=0.977, window_seconds=1800,
        mode="live", waiting=False, leader_version=4, leader=leader, base_ranking=items[:8], candidates=items[8:],
        pairs=pairs, exploration="draws the order of 5 items",
        challenger=ChallengerView(item=items[9], against=items[3], s=0, n=0, index=1.0),
        versions=versions, pages=12_345, open_pages=312, killed=OFF, killed_everywhere=OFF, alarms={},
        arms={"explore": arm(10_800, 0.41), "holdout": arm(1_233, 0.38), "repeat": arm(100, 0.2)},
    )  # fmt: skip
    return _plain(view)
