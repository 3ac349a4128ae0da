"""Everything at a glance, over all contexts of a tenant: what the first screen of the dashboard shows."""

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, get_args, get_type_hints

from saferank.service.calls.audit import leader_change
from saferank.service.calls.effect import arm_view, effect_over
from saferank.service.knowledge.arms import ARMS, DAY_HOURS, DAY_MS, FINE_HOURS, HOUR_MS, Bin
from saferank.service.protocol.all_contexts import Compared, ContextFigures, comparable
from saferank.service.protocol.contexts import terms_of
from saferank.service.wire.calls import moment
from saferank.service.wire.views import (
    AlarmView,
    ArmView,
    BinView,
    ContextChangeView,
    EffectView,
    ExploringView,
    FeedbackHealthView,
    FunnelView,
    MarkerView,
    OverviewView,
    SafetyView,
    ServerView,
)
from saferank.statistics.decision import NEVER, decision_rule
from saferank.store.contract import (
    ALL_TENANTS,
    ContextRow,
    OperationKind,
    OperationRow,
    VersionRow,
)

if TYPE_CHECKING:
    from saferank.service.server import Server

# --- how soon a context decides something ---

# Will a context decide anything soon? A simple estimate for a list, not a forecast (that is ``saferank forecast``) Of
# every context the undecided pair that is nearest to a decision is known: its lead s in n comparisons, since the
# present epoch of certificates began (evidence begins again with each). At this pace it is compared N times until the
# horizon, and its lead will be N s / (n + 2): two comparisons are assumed to be level, so that one lucky click is no
# lead. The first time at which the rule asks for no more than that is when it is expected to decide. Beyond 4,095
# comparisons the lead that is needed is taken to grow like the square root. The horizon is 90 days, but not longer than
# two epochs: what is expected later is expected never.


HORIZON_DAYS = 90
FEWEST_PAGES = 30
"""A context with fewer closed pages, or in the first hour of an epoch, is not judged; a first day is never too late."""

_TABLE = 4095
_STEPS = 60
"""Times until the horizon at which a decision is looked for, each a little later than the one before."""


def days_to_decide(row: ContextRow, figures: ContextFigures, now: int) -> float | None:
    """Days until the context decides something; infinite: not within the horizon; None: no telling, or it has."""
    terms, race = figures.terms or terms_of(row), figures.race
    lifetime = terms.lifetime_ms
    days = (now - terms.begin_of(figures.epoch)) / DAY_MS
    if race.decided or days < 1 / DAY_HOURS or figures.pages < FEWEST_PAGES:
        return None
    horizon = max(days, min(HORIZON_DAYS, 2 * lifetime / DAY_MS) if lifetime else HORIZON_DAYS)
    for step in range(_STEPS + 1):
        later = days * math.pow(horizon / days, step / _STEPS)
        expected = math.floor(race.comparisons * later / days)
        if race.lead / (race.comparisons + 2) * expected >= needed_lead(terms.rule, expected):
            return later - days
    return math.inf if days >= 1 else None


def needed_lead(rule: str, n: int) -> float:
    """The lead that a rule asks for after n comparisons.

    >>> needed_lead("paper:1e-5", 47), round(needed_lead("paper:1e-5", 4 * 4095) / needed_lead("paper:1e-5", 4095), 3)
    (47.0, 2.0)
    """
    lead = float(decision_rule(rule).table(_TABLE)[min(n, _TABLE)])
    return math.inf if lead >= NEVER else lead * math.sqrt(max(1.0, n / _TABLE))


# --- the answer to "is it safe, is it better, was it worth it" in one sentence after the other, for people ---


RECENT_DAYS = 7
"""What exploring costs now is told from the pages of this number of days, today included."""

_MODES = {
    "shadow": "Shadow mode: production's page is shown, and the learner's page is logged beside it.",
    "off": "Off: production's own ranking is served.",
}


