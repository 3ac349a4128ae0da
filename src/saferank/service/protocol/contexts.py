"""The contexts that are in use, with what is known of them. Others are put away and read again when they are asked for.

A context whose shard this server holds has the fold that its closer carries on; others have what was published last.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator

from saferank.service.knowledge.catalogues import Catalogue, Catalogues, items_of, unpack_catalogue
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.publications import restored
from saferank.service.knowledge.sharing import introduce
from saferank.store.contract import SHARDS, ContextRow, Publication, Store, StoreError


class Context:
    """A context in use."""

    def __init__(self, row: ContextRow, terms: Terms, fold: Fold, publication: Publication | None) -> None:
        self.row, self.terms, self.fold = row, terms, fold
        self.published = 0 if publication is None else publication.number
        self.published_at = 0  # when this server published it last
        self.kept_at = 0  # pages of the newest kept snapshot
        self.held_in = -1  # the epoch of the lease under which the fold is carried on here; -1: it is not
        self.dirty = False  # the fold is ahead of what was published
        self.packing = 0.0  # seconds that packing it took when it was published last
        self.asked: set[int] = set()  # page sizes
        self.blank: dict[int, Knowledge] = {}  # by page size of which nothing was learnt
        self._known: dict[int, Knowledge] = {}  # what stands in for the knowledge of the fold, if anything does
        self._stands_for: tuple[Fold, int] | None = None
        self.newest: tuple[bytes, Catalogue, int] | None = None  # of the newest call here: digest, lists, page size

    @property
    def number(self) -> int:
        """Its number in the store."""
        return self.row.id

    @property
    def shard(self) -> int:
        """The shard that it belongs to."""
        return self.row.id % SHARDS

    @property
    def known(self) -> dict[int, Knowledge]:
        """By page size: what pages are made from."""
        fold = self.fold
        if self._stands_for is not None and self._stands_for[0] is fold and self._stands_for[1] > fold.epoch:
            return self._known
        return fold.knowledge

    def stand_in(self, now: int) -> None:
        """Certificates have ended, and nobody has published that yet: make pages from what still holds."""
        epoch = self.terms.epoch_at(now - self.terms.window_ms)
        if self._stands_for is not None and self._stands_for == (self.fold, epoch):
            return
        self._known, self._stands_for = {}, (self.fold, epoch)
        for k, knowledge in self.fold.knowledge.items():
            aged = self._known[k] = Knowledge.restored(
                self.terms, k, knowledge.epoch, knowledge.pages, knowledge.learner.save(), knowledge.misfits
            )
            for step in range(max(knowledge.epoch + 1, epoch - 2), epoch + 1):
                aged.turn_to(step)
            aged.changed_certificates()
        introduce(self._known)


class Contexts:
    """Contexts by name and by number; at most ``most`` of them in memory, apart from those that must be published."""

    def __init__(self, store: Store, catalogues: Catalogues, most: int) -> None:
        self._store, self._catalogues, self._most = store, catalogues, most
        self._by_name: OrderedDict[tuple[str, str], Context] = OrderedDict()
        self._by_number: dict[int, Context] = {}
        self.set_aside: dict[int, str] = {}  # by number: why a context cannot be closed; it gets production's ranking

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Context]:
        return iter(list(self._by_number.values()))

    def loaded(self, tenant: str, name: str) -> Context | None:
        """A context if it is in memory."""
        context = self._by_name.get((tenant, name))
        if context is not None:
            self._by_name.move_to_end((tenant, name))
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
            found = Context(row, fold.terms, fold, publication)
            self._by_number[row.id] = self._by_name[row.tenant, row.name] = found
            self._put_away()
        return found

    async def fold_of(self, row: ContextRow, publication: Publication | None) -> Fold:
        """What a publication says; without one, the fold of no pages."""
        facts, terms = json.loads(row.terms), terms_of(row)
        if publication is not None:
            return restored(publication, terms)
        digest = bytes.fromhex(facts["catalogue"])
        return Fold.opened(row.id, terms, facts["k"], digest, await self.catalogue(digest))

    async def catalogue(self, digest: bytes) -> Catalogue:
        """A catalogue; StoreError when the store does not hold it."""
        lists = await self.known_catalogue(digest)
        if lists is None or not items_of(lists):
            raise StoreError(f"the store names a catalogue {digest.hex()} that it does not hold")
        return lists

    async def known_catalogue(self, digest: bytes) -> Catalogue | None:
        """A catalogue, or None."""
        lists = self._catalogues.get(digest)
        if lists is None:
            body = await self._store.catalogue(digest)
            lists = None if body is None else unpack_catalogue(body)
        return lists

    def is_set_aside(self, context: Context) -> bool:
        """True when a context cannot be closed here: production's ranking is to be served."""
        return context.number in self.set_aside

    def forget(self, context: Context) -> None:
        """Put a context away; it is read again when it is asked for."""
        if self._by_number.get(context.number) is context:
            del self._by_number[context.number]
            self._by_name.pop((context.row.tenant, context.row.name), None)

    def _put_away(self) -> None:
        """Forget those that were not asked for for the longest time and are published."""
        if len(self._by_number) <= self._most:
            return
        for context in list(self._by_name.values())[: len(self._by_number) - self._most]:
            if not context.dirty:
                self.forget(context)


def terms_of(row: ContextRow) -> Terms:
    """What was fixed when a context was opened."""
    facts = json.loads(row.terms)
    kept = {name: facts[name] for name in ("policy", "rule", "window_ms", "lifetime_ms")}
    return Terms(**kept, opened_at=row.opened_at, source_daily_pages=facts.get("source_daily_pages", 0))
