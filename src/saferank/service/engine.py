"""The engine: everything the service does, without HTTP. All of it runs on one event loop, without locks.

``open_engine(settings)`` opens the store, ``await engine.start()`` restores the state, ``engine.rank`` answers at once,
``await engine.feedback`` when the clicks are on disk, ``await engine.stop()`` puts everything away.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from saferank.service.audit import Audit
from saferank.service.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.clock import Clock, steady_clock
from saferank.service.core import Core
from saferank.service.counters import counters
from saferank.service.feedback import Feedback
from saferank.service.json_logs import log
from saferank.service.learning import warm_up
from saferank.service.overview import Overview
from saferank.service.problems import Problem
from saferank.service.ranking import Ranking
from saferank.service.settings import Settings
from saferank.service.switches import Switches
from saferank.service.token_keys import tokens_of
from saferank.service.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges, SwitchView
from saferank.store.lock import StoreLock
from saferank.store.sqlite import Store, StoreError

LOG_NAME = "log.sqlite3"
_TICK_SECONDS = 0.25
_SNAPSHOTS_A_TICK = 8
_LONGEST_STEP_SECONDS = 0.002
_SHARE_OF_STOP = 0.8  # of the time to stop: so much for the disk


def open_engine(settings: Settings) -> "Engine":
    """The engine of the store that the settings name, which is made when it is missing."""
    folder = Path(settings.store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"{folder}: cannot be made ({problem.strerror or problem}); name another folder") from problem
    return Engine(settings, folder / LOG_NAME)


class Engine:
    """The service without HTTP (``EngineInterface``)."""

    def __init__(self, settings: Settings, path: Path, clock: Clock | None = None) -> None:
        self._lock = StoreLock(path)
        try:
            self._store = Store(path)
            self._core = Core(settings, self._store, tokens_of(settings, path.parent), clock or steady_clock())
        except BaseException:
            self._lock.release()
            raise
        self._ranking, self._feedback = Ranking(self._core), Feedback(self._core)
        self._switches, self._overview = Switches(self._core), Overview(self._core)
        self._audit = Audit(self._core)
        self._tick: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Restore the state, close what became due meanwhile, and begin."""
        try:
            warm_up(self._core.settings.policy, self._core.settings.rule)
            self._core.restore()
        except BaseException:
            self._release()
            raise
        self.close_due()
        self._tick = asyncio.create_task(self._ticking())

    async def stop(self) -> None:
        """Close what is due, write everything, leave a snapshot of every context."""
        core = self._core
        if self._tick is not None:
            self._tick.cancel()
            with suppress(asyncio.CancelledError):
                await self._tick
            self.close_due()
            for context in core.changed_contexts():
                core.snapshot(context)
            written = await core.journal.stop(_SHARE_OF_STOP * core.settings.stop_seconds)
            self._release()
            if not written:
                raise StoreError(f"{core.store.path}: the disk did not take the last events; none was acknowledged")
        else:
            self._release()

    def _release(self) -> None:
        self._core.reader.close()
        self._store.close()
        self._lock.release()

    async def _ticking(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                await self._look_after_contexts()
            except Exception as problem:  # it must go on: whatever is wrong with one context, others have due pages
                log(logging.ERROR, "looking after contexts failed", error=problem)

    async def _look_after_contexts(self) -> None:
        await self._close_due_politely()
        if not self._core.overloaded:
            for context in self._core.snapshots_due()[:_SNAPSHOTS_A_TICK]:
                self._core.snapshot(context)
                await asyncio.sleep(0)

    def close_due(self) -> None:
        """Close every page whose window has ended."""
        now = self._core.now()
        for context in list(self._core.state.contexts.values()):
            self._core.close_due(context, now)

    async def _close_due_politely(self) -> None:
        """The same, letting callers in between every few milliseconds."""
        core, pause_at = self._core, time.perf_counter() + _LONGEST_STEP_SECONDS
        for context in list(core.state.contexts.values()):
            core.close_due(context, core.now())
            if time.perf_counter() > pause_at:
                await asyncio.sleep(0)
                pause_at = time.perf_counter() + _LONGEST_STEP_SECONDS

    def not_ready(self) -> str | None:
        """Why promises cannot be kept at present, or None."""
        failing = self._core.journal.failing
        return None if failing is None else f"the disk does not take writes: {failing}"

    # --- the two calls ---

    def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show."""
        return self._ranking.rank(tenant, call)

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Record clicks; returns once they are on disk."""
        return await self._feedback.feedback(tenant, calls)

    # --- operators ---

    async def kill(self, tenant: str, context: str | None, on: bool, why: str) -> SwitchView:
        """Serve production's ranking from now on, in one context or (None) in all of the tenant; or end that."""
        return await self._switches.kill(tenant, context, on, why)

    async def rollback(self, tenant: str, context: str, version: int, why: str) -> ContextView:
        """Back to an earlier leader."""
        await self._switches.rollback(tenant, context, version, why)
        return self._overview.context(tenant, context)

    # --- readers ---

    def contexts(self, tenant: str) -> ContextList:
        """All contexts."""
        return self._overview.contexts(tenant)

    def context(self, tenant: str, name: str) -> ContextView:
        """One context."""
        return self._overview.context(tenant, name)

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version or a moment; now if None."""
        return await self._audit.leader_at(tenant, name, at)

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All changes of the leader, with evidence."""
        return await self._audit.changes(tenant, name)

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The full story of a page."""
        return await self._audit.impression(tenant, impression_id)

    def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """The log as JSON lines."""
        return self._audit.export(tenant, context, since)

    def counters(self) -> Mapping[str, float]:
        """What the metrics page shows."""
        return counters(self._core)
