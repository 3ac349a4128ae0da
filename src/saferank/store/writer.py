"""The one thread that writes: it takes a batch, commits it, says so, and takes the next (group commit).

The event loop fills a batch and hands it over whenever the thread is idle; so under load a batch holds whatever arrived
during the commit before it. A commit that fails is tried again until it succeeds or the service stops: nothing is
dropped, and nobody is told that something is on disk before it is.
"""

import queue
import sqlite3
import threading
import time
from collections.abc import Callable

from saferank.store.events import Batch
from saferank.store.sqlite import Store

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Writer:
    """``done(batch, seconds)`` and ``failed(sentence)`` are called in the writer's thread."""

    def __init__(self, store: Store, done: Callable[[Batch, float], None], failed: Callable[[str], None]) -> None:
        self._store, self._done, self._failed = store, done, failed
        self._batches: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._giving_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saferank-writer", daemon=True)

    def start(self) -> None:
        """Begin to wait for batches."""
        self._thread.start()

    def write(self, batch: Batch) -> None:
        """Hand over a batch; it belongs to the writer from here on."""
        self._batches.put(batch)

    def stop(self) -> None:
        """End the thread after what was handed over; a commit that keeps failing is given up."""
        self._giving_up.set()
        self._batches.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            start = time.perf_counter()
            if self._commit(batch):
                self._done(batch, time.perf_counter() - start)

    def _commit(self, batch: Batch) -> bool:
        pause = _FIRST_PAUSE
        while True:
            try:
                self._store.commit(batch)
            except (sqlite3.Error, OSError) as problem:
                self._failed(str(problem))
                if self._giving_up.wait(pause):
                    return False
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return True
