"""How far a long file is read or written: a bar on a terminal, now and then a line elsewhere, both on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from saferank.cli.console import STDERR

SECONDS_BETWEEN_LINES = 10.0
_UNCOUNTED = 2
"""Parts at the start that tell nothing of the speed: kernels are compiled before the first is written, or read."""


class Unit(NamedTuple):
    """What is counted, and how many of them people speak of as one."""

    name: str
    size: float


MEGABYTES = Unit("MB", 1e6)
SESSIONS = Unit("sessions", 1.0)


class _Lines:
    def __init__(self, total: float, unit: Unit) -> None:
        self._total, self._unit, self._done = total, unit, 0.0
        self._start = self._said = 0.0
        self._before, self._heard = 0.0, 0

    def __call__(self, n: int) -> None:
        """Hear of some more."""
        self._done += n / self._unit.size
        self._heard += 1
        now = time.monotonic()
        if self._heard <= _UNCOUNTED:
            self._start, self._said, self._before = now, now, self._done
        elif now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            rate = (self._done - self._before) / (now - self._start)
            left = (self._total - self._done) / rate if rate else 0.0
            name = self._unit.name
            typer.echo(
                f"{self._done:,.0f} of {self._total:,.0f} {name}, {rate:,.0f} {name}/s, {left:,.0f} s left", err=True
            )


@contextmanager
def file_meter(total: int, unit: Unit) -> Iterator[Callable[[int], None]]:
    """A function that hears how many more of ``total`` bytes or sessions are done."""
    if not STDERR.is_terminal:
        yield _Lines(total / unit.size, unit)
        return
    counted = TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit.name}")
    with Progress(BarColumn(), counted, TimeRemainingColumn(), console=STDERR, transient=True) as progress:
        task = progress.add_task("", total=total / unit.size)
        yield lambda n: progress.advance(task, n / unit.size)
