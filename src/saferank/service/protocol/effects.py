"""Served pages beside the holdout over many contexts: what each adds, as far as this server knows it."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from saferank.service.json_logs import log
from saferank.service.knowledge.arms.compared_arms import ComparedArms, compared_arms
from saferank.service.knowledge.publications import read_head
from saferank.service.protocol.contexts import Context, Contexts
from saferank.service.protocol.switches import Switches
from saferank.statistics.effect import ArmComparison, Interval, difference, merged
from saferank.store.contract import ContextRow, Publication, Store, StoreError

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
    clicks: ArmComparison


class Whole(NamedTuple):
    """Clicks in all contexts that were added up."""

    clicks: ArmComparison
    most: int


def whole_of(parts: Iterable[ContextShare], switches: Switches) -> Whole:
    """Parts added up, without those that are to begin again and that nobody has emptied yet."""
    valid = [part for part in parts if not switches.restarts(part.row, part.operation, whole=True)]
    most = max((part.most for part in valid), default=1)
    return Whole(merged(*(part.clicks for part in valid)), most)


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
        part = ContextShare(context.row, context.published, fold.operation, fold.compared.most, fold.compared.whole[0])
        self._parts.setdefault(context.row.tenant, {})[context.number] = part

    def size(self, tenant: str) -> int:
        """How many contexts are known."""
        return len(self._parts.get(tenant, ()))

    def whole(self, tenant: str) -> Whole:
        """The comparison over all contexts of a tenant that are known."""
        return whole_of(self._parts.get(tenant, {}).values(), self._switches)

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
            arms = published_arms(publication)
            parts[number] = ContextShare(row, publication.number, publication.operation, arms.most, arms.whole[0])

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
