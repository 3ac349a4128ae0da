"""The clock of the SQLite store: milliseconds that never go back, not even over a restart."""

import time
from collections.abc import Callable

Clock = Callable[[], int]


def wall_clock() -> Clock:
    """Milliseconds since 1970: the wall clock's reading now, and from then on the time that passed.

    Somebody who sets the wall clock changes nothing until the next start.
    """
    begin, reference = time.time_ns(), time.monotonic_ns()
    return lambda: (begin + time.monotonic_ns() - reference) // 1_000_000


def not_before(clock: Clock, newest: int) -> Clock:
    """A clock that continues from the newest time in the store when the given one is behind it."""
    ahead = max(0, newest - clock())
    return lambda: clock() + ahead
