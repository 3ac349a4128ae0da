"""A circuit breaker: after repeated failures, calls are answered at once for a while instead of waiting in vain."""

import threading
from collections.abc import Callable
from time import monotonic


class Breaker:
    """Opens after ``failures`` in a row for ``pause`` seconds, then lets one call through to see; doubles the pause.

    >>> now = 0.0
    >>> breaker = Breaker(failures=2, pause=1.0, longest_pause=30.0, clock=lambda: now)
    >>> breaker.failed(), breaker.allows(), breaker.failed(), breaker.allows()
    (False, True, True, False)
    >>> now = 1.5
    >>> breaker.allows(), breaker.allows()
    (True, False)
    >>> breaker.succeeded(), breaker.allows()
    (True, True)
    """

    def __init__(
        self, failures: int, pause: float, longest_pause: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._enough, self._first_pause, self._longest_pause, self._clock = failures, pause, longest_pause, clock
        self._lock = threading.Lock()
        self._in_a_row, self._pause, self._closed_until = 0, pause, 0.0

    def allows(self) -> bool:
        """True when a call should be tried; while open, one caller after each pause is sent ahead."""
        with self._lock:
            if self._in_a_row < self._enough:
                return True
            if self._clock() < self._closed_until:
                return False
            self._closed_until = self._clock() + self._pause
            return True

    def failed(self) -> bool:
        """Count a failure; True when it is the one that opens the breaker."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._enough:
                return False
            if self._in_a_row > self._enough:
                self._pause = min(2 * self._pause, self._longest_pause)
            self._closed_until = self._clock() + self._pause
            return self._in_a_row == self._enough

    def succeeded(self) -> bool:
        """Count a success; True when it closes an open breaker."""
        with self._lock:
            was_open = self._in_a_row >= self._enough
            self._in_a_row, self._pause = 0, self._first_pause
            return was_open

    @property
    def waits(self) -> float:
        """Seconds until the next call is tried."""
        with self._lock:
            return max(0.0, self._closed_until - self._clock()) if self._in_a_row >= self._enough else 0.0
