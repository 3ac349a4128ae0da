"""Served pages beside the holdout over many contexts, and the guardrail that looks at them."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from saferank.service.json_logs import log
from saferank.service.knowledge.arms import (
    Balance,
    ComparedArms,
    compared_arms,
    context_guardrail,
    summed,
    tenant_guardrail,
)
from saferank.service.knowledge.fold import to_json
from saferank.service.knowledge.publications import read_head
from saferank.service.protocol.contexts import Context, Contexts
from saferank.service.protocol.heartbeat import Heart
from saferank.service.protocol.switches import Switches
from saferank.service.settings import Settings
from saferank.statistics.effect import ArmComparison, Guardrail, Interval, difference, merged
from saferank.store.contract import AlarmRow, ContextRow, OperationKind, Publication, Store, StoreError

# --- served pages beside the holdout over many contexts: what each adds, as far as this server knows it ---


EFFECT_ERROR = 0.05
"""Probability with which an interval may ever fail to cover the truth."""

_READ_AT_ONCE = 100
_MERGE_MS = 1000


class ContextShare(NamedTuple):
    """What a context adds to the comparison over all contexts."""

    row: ContextRow
    published: int  # number of the publication that it is of, or that its fold is ahead of
    operation: int  # operations up to this one are in it
    most: int
    clicks: ArmComparison  # since the tenant was switched on again after a stop, or from the beginning
    guarded: ArmComparison  # those since the context itself was switched on again
    balance: Balance


def share_of(row: ContextRow, published: int, operation: int, arms: ComparedArms) -> ContextShare:
    """What a context adds whose comparison this is."""
    return ContextShare(row, published, operation, arms.most, arms.whole[0], arms.now[0], arms.balance)


class Whole(NamedTuple):
    """Clicks in all contexts that were added up."""

    clicks: ArmComparison
    most: int
    balance: Balance


def whole_of(parts: Iterable[ContextShare], switches: Switches) -> Whole:
    """Parts added up, without those that are to begin again and that nobody has emptied yet."""
    valid = [part for part in parts if not switches.restarts(part.row, part.operation, whole=True)]
    most = max((part.most for part in valid), default=1)
    return Whole(merged(*(part.clicks for part in valid)), most, summed(part.balance for part in valid))


def guarded_whole(parts: Iterable[ContextShare], switches: Switches) -> Whole:
    """What the guardrail over all contexts looks at: without contexts that their own guardrail has stopped.

    Their losses have ended with the stop, and must not stop all others as well. What a context had before it was
    switched on again stays out too. Leaving losses out can only make this guardrail more patient.
    """
    serving = [
        part._replace(clicks=part.guarded)
        for part in parts
        if not switches.restarts(part.row, part.operation) and not _was_stopped(part.row, switches)
    ]
    return whole_of(serving, switches)


def _was_stopped(row: ContextRow, switches: Switches) -> bool:
    switch = switches.switch(row.tenant, row.id)
    return switch is not None and switch.guardrail_at > 0


def published_arms(publication: Publication) -> ComparedArms:
    """The comparison in a publication; its knowledge, which is large, is not unpacked."""
    return compared_arms(read_head(publication.body)["compared"])


class Effects:
    """Parts by tenant and context: of contexts that were closed here, and, once asked for, of all others."""

    def __init__(self, store: Store, contexts: Contexts, switches: Switches) -> None:
        self._store, self._contexts, self._switches = store, contexts, switches
        self._parts: dict[str, dict[int, ContextShare]] = {}
        self._rows: dict[int, ContextRow] = {}
        self._since = 0
        self._unread: set[int] = set()
        self._shown: tuple[int, Interval | None] = (-_MERGE_MS, None)

    def note(self, context: Context) -> None:
        """Pages of a context were folded here."""
        fold = context.fold
        part = share_of(context.row, context.published, fold.operation, fold.compared)
        self._parts.setdefault(context.row.tenant, {})[context.number] = part

    def size(self, tenant: str) -> int:
        """How many contexts are known."""
        return len(self._parts.get(tenant, ()))

    def whole(self, tenant: str) -> Whole:
        """What the guardrail over all contexts of a tenant that are known looks at."""
        return guarded_whole(self._parts.get(tenant, {}).values(), self._switches)

    async def read(self, now: int) -> None:
        """Read what was published of contexts that are not closed here; a few at a time."""
        self._unread.update(await self._store.published(self._since))
        self._since = now
        for number in sorted(self._unread)[:_READ_AT_ONCE]:
            self._unread.discard(number)
            context = self._contexts.numbered(number)
            if context is None or context.held_in < 0:
                try:
                    await self._read_one(number)
                except StoreError as problem:  # damage: the other contexts are compared without this one
                    log(logging.ERROR, "a context cannot be compared", context_number=number, detail=str(problem))

    async def _read_one(self, number: int) -> None:
        publication = await self._store.publication(number)
        row = await self._row(number)
        if publication is None or row is None:
            return
        parts = self._parts.setdefault(row.tenant, {})
        if number not in parts or parts[number].published < publication.number:
            parts[number] = share_of(row, publication.number, publication.operation, published_arms(publication))

    async def _row(self, number: int) -> ContextRow | None:
        if number not in self._rows:
            row = await self._store.context(number)
            if row is None:
                return None
            self._rows[number] = row
        return self._rows[number]

    def interval(self, now: int) -> Interval | None:
        """Clicks a page, served minus holdout, over everything known here, for the metrics; None without pages.

        It is computed again at most once a second, and less often when there are thousands of contexts.
        """
        parts = [part for of_tenant in self._parts.values() for part in of_tenant.values()]
        if now - self._shown[0] >= max(_MERGE_MS, len(parts)):
            whole = whole_of(parts, self._switches)
            found = difference(whole.clicks, EFFECT_ERROR, whole.most) if whole.clicks.weight else None
            self._shown = (now, found)
        return self._shown[1]


# The guardrail: exploring stops when it is evident that served pages lose more than is accepted against the holdout The
# holder of a context's shard looks whenever it has folded pages: at the context, and at all contexts of the tenant
# together. A stop is an operation that every server obeys like a kill switch. It is durable, it carries its evidence,
# and an operator ends it. The evidence is valid at every look, so it does not matter when and how often servers look.


LOOK_MS = 1000
"""All contexts of a tenant are looked at so often at most, and less often when there are thousands."""

READ_MS = 5000
"""What others published is read so often, so that the figures of all servers are those of all servers."""


class Guard:
    """Looks at comparisons and stops what loses too much."""

    def __init__(self, settings: Settings, store: Store, heart: Heart, effects: Effects) -> None:
        self._drop = settings.guardrail_drop
        self._store, self._heart, self._effects = store, heart, effects
        self._changed: dict[str, ContextRow] = {}  # by tenant: the context that changed last since the last look
        self._looked_at: dict[str, int] = {}  # by tenant
        self._unbalanced: set[str] = set()  # tenants of which an alarm has told
        self._read_at = 0
        self.stops = 0

    async def look(self, context: Context) -> None:
        """Look at a context whose pages were folded here."""
        self._effects.note(context)
        self._changed[context.row.tenant] = context.row
        drop = self._heart.switches.guardrail(context.number, self._drop)
        if not drop:
            return
        compared = context.fold.compared
        rule = context_guardrail(drop, context.number, compared.most)
        if rule.stopped(compared.now[0]):
            await self._stop(context.row, context.number, rule, compared.now[0])

    async def look_at_tenants(self) -> None:
        """Look at all contexts together, of tenants of which some were folded here."""
        now = self._heart.now()
        due = [tenant for tenant in self._changed if now - self._looked_at.get(tenant, 0) >= self._pause(tenant)]
        if due or now - self._read_at >= READ_MS:
            self._read_at = now
            await self._effects.read(now)
        for tenant in due:
            row, self._looked_at[tenant] = self._changed.pop(tenant), now
            whole = self._effects.whole(tenant)
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
            await self._store.add_alarm(AlarmRow(self._heart.now(), row.id, "unbalanced_arms", why))

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
