"""yandex-relevance: the log of the "Relevance prediction challenge" (2011), tab-separated.

    SessionID  TimePassed  Q  QueryID  RegionID  URL  URL  ...
    SessionID  TimePassed  C  URLID

A click belongs to the latest page of its session. The lines of a session stand together.
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
    single_number,
)
from saferank.logs.formats.yandex import read_item, read_items, read_record
from saferank.logs.tables.batch import NO_SERP, Head, PageBatch, add_click, add_page

_C, _Q = (ord(letter) for letter in "CQ")


class Relevance(NamedTuple):
    """The layout of the records."""

    longest_page: int


@implements(read_record, Relevance)
def _read_record(layout: Relevance, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    session, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _C):
        return _read_click(data, at + 1, batch, session)
    if is_letter(data, at, _Q):
        return _read_page(layout, data, at + 1, batch, session)
    return RECORD, at


@kernel
def _read_click(data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    item, at, bad = number_before_end(data, at)
    if bad:
        return bad, at
    return add_click(batch, session, NO_SERP, item), at


@kernel
def _read_page(layout: Relevance, data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    query, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    length, at, bad = read_items(layout, data, at, batch)
    if bad:
        return bad, at
    return add_page(batch, Head(session, NO_SERP, query, False), length), at


@implements(read_item, Relevance)
def _read_item(layout: Relevance, data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    return single_number(data, at)
