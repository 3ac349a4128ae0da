"""Everything at a glance, over all contexts of a tenant: what the first screen of the dashboard shows."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import get_args, get_type_hints

from msgspec import structs

from saferank.service.clock import moment
from saferank.service.knowledge.arms import ARMS, Day
from saferank.service.protocol.contexts import terms_of
from saferank.service.protocol.guard import comparable
from saferank.service.protocol.server import Server, while_available
from saferank.service.protocol.standings import Compared, Standing
from saferank.service.queries.audit import leader_change
from saferank.service.queries.effect import EffectQueries
from saferank.service.wire.views import (
    AlarmView,
    ArmView,
    ContextChangeView,
    DayView,
    EffectView,
    FeedbackHealthView,
    FunnelView,
    IntervalView,
    MarkerView,
    OverviewView,
)
from saferank.statistics.decision import NEVER, decision_rule
from saferank.store.contract import (
    EVERYBODY,
    ContextRow,
    OperationKind,
    OperationRow,
    Store,
    VersionRow,
)

# --- the newest changes of leaders that clicks decided, over all contexts, without asking about every context ---


_MOST_ASKED = 100
"""Contexts whose versions are read for one answer; what was read is kept, so the next answer comes further."""

BY_CLICKS = "page"
"""The cause of a version that the clicks of a page decided."""


class NewestChanges:
    """Versions of contexts, read when the context has come to a new one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[int, tuple[int, list[VersionRow]]] = {}  # by context: its version then, the newest by clicks

    async def newest(self, contexts: Compared, most: int) -> list[ContextChangeView]:
        """Newest first.

        No version of a context is newer than its last change. So contexts are taken by their last change, and when
        there are enough versions that are not older than the last change of the next context, no other can be newer.
        """
        found: list[tuple[VersionRow, str]] = []
        asked = 0
        for row, standing in sorted(contexts, key=lambda entry: -entry[1].changed_at):
            if len(found) >= most and found[most - 1][0].at >= standing.changed_at:
                break
            if standing.version <= 1:
                continue
            if self._read.get(row.id, (0, []))[0] != standing.version and asked < _MOST_ASKED:
                asked += 1
                await self._ask(row.id, most)
            found += [(version, row.name) for version in self._read.get(row.id, (0, []))[1]]
            found.sort(key=lambda entry: -entry[0].at)
            del found[most:]
        return [ContextChangeView(context=name, change=leader_change(version)) for version, name in found]

    async def _ask(self, context: int, most: int) -> None:
        versions = await self._store.versions(context, most)
        newest = versions[-1].version if versions else 0
        self._read[context] = (newest, [version for version in versions if version.cause == BY_CLICKS])


# Will a context decide anything soon? A simple estimate for a list, not a forecast (that is ``saferank forecast``) Of
# every context the undecided pair that is nearest to a decision is known: its lead s in n comparisons, since the
# present epoch of certificates began (evidence begins again with each). At this pace it is compared N times until the
# horizon, and its lead will be N s / (n + 2): two comparisons are assumed to be level, so that one lucky click is no
# lead. If the rule asks for more than that at N, the context is expected to decide nothing. Beyond 4,095 comparisons
# the lead that is needed is taken to grow like the square root. The horizon is 90 days, but not longer than two epochs.


DAY_MS = 86_400_000
HORIZON_DAYS = 90
FEWEST_PAGES = 30
"""A context with fewer closed pages, or in the first day of an epoch, is not judged."""

_TABLE = 4095


def decides_nothing(row: ContextRow, standing: Standing, now: int) -> bool:
    """True when the context has decided nothing, and nothing speaks for a decision within the horizon."""
    terms, race = standing.terms or terms_of(row), standing.race
    lifetime = terms.lifetime_ms
    days = (now - terms.begin_of(standing.epoch)) / DAY_MS
    if race.decided or days < 1 or standing.pages < FEWEST_PAGES:
        return False
    horizon = min(HORIZON_DAYS, 2 * lifetime / DAY_MS) if lifetime else HORIZON_DAYS
    expected = math.floor(race.comparisons * max(1.0, horizon / days))
    lead = race.lead / (race.comparisons + 2) * expected
    return lead < needed_lead(terms.rule, expected)


def needed_lead(rule: str, n: int) -> float:
    """The lead that a rule asks for after n comparisons.

    >>> needed_lead("paper:1e-5", 47), round(needed_lead("paper:1e-5", 4 * 4095) / needed_lead("paper:1e-5", 4095), 3)
    (47.0, 2.0)
    """
    lead = float(decision_rule(rule).table(_TABLE)[min(n, _TABLE)])
    return math.inf if lead >= NEVER else lead * math.sqrt(max(1.0, n / _TABLE))


