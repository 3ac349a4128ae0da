"""How far a run is: a bar on a terminal, now and then a line elsewhere, both on stderr."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn

from saferank.cli.console import STDERR

SECONDS_BETWEEN_LINES = 10.0


class RoundMeter:
    """Counts rounds as they are played, on any thread."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.played = 0
        self._counting = threading.Lock()

    def __call__(self, rounds: int) -> None:
        """Hear of some more rounds."""
        with self._counting:
            self.played += rounds
            self._show()

    def _show(self) -> None:
        """Nobody is told."""


class _Bar(RoundMeter):
    def __init__(self, total: int, progress: Progress) -> None:
        super().__init__(total)
        self._progress = progress
        self._task = progress.add_task("rounds", total=total)

    def _show(self) -> None:
        self._progress.update(self._task, completed=self.played)


class _Lines(RoundMeter):
    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._start = self._said = 0.0

    def _show(self) -> None:
        now = time.monotonic()
        if not self._start:
            self._start = self._said = now  # not before: compiling is over now
        elif now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            rate = self.played / (now - self._start)
            left = (self.total - self.played) / rate
            typer.echo(f"{self.played:,} of {self.total:,} rounds, {in_millions(rate)}, {left:,.0f} s left", err=True)


class _Rate(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> str:  # type: ignore[override]
        return in_millions(task.speed) if task.speed else ""


def in_millions(rounds_per_second: float) -> str:
    """A speed as people say it.

    >>> in_millions(12_340_000)
    '12.3 million rounds/s'
    """
    return f"{rounds_per_second / 1e6:.3g} million rounds/s"


@contextmanager
def round_meter(total: int) -> Iterator[RoundMeter]:
    """A meter for ``total`` rounds, shown as suits the place where stderr goes."""
    if not STDERR.is_terminal:
        yield _Lines(total)
        return
    counted = TextColumn("{task.completed:,.0f} of {task.total:,.0f} rounds")
    columns = (BarColumn(), counted, _Rate(), TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, console=STDERR, transient=True) as progress:
        yield _Bar(total, progress)
