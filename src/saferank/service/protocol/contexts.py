"""The contexts that are in use, with their knowledge. Others are put away and read again when they are asked for.

A context whose shard this server holds has the fold that its closer carries on; others have what was published last.
"""

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from saferank.service.knowledge.arms import DAY_MS
from saferank.service.knowledge.fold import Fold, memory_of, read_head, restored, terms_in
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.lessons import Room
from saferank.service.knowledge.view import Catalogue, Catalogues, items_of, unpack_catalogue
from saferank.service.knowledge.warm_up import prepare
from saferank.service.settings import Settings
from saferank.store.contract import ContextRow, Publication, Store, StoreError, VersionRow


class Context:
    """A context in use."""

    def __init__(self, row: ContextRow, fold: Fold, publication: Publication | None) -> None:
        self.row, self.fold, self.number = row, fold, row.id
        self.published = 0 if publication is None else publication.number
        self.published_at = 0  # when this server published it last
        self.closed_at = 0  # when this server closed it last
        self.kept_at = 0  # pages of the newest kept snapshot
        self.held_in = -1  # the epoch of the lease under which the fold is carried on here; -1: it is not
        self.dirty = False  # the fold is ahead of what was published
        self.packing = 0.0  # seconds that packing it took when it was published last
        self.memory = 0  # bytes, as measured last
        self._known: Knowledge | None = None  # what stands in for the knowledge of the fold, if anything does
        self._stands_for: tuple[Fold, int] | None = None
        self.waited: tuple[int, bool] = (-1, False)  # asked daily: the day, and whether it waits for traffic
        self.newest: tuple[bytes, Catalogue, int] | None = None  # of the newest call here: digest, lists, page size

    @property
    def terms(self) -> Terms:
        """Its policy, rule, window and lifetime of certificates, as they hold now."""
        return self.fold.terms

    @property
    def known(self) -> Knowledge:
        """What pages are made from."""
        fold, replaced = self.fold, self._stands_for
        if self._known is not None and replaced is not None and replaced[0] is fold and replaced[1] > fold.epoch:
            return self._known
        return fold.knowledge

    def stand_in(self, now: int) -> None:
        """Certificates have ended, and no server has published that yet: make pages from what still holds."""
        epoch, known = self.terms.epoch_at(now - self.terms.window_ms), self.fold.knowledge
        if self._stands_for is not None and self._stands_for == (self.fold, epoch):
            return
        aged = Knowledge.restored(self.terms, known.epoch, known.pages, known.learner.save())
        for step in range(max(known.epoch + 1, epoch - 2), epoch + 1):
            aged.turn_to(step)
        aged.changed_certificates()
        self._known, self._stands_for = aged, (self.fold, epoch)


class Limits(NamedTuple):
    """What contexts may take of a process."""

    contexts: int
    memory: int = 1 << 62  # bytes


class Contexts:
    """Contexts by name and by number, those in use.

    When they take more than the limits allow, contexts of the tenant that takes the most are put away, those first
    that were not asked for for the longest time. Contexts of a tenant within its equal share stay, and so do those that
    must be published. ``put_away`` is called with the number of a context that goes.
    """

    def __init__(
        self, store: Store, catalogues: Catalogues, limits: Limits, put_away: Callable[[int], None] = lambda _: None
    ) -> None:
        self._store, self._catalogues, self._limits, self._put_away = store, catalogues, limits, put_away
        self._room = Room()
        self._by_tenant: dict[str, OrderedDict[str, Context]] = {}  # by name, the one asked for last at the end
        self._by_number: dict[int, Context] = {}
        self._memory: Counter[str] = Counter()  # bytes by tenant
        self.set_aside: dict[int, str] = {}  # by number: why a context cannot be closed; it gets production's ranking

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Context]:
        return iter(list(self._by_number.values()))

    def loaded(self, tenant: str, name: str) -> Context | None:
        """A context if it is in memory."""
        contexts = self._by_tenant.get(tenant)
        context = None if contexts is None else contexts.get(name)
        if contexts is not None and context is not None:
            contexts.move_to_end(name)
        return context

    def numbered(self, number: int) -> Context | None:
        """A context by number, if it is in memory."""
        return self._by_number.get(number)

    async def find(self, tenant: str, name: str) -> Context | None:
        """A context by name; None when there is none."""
        found = self.loaded(tenant, name)
        if found is not None:
            return found
        row = await self._store.find_context(tenant, name)
        return None if row is None else await self.load(row)

    async def load(self, row: ContextRow) -> Context:
        """The context of a row, as it was published last."""
        found = self._by_number.get(row.id)
        if found is not None:
            return found
        publication = await self._store.publication(row.id)
        fold = await self.fold_of(row, publication)
        found = self._by_number.get(row.id)  # somebody else may have loaded it meanwhile
        if found is None:
            found = Context(row, fold, publication)
            self._by_number[row.id] = found
            self._by_tenant.setdefault(row.tenant, OrderedDict())[row.name] = found
            self.measure(found)
        return found

    async def fold_of(self, row: ContextRow, publication: Publication | None) -> Fold:
        """What a publication says; without one, the fold of no pages. StoreError when the store lacks its catalogue."""
        facts, terms = json.loads(row.terms), terms_of(row)
        if publication is not None:
            head = read_head(publication.body)
            await prepare(terms_in(head) or terms)
            return restored(publication, terms, self._room, head)
        await prepare(terms)
        digest = bytes.fromhex(facts["catalogue"])
        lists = await self.known_catalogue(digest)
        if lists is None or not items_of(lists):
            raise StoreError(f"the store names a catalogue {digest.hex()} that it does not hold")
        return Fold.opened(row.id, terms, facts["k"], digest, lists, self._room)

    async def known_catalogue(self, digest: bytes) -> Catalogue | None:
        """A catalogue, or None."""
        lists = self._catalogues.get(digest)
        if lists is None:
            body = await self._store.catalogue(digest)
            lists = None if body is None else unpack_catalogue(body)
        return lists

    def forget(self, context: Context) -> None:
        """Put a context away; it is read again when it is asked for."""
        if self._by_number.get(context.number) is context:
            tenant = context.row.tenant
            del self._by_number[context.number], self._by_tenant[tenant][context.row.name]
            self._memory[tenant] -= context.memory
            if not self._by_tenant[tenant]:
                del self._by_tenant[tenant], self._memory[tenant]
            self._put_away(context.number)

    @property
    def memory(self) -> int:
        """Bytes that the contexts take, as measured."""
        return self._memory.total()

    def measure(self, context: Context) -> None:
        """Measure a context, which has been loaded or has grown, and put others away if it takes too much."""
        if self._by_number.get(context.number) is not context:
            return
        memory = memory_of(context.fold)
        self._memory[context.row.tenant] += memory - context.memory
        context.memory = memory
        while self._forget_one(self._memory, self._limits.memory, context):
            pass
        while len(self) > self._limits.contexts:
            numbers = Counter({tenant: len(contexts) for tenant, contexts in self._by_tenant.items()})
            if not self._forget_one(numbers, self._limits.contexts, context):
                break

    def _forget_one(self, taken: Counter[str], limit: int, in_use: Context) -> bool:
        """Put a context of the tenant away that takes the most; False when that is not needed, or not possible."""
        if taken.total() <= limit:
            return False
        for tenant, most in taken.most_common():
            if most * len(self._by_tenant) <= limit:
                return False
            for context in self._by_tenant[tenant].values():
                if not context.dirty and context is not in_use:
                    self.forget(context)
                    return True
        return False


