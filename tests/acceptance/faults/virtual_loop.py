"""An asyncio loop with virtual time whose order is drawn from a seed.

Time jumps to the next thing to do. What is ready at one moment is run in random order: nothing may depend on luck.
What a host does is marked by ``HOST`` in its context, so that a host can be paused (all it would do is put off) or
killed (all it would do is dropped) between any two steps, as the operating system would.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any


class Host:
    """A machine that may stand still or be gone, with clocks of its own (milliseconds)."""

    def __init__(self, loop: "VirtualLoop", number: int) -> None:
        self.loop, self.number, self.name = loop, number, f"server-{number}"
        self.paused_until = self.asleep_until = 0.0
        self.dead = False
        self.cut_off_until = 0.0  # from the store
        self.slow_until = 0.0  # answers of the store come late
        self.trap: tuple[str, float] | None = None  # stands still for so long right after this call of the store
        self.monotonic_skew = self.wall_skew = 0
        self.context = copy_context()
        self.context.run(HOST.set, self)

    def monotonic(self) -> int:
        return self.loop.milliseconds() + self.monotonic_skew

    def wall(self) -> int:
        return self.loop.milliseconds() + self.wall_skew

    def run(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a task on this host."""
        task: asyncio.Task[Any] = self.loop.create_task(work, context=self.context)
        return task


HOST: ContextVar[Host | None] = ContextVar("host", default=None)


class Timer:
    """Something to be called at a time."""

    __slots__ = ("args", "call", "context", "moment")

    def __init__(self, moment: float, call: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self.moment, self.call, self.args, self.context = moment, call, args, context

    def cancel(self) -> None:
        self.call, self.args = _nothing, ()

    def cancelled(self) -> bool:
        return self.call is _nothing

    def when(self) -> float:
        return self.moment


def _nothing() -> None:
    """In the place of what was cancelled."""


class StandstillError(AssertionError):
    """Nothing is left to do, or too much was done, and the main task has not ended."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs one main task to its end; errors that are not awaited fail the run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._draw = self.random.random
        self._now = 1.0
        self._queue: list[tuple[float, float, int, Timer]] = []
        self._count = 0
        self.steps = 0
        self.errors: list[BaseException] = []
        self._tasks: list[asyncio.Task[Any]] = []

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        return self._push(max(when, self._now), callback, args, context)

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        return self._push(self._now + delay, callback, args, context)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        return self._push(self._now, callback, args, context)

    def _push(self, when: float, callback: Any, args: tuple[Any, ...], context: Context | None) -> Timer:
        timer = Timer(when, callback, args, copy_context() if context is None else context)
        self._count = count = self._count + 1
        heappush(self._queue, (when, self._draw(), count, timer))
        return timer

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Any:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """What a thread would do is done at once."""
        future = self.create_future()
        future.set_result(func(*args))
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context.get("exception") or AssertionError(context["message"]))

    # --- running ---

    def milliseconds(self) -> int:
        """The time of the simulated world."""
        return int(self._now * 1000)

    def run(self, work: Coroutine[Any, Any, Any], most_steps: int) -> None:
        """Run a coroutine to its end, and everything else as long."""
        asyncio._set_running_loop(self)
        try:
            main = self.create_task(work)
            self._run_until_done(main, most_steps)
            if self.errors:
                raise self.errors[0]
            main.result()
        finally:
            self._drop_tasks()
            asyncio._set_running_loop(None)

    def _drop_tasks(self) -> None:
        """Servers never end by themselves; nothing is to be said about their tasks."""
        for task in self._tasks:
            pending: Any = task
            pending._log_destroy_pending = False
            if not task.done():
                with contextlib.suppress(RuntimeError):  # one that waits for something while it is closed
                    pending.get_coro().close()

    def _run_until_done(self, main: "asyncio.Task[Any]", most: int) -> None:
        """One loop without calls of its own: a run has a thousand steps, and there are thousands of runs."""
        queue, errors, done = self._queue, self.errors, main.done
        while not done() and not errors:
            if not queue or self.steps >= most:
                raise StandstillError(f"after {self.steps} steps {len(queue)} are left and the run has not ended")
            self._now, _, _, timer = heappop(queue)
            self.steps += 1
            context = timer.context
            host = context.get(HOST)
            if host is None or not (host.dead or host.paused_until > self._now):
                context.run(timer.call, *timer.args)
            elif host.paused_until > self._now:
                self._count += 1
                heappush(queue, (host.paused_until, self._draw(), self._count, timer))
