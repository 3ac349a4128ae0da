"""Tab-separated fields of whole numbers, read byte by byte in compiled code.

``data`` always ends in a newline, which no field contains: a reader that stops at what it does not understand needs no
other bound. Every function takes a place and returns the place where it stopped.
"""

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.logs.records import FIELDS, GOOD, NUMBER

Bytes = NDArray[np.uint8]
Ids = NDArray[np.uint64]
"""Ids of queries, items, sessions and pages: whole numbers of up to 64 bits."""

_TAB, _NEWLINE, _RETURN, _COMMA, _ZERO, _ONE = 9, 10, 13, 44, 48, 49
_TEN = np.uint64(10)
_TWENTY_DIGITS = np.uint64(10**19)


@kernel
def number(data: Bytes, at: int) -> tuple[np.uint64, int]:
    """The whole number at ``at`` and the place after it; the same place when there is none that fits into 64 bits."""
    value, end = np.uint64(0), at
    digit = np.int64(data[at]) - _ZERO
    while 0 <= digit <= 9:
        value = value * _TEN + np.uint64(digit)
        end += 1
        digit = np.int64(data[end]) - _ZERO
    if end - at >= 20 and (end - at > 20 or data[at] != _ONE or value < _TWENTY_DIGITS):
        return value, at
    return value, end


@kernel
def at_end(data: Bytes, at: int) -> bool:
    """True at the end of a line, be it marked in the manner of Unix or of Windows."""
    return bool(data[at] == _NEWLINE or (data[at] == _RETURN and data[at + 1] == _NEWLINE))


@kernel
def number_field(data: Bytes, at: int, last: bool) -> tuple[np.uint64, int, int]:
    """A number: value, what is wrong, and the start of the next field or, where it is the ``last``, end of the line."""
    value, end = number(data, at)
    is_tab, is_end = data[end] == _TAB, at_end(data, end)
    if end == at or not (is_tab or is_end):
        return value, end, NUMBER
    if last != is_end:
        return value, end, FIELDS
    return value, end if last else end + 1, GOOD


@kernel
def is_letter(data: Bytes, at: int, letter: int) -> bool:
    """True when the field is this one letter."""
    return bool(data[at] == letter and (data[at + 1] == _TAB or at_end(data, at + 1)))


@kernel
def after_field(data: Bytes, at: int) -> tuple[int, int]:
    """Skip the rest of a field that is not the last one: start of the next field, what is wrong."""
    while data[at] != _TAB:
        if at_end(data, at):
            return at, FIELDS
        at += 1
    return at + 1, GOOD


@kernel
def after_line(data: Bytes, at: int) -> int:
    """The start of the next line."""
    while data[at] != _NEWLINE:
        at += 1
    return at + 1


@kernel
def item_field(data: Bytes, at: int, pair: bool) -> tuple[np.uint64, int, int]:
    """A number, or the first of a ``pair`` with a comma between: value, the end of the field, what is wrong."""
    value, end = number(data, at)
    if end > at and pair:
        at = end + 1 if data[end] == _COMMA else end
        _, end = number(data, at) if at > end else (value, end)
    return value, end, GOOD if end > at and ends_field(data, end) else NUMBER


@kernel
def ends_field(data: Bytes, at: int) -> bool:
    """True where a field ends."""
    return bool(data[at] == _TAB or at_end(data, at))