# --- the answer to "is it safe, is it better, was it worth it" in one sentence after the other, for people ---


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
    ends = (interval.estimate, interval.low, interval.high)
    estimate, low, high = ("" if end is None else _difference(end, unit) for end in ends)
    return f"{estimate}; at every look " + (f"between {low} and {high}" if high else f"above {low}")


def _difference(value: float, unit: str) -> str:
    """A difference with its sign; digits of one beyond a factor of 2 say nothing.

    >>> _difference(0.0312, "%"), _difference(1.7, "%"), _difference(-0.6, "%"), _difference(1.7, "clicks")
    ('+3.1 %', 'more than twice', 'less than half', '+1.700 clicks')
    """
    if unit == "%" and not -0.5 <= value <= 1:
        return "more than twice" if value > 0 else "less than half"
    text = f"{100 * value:+.1f} %" if unit == "%" else f"{value:+.3f} {unit}"
    return text.replace("-", "\N{MINUS SIGN}")


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


# --- everything at a glance, over all contexts of a tenant: what the first screen of the dashboard shows ---


CHANGES = 20
ALARMS = 20
MARKERS = 200
RECENT_DAYS = 7
"""What exploring costs now is told from the pages of so many days, today included."""
_ALARMS_READ = 1000
"""Alarms of all tenants that are looked through."""

_MARKED = frozenset(get_args(get_type_hints(MarkerView)["kind"]))


class Summary:
    """Reads standings, and what happened lately."""

    def __init__(self, server: Server, effect: EffectQueries) -> None:
        self._server, self._effect = server, effect
        self._changes = NewestChanges(server.store)
        self._operations: list[OperationRow] = []
        self._told: dict[str, tuple[tuple[int, int], OverviewView]] = {}  # by tenant: of which look and switches

    @while_available
    async def overview(self, tenant: str) -> OverviewView:
        """How all contexts of a tenant stand; Problem 503 when the store does not answer."""
        await self._server.standings.look()
        moment_of = (self._server.standings.looks, self._server.switches.acknowledged)
        if tenant not in self._told or self._told[tenant][0] != moment_of:
            self._told[tenant] = (moment_of, await self._seen(tenant))
        return self._told[tenant][1]

    async def _seen(self, tenant: str) -> OverviewView:
        contexts = await self._server.standings.of_tenant(tenant)
        names = {row.id: row.name for row, _ in contexts}
        changes = await self._changes.newest(contexts, CHANGES)
        alarms = await self._alarms(names)
        markers = await self._markers(tenant, names)
        return self._view(tenant, contexts, changes, alarms, markers)

    def _view(
        self,
        tenant: str,
        contexts: Compared,
        changes: list[ContextChangeView],
        alarms: list[AlarmView],
        markers: list[MarkerView],
    ) -> OverviewView:
        server, now = self._server, self._server.now()
        arms = _arms(contexts)
        pages = sum(arm.pages for arm in arms.values())
        effect = self._effect.over(tenant, contexts)
        view = OverviewView(
            sentence="",
            now=moment(now),
            mode=server.settings.mode,
            policy=server.settings.policy,
            traffic=server.traffic(tenant),
            unknowable=server.settings.unknowable,
            pages=pages,
            served_share=(arms["explore"].pages + arms["repeat"].pages) / pages if pages else None,
            differing_share=_differing_share(contexts, now),
            effect=effect,
            days=_day_views(comparable(contexts, server.switches), withheld=effect.why_not is not None),
            markers=markers,
            funnel=self._funnel(contexts, now),
            changes=changes,
            feedback=self._feedback(tenant, arms),
            alarms=alarms,
            killed_everywhere=server.switches.everywhere(tenant),
        )
        today = sum(alarm.at >= moment(now - DAY_MS) for alarm in alarms)
        return structs.replace(view, sentence=overview_sentence(view, today))

    def _funnel(self, contexts: Compared, now: int) -> FunnelView:
        killed = self._server.switches.is_killed
        stopped = [killed(row.tenant, row.id) for row, _ in contexts]
        return FunnelView(
            contexts=len(contexts),
            with_evidence=sum(standing.race.compared > 0 or standing.race.decided > 0 for _, standing in contexts),
            changed_by_clicks=sum(standing.moved > 0 for _, standing in contexts),
            stopped=sum(stopped),
            waiting=sum(
                self._server.waits_for_traffic(standing.compared, standing.terms or terms_of(row))
                for row, standing in contexts
            ),
            undecided_for_long=sum(
                not off and decides_nothing(row, standing, now)
                for (row, standing), off in zip(contexts, stopped, strict=True)
            ),
        )

    def _feedback(self, tenant: str, arms: dict[str, ArmView]) -> FeedbackHealthView:
        nothing: Counter[str] = Counter()
        reports = self._server.reports.get(tenant, nothing)
        return FeedbackHealthView(
            closed_pages=sum(arm.pages for arm in arms.values()),
            clicked_pages=sum(arm.clicked_pages for arm in arms.values()),
            accepted=reports["accepted"],
            duplicate=reports["duplicate"],
            late=reports["late"],
            refused=dict(self._server.refusals.get(tenant, nothing)),
        )

    async def _alarms(self, names: dict[int, str]) -> list[AlarmView]:
        rows = [row for row in await self._server.store.newest_alarms(_ALARMS_READ) if row.context in names]
        return [
            AlarmView(at=moment(row.at), context=names[row.context], kind=row.kind, detail=row.detail)
            for row in rows[:ALARMS]
        ]

    async def _markers(self, tenant: str, names: dict[int, str]) -> list[MarkerView]:
        last = self._operations[-1].number if self._operations else 0
        self._operations += [row for row in await self._server.store.operations(last) if row.number > last]
        releases = _releases(self._operations)
        rows = [row for row in self._operations if _concerns(row, tenant, names)]
        return [
            _marker(row, names.get(row.context), releases.get(row.number, ""))
            for row in rows[-MARKERS:]
            if _kind(row) in _MARKED and (row.kind != OperationKind.RELEASE or row.number in releases)
        ]


