"""Figures of all contexts: what was published of each, read once and kept while it is the newest.

The guardrail over all contexts, lists, sums and the metrics read this. With 20,000 contexts a look must not ask the
store about every one of them. It asks which publications are new, reads those, a hundred in one question, and keeps a
few numbers of each. Counts of contexts that are in memory here are taken from there: they are up to ten seconds ahead
of what was published.
"""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import ARMS, ComparedArms, ShadowCounts, compared_arms
from saferank.service.knowledge.fold import read_head, terms_in
from saferank.service.knowledge.knowledge import PairProgress, Terms
from saferank.service.protocol.contexts import Contexts
from saferank.service.protocol.heartbeat import Heartbeat
from saferank.store.contract import ContextRow, Publication, Store, StoreError

LOOK_SECONDS = 1.0
"""So long a look is good enough for others who ask."""

_SPARED = 20
"""A look that took t seconds is good for 20 t: looking never takes more than a twentieth of a core."""

_AT_ONCE = 100


class ContextFigures(NamedTuple):
    """The figures of a context that lists, sums and the guardrail need."""

    number: int  # of its newest publication; 0: there is none
    through: int
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
        return ContextFigures(0, 0, terms["k"], 1, opened, base, base, blank, 0, PairProgress(), {}, 0, 0, 0, no_arms)


def figures_of(publication: Publication) -> ContextFigures:
    """What a publication says, without its knowledge."""
    head = read_head(publication.body)
    base = tuple(head["look"][0])
    return ContextFigures(
        number=publication.number,
        through=publication.through,
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
