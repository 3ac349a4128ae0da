"""Replay: all pages folded from the beginning, without snapshots, and compared with everything derived from them."""

import gc
import json
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from saferank.service.identifiers import last_id
from saferank.service.knowledge.arms import EXPLORE
from saferank.service.knowledge.catalogues import Catalogue, Catalogues
from saferank.service.knowledge.fold import Fold, issue_time
from saferank.service.knowledge.publications import differences, pack, restored
from saferank.service.protocol.contexts import Contexts, Limits
from saferank.service.protocol.switches import Switches
from saferank.service.queries.legality import Legality
from saferank.store.contract import (
    ContextRow,
    DamagedStoreError,
    OperationKind,
    OperationRow,
    PageRow,
    Publication,
    Store,
    StoreError,
    VersionRow,
)
from saferank.store.facts import RESTORED
from saferank.store.first_edition.contexts import SERVER as FIRST_EDITION
from saferank.store.page_record import ACTIVATED, PageRecord, unpacked

_AT_ONCE = 4096
"""Pages that are folded in one go."""

DAMAGE = (LookupError, ValueError, TypeError, AssertionError, struct.error, zlib.error)
"""What reading a store may raise whose content is damaged."""


class DifferenceError(ValueError):
    """The first thing in a store that its pages do not give."""


@dataclass
class ReplayReport:
    """What a replay went through, and found to be as the log says."""

    contexts: int = 0
    pages: int = 0
    explored: int = 0
    learnt: int = 0
    versions: int = 0
    publications: int = 0
    snapshots: int = 0
    rollbacks: int = 0
    resets: int = 0
    alarms: int = 0
    lost: int = 0
    foreign: int = 0
    pruned: int = 0
    untold: int = 0
    legal: int = 0

    def sentences(self) -> list[str]:
        """For people."""
        lost = (
            f"{self.lost} issued pages without clicks are missing: a crash took them"
            if self.lost
            else "no page is missing"
        )
        foreign = (
            f"; {self.foreign} pages came back after the restore from a backup and name later versions"
            if self.foreign
            else ""
        )
        begin = (
            f"{self.pruned} of them from their oldest kept snapshot on, because older pages were deleted (keep_days "
            f"or forget); {self.untold} versions from before are taken as they are written"
            if self.pruned
            else "from the beginning, without snapshots"
        )
        return [
            f"folded {self.pages} pages of {self.contexts} contexts, {begin}: "
            f"{self.explored} explored, clicks of {self.learnt} learnt",
            f"every page record has its checksum and names a version of the knowledge that was there; {lost}{foreign}",
            "every page that was written is there, unless it was deleted by keep_days or forget",
            f"{self.legal} explored pages were checked again: each was legal under the version that it names",
            f"all {self.versions} versions follow from the log, with their leaders and certificates "
            f"({self.rollbacks} rollbacks, {self.resets} resets, {self.alarms} contradictions)",
            f"all {self.publications} publications and {self.snapshots} snapshots are equal to the fold, bit for bit",
        ]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Millions of pages are made and none of them is garbage: looking for some would take a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


async def verify(store: Store, progress: Callable[[int], None] = lambda pages: None, every: int = 100) -> ReplayReport:
    """Open a store, fold all pages and compare; DifferenceError names the first difference.

    Whether pages were legal is checked for the first 20,000 of a context and one in ``every`` of the others; 0: none.
    """
    await store.open()
    try:
        with without_garbage_collection():
            return await _verified(store, progress, every)
    except (DifferenceError, DamagedStoreError):
        raise
    except StoreError as problem:
        raise DifferenceError(str(problem)) from problem
    except DAMAGE as problem:
        raise DifferenceError(f"the store is damaged: {problem!r}") from problem
    finally:
        await store.close()


async def _verified(store: Store, progress: Callable[[int], None], every: int) -> ReplayReport:
    report, numbers = ReplayReport(), dict[str, list[int]]()
    switches = Switches()
    switches.obey(await store.operations(0))
    rows = await store.contexts()
    # Numbers of pages are gapless over all contexts: gaps from before any page was deleted say nothing.
    since = max([await store.pruned_through(row.id) for row in rows], default=0)
    restored_at = json.loads(await store.meta(RESTORED) or b'{"at": 0}')["at"]
    for row in rows:
        report.contexts += 1
        mine = switches.to_carry_out(row, 0)
        await _Comparison(store, row, mine, report, numbers, progress, restored_at, since, every).compare()
    for fault in await store.faults():
        raise DifferenceError(fault.detail)
    for seen in numbers.values():
        report.lost += max(seen) - len(seen) - (min(seen) - 1 if report.pruned else 0)
    return report


