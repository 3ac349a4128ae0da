"""Pages on their way from a reader to the tables: the closed sessions, then the one whose clicks may still come.

A batch is all the memory a reader needs. It holds at most ``LONGEST_SESSION`` pages, of which the first ``closed`` are
complete; a consumer takes them, ``forget_closed`` makes room, and the reader continues where it had stopped.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.logs.errors import FULL, GOOD, LONG_SESSION, LONGEST_PAGE, LONGEST_SESSION, ORPHAN
from saferank.logs.formats.fields import Ids
from saferank.logs.tables.reader_counts import ReaderCounts, new_reader_counts
from saferank.verbs import Flags, Ints

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