def terms_of(row: ContextRow) -> Terms:
    """What was fixed when a context was opened; a reset may have taken other terms since (``Fold.terms``)."""
    facts = json.loads(row.terms)
    kept = {name: facts[name] for name in ("policy", "rule", "window_ms", "lifetime_ms", "trust")}
    return Terms(**kept, opened_at=row.opened_at, source_daily_pages=facts.get("source_daily_pages", 0))


def terms_by_settings(
    settings: Settings, certificate_days: float | None = None, trust: float | None = None
) -> dict[str, Any]:
    """The terms of contexts that are opened or reset now: those of the settings, unless a reset names its own."""
    days = settings.certificate_days if certificate_days is None else certificate_days
    return {
        "policy": settings.policy,
        "rule": settings.rule,
        "lifetime_ms": round(days * DAY_MS),
        "source_daily_pages": settings.source_daily_pages,
        "trust": settings.trust if trust is None else trust,
    }


# --- A context as it was: the fold, taken up from a kept snapshot until it comes to a version ---


class _Reached(Exception):  # noqa: N818 (nothing went wrong)
    """The version that was looked for is there."""


class DeletedVersionError(ValueError):
    """A version cannot be restored: the pages that led to it were deleted, or a reset took other terms since."""


def other_terms(fold: Fold, version: int) -> str:
    """Why a version from before ``Fold.terms_version`` cannot be restored."""
    return (
        f"version {version} cannot be restored: a reset gave the context another policy, rule or lifetime of "
        f"certificates since; the oldest version that can be is {fold.terms_version}"
    )


async def oldest_version(store: Store, context: int) -> int:
    """The oldest version that somebody can go back to: those before it led over pages that were deleted."""
    if not await store.pruned_through(context):
        return 1
    kept = await store.snapshots(context)
    return 1 + int(read_head(kept[0].body)["version"]) if kept else 1


async def fold_at_version(store: Store, contexts: Contexts, context: Context, version: int) -> Fold:
    """What was known at the moment at which a context came to a version; DeletedVersionError if that is gone."""
    if version < context.fold.terms_version:
        raise DeletedVersionError(f"context {context.number}: {other_terms(context.fold, version)}")
    if version < await oldest_version(store, context.number):
        raise DeletedVersionError(f"context {context.number}: the pages that led to version {version} were deleted")
    begin: Publication | None = None
    rollbacks = {0}
    for publication in await store.snapshots(context.number):
        facts = read_head(publication.body)
        rollback = facts["rollback_version"]
        if rollback not in rollbacks and rollback <= version <= facts["version"]:
            return restored(
                publication, terms_of(context.row)
            )  # the first one after a rollback is of the rollback itself
        rollbacks.add(rollback)
        if facts["version"] < version:
            begin = publication
    fold = await contexts.fold_of(context.row, begin)
    return fold if fold.version == version else await _sought(store, context, fold, version)


async def recall_visitors(store: Store, fold: Fold) -> None:
    """Have a fold that was published know the visitors of its newest window, who are not in a publication."""
    begin = fold.through // fold.terms.window_ms * fold.terms.window_ms
    fold.recall(await store.pages_between(fold.context, begin - 1, fold.through))


async def _sought(store: Store, context: Context, fold: Fold, version: int) -> Fold:
    def stop_at(row: VersionRow) -> None:
        if row.version == version:
            raise _Reached

    fold.version_made = stop_at
    through = context.fold.through
    await recall_visitors(store, fold)
    try:
        fold.fold(await store.pages_between(context.number, fold.through, through), through)
    except _Reached:
        return fold
    raise ValueError(f"context {context.number}: version {version} cannot be reached from the log")
