"""Writes to the store: reports in group commits, issued pages in the background.

One group is written at a time. Whatever arrives meanwhile makes up the next one, so under load a group holds many
reports; it then also waits for a moment, because a commit costs the same for one report as for twenty. Who reports is
answered when the group is durable, or told to try again when the store did not take it. Issued pages wait for at most
half a second; a crash loses those that waited, unless their tokens come back with clicks.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.knowledge.view import Catalogue, Catalogues, pack_catalogue
from saferank.service.wire.problems import Problem
from saferank.store.contract import (
    CatalogueRow,
    ClickReport,
    Group,
    Outcome,
    PageRow,
    Store,
    StoreUnavailableError,
    Written,
)

PAGES_AT_ONCE, PAGES_SECONDS = 500, 0.5
"""Issued pages are written when PAGES_AT_ONCE wait, or after PAGES_SECONDS."""

LINGER_SECONDS, LINGER_FROM = 0.003, 4
"""A group waits LINGER_SECONDS for more reports when the one before had at least LINGER_FROM."""

REPORTS_AT_ONCE = 1000
LONGEST_WAIT = 2.0
"""A report that would have to wait longer for its group is refused at once."""


@dataclass
class CommitCounts:
    """Numbers for the metrics page."""

    commits: int = 0
    failures: int = 0
    rows: int = 0
    seconds: float = 0.0
    last_rows: int = 0
    last_seconds: float = 0.0
    left_out: int = 0
    refused: int = 0  # what can never be written


@dataclass
class _Waiting:
    """Reports of one call, and the promise to answer it."""

    reports: Sequence[ClickReport]
    since: float
    answer: "asyncio.Future[tuple[Sequence[Outcome], int]]"


class Writer:
    """Collects reports and issued pages, and writes them."""

    def __init__(self, store: Store, clock: Clock, catalogues: Catalogues, max_pending: int) -> None:
        self.failing: str | None = None
        self.counts = CommitCounts()
        self.pages: dict[bytes, PageRow] = {}  # issued and not written
        self._store, self._clock, self._max_pending = store, clock, max_pending
        self._catalogues, self._new_catalogues = catalogues, list[CatalogueRow]()
        self._reports: deque[_Waiting] = deque()
        self._last_reports = 0  # of the newest group
        self._n_reports = 0
        self._pages_since = 0.0
        self._work = asyncio.Event()
        self._writing = asyncio.Lock()

    # --- reports and pages to be written ---

    @property
    def pending(self) -> int:
        """Pages and reports that are not written."""
        return len(self.pages) + self._n_reports

    @property
    def overloaded(self) -> bool:
        """True when more waits than may."""
        return len(self.pages) + self._n_reports > self._max_pending

    def add_page(self, page: PageRow) -> None:
        """Have an issued page written in the background."""
        if not self.pages:
            self._pages_since = self._clock.monotonic()
            self._work.set()
        self.pages[page.impression] = page
        if len(self.pages) == PAGES_AT_ONCE:
            self._work.set()

    def add_catalogue(self, digest: bytes, lists: Catalogue) -> None:
        """Have a catalogue written with the pages that name it, unless it was written lately."""
        if self._catalogues.note(digest, lists, self._clock.monotonic()):
            self._new_catalogues.append(CatalogueRow(digest, pack_catalogue(lists)))

    async def report(self, reports: Sequence[ClickReport]) -> tuple[Sequence[Outcome], int]:
        """What became of reports, once they are durable, and the store's time; Problem 503 when they were not taken."""
        if self._is_late():
            detail = f"{self._n_reports} reports wait for the store; try again in a second"
            raise Problem(503, "Too many writes", detail, retry_after=1)
        waiting = _Waiting(reports, self._clock.monotonic(), asyncio.get_running_loop().create_future())
        self._reports.append(waiting)
        self._n_reports += len(reports)
        self._work.set()
        return await waiting.answer

    def _is_late(self) -> bool:
        if not self._reports:
            return False
        waited = self._clock.monotonic() - self._reports[0].since
        return self._n_reports > self._max_pending or waited > LONGEST_WAIT

    # --- writing ---

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            if self._last_reports >= LINGER_FROM and len(self._reports) < REPORTS_AT_ONCE:
                await self._clock.sleep(LINGER_SECONDS)
            await self.write_once(with_pages=self._pages_due())
            if self._reports:
                self._work.set()
            elif self.pages or self.failing:
                await self._linger()

    def _pages_due(self) -> bool:
        if len(self.pages) >= PAGES_AT_ONCE:
            return True
        return bool(self.pages) and self._clock.monotonic() - self._pages_since >= PAGES_SECONDS

    async def _linger(self) -> None:
        """Wait for reports, but no longer than pages may wait."""
        rest = PAGES_SECONDS - (self._clock.monotonic() - self._pages_since)
        sleeping = asyncio.ensure_future(self._clock.sleep(max(rest, 0.05)))
        working = asyncio.ensure_future(self._work.wait())
        try:
            await asyncio.wait([sleeping, working], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            working.cancel()
        self._work.set()

    async def flush(self) -> None:
        """Write everything that waits at this moment; StoreUnavailableError when the store does not take it."""
        while self._reports or self.pages or self._new_catalogues:
            await self.write_once(with_pages=True)
            if self.failing is not None:
                raise StoreUnavailableError(self.failing)
        async with self._writing:
            pass

    async def write_once(self, with_pages: bool) -> None:
        """Write one group; what the store does not take is told to those who wait, and pages are kept for later."""
        async with self._writing:
            waiting, pages = self._take(with_pages)
            catalogues, self._new_catalogues = self._new_catalogues, []
            reports = [report for entry in waiting for report in entry.reports]
            if not (reports or pages or catalogues):
                return
            started = self._clock.monotonic()
            try:
                written = await self._store.write(Group(reports, pages, catalogues))
            except StoreUnavailableError as problem:
                self._new_catalogues = catalogues + self._new_catalogues
                self._failed(problem, waiting)
                return
            except Exception as problem:  # something in it can never be written; the rest must not wait for it
                log(logging.ERROR, "a group cannot be written; its parts are written one by one", detail=str(problem))
                await self._write_apart(waiting, pages, catalogues)
                return
            except BaseException as problem:
                self._answer_all(waiting, problem)
                raise
            for page in pages:
                self.pages.pop(page.impression, None)
            if with_pages:  # a group of reports alone must not put off the pages that wait
                self._pages_since = self._clock.monotonic()
            self._count(len(reports) + len(pages), self._clock.monotonic() - started, written.left_out)
        at = 0
        for entry in waiting:
            if not entry.answer.done():
                entry.answer.set_result((written.outcomes[at : at + len(entry.reports)], written.now))
            at += len(entry.reports)

    async def _write_apart(self, waiting: list[_Waiting], pages: list[PageRow], catalogues: list[CatalogueRow]) -> None:
        """Write every part of a group by itself. One that cannot be written is dropped, and who waits for it told."""
        try:
            for row in catalogues:
                await self._attempt(Group(catalogues=[row]))
            for page in pages:
                await self._attempt(Group(pages=[page]))
                self.pages.pop(page.impression, None)
            for entry in waiting:
                found = await self._attempt(Group(entry.reports))
                if isinstance(found, Exception):
                    self._answer_all([entry], found)
                elif not entry.answer.done():
                    entry.answer.set_result((found.outcomes, found.now))
        except StoreUnavailableError as problem:
            self._failed(problem, waiting)

    async def _attempt(self, group: Group) -> Written | Exception:
        try:
            return await self._store.write(group)
        except StoreUnavailableError:
            raise
        except Exception as problem:
            self.counts.refused += 1
            log(logging.ERROR, "cannot be written; dropped", detail=str(problem))
            return problem

    def _take(self, with_pages: bool) -> tuple[list[_Waiting], list[PageRow]]:
        waiting, size = [], 0
        while self._reports and size < REPORTS_AT_ONCE:
            entry = self._reports.popleft()
            self._n_reports -= len(entry.reports)
            size += len(entry.reports)
            waiting.append(entry)
        self._last_reports = size
        pages = list(self.pages.values())[: 4 * PAGES_AT_ONCE] if with_pages else []
        return waiting, pages

    def _failed(self, problem: Exception, waiting: list[_Waiting]) -> None:
        if self.failing is None:
            log(logging.ERROR, "the store does not take writes; trying again", detail=str(problem))
        self.failing = str(problem)
        self.counts.failures += 1
        self._answer_all(waiting, self.not_written())

    def _answer_all(self, waiting: list[_Waiting], problem: BaseException) -> None:
        for entry in waiting:
            if not entry.answer.done():
                entry.answer.set_exception(problem)
                entry.answer.exception()  # marks it as read: its caller may be gone

    def not_written(self) -> Problem:
        """What a caller is told whose report could not be written."""
        return Problem(503, "Not written", "the store does not take writes at present; try again", retry_after=1)

    def _count(self, rows: int, seconds: float, left_out: int) -> None:
        if self.failing is not None:
            log(logging.WARNING, "the store takes writes again")
        self.failing = None
        counts = self.counts
        counts.commits += 1
        counts.rows += rows
        counts.seconds += seconds
        counts.last_rows, counts.last_seconds = rows, seconds
        counts.left_out += left_out
