"""Kill switches that are on and settings of contexts: the fold of the operations of all operators."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from saferank.service.settings import Settings
from saferank.service.wire.calls import Mode, moment
from saferank.service.wire.views import ContextSettingsView, SwitchView, TrafficView
from saferank.store.contract import ALL_TENANTS, ContextRow, OperationKind, OperationRow


class Switch(NamedTuple):
    """A kill switch that is on."""

    since: int
    why: str
    guardrail_at: int = 0  # when the guardrail stopped it; 0: an operator did


class InForce(NamedTuple):
    """What holds for calls of a context."""

    stopped: bool  # they get production's ranking: a switch is on, or what was undone is not forgotten yet
    mode: Mode  # of calls that name none
    holdout_share: float  # of its pages, which are production's, to compare with
    traffic_share: float  # of the tenant's visitors, whose pages the policy may choose


class Release(NamedTuple):
    """What a server was started with."""

    saferank: str  # version
    policy: str  # of new contexts, like the rule
    rule: str


UNDOING = (OperationKind.ROLLBACK, OperationKind.RESET)
"""What takes away something that was learnt."""


_AS_SET = ContextSettingsView()


class Switches:
    """Switches of ALL_TENANTS, tenants and contexts; ``acknowledged`` is the newest operation that is obeyed here."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.release: Release | None = None  # of the newest start that was another one than the start before
        self._on: dict[tuple[str, int], Switch] = {}  # by tenant and context; 0: of the tenant
        self._settings: dict[int, ContextSettingsView] = {}  # by context: the newest
        self.forgets: list[OperationRow] = []  # requests to delete a visitor's pages, in order
        self._traffic: dict[str, TrafficView] = {}  # by tenant: the newest
        self._undoing: dict[int, list[OperationRow]] = {}  # rollbacks and resets, by context
        self._restarts: dict[tuple[str, int], list[OperationRow]] = {}  # unkills that ended a stop of the guardrail

    def obey(self, operations: Iterable[OperationRow]) -> None:
        """Carry out operations, in order; those that were carried out before are left out."""
        for row in operations:
            if row.number <= self.acknowledged:
                continue
            self.acknowledged = row.number
            if row.kind in UNDOING:
                self._undoing.setdefault(row.context, []).append(row)
            elif row.kind == OperationKind.SETTINGS:
                self._settings[row.context] = ContextSettingsView(since=moment(row.at), **json.loads(row.body))
            elif row.kind == OperationKind.RELEASE:
                self.release = Release(**json.loads(row.body))
            elif row.kind == OperationKind.FORGET:
                self.forgets.append(row)
            elif row.kind == OperationKind.TRAFFIC:
                self._traffic[row.tenant] = TrafficView(since=moment(row.at), **json.loads(row.body))
            elif row.kind != OperationKind.KEYS:  # ``Heartbeat`` has read those
                self._note_restart(row)
                self.turn(row.tenant, row.context, self._switch(row))

    def _note_restart(self, row: OperationRow) -> None:
        switch = self.switch(row.tenant, row.context)
        if row.kind == OperationKind.UNKILL and switch is not None and switch.guardrail_at:
            self._restarts.setdefault((row.tenant, row.context), []).append(row)

    def _switch(self, row: OperationRow) -> Switch | None:
        """A switch that is on already keeps its time and reason."""
        if row.kind == OperationKind.UNKILL:
            return None
        switch = self.switch(row.tenant, row.context) or Switch(row.at, json.loads(row.body)["why"])
        if row.kind == OperationKind.GUARDRAIL and not switch.guardrail_at:
            return switch._replace(guardrail_at=row.at)
        return switch

    def turn(self, tenant: str, context: int, switch: Switch | None) -> None:
        """Turn a switch of a context, or (context 0) of a tenant, on or off."""
        self._on.pop((tenant, context), None)
        if switch is not None:
            self._on[tenant, context] = switch

    def switch(self, tenant: str, context: int) -> Switch | None:
        """The switch of a context, or (context 0) of a tenant, if it is on."""
        return self._on.get((tenant, context))

    @property
    def count(self) -> int:
        """Switches that are on."""
        return len(self._on)

    def is_killed(self, tenant: str, context: int) -> bool:
        """True when production's ranking is to be served."""
        on = self._on
        return bool(on) and ((tenant, context) in on or (tenant, 0) in on or (ALL_TENANTS, 0) in on)

    def everywhere(self, tenant: str) -> SwitchView:
        """The switch that holds for all contexts of a tenant: that of all tenants goes before its own."""
        of_all = self.switch(ALL_TENANTS, 0)
        if of_all is None:
            return switch_view(self.switch(tenant, 0))
        return structs.replace(switch_view(of_all), by_operator=True)

    def in_force(self, settings: Settings, tenant: str, context: int, obeyed: int | None = None) -> InForce:
        """What holds for calls: as operators or else the settings say.

        ``obeyed`` is the newest operation that the knowledge of the context obeys; None: it does not matter.
        """
        own = self.settings(context)
        undone = obeyed is not None and context in self._undoing and bool(self.undoing(context, obeyed))
        return InForce(
            stopped=undone or self.is_killed(tenant, context),
            mode=own.mode or settings.mode,
            holdout_share=settings.holdout_share if own.holdout_share is None else own.holdout_share,
            traffic_share=self.traffic(settings, tenant).share,
        )

    def traffic(self, settings: Settings, tenant: str) -> TrafficView:
        """The share of a tenant's visitors whose pages the policy may choose."""
        return self._traffic.get(tenant) or TrafficView(share=settings.traffic_share)

    def settings(self, context: int) -> ContextSettingsView:
        """What was set for a context."""
        return self._settings.get(context, _AS_SET)

    def guardrail(self, context: int, drop: float) -> float:
        """The loss that is not accepted in a context: its own, or this one."""
        own = self.settings(context).guardrail_drop
        return drop if own is None else own

    def rollbacks(self, context: int, after: int) -> list[OperationRow]:
        """Rollbacks of a context with larger numbers, in order."""
        return [row for row in self.undoing(context, after) if row.kind == OperationKind.ROLLBACK]

    def undoing(self, context: int, after: int) -> list[OperationRow]:
        """Rollbacks and resets of a context with larger numbers, in order."""
        rows = self._undoing.get(context)
        return [row for row in rows if row.number > after] if rows else []

    def restarts(self, row: ContextRow, after: int, whole: bool = False) -> list[OperationRow]:
        """Operations that begin the comparison of a context again, in order; ``whole``: only those of its tenant."""
        found = [*self._restarts.get((row.tenant, 0), ())]
        if not whole:
            found += self._restarts.get((row.tenant, row.id), ())
        return sorted([op for op in found if op.number > after and op.at >= row.opened_at])

    def to_carry_out(self, row: ContextRow, after: int) -> list[OperationRow]:
        """What the holder of a context's shard has to do to its fold: rollbacks, resets and restarts, in order."""
        return sorted([*self.undoing(row.id, after), *self.restarts(row, after)])

    def contexts_undone(self) -> list[int]:
        """Contexts that were ever rolled back or reset."""
        return list(self._undoing)


def switch_view(switch: Switch | None) -> SwitchView:
    """A switch for an answer."""
    if switch is None:
        return SwitchView(on=False)
    return SwitchView(on=True, since=moment(switch.since), why=switch.why)
