"""A thread with an event loop of its own: what runs there can be left behind at any moment, so no caller waits for it.

httpx's time limits are for single reads: a server that sends a byte now and then is never late. And the search for an
address (DNS) cannot be interrupted at all. On a loop of our own both are cancelled, or abandoned, when time is up.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """An event loop in a daemon thread, until ``stop``."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="saferank-client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start ``work`` on the loop; the future may be waited for with a time limit, or cancelled."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # stopped meanwhile
            work.close()
            raise

    def call(self, function: Any) -> None:
        """Run a function on the loop soon; nothing happens after ``stop``."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def stop(self, seconds: float) -> None:
        """Cancel what runs and end the thread; after ``seconds`` it is left to end by itself."""
        self.call(self._loop.stop)
        self._thread.join(seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._cancel_all()
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