class _Comparison:
    """The replay of one context."""

    def __init__(
        self,
        store: Store,
        row: ContextRow,
        operations: Sequence[OperationRow],
        report: ReplayReport,
        numbers: dict[str, list[int]],
        progress: Callable[[int], None],
        restored_at: int,
        numbered_since: int,
        every: int,
    ) -> None:
        self._store, self._row, self._operations, self._report = store, row, list(operations), report
        self._numbers, self._progress = numbers, progress
        self._restored_at, self._numbered_since = restored_at, numbered_since
        self._told_from = 0  # versions up to this one are not given by the pages that are left
        self._targets = {_facts(row)["version"] for row in operations if row.kind == OperationKind.ROLLBACK}
        self._saved: dict[int, bytes] = {}  # by version: the knowledge that somebody went back to
        self._catalogues: dict[bytes, Catalogue | None] = {}
        self._contexts = Contexts(store, Catalogues(), Limits(1))
        self._legality = Legality(every, self._catalogue)
        self._written: list[VersionRow] = []
        self._fold: Fold

    async def compare(self) -> None:
        """Fold the pages, and compare versions, snapshots and the newest publication on the way."""
        newest = await self._store.publication(self._row.id)
        self._written = list(await self._store.versions(self._row.id))
        snapshots = list(await self._store.snapshots(self._row.id))
        begin = await self._begin(snapshots)
        self._fold = fold = await self._contexts.fold_of(self._row, begin)
        made, fold.versions = fold.versions, []
        fold.version_made = self._compare_version
        if begin is not None:
            await self._begin_with(begin)
        for version in made if begin is None else ():
            if newest is not None:
                self._compare_version(version)
            self._legality.note(version, fold)
        marks = [(mark, True) for mark in snapshots if mark is not begin]
        marks += [(newest, False)] if newest is not None else []
        pages = self._read_pages(b"" if begin is None else last_id(begin.through))
        rest: list[PageRow] = []
        for mark, is_snapshot in marks:
            rest = await self._fold_through(pages, rest, mark.through)
            self._carry_out_to(mark.operation)
            self._compare_publication(mark, is_snapshot)
        await self._look_at_rest(pages, rest)
        count = len(self._written)
        if newest is not None and count != fold.version:
            raise self._difference(f"{count} versions are written, the log gives {fold.version}")
        self._report.legal += self._legality.checked
        self._report.learnt += fold.learnt
        self._report.alarms += fold.alarms["contradiction"]

    async def _begin(self, snapshots: Sequence[Publication]) -> Publication | None:
        """The snapshot that stands for pages that were deleted, if some were."""
        if not await self._store.pruned_through(self._row.id):
            return None
        if not snapshots:
            raise self._difference("pages were deleted, and the snapshot that stands for them is missing")
        return snapshots[0]

    async def _begin_with(self, begin: Publication) -> None:
        """Take the knowledge of a snapshot and the visitors of its newest window."""
        fold, window = self._fold, self._fold.terms.window_ms
        fold.recall(await self._store.pages_between(self._row.id, begin.through // window * window - 1, begin.through))
        self._operations = [row for row in self._operations if row.number > begin.operation]
        self._told_from = fold.version
        for row in self._written:
            if row.version == fold.version:
                self._legality.note(row, fold)
        self._report.pruned += 1
        self._report.untold += fold.version

    async def _catalogue(self, digest: bytes) -> Catalogue | None:
        if digest not in self._catalogues:
            self._catalogues[digest] = await self._contexts.known_catalogue(digest)
        return self._catalogues[digest]

    async def _read_pages(self, after: bytes) -> AsyncIterator[PageRow]:
        report = self._report
        async for page in self._store.all_pages(self._row.id, after):
            record = self._checked(page)
            report.pages += 1
            report.explored += record.arm == EXPLORE
            if page.server and issue_time(page) > self._numbered_since:
                self._numbers.setdefault(page.server, []).append(page.number)
            if report.pages % _AT_ONCE == 0:
                self._progress(report.pages)
            yield page

    def _checked(self, page: PageRow) -> PageRecord:
        record = unpacked(page.record)
        if record.impression != page.impression or (record.tenant, record.context) != self._row[1:3]:
            raise self._difference(f"page {page.impression.hex()} is in the place of another page")
        if (page.clicks & ~(ACTIVATED * record.deferred)) >> record.k:
            raise self._difference(f"page {page.impression.hex()} has clicks on places that it does not have")
        return record

    async def _fold_through(self, pages: AsyncIterator[PageRow], rest: list[PageRow], through: int) -> list[PageRow]:
        """Fold pages through a time; those that were read and come later are given back."""
        batch, later = (
            [page for page in rest if issue_time(page) <= through],
            [page for page in rest if issue_time(page) > through],
        )
        if not later:
            async for page in pages:
                if issue_time(page) > through:
                    later.append(page)
                    break
                batch.append(page)
                if len(batch) >= _AT_ONCE:
                    await self._take(batch, issue_time(page) - 1)
                    batch = []
        await self._take(batch, through)
        return later

    async def _take(self, batch: list[PageRow], through: int) -> None:
        self._fold.fold(batch, through)
        for page in batch:
            await self._compare_page(page)

    async def _compare_page(self, page: PageRow) -> None:
        record = unpacked(page.record)
        named = record.knowledge
        if named > max(self._fold.version, len(self._written)):
            if issue_time(page) < self._restored_at:  # made from knowledge that the old store had after the backup
                self._report.foreign += 1
                return
            raise self._difference(
                f"page {page.impression.hex()} names version {named}; by the log there are {self._fold.version}"
            )
        if record.arm != EXPLORE or page.server == FIRST_EDITION:  # which had other versions, and they were not kept
            return
        fault = await self._legality.fault(record)
        if fault is not None:
            raise self._difference(f"page {page.impression.hex()} was not legal under version {named}: {fault}")

    async def _look_at_rest(self, pages: AsyncIterator[PageRow], rest: list[PageRow]) -> None:
        """Pages that are not closed are read and checked."""
        for page in rest:
            await self._compare_page(page)
        async for page in pages:
            await self._compare_page(page)

    def _carry_out_to(self, operation: int) -> None:
        while self._operations and self._operations[0].number <= operation:
            row = self._operations.pop(0)
            if row.kind == OperationKind.ROLLBACK:
                self._roll_back(row)
            elif row.kind == OperationKind.RESET:
                self._fold.reset(row.number, row.at, **_facts(row))
                self._report.resets += 1
            else:
                self._fold.compare_again(row.number, row.at, whole=row.context == 0)

    def _roll_back(self, row: OperationRow) -> None:
        facts = _facts(row)
        if facts["version"] <= self._told_from or facts["version"] < self._fold.terms_version:
            # The version was deleted by then, or of other terms: nobody went back.
            self._fold.operation = row.number
            return
        if facts["version"] not in self._saved:
            raise self._difference(f"somebody went back to version {facts['version']}, which the log does not give")
        saved = _restored(self._fold, self._saved[facts["version"]])
        self._fold.roll_back(saved, row.number, row.at, facts["why"])
        self._report.rollbacks += 1

    def _compare_version(self, row: VersionRow) -> None:
        """Compare with the table of versions; keep the knowledge if somebody went back to it."""
        written = self._written[row.version - 1] if row.version <= len(self._written) else None
        if written != row:
            raise self._difference(f"version {row.version} is {row} by the log, but {written} is written")
        self._report.versions += 1
        self._legality.note(row, self._fold)
        if row.version in self._targets:
            self._saved[row.version] = pack(self._fold)

    def _compare_publication(self, publication: Publication, is_snapshot: bool) -> None:
        names = differences(pack(self._fold), publication.body)
        kind = "snapshot" if is_snapshot else "publication"
        if names:
            raise self._difference(f"{kind} {publication.number} differs from the log in {', '.join(names)}")
        self._report.snapshots += is_snapshot
        self._report.publications += not is_snapshot

    def _difference(self, what: str) -> DifferenceError:
        return DifferenceError(f"context {self._row.id} ({self._row.name!r}): {what}")


def _facts(row: OperationRow) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(row.body)
    return facts


def _restored(fold: Fold, body: bytes) -> Fold:
    """The knowledge that was kept of an earlier version."""
    return restored(Publication(fold.context, 0, 0, 0, body), fold.opened_terms)
