"""What is written: the batch being filled, the one being committed, and who waits for them.

Everything here runs on the event loop. Batches are handed to the writer's thread between two steps of the loop, so what
one step put into a batch is committed together.
"""

import asyncio
import logging
from dataclasses import dataclass

from saferank.service.json_logs import log
from saferank.service.problems import Problem
from saferank.store.events import Batch, Event, Kind, LeaderRow
from saferank.store.sqlite import Store
from saferank.store.writer import Writer


@dataclass
class CommitCounts:
    """Numbers for the metrics page."""

    commits: int = 0
    failures: int = 0
    events: int = 0
    seconds: float = 0.0
    last_events: int = 0
    last_seconds: float = 0.0


class Journal:
    """Numbers events and has them written in that order."""

    def __init__(self, store: Store, last_seq: int) -> None:
        self.seq = self.durable = last_seq
        self.failing: str | None = None
        self.counts = CommitCounts()
        self.batch = Batch()
        self._writing: Batch | None = None
        self._writing_to = last_seq
        self._loop = asyncio.get_running_loop()
        self._filled: asyncio.Future[bool] = self._loop.create_future()  # answers for the batch being filled
        self._written: asyncio.Future[bool] = self._loop.create_future()  # answers for the one being committed
        self._scheduled = False
        self._writer = Writer(store, self._tell_done, self._tell_failed)
        self._writer.start()

    @property
    def pending(self) -> int:
        """Events that are not on disk."""
        return self.seq - self.durable

    def add(
        self, kind: int, context: int, at: int, impression: bytes | None = None, body: bytes | None = None
    ) -> Event:
        """The next event; it will be written soon."""
        self.seq += 1
        event = Event(self.seq, kind, context, at, impression, body)
        self.batch.events.append(event)
        self.hurry()
        return event

    def waiting_leaders(self, context: int) -> list[LeaderRow]:
        """Leaders of a context that are not on disk."""
        return [row for batch in self._batches() for row in batch.leaders if row.context == context]

    def waiting_page(self, impression: bytes, issued_at: int) -> Event | None:
        """The event of a page that is not on disk, if it is one; quick for a page that was issued before all those."""
        for batch in self._batches():
            if batch.events and batch.events[-1].at >= issued_at:
                for event in batch.events:
                    if event.kind == Kind.PAGE and event.impression == impression:
                        return event
        return None

    def _batches(self) -> list[Batch]:
        return [self.batch] if self._writing is None else [self._writing, self.batch]

    def hurry(self) -> None:
        """Have the batch handed over as soon as this step of the loop is done and the writer is idle."""
        if not self._scheduled and self._writing is None:
            self._scheduled = True
            self._loop.call_soon(self._hand_over)

    async def until(self, seq: int) -> None:
        """Return when an event is on disk; Problem 503 when the disk refuses it (it is tried again all the same)."""
        while seq > self.durable:
            answer = self._written if self._writing is not None and seq <= self._writing_to else self._filled
            if not await asyncio.shield(answer):
                raise self.not_written()

    def not_written(self) -> Problem:
        """What a caller is told whose event could not be written."""
        detail = f"the disk does not take writes at present ({self.failing or 'a commit failed'}); try again"
        return Problem(503, "Not written", detail, retry_after=1)

    async def stop(self, seconds: float) -> bool:
        """Write everything and end the writer; False when the disk did not take it in this time."""
        try:
            async with asyncio.timeout(seconds):
                while len(self.batch) or self._writing is not None:
                    self._hand_over()
                    await asyncio.shield(self._written)
        except TimeoutError:
            pass
        await asyncio.to_thread(self._writer.stop)
        return self.pending == 0

    def _hand_over(self) -> None:
        self._scheduled = False
        if self._writing is None and len(self.batch):
            self._writing, self.batch = self.batch, Batch()
            self._writing_to = self.seq
            self._written, self._filled = self._filled, self._loop.create_future()
            self._writer.write(self._writing)

    # --- told by the writer, in its thread ---

    def _tell_done(self, batch: Batch, seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._done, batch, seconds)

    def _tell_failed(self, why: str) -> None:
        self._loop.call_soon_threadsafe(self._failed, why)

    def _done(self, batch: Batch, seconds: float) -> None:
        if self.failing is not None:
            log(logging.WARNING, "the disk takes writes again")
        self.failing, self._writing = None, None
        self.durable = self._writing_to
        counts = self.counts
        counts.commits += 1
        counts.events += len(batch.events)
        counts.seconds += seconds
        counts.last_events, counts.last_seconds = len(batch.events), seconds
        self.committed(batch)
        self._written.set_result(True)
        self._hand_over()

    def _failed(self, why: str) -> None:
        """Whoever waits is told; the batch is tried again, and so is, after it, the one being filled."""
        if self.failing is None:
            log(logging.ERROR, "the disk does not take writes; trying again", detail=why)
        self.failing = why
        self.counts.failures += 1
        self._written.set_result(False)
        self._filled.set_result(False)
        self._written, self._filled = self._loop.create_future(), self._loop.create_future()

    def committed(self, batch: Batch) -> None:
        """Called with every batch that is on disk; the service replaces it."""
