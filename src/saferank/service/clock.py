"""Time in the service: milliseconds of the store's clock, how they are written, and what a server measures them by."""

import asyncio
import functools
import re
import time
from datetime import UTC, datetime
from typing import Protocol

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


class Clock(Protocol):
    """The time of one server. A simulation brings its own."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""

    def wall(self) -> float:
        """Seconds of a clock that may be set; only compared with ``monotonic``, to notice that either has jumped."""

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(
        time.monotonic if _BOOT_TIME is None else functools.partial(time.clock_gettime, _BOOT_TIME)
    )
    """Seconds since the machine was started, those included in which it slept: leases must end meanwhile."""

    wall = staticmethod(time.time)
    """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Let others run for so long."""
        await asyncio.sleep(seconds)


class TurnedClock:
    """A clock that stands still until a simulation turns it."""

    def __init__(self, now: int) -> None:
        self.now = now  # milliseconds

    def monotonic(self) -> float:
        """Seconds of the simulation."""
        return self.now / 1000

    def wall(self) -> float:
        """The same: neither clock jumps."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Loops are driven by the simulation. The writer's must not spin while the store works."""
        await asyncio.sleep(min(seconds, 0.001))


def moment(milliseconds: int) -> str:
    """A time for people and programs (RFC 3339, UTC).

    >>> moment(1_772_366_400_007)
    '2026-03-01T12:00:00.007Z'
    """
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@functools.lru_cache(maxsize=256)  # thousands of answers in a second name the same few
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def milliseconds(text: str) -> int:
    """The time that an RFC 3339 text names; ValueError for any other text.

    >>> milliseconds("2026-03-01T13:00:00.007+01:00")
    1772366400007
    """
    if not _MOMENT.fullmatch(text):
        raise ValueError(f"{text!r} is not a moment like 2026-03-01T12:00:00Z")
    since = datetime.fromisoformat(text.upper()) - datetime(1970, 1, 1, tzinfo=UTC)
    return round(since.total_seconds() * 1000)
