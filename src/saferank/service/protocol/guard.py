"""Served pages beside the holdout over many contexts, and the guardrail that looks at them."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from saferank.service.json_logs import log
from saferank.service.knowledge.arms import (
    Balance,
    ComparedArms,
    Outcomes,
    context_guardrail,
    summed,
    tenant_guardrail,
)
from saferank.service.knowledge.fold import to_json
from saferank.service.protocol.all_contexts import AllContexts, Compared
from saferank.service.protocol.contexts import Context
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.service.protocol.switches import Switches
from saferank.service.settings import Settings
from saferank.statistics.effect import ArmComparison, Guardrail, Interval, difference, merged
from saferank.store.contract import AlarmRow, ContextRow, OperationKind, Store

EFFECT_ERROR = 0.05
"""Probability with which an interval may ever fail to cover the truth."""


class Whole(NamedTuple):
    """Contexts added up."""

    outcomes: Outcomes
    most: int
    balance: Balance

    @property
    def clicks(self) -> ArmComparison:
        """The comparison of their clicks."""
        return self.outcomes[0]


def _added_up(parts: Sequence[tuple[ComparedArms, Outcomes]]) -> Whole:
    clicks, clicked = (merged(*(outcomes[place] for _, outcomes in parts)) for place in (0, 1))
    most = max((arms.most for arms, _ in parts), default=1)
    return Whole((clicks, clicked), most, summed(arms.balance for arms, _ in parts))


def comparable(contexts: Compared, switches: Switches, whole: bool = True) -> Compared:
    """Those of a tenant's contexts whose sums are valid: none that is to begin again and was not emptied yet.

    ``whole``: in the comparison over all contexts; otherwise also in that of the context itself.
    """
    return [(row, one) for row, one in contexts if not switches.restarts(row, one.operation, whole=whole)]


def whole_of(contexts: Compared, switches: Switches) -> Whole:
    """Served pages beside the holdout, since the tenant was switched on again after a stop, or from the beginning."""
    arms = [one.compared for _, one in comparable(contexts, switches)]
    return _added_up([(part, part.whole) for part in arms])


def guarded_whole(contexts: Compared, switches: Switches) -> Whole:
    """What the guardrail over all contexts looks at: without contexts that their own guardrail has stopped.

    Their losses have ended with the stop, and must not stop all others as well. What a context had before it was
    switched on again stays out too. Leaving losses out can only make this guardrail more patient.
    """
    found = comparable(contexts, switches, whole=False)
    arms = [one.compared for row, one in found if not _was_stopped(row, switches)]
    return _added_up([(part, part.now) for part in arms])


def _was_stopped(row: ContextRow, switches: Switches) -> bool:
    switch = switches.switch(row.tenant, row.id)
    return switch is not None and switch.guardrail_at > 0


# The guardrail: exploring stops when it is evident that served pages lose more than is accepted against the holdout.
# The holder of a context's shard looks whenever it has folded pages: at the context, and at all contexts of the tenant
# together. A stop is an operation that every server obeys like a kill switch. It is durable, it carries its evidence,
# and an operator ends it. The evidence is valid at every look, so it does not matter when and how often servers look.


LOOK_MS = 1000
"""All contexts of a tenant are looked at so often at most, and less often when there are thousands."""

READ_MS = 5000
"""What others published is read so often, so that the figures of all servers are those of all servers."""


class Guard:
    """Looks at comparisons and stops what loses too much."""

    def __init__(self, settings: Settings, store: Store, heartbeat: Heartbeat, all_contexts: AllContexts) -> None:
        self._drop = settings.guardrail_drop
        self._store, self._heartbeat, self._all_contexts = store, heartbeat, all_contexts
        self._changed: dict[str, ContextRow] = {}  # by tenant: the context that changed last since the last look
        self._looked_at: dict[str, int] = {}  # by tenant
        self._unbalanced: set[str] = set()  # tenants of which an alarm has told
        self._read_at = 0
        self._shown: tuple[int, Interval | None] = (-LOOK_MS, None)
        self.stops = 0

    async def look(self, context: Context) -> None:
        """Look at a context whose pages were folded here."""
        self._changed[context.row.tenant] = context.row
        drop = self._heartbeat.switches.guardrail(context.number, self._drop)
        if not drop:
            return
        compared = context.fold.compared
        rule = context_guardrail(drop, context.number, compared.most)
        if rule.stopped(compared.now[0]):
            await self._stop(context.row, context.number, rule, compared.now[0])

    async def look_at_tenants(self) -> None:
        """Look at all contexts together, of tenants of which some were folded here."""
        now = self._heartbeat.now()
        due = [tenant for tenant in self._changed if now - self._looked_at.get(tenant, 0) >= LOOK_MS]
        if due or now - self._read_at >= READ_MS:
            self._read_at = now
            await self._all_contexts.look()
        for tenant in due:
            contexts = self._all_contexts.known(tenant)
            row, self._looked_at[tenant] = self._changed.pop(tenant), now + len(contexts)
            whole = guarded_whole(contexts, self._heartbeat.switches)
            await self._weigh(row, whole)
            if not self._drop:
                continue
            rule = tenant_guardrail(self._drop, whole.most)
            if rule.stopped(whole.clicks):
                await self._stop(row, 0, rule, whole.clicks)

    async def _weigh(self, row: ContextRow, whole: Whole) -> None:
        """An alarm, once a run, when the arms of all contexts together are out of balance; one context tells itself."""
        if whole.balance.is_off and row.tenant not in self._unbalanced:
            self._unbalanced.add(row.tenant)
            holdout = whole.clicks.holdout.pages
            why = f"all contexts together: {whole.balance.sentence(holdout, holdout + whole.clicks.served.pages)}"
            log(logging.ERROR, "alarm", kind="unbalanced_arms", tenant=row.tenant, detail=why)
            await self._store.add_alarm(AlarmRow(self._heartbeat.now(), row.id, "unbalanced_arms", why))

    def interval(self, now: int) -> Interval | None:
        """Clicks a page, served minus holdout, over all tenants as of the last look, for the metrics; None: no pages.

        It is computed again at most once a second, and less often when there are thousands of contexts.
        """
        if now >= self._shown[0]:
            contexts = self._all_contexts.known()
            whole = whole_of(contexts, self._heartbeat.switches)
            found = difference(whole.clicks, EFFECT_ERROR, whole.most) if whole.clicks.weight else None
            self._shown = (now + max(LOOK_MS, len(contexts)), found)
        return self._shown[1]

    async def _stop(self, row: ContextRow, number: int, rule: Guardrail, state: ArmComparison) -> None:
        """Switch a context, or (number 0) everything of its tenant, to production's ranking."""
        await self._heartbeat.hear()  # somebody else may have done it
        switch = self._heartbeat.switches.switch(row.tenant, number)
        if switch is not None and switch.guardrail_at:
            return
        why, scope = _sentence(row, number, rule, state), row.name if number else None
        body = to_json({"why": why, **_evidence(rule, state)})
        operation = await self._store.add_operation(row.tenant, number, OperationKind.GUARDRAIL, body)
        await self._heartbeat.hear()
        self.stops += 1
        log(logging.ERROR, "alarm", kind="guardrail", tenant=row.tenant, context=scope, detail=why)
        await self._store.add_alarm(AlarmRow(operation.at, row.id, "guardrail", why))


def _sentence(row: ContextRow, number: int, rule: Guardrail, state: ArmComparison) -> str:
    where = f"context {row.name!r}" if number else "all contexts together"
    return (
        f"guardrail: in {where}, served pages lose more than {100 * rule.drop:g} % of the clicks of the holdout: "
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