def _day_views(contexts: Compared, withheld: bool) -> list[DayView]:
    """Compared pages of all contexts by day, oldest first, with the estimate from all days so far, unless withheld."""
    so_far, found = Day(), []
    for number, day in sorted(_days(contexts).items()):
        so_far.add(day)
        if day.served[0] or day.holdout[0]:
            served, holdout = arm_view(day.served), arm_view(day.holdout)
            lift = None if withheld else so_far.lift
            found.append(DayView(day=moment(number * DAY_MS)[:10], served=served, holdout=holdout, lift=lift))
    return found


def _days(contexts: Compared) -> dict[int, Day]:
    sums: dict[int, Day] = {}
    for _, standing in contexts:
        for number, day in standing.compared.days.items():
            sums.setdefault(number, Day()).add(day)
    return sums


def _differing_share(contexts: Compared, now: int) -> float | None:
    """Of the policy's counted pages of the last days, the share that differs from production's page."""
    since = now // DAY_MS - RECENT_DAYS
    recent = [day.chosen for number, day in _days(contexts).items() if number > since]
    pages = sum(chosen for chosen, _ in recent)
    return sum(differing for _, differing in recent) / pages if pages else None


def _arms(contexts: Compared) -> dict[str, ArmView]:
    """Closed pages of all contexts, by arm."""
    sums = {arm: [0, 0, 0] for arm in ARMS}
    for _, standing in contexts:
        for total, tally in zip(sums.values(), standing.tallies, strict=True):
            for place in range(3):
                total[place] += tally[place]
    return {arm: arm_view(total) for arm, total in sums.items()}


def arm_view(tally: Sequence[int]) -> ArmView:
    """Closed pages of an arm, those with clicks, and clicks."""
    return ArmView(pages=tally[0], clicked_pages=tally[1], clicks=tally[2])


def _concerns(row: OperationRow, tenant: str, names: dict[int, str]) -> bool:
    return row.tenant in (tenant, EVERYBODY) and (row.context in names or row.context == 0)


def _kind(row: OperationRow) -> str:
    return OperationKind(row.kind).name.lower()


def _releases(operations: Sequence[OperationRow]) -> dict[int, str]:
    """What changed with a start, by number of the operation; the first start changed nothing."""
    starts = [(row.number, json.loads(row.body)) for row in operations if row.kind == OperationKind.RELEASE]
    found = {}
    for (_, before), (number, now) in pairwise(starts):
        changes = [f"{name} {before[name]} to {now[name]}" for name in now if now[name] != before[name]]
        if changes:  # two workers may have written the same start
            found[number] = ", ".join(changes)
    return found


def _marker(row: OperationRow, context: str | None, release: str) -> MarkerView:
    if row.kind == OperationKind.RELEASE:
        return MarkerView(at=moment(row.at), kind="release", context=None, text=release)
    facts = json.loads(row.body)
    why = ("for all tenants: " if row.tenant == EVERYBODY else "") + str(facts.get("why", ""))
    text = f"back to version {facts['version']}: {why}" if "version" in facts else why
    if row.kind == OperationKind.TRAFFIC:
        text = f"{facts['share']:.0%} of visitors: {why}"
    if row.kind == OperationKind.SETTINGS:
        named = [f"{name} {value}" for name, value in facts.items() if name != "why" and value is not None]
        text = f"{', '.join(named) or 'as the service is set'}: {why}"
    return MarkerView(at=moment(row.at), kind=_kind(row), context=context, text=text)  # type: ignore[arg-type]  # checked by the caller
