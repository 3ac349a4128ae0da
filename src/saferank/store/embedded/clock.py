"""The clock of the SQLite store: milliseconds that never go back, not even over a restart."""

import time
from collections.abc import Callable

Clock = Callable[[], int]

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux


def wall_clock() -> Clock:
    """Milliseconds since 1970: the wall clock's reading now, and from then on the time that passed.

    Somebody who sets the wall clock changes nothing until the next start.
    """
    begin, reference = time.time_ns(), _steady_ns()
    return lambda: (begin + _steady_ns() - reference) // 1_000_000


def _steady_ns() -> int:
    """Time that passed, also while the machine slept: windows end meanwhile, as they do for the service."""
    return time.clock_gettime_ns(_BOOT_TIME) if _BOOT_TIME is not None else time.monotonic_ns()


def not_before(clock: Clock, newest: int) -> Clock:
    """A clock that continues from the newest time in the store when the given one is behind it."""
    ahead = max(0, newest - clock())
    return lambda: clock() + ahead
