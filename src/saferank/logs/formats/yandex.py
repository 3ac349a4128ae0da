"""The two Yandex formats: lines become pages in compiled code; each format knows only its own records.

yandex-personalized: the log of the Kaggle challenge "Personalized web search" (2013), tab-separated.

    SessionID  M  Day  USERID
    SessionID  TimePassed  Q|T  SERPID  QueryID  Terms  URL,Domain  URL,Domain  ...
    SessionID  TimePassed  C  SERPID  URLID

A click belongs to the page of its session with its SERP id (if there are several, to the latest). The lines of a
session stand together, as they do in the challenge's file. Terms are not read.

yandex-relevance: the log of the "Relevance prediction challenge" (2011), tab-separated.

    SessionID  TimePassed  Q  QueryID  RegionID  URL  URL  ...
    SessionID  TimePassed  C  URLID

A click belongs to the latest page of its session. The lines of a session stand together.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.logs.formats.byte_chunks import CHUNK, Progress, chunks
from saferank.logs.formats.fields import (
    Bytes,
    Ids,
    after_field,
    after_line,
    at_end,
    is_letter,
    number_before_end,
    number_before_tab,
    pair_of_numbers,
    single_number,
)
from saferank.logs.records import FULL, GOOD, LONG_PAGE, RECORD, TWICE
from saferank.logs.tables.batch import (
    NO_SERP,
    Head,
    PageBatch,
    ReaderCounts,
    add_click,
    add_page,
    close_session,
    enter_session,
    forget_closed,
    new_batch,
    new_reader_counts,
    note_bad,
    shown_at,
)


@verb
def read_record(layout: Any, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    """Put the record that starts at ``at`` into the batch; returns what is wrong and how far it was read."""
    raise NotImplementedError


@verb
def read_item(layout: Any, data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    """The item in the field that starts at ``at``, the end of the field, what is wrong."""
    raise NotImplementedError


@kernel
def read_items(layout: Any, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int, int]:
    """The items of the next page, up to the end of the line: how many, that end, what is wrong."""
    items, length = batch.items[batch.pages[0]], 0
    while True:
        item, at, bad = read_item(layout, data, at)
        if bad:
            return length, at, bad
        if length == layout.longest_page:
            return length, at, LONG_PAGE
        if shown_at(items, length, item) < length:
            return length, at, TWICE
        items[length] = item
        length += 1
        if at_end(data, at):
            return length, at, GOOD
        at += 1


@kernel
def _read_lines(layout: Any, data: Bytes, at: int, stop: int, batch: PageBatch) -> int:
    """Read lines until the batch is full; returns the start of the first line that was not read."""
    while at < stop:
        kind, end = GOOD, at
        if not at_end(data, at):
            kind, end = read_record(layout, data, at, batch)
        if kind == FULL:
            return at
        end = after_line(data, end)
        batch.tally.lines[0] += 1
        if kind != GOOD:
            note_bad(batch.tally, kind, data, at, end)
        at = end
    return at


class YandexReader:
    """A log whose ids are numbers, as a stream of batches."""

    has_sessions = True

    def __init__(self, layout: Any, path: Path, chunk: int = CHUNK) -> None:
        self._layout = layout
        self._path = path
        self._chunk = chunk
        self.tally: ReaderCounts = new_reader_counts()

    def batches(self, progress: Progress) -> Iterator[PageBatch]:
        """All pages in their order; the complete ones of each batch are gone when the next is asked for."""
        batch = new_batch()
        self.tally = batch.tally
        for data, stop in chunks(self._path, self._chunk, progress):
            at = 0
            while at < stop:
                at = _read_lines(self._layout, data, at, stop, batch)
                yield batch
                forget_closed(batch)
        close_session(batch)
        yield batch

    def select(self, queries: Ids) -> None:
        """Numbers are their own names: nothing has to be remembered."""

    def name(self, number: np.uint64) -> str:
        """The id as it stands in the log."""
        return str(int(number))


_PERSONALIZED_C, _M, _PERSONALIZED_Q, _T = (ord(letter) for letter in "CMQT")


class Personalized(NamedTuple):
    """The layout of the records."""

    longest_page: int


@implements(read_record, Personalized)
def _read_personalized(layout: Personalized, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    session, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _M):
        return _read_user(data, at + 1, batch, session)
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _PERSONALIZED_C):
        return _read_personalized_click(data, at + 1, batch, session)
    if is_letter(data, at, _PERSONALIZED_Q) or is_letter(data, at, _T):
        return _read_personalized_page(layout, data, at, batch, session)
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
def _read_personalized_click(data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
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
def _read_personalized_page(
    layout: Personalized, data: Bytes, at: int, batch: PageBatch, session: np.uint64
) -> tuple[int, int]:
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
def _read_personalized_item(layout: Personalized, data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    return pair_of_numbers(data, at)


_RELEVANCE_C, _RELEVANCE_Q = (ord(letter) for letter in "CQ")


class Relevance(NamedTuple):
    """The layout of the records."""

    longest_page: int


@implements(read_record, Relevance)
def _read_relevance(layout: Relevance, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    session, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    _, at, bad = number_before_tab(data, at)
    if bad:
        return bad, at
    if is_letter(data, at, _RELEVANCE_C):
        return _read_relevance_click(data, at + 1, batch, session)
    if is_letter(data, at, _RELEVANCE_Q):
        return _read_relevance_page(layout, data, at + 1, batch, session)
    return RECORD, at


@kernel
def _read_relevance_click(data: Bytes, at: int, batch: PageBatch, session: np.uint64) -> tuple[int, int]:
    at, bad = after_field(data, at)
    if bad:
        return bad, at
    item, at, bad = number_before_end(data, at)
    if bad:
        return bad, at
    return add_click(batch, session, NO_SERP, item), at


@kernel
def _read_relevance_page(
    layout: Relevance, data: Bytes, at: int, batch: PageBatch, session: np.uint64
) -> tuple[int, int]:
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
def _read_relevance_item(layout: Relevance, data: Bytes, at: int) -> tuple[np.uint64, int, int]:
    return single_number(data, at)
