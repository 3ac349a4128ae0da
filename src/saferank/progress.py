"""How far a long call has come: a bar in a terminal or a notebook, a line now and then elsewhere, all on stderr.

Functions of the library take ``progress=True`` or ``False`` and ask ``progress_of`` for an object with four methods.
"""

import functools
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn

STDERR = Console(stderr=True)
SECONDS_BETWEEN_LINES = 10.0


class Unit(NamedTuple):
    """What is counted, how many of them are shown as one, and what is done with them."""

    name: str
    size: float
    done: str


ROUNDS = Unit("rounds", 1.0, "played")
MEGABYTES = Unit("MB", 1e6, "read")
SESSIONS = Unit("sessions", 1.0, "written")
VISITS = Unit("visits", 1.0, "played")
KERNELS = Unit("parts", 1.0, "compiled")

UNCOUNTED = {ROUNDS: 1, MEGABYTES: 2, SESSIONS: 2, VISITS: 2, KERNELS: 1}
"""The first calls say nothing about the speed: kernels are compiled before them, or between them."""


class Meter:
    """Counts finished work, on any thread; shows nothing."""

    def __init__(self, total: int, unit: Unit = ROUNDS) -> None:
        self.total, self.unit = total, unit
        self.done = 0
        self._counting = threading.Lock()

    def __call__(self, more: int) -> None:
        """Count ``more``."""
        with self._counting:
            self.done += more
            self._show()

    def _show(self) -> None:
        """Show nothing."""


class _Bar(Meter):
    def __init__(self, total: int, unit: Unit, progress: Progress) -> None:
        super().__init__(total, unit)
        self._progress = progress
        self._task = progress.add_task(unit.name, total=total / unit.size)

    def _show(self) -> None:
        self._progress.update(self._task, completed=self.done / self.unit.size)


class _Lines(Meter):
    def __init__(self, total: int, unit: Unit) -> None:
        super().__init__(total, unit)
        self._calls, self._start, self._shown, self._before = 0, 0.0, 0.0, 0

    def _show(self) -> None:
        now = time.monotonic()
        self._calls += 1
        if self._calls <= UNCOUNTED[self.unit]:
            self._start, self._shown, self._before = now, now, self.done
        elif now - self._shown >= SECONDS_BETWEEN_LINES:
            self._shown = now
            note(self._line((self.done - self._before) / (now - self._start)))

    def _line(self, rate: float) -> str:
        size, name = self.unit.size, self.unit.name
        left = (self.total - self.done) / rate if rate else 0.0
        done = f"{self.done / size:,.0f} of {self.total / size:,.0f} {name} {self.unit.done}"
        return f"{done}, {speed(rate, self.unit)}, {duration(left)} left"


def note(text: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class _Rate(TextColumn):
    def __init__(self, unit: Unit) -> None:
        super().__init__("")
        self._unit = unit

    def render(self, task: Task) -> str:  # type: ignore[override]
        return speed(task.speed * self._unit.size, self._unit) if task.speed else ""


class _Left(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> str:  # type: ignore[override]
        return "" if task.time_remaining is None else duration(task.time_remaining) + " left"


def speed(rate: float, unit: Unit) -> str:
    """A speed in the words of its unit.

    >>> speed(12_340_000, ROUNDS), speed(2e6, MEGABYTES), speed(0.05, KERNELS)
    ('12.3 million rounds/s', '2 MB/s', '3.0 a minute')
    """
    if unit is KERNELS:
        return f"{rate * 60:.1f} a minute"
    if unit is ROUNDS:
        return f"{rate / 1e6:.3g} million rounds/s"
    shown = rate / unit.size
    return f"{shown:,.0f} {unit.name}/s" if shown >= 10 else f"{shown:.1g} {unit.name}/s"


def duration(seconds: float) -> str:
    """A time in two digits or three.

    >>> duration(79), duration(790), duration(79_000)
    ('79 s', '13 min', '21.9 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _has_bars() -> bool:
    """True in a terminal, and in a notebook that has the widgets which rich draws with."""
    return STDERR.is_terminal or (STDERR.is_jupyter and importlib.util.find_spec("ipywidgets") is not None)


@contextmanager
def meter(total: int, unit: Unit = ROUNDS) -> Iterator[Meter]:
    """A meter for ``total``, shown as suits the place where stderr goes."""
    if not _has_bars():
        yield _Lines(total, unit)
        return
    counted = TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit.name} {unit.done}")
    with Progress(BarColumn(), counted, _Rate(unit), _Left(), console=STDERR, transient=True) as progress:
        yield _Bar(total, unit, progress)


class Shown:
    """Progress that is shown."""

    def __init__(self) -> None:
        announce_compilation_once()

    def meter(self, total: int, unit: Unit = ROUNDS) -> AbstractContextManager[Meter]:
        """A meter that draws itself."""
        return meter(total, unit)

    @contextmanager
    def status(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show what is being done; the function that is yielded changes the text."""
        with STDERR.status(text) as status:
            yield status.update

    def note(self, text: str) -> None:
        """One line that stays."""
        note(text)


class Silent:
    """Progress that is not shown."""

    @contextmanager
    def meter(self, total: int, unit: Unit = ROUNDS) -> Iterator[Meter]:
        """A meter that only counts."""
        yield Meter(total, unit)

    @contextmanager
    def status(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show nothing."""
        yield lambda text: None

    def note(self, text: str) -> None:
        """Show nothing."""


Reporter = Shown | Silent


def progress_of(wanted: bool) -> Reporter:
    """Progress that is shown, or not."""
    return Shown() if wanted else Silent()


def _say_compiling() -> None:
    STDERR.print(
        "compiling the kernels for this machine, once, for up to 20 seconds; the next start takes them from the cache",
        soft_wrap=True,
    )


@functools.cache  # one listener in a process, however many experiments it runs
def announce_compilation_once() -> None:
    """Say so when something has to be compiled, because that takes seconds in which nothing else happens."""
    from saferank._kernel import announce_compilation

    announce_compilation(_say_compiling)


def announce_compilation_to_reader() -> None:
    """The same for a call that has no ``progress=``: in a terminal or a notebook, and not in the logs of a program."""
    if _has_bars():
        announce_compilation_once()
