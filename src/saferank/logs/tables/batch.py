"""Pages on their way from a reader to the tables, and what the reader counts: lines, sessions, bad lines by kind.

A batch holds the closed sessions, then the one whose clicks may still come.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.logs.formats.fields import Bytes, Ids
from saferank.logs.records import FULL, GOOD, KINDS, LONG_SESSION, LONGEST_PAGE, LONGEST_SESSION, ORPHAN, BadLines
from saferank.verbs import Flags, Ints

_KEPT_LINES = 5
_KEPT_BYTES = 60


class ReaderCounts(NamedTuple):
    """Counts, and of each kind of bad line the numbers of the first ones and how the very first begins."""

    lines: Ints  # [1]
    sessions: Ints  # [1]
    stray_clicks: Ints  # [1] on items that their page did not show
    test_clicks: Ints  # [1] on pages of T records
    bad: Ints  # [kinds]
    first: Ints  # [kinds, _KEPT_LINES] numbers of lines, from 1
    text: Bytes  # [kinds, _KEPT_BYTES]


def new_reader_counts() -> ReaderCounts:
    """Nothing read yet."""
    lines, sessions, stray_clicks, test_clicks = np.zeros((4, 1), np.int64)
    first = np.zeros((FULL, _KEPT_LINES), np.int64)
    text = np.zeros((FULL, _KEPT_BYTES), np.uint8)
    return ReaderCounts(lines, sessions, stray_clicks, test_clicks, np.zeros(FULL, np.int64), first, text)


@kernel
def note_bad(tally: ReaderCounts, kind: int, data: Bytes, start: int, end: int) -> None:
    """Count the line that was counted last, ``data[start:end]``, as a bad one."""
    seen = tally.bad[kind]
    if seen == 0:
        for k in range(min(end - start, tally.text.shape[1])):
            tally.text[kind, k] = data[start + k]
    if seen < tally.first.shape[1]:
        tally.first[kind, seen] = tally.lines[0]
    tally.bad[kind] += 1


def bad_lines(tally: ReaderCounts) -> tuple[BadLines, ...]:
    """The kinds that occurred, in the order of their first lines."""
    found = [
        BadLines(
            kind=name,
            count=int(tally.bad[kind]),
            first=tuple(tally.first[kind, : tally.bad[kind]].tolist()),
            text=_printable(tally.text[kind].tobytes().rstrip(b"\0\r\n")),
        )
        for kind, name in KINDS.items()
        if tally.bad[kind]
    ]
    return tuple(sorted(found, key=lambda bad: bad.first))


def _printable(line: bytes) -> str:
    text = line.decode("utf-8", "replace").expandtabs(1)
    return "".join(letter if letter.isprintable() else "?" for letter in text)


NO_SERP = np.uint64(0)
"""Where a format has no ids of pages, clicks go to the latest page of the session."""


class PageBatch(NamedTuple):
    """Some pages by number, and the session that is being read."""

    query: Ids
    serp: Ids
    test: Flags  # a T record: shown, but its clicks were kept back
    length: Ints
    items: Ids  # [pages + 1, LONGEST_PAGE]; the row after the last page is where the next one is read
    clicks: NDArray[np.uint8]  # [pages, LONGEST_PAGE]
    pages: Ints  # [1] how many pages there are
    closed: Ints  # [1] how many of them are complete
    session: Ids  # [1]
    tally: ReaderCounts


class Head(NamedTuple):
    """What a record says of its page besides the items."""

    session: np.uint64
    serp: np.uint64
    query: np.uint64
    test: bool


def new_batch(n_pages: int = LONGEST_SESSION) -> PageBatch:
    """No page yet."""
    return PageBatch(
        query=np.zeros(n_pages, np.uint64),
        serp=np.zeros(n_pages, np.uint64),
        test=np.zeros(n_pages, np.bool_),
        length=np.zeros(n_pages, np.int64),
        items=np.zeros((n_pages + 1, LONGEST_PAGE), np.uint64),
        clicks=np.zeros((n_pages, LONGEST_PAGE), np.uint8),
        pages=np.zeros(1, np.int64),
        closed=np.zeros(1, np.int64),
        session=np.zeros(1, np.uint64),
        tally=new_reader_counts(),
    )


@kernel
def enter_session(batch: PageBatch, session: np.uint64) -> None:
    """A record of ``session`` was read; if it is another one than before, the one before is complete."""
    if batch.tally.sessions[0] == 0 or batch.session[0] != session:
        batch.session[0] = session
        batch.closed[0] = batch.pages[0]
        batch.tally.sessions[0] += 1


@kernel
def shown_at(items: Ids, length: int, item: np.uint64) -> int:
    """The position of an item among the first ``length``, or ``length``."""
    place = 0
    while place < length and items[place] != item:
        place += 1
    return place


@kernel
def add_page(batch: PageBatch, head: Head, length: int) -> int:
    """Make the items in the row after the last page a page without clicks; returns what is wrong."""
    enter_session(batch, head.session)
    page = batch.pages[0]
    if page == len(batch.query):
        return LONG_SESSION if batch.closed[0] == 0 else FULL
    batch.query[page], batch.serp[page], batch.test[page] = head.query, head.serp, head.test
    batch.length[page] = length
    for k in range(length):
        batch.clicks[page, k] = 0
    batch.pages[0] += 1
    return GOOD


@kernel
def add_click(batch: PageBatch, session: np.uint64, serp: np.uint64, item: np.uint64) -> int:
    """Click an item on the latest page of the session with this ``serp``; returns what is wrong."""
    enter_session(batch, session)
    page = batch.pages[0] - 1
    while page >= batch.closed[0] and batch.serp[page] != serp:
        page -= 1
    if page < batch.closed[0]:
        return ORPHAN
    if batch.test[page]:
        batch.tally.test_clicks[0] += 1
        return GOOD
    place = shown_at(batch.items[page], batch.length[page], item)
    if place < batch.length[page]:
        batch.clicks[page, place] = 1
    else:
        batch.tally.stray_clicks[0] += 1
    return GOOD


@kernel
def close_session(batch: PageBatch) -> None:
    """There will be no more clicks for any page."""
    batch.closed[0] = batch.pages[0]


@kernel
def forget_closed(batch: PageBatch) -> None:
    """Remove the complete pages and move the others to the front."""
    closed = batch.closed[0]
    for page in range(closed, batch.pages[0]):
        target = page - closed
        batch.query[target], batch.serp[target], batch.test[target] = (
            batch.query[page],
            batch.serp[page],
            batch.test[page],
        )
        batch.length[target] = batch.length[page]
        for k in range(batch.length[page]):
            batch.items[target, k] = batch.items[page, k]
            batch.clicks[target, k] = batch.clicks[page, k]
    batch.pages[0] -= closed
    batch.closed[0] = 0
