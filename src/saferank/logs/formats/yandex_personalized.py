"""yandex-personalized: the log of the Kaggle challenge "Personalized web search" (2013), tab-separated.

    SessionID  M  Day  USERID
    SessionID  TimePassed  Q|T  SERPID  QueryID  Terms  URL,Domain  URL,Domain  ...
    SessionID  TimePassed  C  SERPID  URLID

A click belongs to the page of its session with its SERP id (if there are several, to the latest). The lines of a
session stand together, as they do in the challenge's file. Terms are not read.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.logs.errors import RECORD
from saferank.logs.formats.fields import (
    Bytes,
    after_field,
    is_letter,
    number_before_end,
    number_before_tab,
    pair_of_numbers,
)
from saferank.logs.formats.yandex import read_item, read_items, read_record
from saferank.logs.tables.batch import Head, PageBatch, add_click, add_page, enter_session

_C, _M, _Q, _T = (ord(letter) for letter in "CMQT")


class Personalized(NamedTuple):
    """The layout of the records."""

    longest_page: int


@implements(read_record, Personalized)
def _read_record(layout: Personalized, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    session, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _M):
        return _read_user(data, at + 1, batch, session)
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _C):
        return _read_click(data, at + 1, batch, session)
    if is_letter(data, at, _Q) or is_letter(data, at, _T):
        return _read_page(layout, data, at, batch, session)
    return RECORD, at


@kernel
def _read_user(data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    _, at, bad = number_before_end(data, at)
    if not bad:
        enter_session(batch, session)
    return bad, at


@kernel
def _read_click(data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    serp, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    item, at, bad = number_before_end(data, at)
    if bad:
        return bad, at
    return add_click(batch, session, serp, item), at


@kernel
def _read_page(layout: Personalized, data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    test = data[at] == _T
    at, bad = after_field(data, at + 1)
    if bad:
        return bad, at
    serp, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    query, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    length, at, bad = read_items(layout, data, at, batch)
    if bad:
        return bad, at
    return add_page(batch, Head(session, serp, query, test), length), at


@implements(read_item, Personalized)
def _read_item(layout: Personalized, data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    return pair_of_numbers(data, at)
