"""The two Yandex formats: one reader, and a layout for each that says which fields its records have.

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
from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.logs.formats.byte_chunks import CHUNK, Progress, chunks
from saferank.logs.formats.fields import (
    Bytes,
    Ids,
    after_field,
    after_line,
    at_end,
    is_letter,
    item_field,
    number_field,
)
from saferank.logs.records import FULL, GOOD, LONG_PAGE, LONGEST_PAGE, RECORD, TWICE
from saferank.logs.tables.batch import (
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
from saferank.verbs import Ints

_C, _M, _Q, _T = (ord(letter) for letter in "CMQT")
WORD, OTHER, SERP, QUERY, LAST = range(5)
"""Fields of a record: text that is skipped, a number that is not needed, ids, and the number at the end of the line."""


class Layout(NamedTuple):
    """The fields of each record from its letter on, and where their numbers are put."""

    pairs: bool  # an item is URL,Domain
    user: Ints  # of M records; none: the format has neither them nor T records
    click: Ints
    page: Ints  # before the items
    found: Ids  # by kind of field; where a format has no SERP ids, theirs stays NO_SERP


def _layout(pairs: bool, user: tuple[int, ...], click: tuple[int, ...], page: tuple[int, ...]) -> Layout:
    users, clicks, pages = (np.array(fields, np.int64) for fields in (user, click, page))
    return Layout(pairs, users, clicks, pages, found=np.zeros(LAST + 1, np.uint64))


def personalized() -> Layout:
    """The layout of yandex-personalized."""
    return _layout(True, (WORD, OTHER, LAST), (WORD, SERP, LAST), (WORD, SERP, QUERY, WORD))


def relevance() -> Layout:
    """The layout of yandex-relevance."""
    return _layout(False, (), (WORD, LAST), (WORD, QUERY, OTHER))


@kernel
def _read_fields(layout: Layout, data: Bytes, at: int, fields: Ints) -> tuple[int, int]:
    """Read these fields; returns where the next one starts and what is wrong."""
    for field in fields:
        if field == WORD:
            at, bad = after_field(data, at)
        else:
            layout.found[field], at, bad = number_field(data, at, field == LAST)
        if bad:
            return at, bad
    return at, GOOD


@kernel
def _read_items(layout: Layout, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int, int]:
    """The items of the next page, up to the end of the line: how many, that end, what is wrong."""
    items, length = batch.items[batch.pages[0]], 0
    while True:
        item, at, bad = item_field(data, at, layout.pairs)
        if bad:
            return length, at, bad
        if length == LONGEST_PAGE:
            return length, at, LONG_PAGE
        if shown_at(items, length, item) < length:
            return length, at, TWICE
        items[length] = item
        length += 1
        if at_end(data, at):
            return length, at, GOOD
        at += 1


@kernel
def _read_record(layout: Layout, data: Bytes, at: int, batch: PageBatch) -> tuple[int, int]:
    """Put the record that starts at ``at`` into the batch; returns what is wrong and how far it was read."""
    found, has_users = layout.found, len(layout.user) > 0
    session, at, bad = number_field(data, at, False)
    if bad:
        return bad, at
    if has_users and is_letter(data, at, _M):
        at, bad = _read_fields(layout, data, at + 1, layout.user)
        if not bad:
            enter_session(batch, session)
        return bad, at
    _, at, bad = number_field(data, at, False)
    if bad:
        return bad, at
    if is_letter(data, at, _C):
        at, bad = _read_fields(layout, data, at + 1, layout.click)
        return (bad if bad else add_click(batch, session, found[SERP], found[LAST])), at
    test = has_users and is_letter(data, at, _T)
    if not test and not is_letter(data, at, _Q):
        return RECORD, at
    length = 0
    at, bad = _read_fields(layout, data, at + 1, layout.page)
    if not bad:
        length, at, bad = _read_items(layout, data, at, batch)
    return (bad if bad else add_page(batch, Head(session, found[SERP], found[QUERY], test), length)), at


@kernel
def _read_lines(layout: Layout, data: Bytes, at: int, stop: int, batch: PageBatch) -> int:
    """Read lines until the batch is full; returns the start of the first line that was not read."""
    while at < stop:
        kind, end = GOOD, at
        if not at_end(data, at):
            kind, end = _read_record(layout, data, at, batch)
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

    def __init__(self, layout: Layout, path: Path, chunk: int = CHUNK) -> None:
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
