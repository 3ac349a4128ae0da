"""Delete the pages of a session or of a source. What they taught stays, as sums.

Retention's way for single pages, on a store that no server uses: the newest publication of a context is kept as the
snapshot that a replay begins with, and pages that are in it may go. Whether all of them can go is checked first.

A server that continues from the snapshot does not find the visitor in its newest window. That changes nothing: all
pages of the visitor in it are gone, new ones come in later windows, and one that a crash had taken and whose token
brings it back counts once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, product
from typing import NamedTuple

from saferank.errors import ArgumentError
from saferank.service.clock import moment
from saferank.service.commands.feedback import report_digest
from saferank.service.knowledge.closed_pages import issue_time
from saferank.service.knowledge.visits.visitors import Visitor, visitor
from saferank.service.protocol.switches import Switches
from saferank.store.contract import SHARDS, ContextRow, Lease, Mark, PageRow, Publication, StaleLeaseError, Store
from saferank.store.page_record import glance

SLICE = 500
"""Pages that are deleted in one transaction."""
MOST_CLICKS = 8
"""Event ids are found by what was reported. A page with 8 clicks has 256 reports; of more, none is tried."""
_NAME = "saferank forget"
_LEASE_MS = 30_000
_BEAT_EVERY = 2_000  # pages that are read
_OBEYS_ALL = 1 << 62  # it serves nobody, so no kill switch has to wait for it


class NotForgottenError(ValueError):
    """Why not everything was deleted, and what to do."""


@dataclass
class Forgotten:
    """What was deleted."""

    pages: int = 0
    contexts: int = 0
    events: int = 0
    untried: int = 0  # pages with too many clicks to find their event ids

    def sentences(self) -> list[str]:
        """For people."""
        if not self.pages:
            return ["the log has no page of it: nothing was removed"]
        found = [
            f"removed {self.pages} pages of {self.contexts} contexts, and {self.events} event ids",
            "what stays: sums that were learnt from these pages (comparisons of items, counters, marks of votes of 4 "
            "bytes, the number of pages of a source on the newest day) and the ids of pages that made a new version",
            "replay begins with the newest publication of these contexts; earlier versions cannot be gone back to",
            "backups that were made before still have the pages",
        ]
        if self.untried:
            found.insert(1, f"event ids of {self.untried} pages with more than {MOST_CLICKS} clicks stay (keep_days)")
        return found


class _Found(NamedTuple):
    """Pages to delete, all of one context, and the publication that they are in."""

    row: ContextRow
    mark: Mark
    pages: Sequence[PageRow]


async def forget(store: Store, tenant: str, session: str | None = None, source: str | None = None) -> Forgotten:
    """Open a store, delete the pages of a session, of a source or of either, and their event ids.

    ``session`` and ``source`` are as rank calls named them. NotForgottenError, before anything is deleted, when a
    server uses the store, when the tenant has no contexts, or when some of the pages are not in a publication yet; and
    when a server is started meanwhile.
    """
    if session is None and source is None:
        raise ArgumentError("session", "name a session, a source or both")
    await store.open()
    try:
        key = await store.meta("session_key")
        if key is None:
            raise NotForgottenError("the store has no session key; it was not made by a service")
        who = visitor(key, tenant, session, None, source)
        async with _Holder(store) as holder:
            return await _deleted(store, holder, await _found(store, holder, tenant, who))
    except StaleLeaseError as problem:
        raise NotForgottenError("a server was started meanwhile; pages may be left: stop it and try again") from problem
    finally:
        await store.close()


class _Holder:
    """Holds all shards, as the only server of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._leases: dict[int, Lease] = {}

    async def __aenter__(self) -> "_Holder":
        alive = await self._store.servers()
        if alive:
            until = moment(max(row.lease_until for row in alive))
            raise NotForgottenError(
                f"{len(alive)} servers use this store; stop them first (one that was killed counts until {until})"
            )
        await self.beat()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._store.leave(_NAME)

    async def beat(self) -> None:
        """Go on holding the shards; StaleLeaseError when they are not all held any more."""
        beat = await self._store.heartbeat(_NAME, _OBEYS_ALL, _LEASE_MS)
        self._leases = {lease.shard: lease for lease in beat.leases}
        if beat.servers > 1 or len(self._leases) < SHARDS:
            raise StaleLeaseError(f"{beat.servers - 1} others use the store")

    def lease(self, context: int) -> Lease:
        """The lease of the shard of a context."""
        return self._leases[context % SHARDS]


