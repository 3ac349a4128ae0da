"""Replay: the whole log folded again and compared with what was published."""

import gc
import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from saferank.errors import ArgumentError
from saferank.policies import policy_kind
from saferank.service.calls.legality import Legality
from saferank.service.identifiers import issued_at, last_id
from saferank.service.knowledge.arms import EXPLORE
from saferank.service.knowledge.catalogues import Catalogue, Catalogues
from saferank.service.knowledge.fold import Fold, differences, pack, restored
from saferank.service.protocol.contexts import Contexts, Limits, recall_visitors
from saferank.service.protocol.switches import Switches
from saferank.store.contract import (
    RESTORED,
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
from saferank.store.record_columns import ARM, CONTEXT, KNOWLEDGE, NUMBER, SERVER, TENANT, ClosedPages
from saferank.verbs import Ints

# --- what a replay found, as numbers and as sentences ---


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


# Replay: all pages folded from the beginning, without snapshots, and compared with everything derived from them


_AT_ONCE = 2048
"""Pages that are folded in one go."""

_TOGETHER = 32
"""Contexts that are replayed side by side; with more of them, one after the other."""

DAMAGE = (LookupError, ValueError, TypeError, AssertionError, struct.error, zlib.error)
"""What reading a store may raise whose content is damaged."""


class DifferenceError(ValueError):
    """The first thing in a store that its pages do not give."""


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
    except (DifferenceError, DamagedStoreError, ArgumentError):
        raise
    except StoreError as problem:
        raise DifferenceError(str(problem)) from problem
    except DAMAGE as problem:
        raise DifferenceError(f"the store is damaged: {problem!r}") from problem
    finally:
        await store.close()


async def _verified(store: Store, progress: Callable[[int], None], every: int) -> ReplayReport:
    for sentence in await store.damage():
        raise DamagedStoreError(sentence)
    report, numbers = ReplayReport(), dict[int, NumberedPages]()
    switches, operations, rows = Switches(), await store.operations(0), await store.contexts()
    _check_policies(rows, operations)
    switches.obey(operations)
    # Numbers of pages are gapless over all contexts: gaps from before any page was deleted say nothing.
    since = max([await store.pruned_through(row.id) for row in rows], default=0)
    restored_at = json.loads(await store.meta(RESTORED) or b'{"at": 0}')["at"]
    comparisons = [
        _Comparison(store, row, switches.to_carry_out(row, 0), report, numbers, restored_at, since, every)
        for row in rows
    ]
    # In display order over all contexts a store reads pages as they lie: SQLite fetches them with about half the work.
    together = [comparisons] if len(rows) <= _TOGETHER else [[one] for one in comparisons]
    for some in together:
        await _compare(store, some, lambda: progress(report.pages))
    report.lost = sum(seen.missing(from_first=bool(report.pruned)) for seen in numbers.values())
    return report


def _check_policies(rows: Sequence[ContextRow], operations: Sequence[OperationRow]) -> None:
    """ArgumentError for a policy of a context, or of a reset, that is not registered here."""
    names = {row.id: row.name for row in rows}
    policies = {json.loads(row.terms)["policy"]: row.name for row in rows}
    for operation in operations:
        terms = _facts(operation).get("terms") if operation.kind == OperationKind.RESET else None
        if terms is not None:
            policies.setdefault(terms["policy"], names[operation.context])
    for policy, context in policies.items():
        try:
            policy_kind(policy)
        except ValueError as problem:
            raise ArgumentError(
                "plugin",
                f"context {context!r} is served by the policy {policy!r}, which is not known here; "
                "name its file or module",
            ) from problem


async def _compare(store: Store, comparisons: Sequence["_Comparison"], progress: Callable[[], None]) -> None:
    """Read the pages of some contexts, all or one, and hand them out in runs."""
    for one in comparisons:
        await one.begin()
    by_context = {one.context: one for one in comparisons}
    waiting: dict[int, list[PageRow]] = defaultdict(list)
    only = comparisons[0] if len(comparisons) == 1 else None
    pages = store.all_pages() if only is None else store.all_pages(only.context, only.after)
    async for some in pages:
        for page in some:
            waiting[page.context].append(page)
        for context in [context for context, rows in waiting.items() if len(rows) >= _AT_ONCE]:
            rows = waiting.pop(context)
            if context in by_context:  # otherwise it was opened since
                await by_context[context].take(rows)
            progress()
    for one in comparisons:
        await one.take(waiting[one.context])
        await one.end()
        progress()


@dataclass
class NumberedPages:
    """The pages of one run of a server, which numbers them from 1 without gaps."""

    pages: int = 0
    first: int = 1 << 62
    last: int = 0

    def add(self, numbers: Ints) -> None:
        """Take in pages with these numbers."""
        self.pages += len(numbers)
        self.first, self.last = min(self.first, int(numbers.min())), max(self.last, int(numbers.max()))

    def missing(self, from_first: bool) -> int:
        """How many are missing; ``from_first``: not counting those before the first that is there."""
        return self.last - self.pages - (self.first - 1 if from_first else 0)


class _Comparison:
    """The replay of one context."""

    def __init__(
        self,
        store: Store,
        row: ContextRow,
        operations: Sequence[OperationRow],
        report: ReplayReport,
        numbers: dict[int, NumberedPages],
        restored_at: int,
        numbered_since: int,
        every: int,
    ) -> None:
        self._store, self._row, self._operations, self._report = store, row, list(operations), report
        self._numbers = numbers
        self._restored_at, self._numbered_since = restored_at, numbered_since
        self._told_from = 0  # versions up to this one are not given by the pages that are left
        self._targets = {_facts(row)["version"] for row in operations if row.kind == OperationKind.ROLLBACK}
        self._saved: dict[int, bytes] = {}  # by version: the knowledge that somebody went back to
        self._catalogues: dict[bytes, Catalogue | None] = {}
        self._contexts = Contexts(store, Catalogues(), Limits(1))
        self._legality = Legality(every, self._catalogue)
        self._written: list[VersionRow] = []
        self._to_compare: list[tuple[Publication, bool]] = []  # and whether it is a snapshot
        self._is_published = False
        self._fold: Fold
        self.after = b""  # pages with later ids are to be taken

    @property
    def context(self) -> int:
        """The number of the context."""
        return self._row.id

    async def begin(self) -> None:
        """Read what the pages are compared with."""
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
        self._to_compare = [(snapshot, True) for snapshot in snapshots if snapshot is not begin]
        self._to_compare += [(newest, False)] if newest is not None else []
        self._is_published = newest is not None
        self.after = b"" if begin is None else last_id(begin.through)
        self._report.contexts += 1

    async def take(self, rows: list[PageRow]) -> None:
        """Fold the next pages, and compare versions and publications on the way; open pages are only checked."""
        if self.after:  # a snapshot stands for deleted pages, and for those that were issued with them
            rows = [row for row in rows if row.impression > self.after]
        pages = self._checked(rows)
        while len(pages) and self._to_compare:
            through = self._to_compare[0][0].through
            end = int(np.searchsorted(pages.issued_at, through, side="right"))
            if end == len(pages):
                await self._take(pages, min(through, int(pages.issued_at[-1]) - 1))  # the next may be as old
                return
            await self._take(pages.select(slice(end)), through)
            self._compare_next()
            pages = pages.select(slice(end, None))
        await self._compare_pages(pages)

    async def end(self) -> None:
        """All pages were taken: compare the rest."""
        while self._to_compare:
            self._fold.fold((), self._to_compare[0][0].through)
            self._compare_next()
        count = len(self._written)
        if self._is_published and count != self._fold.version:
            raise self._difference(f"{count} versions are written, the log gives {self._fold.version}")
        self._report.legal += self._legality.checked
        self._report.learnt += self._fold.learnt
        self._report.alarms += self._fold.alarms["contradiction"]

    def _compare_next(self) -> None:
        """The fold has come to a publication: compare."""
        publication, is_snapshot = self._to_compare.pop(0)
        self._carry_out_to(publication.operation)
        self._compare_publication(publication, is_snapshot)

    async def _begin(self, snapshots: Sequence[Publication]) -> Publication | None:
        """The snapshot that stands for pages that were deleted, if some were."""
        if not await self._store.pruned_through(self._row.id):
            return None
        if not snapshots:
            raise self._difference("pages were deleted, and the snapshot that stands for them is missing")
        return snapshots[0]

    async def _begin_with(self, begin: Publication) -> None:
        """Take the knowledge of a snapshot and the visitors of its newest window."""
        fold = self._fold
        await recall_visitors(self._store, fold)
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

    def _checked(self, rows: list[PageRow]) -> ClosedPages:
        pages = ClosedPages(rows)
        self._check_records(pages)
        self._check_places(pages)
        self._check_clicks(pages)
        self._note_numbers(pages)
        self._report.explored += int((pages.column(ARM) == EXPLORE).sum())
        self._report.pages += len(pages)
        return pages

    def _check_records(self, pages: ClosedPages) -> None:
        for number, fault in pages.faults().items():
            raise self._difference(f"page {pages.row(number).impression.hex()} is damaged: {fault}")

    def _check_places(self, pages: ClosedPages) -> None:
        """Every record is in the row and in the context of its page."""
        _, tenant, name, *_ = self._row
        own = pages.has_text(TENANT, tenant) & pages.has_text(CONTEXT, name)
        rows = [pages.row(number) for number in range(len(pages))]
        same = [id_ == row.impression for id_, row in zip(pages.field("impression"), rows, strict=True)]
        for number in np.flatnonzero(~(own & np.array(same, np.bool_))).tolist():
            raise self._difference(f"page {rows[number].impression.hex()} is in the place of another page")

    def _check_clicks(self, pages: ClosedPages) -> None:
        for number in pages.clicked_beyond():
            name = pages.row(number).impression.hex()
            raise self._difference(f"page {name} has clicks on places that it does not have")

    def _note_numbers(self, pages: ClosedPages) -> None:
        numbers = pages.column(NUMBER)
        told = np.flatnonzero((pages.issued_at > self._numbered_since) & (numbers > 0))
        servers = pages.column(SERVER)[told]
        for server in np.unique(servers).tolist():
            self._numbers.setdefault(server, NumberedPages()).add(numbers[told[servers == server]])

    async def _take(self, pages: ClosedPages, through: int) -> None:
        self._fold.take(pages, through)
        await self._compare_pages(pages)

    async def _compare_pages(self, pages: ClosedPages) -> None:
        """Every page names a version that there is, and was legal under it."""
        versions, most = pages.column(KNOWLEDGE), max(self._fold.version, len(self._written))
        if versions.max(initial=0) > most:  # the service may have learnt something since the versions were read
            most = max(most, len(await self._store.versions(self._row.id)))
        for number in np.flatnonzero(versions > most).tolist():
            self._note_foreign(pages.row(number), int(versions[number]))
        explored = pages.select((versions <= most) & (pages.column(ARM) == EXPLORE))
        if not len(explored):
            return
        fault = await self._legality.first_fault(explored)
        if fault is not None:
            row, version = explored.row(fault[0]), int(explored.column(KNOWLEDGE)[fault[0]])
            raise self._difference(f"page {row.impression.hex()} was not legal under version {version}: {fault[1]}")

    def _note_foreign(self, row: PageRow, version: int) -> None:
        """A page that names a later version was made from what the old store knew after its backup."""
        if issued_at(row.impression) >= self._restored_at:
            raise self._difference(
                f"page {row.impression.hex()} names version {version}; by the log there are {self._fold.version}"
            )
        self._report.foreign += 1

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
            # The version was deleted by then, or of other terms: no server went back.
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
