"""Delete what names an item: pages, catalogues, what was learnt of it, and its name in earlier versions and alarms.

On a store that no server uses. A context gets a new publication without the item, in one transaction with its versions,
its alarms and what it was opened with; the log begins with it from then on, as after retention. Then pages may go, and
catalogues last. So whoever was interrupted runs the command again: what still names the item is found again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from saferank.service.commands.forgetting import (
    MOST_CLICKS,
    Forgotten,
    Holder,
    NotForgottenError,
    checked_mark,
    contexts_of,
    delete_slices,
    pages_where,
)
from saferank.service.commands.without_item import (
    details_without,
    drop_item,
    is_named,
    lists_without,
    versions_without,
)
from saferank.service.knowledge.catalogues import Catalogue, digest_of, pack_catalogue, unpack_catalogue
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.publications import pack, read_head, restored
from saferank.service.protocol.contexts import terms_of
from saferank.service.protocol.switches import Switches
from saferank.store.contract import (
    CatalogueRow,
    ContextRow,
    Group,
    Mark,
    PageRow,
    Publication,
    StaleLeaseError,
    VersionRow,
)
from saferank.store.page_record import glance, unpacked
from saferank.store.rewriting import RewritableStore


@dataclass
class ForgottenItem:
    """What was deleted."""

    contexts: int = 0
    gone: Forgotten = field(default_factory=Forgotten)
    versions: int = 0  # earlier ones that named it
    alarms: int = 0
    catalogues: int = 0
    shared: int = 0  # catalogues that stay
    begun: list[str] = field(default_factory=list)  # contexts that begin again

    def sentences(self) -> list[str]:
        """For people."""
        found = [
            f"removed the item from {self.contexts} contexts: {self.gone.pages} pages, {self.gone.events} event ids, "
            f"{self.catalogues} catalogues, and its name in {self.versions} versions and {self.alarms} alarms",
        ]
        if self.gone.untried:
            found.append(f"event ids of {self.gone.untried} pages with more than {MOST_CLICKS} clicks stay (keep_days)")
        if self.begun:
            found.append(f"these contexts begin to learn again, at least for a page size: {', '.join(self.begun)}")
        if self.shared:
            found.append(f"{self.shared} catalogues that name it stay: other contexts or tenants use them")
        return [
            *found,
            "replay begins with the newest publication of these contexts; earlier versions cannot be gone back to",
            "backups that were made before still have the item, and calls that name it bring it back",
        ]


class _Plan(NamedTuple):
    """What is to become of a context."""

    row: ContextRow  # with the new terms
    mark: Mark  # of the new publication
    pages: Sequence[PageRow]
    publication: Publication | None
    versions: Sequence[VersionRow]  # that named it, and new ones
    masked: int  # how many of them named it
    alarms: dict[str, str]
    catalogues: Sequence[CatalogueRow]  # new ones
    begins_again: bool


async def forget_item(store: RewritableStore, tenant: str, item: str, context: str | None = None) -> ForgottenItem:
    """Open a store and delete an item from the contexts of a tenant, or from one of them.

    NotForgottenError, before anything is deleted, when a server uses the store, when there is no such tenant or
    context, when some of the pages that name the item are not in a publication yet, or when nothing names it; and when
    a server is started meanwhile.
    """
    await store.open()
    try:
        async with Holder(store) as holder:
            rows = await contexts_of(store, tenant)
            mine = [row for row in rows if context in (None, row.name)]
            if not mine:
                raise NotForgottenError(f"tenant {tenant!r} has no context {context!r}")
            return await _Deletion(store, holder, item, mine).carry_out()
    except StaleLeaseError as problem:
        raise NotForgottenError("a server was started meanwhile; some may be left: stop it and try again") from problem
    finally:
        await store.close()


class _Deletion:
    def __init__(self, store: RewritableStore, holder: Holder, item: str, rows: Sequence[ContextRow]) -> None:
        self._store, self._holder, self._item, self._rows = store, holder, item, rows
        self._naming: dict[bytes, Catalogue] = {}  # by digest: catalogues that name it
        self._switches = Switches()
        self._bytes = item.encode("utf-8")

    async def carry_out(self) -> ForgottenItem:
        store = self._store
        self._switches.obey(await store.operations(0))
        async for row in store.all_catalogues():
            lists = unpack_catalogue(row.body)
            if self._item in lists[0] or self._item in lists[1]:
                self._naming[row.digest] = lists
        plans = [plan for row in self._rows if (plan := await self._plan(row)) is not None]
        elsewhere = await self._named_elsewhere()
        total = ForgottenItem(len(plans), shared=len(elsewhere))
        for plan in plans:
            await self._do(plan, total)
        total.catalogues = await store.delete_catalogues(sorted(self._naming.keys() - elsewhere))
        await store.scrub()  # also when nothing was found: an earlier call may have been interrupted before this
        if not plans and not total.catalogues:
            stays = f"; {len(elsewhere)} catalogues of other contexts or tenants name it" if elsewhere else ""
            raise NotForgottenError(f"nothing named {self._item!r} was found{stays}")
        return total

    # --- what is to be done ---

    async def _plan(self, row: ContextRow) -> _Plan | None:
        """What is to become of a context; None when nothing in it names the item."""
        store, item = self._store, self._item
        pages = await pages_where(store, self._holder, row, self._is_on)
        newest = await store.publication(row.id)
        masked = list(versions_without(await store.versions(row.id), item))
        alarms = details_without([alarm.detail for alarm in await store.alarms(row.id)], item)
        changed, catalogues = self._reopened(row)
        kept = [] if newest is None else [newest, *await store.snapshots(row.id)]
        learnt = any(is_named(publication.body, item) for publication in kept)
        if not (pages or masked or alarms or catalogues or learnt or self._is_newest(newest)):
            return None
        mark = checked_mark(newest, self._switches, row, pages)
        if newest is None:
            if await store.count_pages(row.id, 0):
                raise NotForgottenError(
                    f"context {row.name!r} has not learnt from its pages yet: start the service, stop it when their "
                    "windows are over and try again"
                )
            return _Plan(changed, mark, pages, None, masked, len(masked), alarms, catalogues, False)
        fold = restored(newest, terms_of(row))
        begun = drop_item(fold, item)
        catalogues += self._follow_catalogue(fold)
        publication = newest._replace(number=newest.number + 1, body=pack(fold))
        mark = mark._replace(number=publication.number)
        versions = [*masked, *fold.versions]
        return _Plan(changed, mark, pages, publication, versions, len(masked), alarms, catalogues, bool(begun))

    def _is_on(self, page: PageRow) -> bool:
        if self._bytes not in page.record:
            return False
        record = unpacked(page.record)
        return self._item in (*record.row, *record.instead, *record.base)

    def _is_newest(self, newest: Publication | None) -> bool:
        return newest is not None and bytes.fromhex(read_head(newest.body)["catalogue"]) in self._naming

    def _reopened(self, row: ContextRow) -> tuple[ContextRow, list[CatalogueRow]]:
        """The context as if it had been opened without the item, and the catalogue that it names then."""
        facts = json.loads(row.terms)
        lists = self._naming.get(bytes.fromhex(facts["catalogue"]))
        if lists is None:
            return row, []
        catalogue = self._without(lists, facts["k"])
        return row._replace(terms=json.dumps({**facts, "catalogue": catalogue.digest.hex()})), [catalogue]

    def _follow_catalogue(self, fold: Fold) -> list[CatalogueRow]:
        lists = self._naming.get(fold.catalogue)
        if lists is None:
            return []
        catalogue = self._without(lists, fold.k)
        fold.catalogue = catalogue.digest
        return [catalogue]

    def _without(self, lists: Catalogue, k: int) -> CatalogueRow:
        fewer = lists_without(lists, self._item, k)
        return CatalogueRow(digest_of(fewer), pack_catalogue(fewer))

    async def _named_elsewhere(self) -> set[bytes]:
        """Those of the catalogues that contexts use which the item is not deleted from."""
        found = set[bytes]()
        if not self._naming:
            return found
        mine = {row.id for row in self._rows}
        for row in await self._store.contexts():
            if row.id in mine:
                continue
            newest = await self._store.publication(row.id)
            found.add(bytes.fromhex(json.loads(row.terms)["catalogue"]))
            found |= set() if newest is None else {bytes.fromhex(read_head(newest.body)["catalogue"])}
            pages = await pages_where(
                self._store, self._holder, row, lambda page: glance(page.record).catalogue in self._naming
            )
            found |= {glance(page.record).catalogue for page in pages}
        return found & self._naming.keys()

    # --- doing it ---

    async def _do(self, plan: _Plan, total: ForgottenItem) -> None:
        store, holder, number = self._store, self._holder, plan.row.id
        await holder.beat()
        if plan.catalogues:
            await store.write(Group(catalogues=plan.catalogues))
        await store.rewrite(holder.lease(number), plan.row, plan.publication, plan.versions, plan.alarms)
        await delete_slices(store, holder, plan.row, plan.mark, plan.pages, total.gone)
        total.versions += plan.masked
        total.alarms += len(plan.alarms)
        total.begun += [plan.row.name] * plan.begins_again
