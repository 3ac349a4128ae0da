"""A daily cap: so many pages of one source count in a day, in each context."""

import numpy as np

from saferank.store.page_record import SOURCE_SIZE

DAY_MS = 86_400_000
MOST_SOURCES = 1 << 16
"""Sources of a context that are counted in a day; pages of further ones do not count until the next."""

_COUNT_BYTES = 4


class SourceCounts:
    """How many pages of each source have counted today, by the time of issue."""

    def __init__(self, most_pages: int, day: int = 0, packed: bytes = b"", most: int = MOST_SOURCES) -> None:
        self._most_pages, self._most, self.day = most_pages, most, day
        self._counts = _unpacked(packed)

    def limit(self, most_pages: int) -> None:
        """Let so many pages of a source count in a day from now on; 0: all."""
        self._most_pages = most_pages

    def admits(self, source: bytes, issued_at: int) -> bool:
        """Count a page; True when it may count."""
        if not source or not self._most_pages:
            return True
        if issued_at // DAY_MS > self.day:
            self.day, self._counts = issued_at // DAY_MS, {}
        count = self._counts.get(source, 0)
        if count >= self._most_pages or (count == 0 and len(self._counts) >= self._most):
            return False
        self._counts[source] = count + 1
        return True

    def packed(self) -> bytes:
        """The counts as bytes, in the order in which sources came."""
        counts = np.fromiter(self._counts.values(), np.uint32, len(self._counts))
        return b"".join(self._counts) + counts.tobytes()


def _unpacked(packed: bytes) -> dict[bytes, int]:
    size = len(packed) // (SOURCE_SIZE + _COUNT_BYTES)
    counts = np.frombuffer(packed, np.uint32, size, SOURCE_SIZE * size).tolist()
    return {packed[SOURCE_SIZE * n : SOURCE_SIZE * (n + 1)]: counts[n] for n in range(size)}