async def _found(store: Store, holder: _Holder, tenant: str, who: Visitor) -> list[_Found]:
    """The pages of a visitor by context; NotForgottenError if some cannot be deleted."""

    def is_theirs(page: PageRow) -> bool:
        facts = glance(page.record)
        return bool((who.key and facts.visitor == who.key) or (who.source and facts.source == who.source))

    switches, found = Switches(), []
    switches.obey(await store.operations(0))
    for row in await _contexts_of(store, tenant):
        pages = await _pages_where(store, holder, row, is_theirs)
        if pages:
            mark = _checked_mark(await store.publication(row.id), switches, row, pages)
            found.append(_Found(row, mark, pages))
    return found


async def _contexts_of(store: Store, tenant: str) -> list[ContextRow]:
    """The contexts of a tenant; NotForgottenError when there are none."""
    rows = await store.contexts()
    mine = [row for row in rows if row.tenant == tenant]
    if not mine:
        tenants = ", ".join(sorted({row.tenant for row in rows})) or "none"
        raise NotForgottenError(f"tenant {tenant!r} has no contexts; tenants that have some: {tenants}")
    return mine


async def _pages_where(
    store: Store, holder: _Holder, row: ContextRow, is_meant: Callable[[PageRow], bool]
) -> list[PageRow]:
    """Some pages of a context; all of them are read."""
    await holder.beat()
    found, read = [], 0
    async for page in store.all_pages(row.id):
        read += 1
        if is_meant(page):
            found.append(page)
        if read % _BEAT_EVERY == 0:
            await holder.beat()
    return found


def _checked_mark(newest: Publication | None, switches: Switches, row: ContextRow, pages: Sequence[PageRow]) -> Mark:
    """The newest publication of a context, which all these pages must be in, and every rollback."""
    mark = Mark(0, 0, 0) if newest is None else Mark(newest.number, newest.through, newest.operation)
    missing = [page for page in pages if issue_time(page) > mark.through]
    if missing:
        until = moment(max(page.closes_at for page in missing))
        raise NotForgottenError(
            f"{len(missing)} of the pages in context {row.name!r} have not been learnt from yet: start the service "
            f"when their windows are over ({until}), stop it and try again"
        )
    if switches.rollbacks(row.id, mark.operation):
        raise NotForgottenError(f"context {row.name!r} waits for a rollback: start the service, stop it and try again")
    return mark


async def _deleted(store: Store, holder: _Holder, found: Sequence[_Found]) -> Forgotten:
    total = Forgotten(contexts=len(found))
    for row, mark, pages in found:
        await holder.beat()
        await store.keep_publication(holder.lease(row.id), row.id)
        await _delete_slices(store, holder, row, mark, pages, total)
    return total


async def _delete_slices(
    store: Store, holder: _Holder, row: ContextRow, mark: Mark, pages: Sequence[PageRow], total: Forgotten
) -> None:
    """Delete pages that are in a kept snapshot, and their event ids, and count them."""
    for start in range(0, len(pages), SLICE):
        await holder.beat()
        some = pages[start : start + SLICE]
        digests = [digest for page in some for digest in _digests(page)]
        impressions = [page.impression for page in some]
        gone = await store.delete_pages(holder.lease(row.id), row.id, mark, impressions, digests)
        total.pages += gone.pages
        total.events += gone.events
    total.untried += sum(page.clicks.bit_count() > MOST_CLICKS for page in pages)


def _digests(page: PageRow) -> Iterator[bytes]:
    """Of every report that a page may have got: all sets of its clicks."""
    if page.clicks.bit_count() > MOST_CLICKS:
        return
    bits = [1 << place for place in range(page.clicks.bit_length()) if page.clicks >> place & 1]
    for chosen in product((False, True), repeat=len(bits)):
        yield report_digest(page.impression, sum(compress(bits, chosen)))