def overview_sentence(view: OverviewView, alarms_today: int) -> str:
    """How things stand over all contexts."""
    guardrail, killed, alarms = view.effect.guardrail, view.killed_everywhere, "No alarm"
    if guardrail is not None and guardrail.stopped:
        drop = _percent(guardrail.drop)
        first = f"Stopped by the guardrail: served pages lost more than {drop}; production's own ranking is served."
    elif killed.on:
        where, why = "for all tenants" if killed.by_operator else "everywhere", f" ({killed.why})" if killed.why else ""
        first = f"Switched off {where}{why}: production's own ranking is served."
    elif view.mode != "live":
        first = _MODES[view.mode]
    elif view.served_share is None:
        first = "No page has been closed yet, so nothing can be said."
    else:
        first = f"{_percent(view.served_share)} of {view.pages:,} pages were chosen by {view.policy}."
    said = [first, effect_sentence(view.effect)] if view.pages else [first]
    if alarms_today:
        alarms = f"{alarms_today:,} alarm{'s' if alarms_today > 1 else ''}"
    said.append(f"{alarms} in the last 24 hours.")
    proven, learning = view.exploring.proven, view.exploring.learning
    if proven is not None and learning is not None:
        shares = f"{_percent(proven)} of its pages because proven and {_percent(learning)} to learn"
        said.append(f"In the last {RECENT_DAYS} days it changed {shares}.")
    return " ".join(said)


def effect_sentence(effect: EffectView) -> str:
    """Served pages beside the holdout."""
    if effect.why_not is not None:
        return f"Whether that is better cannot be said: {effect.why_not}."
    interval = effect.clicks_relative or effect.clicks
    if interval is None or interval.estimate is None:
        return "Whether that is better cannot be said yet: too few pages have been counted."
    unit, verdict = "%" if effect.clicks_relative else "clicks", "no difference can be told yet"
    estimate, low = _difference(interval.estimate, unit), _difference(interval.low, unit)
    looks = f"above {low}" if interval.high is None else f"between {low} and {_difference(interval.high, unit)}"
    if interval.low > 0:
        verdict = "better"
    elif interval.high is not None and interval.high < 0:
        verdict = "worse"
    arms = (effect.served, effect.holdout)
    served, holdout = (f"{arm.clicks / arm.pages:.3f}" if arm.pages else "no" for arm in arms)
    rates = f"{served} clicks a page against {holdout} in the holdout"
    return f"Its pages got {rates}: {verdict} ({estimate}; at every look {looks})."


def _difference(value: float, unit: str) -> str:
    """A difference with its sign; digits of one beyond a factor of 2 say nothing.

    >>> _difference(0.0312, "%"), _difference(1.7, "%"), _difference(-0.6, "%"), _difference(1.7, "clicks")
    ('+3.1 %', 'more than twice', 'less than half', '+1.700 clicks')
    """
    if unit == "%" and not -0.5 <= value <= 1:
        return "more than twice" if value > 0 else "less than half"
    text = f"{100 * value:+.1f} %" if unit == "%" else f"{value:+.3f} {unit}"
    return text.replace("-", "\N{MINUS SIGN}")


