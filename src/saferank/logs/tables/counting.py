"""The first pass over a log: how often every query was asked, and the counts of the summary."""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.logs.errors import LONGEST_PAGE
from saferank.logs.formats.fields import Ids
from saferank.logs.tables.batch import PageBatch
from saferank.logs.tables.hashed_rows import HashedRows, add_row, new_rows, with_room
from saferank.verbs import Ints


class Counts(NamedTuple):
    """Counts of pages; exact, and as large as the number of different queries, not of pages."""

    queries: HashedRows  # rows of one id, weighted by pages
    query: Ids  # [1] where the row is put together
    pages: Ints  # [1]
    test_pages: Ints  # [1]
    without_click: Ints  # [1]
    shown: Ints  # by position
    clicked: Ints  # by position


def new_counts() -> Counts:
    """Nothing counted yet."""
    pages, test_pages, without_click = np.zeros((3, 1), np.int64)
    shown, clicked = np.zeros((2, LONGEST_PAGE), np.int64)
    return Counts(new_rows(1, np.uint64), np.zeros(1, np.uint64), pages, test_pages, without_click, shown, clicked)


def counted(counts: Counts, batch: PageBatch) -> Counts:
    """The counts with the complete pages of a batch."""
    roomy = counts._replace(queries=with_room(counts.queries, int(batch.closed[0])))
    _count_pages(roomy, batch)
    return roomy


@kernel
def _count_pages(counts: Counts, batch: PageBatch) -> None:
    for page in range(batch.closed[0]):
        if batch.test[page]:
            counts.test_pages[0] += 1
        else:
            counts.query[0] = batch.query[page]
            add_row(counts.queries, counts.query, 1)
            counts.pages[0] += 1
            counts.without_click[0] += int(_count_clicks(counts, batch, page) == 0)


@kernel
def _count_clicks(counts: Counts, batch: PageBatch, page: int) -> int:
    total = 0
    for k in range(batch.length[page]):
        counts.shown[k] += 1
        counts.clicked[k] += batch.clicks[page, k]
        total += batch.clicks[page, k]
    return total
