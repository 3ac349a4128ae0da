"""All contexts together: their figures, and the guardrail that looks at them.

What was published of each context is read once and kept while it is the newest: the guardrail over all contexts, lists,
sums and the metrics read this. With 20,000 contexts a look must not ask the store about every one of them. It asks
which publications are new, reads those, a hundred in one question, and keeps a few numbers of each. Counts of contexts
that are in memory here are taken from there: they are up to ten seconds ahead of what was published.
"""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import (
    ARMS,
    Balance,
    ComparedArms,
    Outcomes,
    ShadowCounts,
    compared_arms,
    context_guardrail,
    summed,
    tenant_guardrail,
)
from saferank.service.knowledge.fold import read_head, terms_in, to_json
from saferank.service.knowledge.knowledge import PairProgress, Terms
from saferank.service.protocol.contexts import Context, Contexts
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.service.protocol.switches import Switches
from saferank.service.settings import Settings
from saferank.statistics.effect import ArmComparison, Guardrail, Interval, difference, merged
from saferank.store.contract import AlarmRow, ContextRow, OperationKind, Publication, Store, StoreError

LOOK_SECONDS = 1.0
"""So long a look is good enough for others who ask."""

_SPARED = 20
"""A look that took t seconds is good for 20 t: looking never takes more than a twentieth of a core."""

_AT_ONCE = 100


class ContextFigures(NamedTuple):
    """The figures of a context that lists, sums and the guardrail need."""

    number: int  # of its newest publication; 0: there is none
    k: int
    version: int
    changed_at: int
    leader: tuple[str, ...]
    base: tuple[str, ...]  # production's page from which the leader was derived
    tallies: Sequence[Sequence[int]]  # by arm: closed pages, those with clicks, clicks
    epoch: int
    race: PairProgress
    alarms: Mapping[str, int]
    checked: int  # pages of the policy that were shown ...
    worst: int  # ... and the largest share of its allowance, in percent, that one may have used
    operation: int  # operations of the context up to this one are in it
    compared: ComparedArms  # served pages beside the holdout
    shadow: ShadowCounts = ShadowCounts()
    terms: Terms | None = None  # that a reset gave it; None: those of its row

    @property
    def pages(self) -> int:
        """Closed pages."""
        return sum(tally[0] for tally in self.tallies)

    @property
    def moved(self) -> int:
        """Places of the leader that differ from production's page."""
        return sum(item != old for item, old in zip(self.leader, self.base, strict=False))


Compared = Sequence[tuple[ContextRow, ContextFigures]]


class AllContexts:
    """The figures of every context, by its number, and the rows of the contexts."""

    def __init__(self, store: Store, clock: Clock, heartbeat: Heartbeat, contexts: Contexts) -> None:
        self._store, self._clock, self._heartbeat, self._contexts = store, clock, heartbeat, contexts
        self._looking = asyncio.Lock()
        self._known: dict[int, ContextFigures] = {}
        self._rows: Sequence[ContextRow] = ()
        self._since, self._good_until = 0, float("-inf")
        self.looks = 0  # how often the store was asked: what was made from a look holds until the next one

    async def of_tenant(self, tenant: str) -> list[tuple[ContextRow, ContextFigures]]:
        """The contexts of a tenant, by id; StoreUnavailableError when the store does not answer."""
        await self.look()
        return self.known(tenant)

    def known(self, tenant: str | None = None) -> list[tuple[ContextRow, ContextFigures]]:
        """The contexts of a tenant, or (None) of all, as of the last look and as they are in memory here."""
        return [(row, self._newest(row.id, self._known[row.id])) for row in self._rows if tenant in (None, row.tenant)]

    async def look(self) -> None:
        """Read what is new, unless that was done a moment ago."""
        async with self._looking:
            if self._clock.monotonic() >= self._good_until:
                await self._look()
                self.looks += 1

    def _newest(self, number: int, figures: ContextFigures) -> ContextFigures:
        context = self._contexts.numbered(number)
        if context is None or context.fold.version < figures.version:
            return figures
        fold = context.fold
        return figures._replace(
            tallies=fold.tallies, version=fold.version, changed_at=fold.changed_at, operation=fold.operation,
            compared=fold.compared, shadow=fold.shadow, terms=fold.terms, alarms=fold.alarms,
            checked=fold.checked, worst=fold.worst,
        )  # fmt: skip

    async def _look(self) -> None:
        clock, store, now = self._clock, self._store, self._heartbeat.now()
        begin = clock.monotonic()
        rows = await store.contexts()
        for chunk in _chunks(self._changed(await store.published(self._since))):
            for publication in await store.publications(chunk):
                try:
                    self._known[publication.context] = figures_of(publication)
                except StoreError as problem:  # damage: the others are compared and listed without this one
                    number, detail = publication.context, str(problem)
                    log(logging.ERROR, "a context cannot be compared", context_number=number, detail=detail)
            await clock.sleep(0)
        for row in rows:
            if row.id not in self._known:
                self._known[row.id] = await self._opened(row)
        self._rows, self._since = rows, now
        end = clock.monotonic()
        self._good_until = end + max(LOOK_SECONDS, _SPARED * (end - begin))

    def _changed(self, published: Mapping[int, int]) -> list[int]:
        known = self._known
        return [
            context for context, number in published.items() if context not in known or known[context].number != number
        ]

    async def _opened(self, row: ContextRow) -> ContextFigures:
        """A context of which nothing was published: no page of it was closed."""
        terms = json.loads(row.terms)
        lists = await self._contexts.known_catalogue(bytes.fromhex(terms["catalogue"]))
        base = tuple(lists[0][: terms["k"]]) if lists else ()
        blank = [[0, 0, 0] for _ in ARMS]
        opened, no_arms = row.opened_at, ComparedArms(1)
        return ContextFigures(0, terms["k"], 1, opened, base, base, blank, 0, PairProgress(), {}, 0, 0, 0, no_arms)


def figures_of(publication: Publication) -> ContextFigures:
    """What a publication says, without its knowledge."""
    head = read_head(publication.body)
    base = tuple(head["look"][0])
    return ContextFigures(
        number=publication.number,
        k=len(base),
        version=head["version"],
        changed_at=head["changed_at"],
        leader=tuple(head["leader"]),
        base=base,
        tallies=head["tallies"],
        epoch=head["epoch"],
        race=PairProgress(*head["race"]),
        alarms=head["alarms"],
        checked=head["checked"],
        worst=head["worst"],
        operation=publication.operation,
        compared=compared_arms(head["compared"]),
        shadow=ShadowCounts(*head["shadow"]),
        terms=terms_in(head),
    )


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), _AT_ONCE):
        yield numbers[start : start + _AT_ONCE]


# --- served pages beside the holdout over many contexts ---


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
        why, scope = _sentence(rule, state), row.name if number else None
        body = to_json({"why": why, **_evidence(rule, state)})
        operation = await self._store.add_operation(row.tenant, number, OperationKind.GUARDRAIL, body)
        await self._heartbeat.hear()
        self.stops += 1
        log(logging.ERROR, "alarm", kind="guardrail", tenant=row.tenant, context=scope, detail=why)
        await self._store.add_alarm(AlarmRow(operation.at, row.id, "guardrail", why))


def _sentence(rule: Guardrail, state: ArmComparison) -> str:
    return (
        f"guardrail: served pages lose more than {100 * rule.drop:g} % of the clicks of the holdout "
        f"({state.served.mean:.4g} clicks a page on {state.served.pages:,} pages against {state.holdout.mean:.4g} "
        f"on {state.holdout.pages:,})"
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
