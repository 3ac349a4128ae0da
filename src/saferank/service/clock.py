"""Time in the service: milliseconds that never go back, and how they are written."""

import functools
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def steady_clock() -> Clock:
    """Milliseconds since 1970: the wall clock's reading at this moment, and from then on the time that passed.

    Somebody who sets the wall clock changes nothing until the next start.
    """
    begin, reference = time.time_ns(), time.monotonic_ns()
    return lambda: (begin + time.monotonic_ns() - reference) // 1_000_000


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
