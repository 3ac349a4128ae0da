"""The lines of a synthetic log, written byte by byte in compiled code.

What does not matter to a click model makes the log as untidy as a real one, by the random bits of each page. One page
in eight has its clicks written only after the next page of the session, with their earlier times; on one in four the
lower items are clicked first; on one in eight an item is clicked once more; one session in sixteen ends with a T
record, whose clicks are kept back.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.logs.formats.fields import Bytes, Ids
from saferank.logs.synthetic.pages import MOST_PAGES, Sessions
from saferank.verbs import Ints

_TAB, _NEWLINE, _COMMA, _ZERO = 9, 10, 44, 48
_C, _M, _Q, _T = (ord(letter) for letter in "CMQT")
_DAYS, _USERS = 27, 5_000_000
_NUMBER = 21  # bytes of the longest number and what stands behind it


def longest_session(length: int) -> int:
    """Bytes of a session at most, with pages of ``length`` items."""
    return MOST_PAGES * (6 + 2 * length + 5 * (length + 1)) * _NUMBER + 4 * _NUMBER


class Names(NamedTuple):
    """The numbers that stand in the log for queries and items."""

    query: Ids  # by number of the query
    item: Ids  # [queries, orders, length of a page]


class WrittenPage(NamedTuple):
    """What is needed to write a page and its clicks."""

    number: int  # in the block
    session: int  # id
    serp: int
    time: int


@kernel
def _has(manner: np.uint64, shift: int, bits: int) -> bool:
    """True with probability 1 / 2^bits, by the bits of ``manner`` from ``shift``."""
    return bool((manner >> np.uint64(shift)) & np.uint64((1 << bits) - 1) == np.uint64(0))


@kernel
def _write_number(out: Bytes, at: int, value: int, behind: int) -> int:
    """Write a number and the byte behind it; returns the place after them."""
    end, rest = at + 1, value // 10
    while rest > 0:
        end += 1
        rest //= 10
    out[end] = behind
    for place in range(end - 1, at - 1, -1):
        out[place] = _ZERO + value % 10
        value //= 10
    return end + 1


@kernel
def _write_letter(out: Bytes, at: int, letter: int) -> int:
    out[at], out[at + 1] = letter, _TAB
    return at + 2


@kernel
def _write_user(out: Bytes, at: int, session: int, manner: np.uint64) -> int:
    at = _write_number(out, at, session, _TAB)
    at = _write_letter(out, at, _M)
    at = _write_number(out, at, 1 + session % _DAYS, _TAB)
    return _write_number(out, at, int(np.int64((manner >> np.uint64(32)) % np.uint64(_USERS))), _NEWLINE)


@kernel
def _write_page(out: Bytes, at: int, page: WrittenPage, test: bool, query: int, items: Ids) -> int:
    at = _write_number(out, at, page.session, _TAB)
    at = _write_number(out, at, page.time, _TAB)
    at = _write_letter(out, at, _T if test else _Q)
    at = _write_number(out, at, page.serp, _TAB)
    at = _write_number(out, at, query, _TAB)
    at = _write_number(out, at, 2 * query, _COMMA)
    at = _write_number(out, at, 2 * query + 1, _TAB)
    for k in range(len(items)):
        item = int(np.int64(items[k]))
        at = _write_number(out, at, item, _COMMA)
        at = _write_number(out, at, item // 10, _NEWLINE if k == len(items) - 1 else _TAB)
    return at


@kernel
def _write_click(out: Bytes, at: int, page: WrittenPage, after: int, item: np.uint64) -> int:
    at = _write_number(out, at, page.session, _TAB)
    at = _write_number(out, at, page.time + after, _TAB)
    at = _write_letter(out, at, _C)
    at = _write_number(out, at, page.serp, _TAB)
    return _write_number(out, at, int(np.int64(item)), _NEWLINE)


@kernel
def _write_clicks(out: Bytes, at: int, page: WrittenPage, manner: np.uint64, clicks: Ints, items: Ids) -> int:
    upwards, last = _has(manner, 3, 2), -1
    for step in range(len(clicks)):
        place = len(clicks) - 1 - step if upwards else step
        if clicks[place]:
            at = _write_click(out, at, page, 3 + 2 * step, items[place])
            last = place
    if last >= 0 and _has(manner, 5, 3):
        at = _write_click(out, at, page, 25, items[last])
    return at


@kernel
def _write_session(out: Bytes, at: int, sessions: Sessions, names: Names, span: tuple[int, int], session: int) -> int:
    """Write the pages ``span`` of a session with their clicks."""
    first, end = span
    at = _write_user(out, at, session, sessions.manner[first])
    late = WrittenPage(-1, session, 0, 0)
    time = 0
    for number in range(first, end):
        manner, query = sessions.manner[number], sessions.query[number]
        test = number == end - 1 and _has(manner, 8, 4)
        page = WrittenPage(number, session, number - first, time)
        at = _write_page(
            out, at, page, test, int(np.int64(names.query[query])), names.item[query, sessions.order[number]]
        )
        if late.number >= 0:
            at = _write_clicks_of(out, at, late, sessions, names)
        late = WrittenPage(-1, session, 0, 0)
        if number < end - 1 and _has(manner, 0, 3):
            late = page
        elif not test:
            at = _write_clicks_of(out, at, page, sessions, names)
        time += 20 + int(np.int64((manner >> np.uint64(12)) & np.uint64(255)))
    return at


@kernel
def _write_clicks_of(out: Bytes, at: int, page: WrittenPage, sessions: Sessions, names: Names) -> int:
    number = page.number
    items = names.item[sessions.query[number], sessions.order[number]]
    return _write_clicks(out, at, page, sessions.manner[number], sessions.clicks[number], items)


@kernel
def write_sessions(sessions: Sessions, first_id: int, names: Names, out: Bytes) -> int:
    """Write all sessions, with ids from ``first_id``; returns the number of bytes."""
    at, start = 0, 0
    for number in range(len(sessions.end)):
        end = sessions.end[number]
        at = _write_session(out, at, sessions, names, (start, end), first_id + number)
        start = end
    return at
