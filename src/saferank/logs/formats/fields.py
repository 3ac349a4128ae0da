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
def number_before_tab(data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    """A number that is not the last field: value, start of the next field, what is wrong."""
    value, end = number(data, at)
    if end > at and data[end] == _TAB:
        return value, end + 1, GOOD
    return value, end, FIELDS if end > at and at_end(data, end) else NUMBER


@kernel
def number_before_end(data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    """A number that is the last field: value, end of the line, what is wrong."""
    value, end = number(data, at)
    if end > at and at_end(data, end):
        return value, end, GOOD
    return value, end, FIELDS if end > at and data[end] == _TAB else NUMBER


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
def pair_of_numbers(data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    """Two numbers with a comma between, up to the end of the field: the first, that end, what is wrong."""
    value, end = number(data, at)
    if end == at or data[end] != _COMMA:
        return value, end, NUMBER
    _, last = number(data, end + 1)
    return value, last, GOOD if last > end + 1 and ends_field(data, last) else NUMBER


@kernel
def single_number(data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    """One number up to the end of the field: value, that end, what is wrong."""
    value, end = number(data, at)
    return value, end, GOOD if end > at and ends_field(data, end) else NUMBER


@kernel
def ends_field(data: Bytes, at: int) -> bool:
    """True where a field ends."""
    return bool(data[at] == _TAB or at_end(data, at))
