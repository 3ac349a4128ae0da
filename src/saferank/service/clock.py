"""The clocks that a server measures time by."""

import asyncio
import functools
import time
from typing import Protocol

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux


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
