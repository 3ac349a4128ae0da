"""A limit for the code of a plug-in that is played interpreted: a loop that never ends is reported with its line.

Lines are counted instead of seconds, so that a verdict never depends on how busy the machine is. Only lines of users
count: neither ours nor those of installed packages, such as numba when it compiles. Another tool that traces (a
debugger, coverage) pauses meanwhile. Compiled code cannot be counted.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from saferank.checks.contract import ContractError
from saferank.plugins import is_of_user

MOST_LINES = 2_000_000
"""A call may run so many lines of a plug-in. One call in a check has small catalogues: thousands are usual."""

_is_of_user = functools.cache(is_of_user)


class _NeverEndsError(BaseException):
    """Not an ``Exception``: the code that is stopped must not catch it."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


@contextmanager
def ending(who: str) -> Iterator[None]:
    """A ``ContractError`` about ``who`` when the code inside runs more than ``MOST_LINES`` lines of a plug-in."""
    previous = sys.gettrace()
    sys.settrace(_counting())
    try:
        yield
    except _NeverEndsError as problem:
        raise ContractError(
            f"{who} does not end: it was stopped after {MOST_LINES:,} lines. Let every loop have an end, a for over "
            "a range for example.",
            problem.place,
        ) from None
    finally:
        sys.settrace(previous)


def _counting() -> Callable[[FrameType, str, Any], Any]:
    left = MOST_LINES

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise _NeverEndsError(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return count

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        return count if _is_of_user(frame.f_code.co_filename) else None

    return enter
