"""How far a long file is read or written: a bar on a terminal, now and then a line elsewhere, both on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from saferank.cli.console import STDERR

SECONDS_BETWEEN_LINES = 10.0


class Unit(NamedTuple):
    """What is counted, and how many of them people speak of as one."""

    name: str
    size: float


MEGABYTES = Unit("MB", 1e6)
SESSIONS = Unit("sessions", 1.0)


class _Lines:
    def __init__(self, total: float, unit: Unit) -> None:
        self._total, self._unit, self._done = total, unit, 0.0
        self._start = self._said = time.monotonic()

    def __call__(self, n: int) -> None:
        """Hear of some more."""
        self._done += n / self._unit.size
        now = time.monotonic()
        if now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            rate = self._done / (now - self._start)
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