def _percent(share: float) -> str:
    """A share with one digit, without a zero behind the point.

    >>> _percent(0.0312), _percent(0.9), _percent(1.0)
    ('3.1 %', '90 %', '100 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


# --- everything at a glance, over all contexts of a tenant: what the first screen of the dashboard shows ---


_MOST_ASKED = 100
"""Contexts whose versions are read for one answer; what was read is kept, so the next answer comes further."""

CHANGES = 20
ALARMS = 20
MARKERS = 200
_ALARMS_READ = 1000
"""Alarms of all tenants that are looked through."""

_MARKED = frozenset(get_args(get_type_hints(MarkerView)["kind"]))


class Summary:
    """Reads the figures of all contexts, and recent changes."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._versions: dict[int, tuple[int, list[VersionRow]]] = {}  # by context: its version then, those by clicks
        self._operations: dict[int, tuple[OperationRow, str]] = {}  # by number, with what a marker says of it
        self._release: dict[str, str] = {}  # what the newest start was of
        self._told: dict[str, tuple[tuple[int, int], OverviewView]] = {}  # by tenant: of which look and switches

    async def overview(self, tenant: str) -> OverviewView:
        """How all contexts of a tenant stand."""
        await self._server.all_contexts.look()
        moment_of = (self._server.all_contexts.looks, self._server.switches.acknowledged)
        if tenant not in self._told or self._told[tenant][0] != moment_of:
            self._told[tenant] = (moment_of, await self._seen(tenant))
        return self._told[tenant][1]

    async def _seen(self, tenant: str) -> OverviewView:
        contexts = await self._server.all_contexts.of_tenant(tenant)
        names = {row.id: row.name for row, _ in contexts}
        alarms = await self._alarms(names)
        server, now = self._server, self._server.now()
        arms = _arms(contexts)
        pages = sum(arm.pages for arm in arms.values())
        effect = effect_over(self._server, tenant, contexts)
        view = OverviewView(
            sentence="",
            now=moment(now),
            mode=server.settings.mode,
            policy=server.settings.policy,
            traffic=server.switches.traffic(server.settings, tenant),
            unknowable=server.settings.unknowable,
            pages=pages,
            served_share=(arms["explore"].pages + arms["repeat"].pages) / pages if pages else None,
            safety=_safety(contexts),
            exploring=_exploring(contexts, now),
            effect=effect,
            bins=_bin_views(comparable(contexts, server.switches), withheld=effect.why_not is not None),
            markers=await self._markers(tenant, names),
            funnel=self._funnel(contexts, now),
            changes=await self._changes(contexts),
            feedback=self._feedback(tenant, arms),
            alarms=alarms,
            servers=await self._servers(),
            killed_everywhere=server.switches.everywhere(tenant),
            simulated=server.simulated,
        )
        today = sum(alarm.at >= moment(now - DAY_MS) for alarm in alarms)
        view.sentence = overview_sentence(view, today)
        return view

    async def _changes(self, contexts: Compared) -> list[ContextChangeView]:
        """The newest changes of leaders that clicks decided, over all contexts, without asking about every context.

        No version of a context is newer than its last change. So contexts are taken by their last change, and when
        there are enough versions that are not older than the last change of the next context, no other can be newer.
        """
        found: list[tuple[VersionRow, str]] = []
        asked = 0
        for row, figures in sorted(contexts, key=lambda entry: -entry[1].changed_at):
            if len(found) >= CHANGES and found[-1][0].at >= figures.changed_at:
                break
            if figures.version <= 1:
                continue
            if self._versions.get(row.id, (0, []))[0] != figures.version and asked < _MOST_ASKED:
                asked += 1
                versions = await self._server.store.versions(row.id, CHANGES)
                newest = versions[-1].version if versions else 0
                self._versions[row.id] = newest, [version for version in versions if version.cause == "page"]
            found += [(version, row.name) for version in self._versions.get(row.id, (0, []))[1]]
            found.sort(key=lambda entry: -entry[0].at)
            del found[CHANGES:]
        return [ContextChangeView(context=name, change=leader_change(version)) for version, name in found]

    def _funnel(self, contexts: Compared, now: int) -> FunnelView:
        killed = self._server.switches.is_killed
        judged = [days_to_decide(*one, now) for one in contexts if not killed(one[0].tenant, one[0].id)]
        soonest = min((days for days in judged if days is not None), default=math.inf)
        decided = any(figures.race.decided for _, figures in contexts)
        return FunnelView(
            contexts=len(contexts),
            with_evidence=sum(figures.race.compared > 0 or figures.race.decided > 0 for _, figures in contexts),
            changed_by_clicks=sum(figures.moved > 0 for _, figures in contexts),
            stopped=sum(killed(row.tenant, row.id) for row, _ in contexts),
            waiting=sum(
                self._server.waits_for_traffic(figures.compared, figures.terms or terms_of(row))
                for row, figures in contexts
            ),
            undecided_for_long=sum(days == math.inf for days in judged),
            first_decision_days=None if decided or soonest == math.inf else soonest,
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

    async def _servers(self) -> list[ServerView]:
        own, newest = self._server.name, self._server.switches.acknowledged
        return [
            ServerView(name=row.server, here=row.server == own, obeys=row.acknowledged >= newest)
            for row in sorted(await self._server.store.servers())
        ]

    async def _alarms(self, names: dict[int, str]) -> list[AlarmView]:
        rows = [row for row in await self._server.store.newest_alarms(_ALARMS_READ) if row.context in names]
        return [
            AlarmView(at=moment(row.at), context=names[row.context], kind=row.kind, detail=row.detail)
            for row in rows[:ALARMS]
        ]

    async def _markers(self, tenant: str, names: dict[int, str]) -> list[MarkerView]:
        for row in await self._server.store.operations(max(self._operations, default=0)):
            if row.number not in self._operations:  # somebody else may have asked meanwhile
                self._operations[row.number] = row, self._said_of(row)
        rows = [one for one in self._operations.values() if _concerns(one[0], tenant, names)]
        return [
            MarkerView(at=moment(row.at), kind=_kind(row), context=names.get(row.context), text=text)  # type: ignore[arg-type]
            for row, text in rows[-MARKERS:]
            if _kind(row) in _MARKED and (text or row.kind != OperationKind.RELEASE)
        ]

    def _said_of(self, row: OperationRow) -> str:
        """What was done, for people; of a start what it changed: the first one nothing."""
        facts = json.loads(row.body)
        if row.kind == OperationKind.RELEASE:
            before, self._release = self._release or facts, facts
            return ", ".join(f"{name} {before[name]} to {now}" for name, now in facts.items() if now != before[name])
        why = ("for all tenants: " if row.tenant == ALL_TENANTS else "") + str(facts.get("why", ""))
        if row.kind == OperationKind.TRAFFIC:
            return f"{facts['share']:.0%} of visitors: {why}"
        if row.kind == OperationKind.SETTINGS:
            named = [f"{name} {value}" for name, value in facts.items() if name != "why" and value is not None]
            return f"{', '.join(named) or 'as the service is set'}: {why}"
        return f"back to version {facts['version']}: {why}" if "version" in facts else why


def _bin_views(contexts: Compared, withheld: bool) -> list[BinView]:
    """Compared pages of all contexts by hour or day, oldest first, with the estimate so far, unless withheld."""
    so_far, found = Bin(), []
    for hour, part in sorted(_bins(contexts).items()):
        so_far.add(part)
        if part.served[0] or part.holdout[0]:
            served, holdout = arm_view(part.served), arm_view(part.holdout)
            lift = None if withheld else so_far.lift
            found.append(BinView(begin=moment(hour * HOUR_MS), served=served, holdout=holdout, lift=lift))
    return found


def _bins(contexts: Compared) -> dict[int, Bin]:
    """The sums of all contexts by the hour in which a bin begins: hours until there are two days, then days."""
    found = [one for _, figures in contexts for one in figures.compared.bins.items()]
    hours, sums = [hour for hour, _ in found], dict[int, Bin]()
    width = DAY_HOURS if found and max(hours) - min(hours) >= FINE_HOURS else 1
    for hour, part in found:
        sums.setdefault(hour // width * width, Bin()).add(part)
    return sums


def _exploring(contexts: Compared, now: int) -> ExploringView:
    since = now // DAY_MS - RECENT_DAYS
    bins = [one for _, figures in contexts for one in figures.compared.bins.items()]
    recent = [part.chosen for hour, part in bins if hour // DAY_HOURS > since]
    unchanged, proven, learning = map(sum, zip([0, 0, 0], *recent, strict=True))
    pages = unchanged + proven + learning
    return ExploringView(proven / pages if pages else None, learning / pages if pages else None)


def _safety(contexts: Compared) -> SafetyView:
    shown = sum(figures.checked for _, figures in contexts)
    over = sum(figures.alarms.get("illegal_page", 0) for _, figures in contexts)
    worst = max((figures.worst for _, figures in contexts), default=0)
    return SafetyView(checked=shown + over, over_limit=over, worst_page=worst / 100 if shown else None)


def _arms(contexts: Compared) -> dict[str, ArmView]:
    """Closed pages of all contexts, by arm."""
    tallies = [figures.tallies for _, figures in contexts]
    sums = [[sum(tally[place][which] for tally in tallies) for which in range(3)] for place in range(len(ARMS))]
    return dict(zip(ARMS, map(arm_view, sums), strict=True))


def _concerns(row: OperationRow, tenant: str, names: dict[int, str]) -> bool:
    return row.tenant in (tenant, ALL_TENANTS) and (row.context in names or row.context == 0)


def _kind(row: OperationRow) -> str:
    return OperationKind(row.kind).name.lower()
