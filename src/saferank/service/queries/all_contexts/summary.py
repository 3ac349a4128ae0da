"""Everything at a glance, over all contexts of a tenant: what the first screen of the dashboard shows."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

from saferank.service.clock import moment
from saferank.service.knowledge.arms import ARMS
from saferank.service.knowledge.arms.compared_arms import Day
from saferank.service.protocol.server import Server, unavailable
from saferank.service.queries.all_contexts.newest_changes import NewestChanges
from saferank.service.queries.all_contexts.prospects import DAY_MS, decides_nothing
from saferank.service.queries.all_contexts.sentences import overview_sentence
from saferank.service.queries.all_contexts.standings import Standings
from saferank.service.queries.effect import Contexts, EffectQueries
from saferank.service.wire.effect_views import (
    AlarmView,
    ContextChangeView,
    DayView,
    FeedbackHealthView,
    FunnelView,
    MarkerView,
    OverviewView,
)
from saferank.service.wire.views import ArmView
from saferank.store.contract import EVERYBODY, OperationKind, OperationRow, StoreUnavailableError

CHANGES = 20
ALARMS = 20
MARKERS = 200
RECENT_DAYS = 7
"""What exploring costs now is told from the pages of so many days, today included."""
_ALARMS_READ = 1000
"""Alarms of all tenants that are looked through."""

_MARKED = frozenset(get_args(MarkerView.model_fields["kind"].annotation))


class Summary:
    """Reads standings, and what happened lately."""

    def __init__(self, server: Server, standings: Standings, effect: EffectQueries) -> None:
        self._server, self._standings, self._effect = server, standings, effect
        self._changes = NewestChanges(server.store)
        self._operations: list[OperationRow] = []
        self._told: dict[str, tuple[tuple[int, int], OverviewView]] = {}  # by tenant: of which look and switches

    async def overview(self, tenant: str) -> OverviewView:
        """How all contexts of a tenant stand; Problem 503 when the store does not answer."""
        try:
            await self._standings.look()
            moment_of = (self._standings.looks, self._server.switches.acknowledged)
            if tenant not in self._told or self._told[tenant][0] != moment_of:
                self._told[tenant] = (moment_of, await self._seen(tenant))
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem
        return self._told[tenant][1]

    async def _seen(self, tenant: str) -> OverviewView:
        contexts = await self._standings.of_tenant(tenant)
        names = {row.id: row.name for row, _ in contexts}
        changes = await self._changes.newest(contexts, CHANGES)
        alarms = await self._alarms(names)
        markers = await self._markers(tenant, names)
        return self._view(tenant, contexts, changes, alarms, markers)

    def _view(
        self,
        tenant: str,
        contexts: Contexts,
        changes: list[ContextChangeView],
        alarms: list[AlarmView],
        markers: list[MarkerView],
    ) -> OverviewView:
        server, now = self._server, self._server.now()
        arms = _arms(contexts)
        pages = sum(arm.pages for arm in arms.values())
        view = OverviewView(
            sentence="",
            now=moment(now),
            mode=server.settings.mode,
            policy=server.settings.policy,
            pages=pages,
            served_share=(arms["explore"].pages + arms["repeat"].pages) / pages if pages else None,
            differing_share=_differing_share(contexts, now),
            effect=self._effect.over(tenant, contexts),
            days=_day_views(self._effect.compared(contexts)),
            markers=markers,
            funnel=self._funnel(contexts, now),
            changes=changes,
            feedback=self._feedback(tenant, arms),
            alarms=alarms,
            killed_everywhere=server.switches.everywhere(tenant),
        )
        today = sum(alarm.at >= moment(now - DAY_MS) for alarm in alarms)
        return view.model_copy(update={"sentence": overview_sentence(view, today)})

    def _funnel(self, contexts: Contexts, now: int) -> FunnelView:
        killed = self._server.switches.is_killed
        stopped = [killed(row.tenant, row.id) for row, _ in contexts]
        return FunnelView(
            contexts=len(contexts),
            with_evidence=sum(standing.race.compared > 0 or standing.race.decided > 0 for _, standing in contexts),
            changed_by_clicks=sum(standing.moved > 0 for _, standing in contexts),
            stopped=sum(stopped),
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


def _day_views(contexts: Contexts) -> list[DayView]:
    """Compared pages of all contexts by day, oldest first, with the estimate from all days so far."""
    so_far, found = Day(), []
    for number, day in sorted(_days(contexts).items()):
        so_far.add(day)
        if day.served[0] or day.holdout[0]:
            served, holdout = arm_view(day.served), arm_view(day.holdout)
            found.append(DayView(day=moment(number * DAY_MS)[:10], served=served, holdout=holdout, lift=so_far.lift))
    return found


def _days(contexts: Contexts) -> dict[int, Day]:
    sums: dict[int, Day] = {}
    for _, standing in contexts:
        for number, day in standing.compared.days.items():
            sums.setdefault(number, Day()).add(day)
    return sums


def _differing_share(contexts: Contexts, now: int) -> float | None:
    """Of the policy's counted pages of the last days, the share that differs from production's page."""
    since = now // DAY_MS - RECENT_DAYS
    recent = [day.chosen for number, day in _days(contexts).items() if number > since]
    pages = sum(chosen for chosen, _ in recent)
    return sum(differing for _, differing in recent) / pages if pages else None


def _arms(contexts: Contexts) -> dict[str, ArmView]:
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
    if row.kind == OperationKind.SETTINGS:
        named = [f"{name} {value}" for name, value in facts.items() if name != "why" and value is not None]
        text = f"{', '.join(named) or 'as the service is set'}: {why}"
    return MarkerView(at=moment(row.at), kind=_kind(row), context=context, text=text)  # type: ignore[arg-type]  # checked by the caller
