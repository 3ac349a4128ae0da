"""The guardrail: exploring stops when it is evident that served pages lose more than is accepted against the holdout.

The holder of a context's shard looks whenever it has folded pages: at the context, and at all contexts of the tenant
together. A stop is an operation that every server obeys like a kill switch. It is durable, it carries its evidence, and
an operator ends it. The evidence is valid at every look, so it does not matter when and how often servers look.
"""

import logging

from saferank.service.json_logs import log
from saferank.service.knowledge.arms.guardrails import context_guardrail, tenant_guardrail
from saferank.service.knowledge.fold import to_json
from saferank.service.protocol.contexts import Context
from saferank.service.protocol.effects import Effects
from saferank.service.protocol.heart import Heart
from saferank.service.settings import Settings
from saferank.statistics.effect import ArmComparison, Guardrail
from saferank.store.contract import AlarmRow, ContextRow, OperationKind, Store

LOOK_MS = 1000
"""All contexts of a tenant are looked at so often at most, and less often when there are thousands."""


class Guard:
    """Looks at comparisons and stops what loses too much."""

    def __init__(self, settings: Settings, store: Store, heart: Heart, effects: Effects) -> None:
        self._drop, self._error = settings.guardrail_drop, settings.guardrail_error
        self._store, self._heart, self._effects = store, heart, effects
        self._changed: dict[str, ContextRow] = {}  # by tenant: the context that changed last since the last look
        self._looked_at: dict[str, int] = {}  # by tenant
        self.stops = 0

    @property
    def on(self) -> bool:
        """True when there is a loss over all contexts of a tenant that is not accepted."""
        return self._drop > 0

    async def look(self, context: Context) -> None:
        """Look at a context whose pages were folded here."""
        self._effects.note(context)
        if self.on:
            self._changed[context.row.tenant] = context.row
        drop, error = self._heart.switches.guardrail(context.number, self._drop, self._error)
        if not drop:
            return
        compared = context.fold.compared
        rule = context_guardrail(drop, error, context.number, compared.most)
        if rule.stopped(compared.now[0]):
            await self._stop(context.row, context.number, rule, compared.now[0])

    async def look_at_tenants(self) -> None:
        """Look at all contexts together, of tenants of which some were folded here."""
        if not self.on or not self._changed:
            return
        now = self._heart.now()
        due = [tenant for tenant in self._changed if now - self._looked_at.get(tenant, 0) >= self._pause(tenant)]
        if due:
            await self._effects.read(now)
        for tenant in due:
            row, self._looked_at[tenant] = self._changed.pop(tenant), now
            whole = self._effects.whole(tenant)
            rule = tenant_guardrail(self._drop, self._error, whole.most)
            if rule.stopped(whole.clicks):
                await self._stop(row, 0, rule, whole.clicks)

    def _pause(self, tenant: str) -> int:
        return max(LOOK_MS, self._effects.size(tenant))

    async def _stop(self, row: ContextRow, number: int, rule: Guardrail, state: ArmComparison) -> None:
        """Switch a context, or (number 0) everything of its tenant, to production's ranking."""
        await self._heart.hear()  # somebody else may have done it
        switch = self._heart.switches.switch(row.tenant, number)
        if switch is not None and switch.guardrail_at:
            return
        why = _sentence(row, number, rule, state)
        body = to_json({"why": why, **_evidence(rule, state)})
        operation = await self._store.add_operation(row.tenant, number, OperationKind.GUARDRAIL, body)
        await self._heart.hear()
        self.stops += 1
        log(logging.ERROR, "alarm", kind="guardrail", tenant=row.tenant, context=_scope(row, number), detail=why)
        await self._store.add_alarm(AlarmRow(operation.at, row.id, "guardrail", why))


def _scope(row: ContextRow, number: int) -> str | None:
    return row.name if number else None


def _sentence(row: ContextRow, number: int, rule: Guardrail, state: ArmComparison) -> str:
    where = f"context {row.name!r}" if number else "all contexts together"
    return (
        f"guardrail: in {where}, served pages lose more than {rule.drop:.2%} of the clicks of the holdout: "
        f"{state.served.mean:.4g} clicks a page on {state.served.pages} pages against {state.holdout.mean:.4g} "
        f"on {state.holdout.pages}"
    )


def _evidence(rule: Guardrail, state: ArmComparison) -> dict[str, object]:
    return {
        "drop": rule.drop,
        "error": rule.error,
        "log_evidence": rule.log_evidence(state),
        "served": {"pages": state.served.pages, "clicks": int(state.served.total)},
        "holdout": {"pages": state.holdout.pages, "clicks": int(state.holdout.total)},
        "comparison": state.numbers(),
    }
