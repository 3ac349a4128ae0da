"""Replay: the whole log folded again and compared with what was published."""

import gc
import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from saferank.errors import ArgumentError
from saferank.policies import policy_kind
from saferank.service.calls.legality import Legality
from saferank.service.identifiers import last_id
from saferank.service.knowledge.arms import EXPLORE
from saferank.service.knowledge.fold import Fold, differences, pack, restored
from saferank.service.knowledge.view import Catalogue, Catalogues
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
from saferank.store.page_record import issued_at
from saferank.store.record_columns import ARM, CONTEXT, KNOWLEDGE, NUMBER, SERVER, TENANT, ClosedPages

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
        lost, foreign, begin = "no page is missing", "", "from the beginning, without snapshots"
        if self.lost:
            lost = f"{self.lost} issued pages without clicks are missing: a crash took them"
        if self.foreign:
            foreign = f"; {self.foreign} pages came back after the restore from a backup and name later versions"
        if self.pruned:
            begin = (
                f"{self.pruned} of them from their oldest kept snapshot on, because older pages were deleted "
                f"(keep_days or forget); {self.untold} versions from before are taken as they are written"
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


async def verify(store: Store, progress: Callable[[int], None] = lambda pages: None, every: int = 100) -> ReplayReport:
    """Open a store, fold all pages and compare; DifferenceError names the first difference.

    Whether pages were legal is checked for the first 20,000 of a context and one in ``every`` of the others; 0: none.
    """
    await store.open()
    collects = gc.isenabled()
    gc.disable()  # millions of pages are made and none is garbage: looking for some would take a fifth of the time
    try:
        return await _verified(store, progress, every)
    except (DifferenceError, DamagedStoreError, ArgumentError):
        raise
    except StoreError as problem:
        raise DifferenceError(str(problem)) from problem
    except DAMAGE as problem:
        raise DifferenceError(f"the store is damaged: {problem!r}") from problem
    finally:
        if collects:
            gc.enable()
        await store.close()


async def _verified(store: Store, progress: Callable[[int], None], every: int) -> ReplayReport:
    for sentence in await store.damage():
        raise DamagedStoreError(sentence)
    switches, operations, rows = Switches(), await store.operations(0), await store.contexts()
    _check_policies(rows, operations)
    switches.obey(operations)
    replay = _Replay(
        store,
        Contexts(store, Catalogues(), Limits(1)),
        every,
        restored_at=json.loads(await store.meta(RESTORED) or b'{"at": 0}')["at"],
        numbered_since=max([await store.pruned_through(row.id) for row in rows], default=0),
    )
    comparisons = [_Comparison(replay, row, switches.to_carry_out(row, 0)) for row in rows]
    # In display order over all contexts a store reads pages as they lie: SQLite fetches them with about half the work.
    together = [comparisons] if len(rows) <= _TOGETHER else [[one] for one in comparisons]
    for some in together:
        await _compare(store, some, lambda: progress(replay.report.pages))
    replay.count_lost()
    return replay.report


def _check_policies(rows: Sequence[ContextRow], operations: Sequence[OperationRow]) -> None:
    """ArgumentError for a policy of a context, or of a reset, that is not registered here."""
    names = {row.id: row.name for row in rows}
    policies = {json.loads(row.terms)["policy"]: row.name for row in rows}
    for operation in operations:
        terms = json.loads(operation.body).get("terms") if operation.kind == OperationKind.RESET else None
        if terms:
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
class _Replay:
    """What the replays of all contexts have in common."""

    store: Store
    contexts: Contexts
    every: int
    restored_at: int
    numbered_since: int  # gaps from before any page was deleted say nothing
    report: ReplayReport = field(default_factory=ReplayReport)
    numbers: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Every run of a server numbers its pages from 1 without gaps: how many of a run are there, the first, the last."""

    def note_numbers(self, pages: ClosedPages) -> None:
        """Take in the numbers of pages, of whatever context."""
        numbers = pages.column(NUMBER)
        told = np.flatnonzero((pages.issued_at > self.numbered_since) & (numbers > 0))
        servers = pages.column(SERVER)[told]
        for server in np.unique(servers).tolist():
            mine = numbers[told[servers == server]]
            count, first, last = self.numbers.get(server, (0, 1 << 62, 0))
            self.numbers[server] = count + len(mine), min(first, int(mine.min())), max(last, int(mine.max()))

    def count_lost(self) -> None:
        """Count the numbers that are missing; when pages were deleted, behind the first that is there."""
        spans = self.numbers.values()
        self.report.lost = sum(last - count - (first - 1 if self.report.pruned else 0) for count, first, last in spans)


class _Comparison:
    """The replay of one context."""

    def __init__(self, replay: _Replay, row: ContextRow, operations: Sequence[OperationRow]) -> None:
        self._replay, self._store, self._report = replay, replay.store, replay.report
        self._row, self._operations = row, list(operations)
        self._told_from = 0  # versions up to this one are not given by the pages that are left
        self._targets = {json.loads(row.body)["version"] for row in operations if row.kind == OperationKind.ROLLBACK}
        self._saved: dict[int, bytes] = {}  # by version: the knowledge that somebody went back to
        self._catalogues: dict[bytes, Catalogue | None] = {}
        self._legality = Legality(replay.every, self._catalogue)
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
        """Read what the pages are compared with, and the snapshot that stands for pages that were deleted."""
        store, number, begin = self._store, self._row.id, None
        newest, snapshots = await store.publication(number), list(await store.snapshots(number))
        self._written = list(await store.versions(number))
        if await store.pruned_through(number):
            if not snapshots:
                raise self._difference("pages were deleted, and the snapshot that stands for them is missing")
            begin = snapshots.pop(0)
        self._fold = fold = await self._replay.contexts.fold_of(self._row, begin)
        made, fold.versions, fold.version_made = fold.versions, [], self._compare_version
        for version in made:
            if newest is not None:
                self._compare_version(version)
            self._legality.note(version, fold)
        if begin is not None:
            self.after = last_id(begin.through)
            await recall_visitors(store, fold)
            self._operations = [row for row in self._operations if row.number > begin.operation]
            self._told_from = fold.version
            for row in self._written:
                if row.version == fold.version:
                    self._legality.note(row, fold)
            self._report.pruned += 1
            self._report.untold += fold.version
        self._to_compare = [(snapshot, True) for snapshot in snapshots]
        self._to_compare += [(newest, False)] if newest is not None else []
        self._is_published = newest is not None
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
                self._fold.take(pages, min(through, int(pages.issued_at[-1]) - 1))  # the next may be as old
                break
            part = pages.select(slice(end))
            self._fold.take(part, through)
            await self._compare_pages(part)
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

    async def _catalogue(self, digest: bytes) -> Catalogue | None:
        if digest not in self._catalogues:
            self._catalogues[digest] = await self._replay.contexts.known_catalogue(digest)
        return self._catalogues[digest]

    def _checked(self, rows: list[PageRow]) -> ClosedPages:
        """Pages whose records are as they were written and in their places, with clicks on places that they have."""
        pages, (_, tenant, name, *_) = ClosedPages(rows), self._row
        ids = [row.impression for row in rows]
        for number, fault in pages.faults().items():
            raise self._difference(f"page {ids[number].hex()} is damaged: {fault}")
        same = [own == id_ for own, id_ in zip(pages.field("impression"), ids, strict=True)]
        own = pages.has_text(TENANT, tenant) & pages.has_text(CONTEXT, name) & np.array(same, np.bool_)
        for number in np.flatnonzero(~own).tolist():
            raise self._difference(f"page {ids[number].hex()} is in the place of another page")
        for number in pages.clicked_beyond():
            raise self._difference(f"page {ids[number].hex()} has clicks on places that it does not have")
        self._replay.note_numbers(pages)
        self._report.explored += int((pages.column(ARM) == EXPLORE).sum())
        self._report.pages += len(pages)
        return pages

    async def _compare_pages(self, pages: ClosedPages) -> None:
        """Every page names a version that there is, and was legal under it."""
        versions, most = pages.column(KNOWLEDGE), max(self._fold.version, len(self._written))
        if versions.max(initial=0) > most:  # the service may have learnt something since the versions were read
            most = max(most, len(await self._store.versions(self._row.id)))
        for number in np.flatnonzero(versions > most).tolist():
            row = pages.row(number)
            if issued_at(row.impression) >= self._replay.restored_at:
                what = f"names version {versions[number]}; by the log there are {self._fold.version}"
                raise self._difference(f"page {row.impression.hex()} {what}")
            self._report.foreign += 1  # it was made from what the old store knew after its backup
        explored = pages.select((versions <= most) & (pages.column(ARM) == EXPLORE))
        if not len(explored):
            return
        fault = await self._legality.first_fault(explored)
        if fault is not None:
            row, version = explored.row(fault[0]), int(explored.column(KNOWLEDGE)[fault[0]])
            raise self._difference(f"page {row.impression.hex()} was not legal under version {version}: {fault[1]}")

    def _carry_out_to(self, operation: int) -> None:
        while self._operations and self._operations[0].number <= operation:
            row = self._operations.pop(0)
            if row.kind == OperationKind.ROLLBACK:
                self._roll_back(row)
            elif row.kind == OperationKind.RESET:
                self._fold.reset(row.number, row.at, **json.loads(row.body))
                self._report.resets += 1
            else:
                self._fold.compare_again(row.number, row.at, whole=row.context == 0)

    def _roll_back(self, row: OperationRow) -> None:
        facts, fold = json.loads(row.body), self._fold
        if facts["version"] <= self._told_from or facts["version"] < fold.terms_version:
            # The version was deleted by then, or of other terms: no server went back.
            fold.operation = row.number
            return
        if facts["version"] not in self._saved:
            raise self._difference(f"somebody went back to version {facts['version']}, which the log does not give")
        saved = restored(Publication(fold.context, 0, 0, 0, self._saved[facts["version"]]), fold.opened_terms)
        fold.roll_back(saved, row.number, row.at, facts["why"])
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
