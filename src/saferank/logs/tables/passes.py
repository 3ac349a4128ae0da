"""The two passes over a log: how often every query was asked, then the pages of the selected queries.

A page is kept as one row of 32-bit numbers: the items, each by its number plus one (0 beyond the end), then the clicks,
one bit each. The query need not stand in the row, because an item is numbered for its query.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.logs.formats.fields import Ids
from saferank.logs.records import LONGEST_PAGE, RANKING_LENGTH, DistinctPages
from saferank.logs.tables.batch import PageBatch
from saferank.logs.tables.hashed_rows import NOWHERE, HashedRows, add_row, entry_of, new_rows, with_room
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


Row = NDArray[np.uint32]
_BITS = 32


class Collection(NamedTuple):
    """What was collected, and the rows in which the next keys are put together."""

    queries: HashedRows  # the selected ids; the number of the entry is the number of the query
    pairs: HashedRows  # (number of the query, id of the item)
    pages: HashedRows
    query: Ids  # [1]
    pair: Ids  # [2]
    page: Row  # [length + words of clicks]
    length: int  # of the longest page


def new_collection(queries: Ids, length: int) -> Collection:
    """No page yet of the queries with these ids."""
    width = length + (length + _BITS - 1) // _BITS
    selected = with_room(new_rows(1, np.uint64), len(queries))
    for row in queries.reshape(-1, 1):
        add_row(selected, row, 0)
    return Collection(
        queries=selected,
        pairs=new_rows(2, np.uint64),
        pages=new_rows(width, np.uint32),
        query=np.zeros(1, np.uint64),
        pair=np.zeros(2, np.uint64),
        page=np.zeros(width, np.uint32),
        length=length,
    )


def collected(collection: Collection, batch: PageBatch) -> Collection:
    """The collection with the complete pages of a batch."""
    n_pages = int(batch.closed[0])
    roomy = collection._replace(
        pairs=with_room(collection.pairs, int(batch.length[:n_pages].sum())), pages=with_room(collection.pages, n_pages)
    )
    _collect_pages(roomy, batch)
    return roomy


@kernel
def _collect_pages(collection: Collection, batch: PageBatch) -> None:
    for page in range(batch.closed[0]):
        collection.query[0] = batch.query[page]
        query = entry_of(collection.queries, collection.query)
        if query != NOWHERE and not batch.test[page]:
            _put_together(collection, batch, page, query)
            add_row(collection.pages, collection.page, 1)


@kernel
def _put_together(collection: Collection, batch: PageBatch, page: int, query: int) -> None:
    collection.page[:] = 0
    collection.pair[0] = query
    for k in range(batch.length[page]):
        collection.pair[1] = batch.items[page, k]
        collection.page[k] = add_row(collection.pairs, collection.pair, 1) + 1
        word = collection.length + k // _BITS
        collection.page[word] |= np.uint32(batch.clicks[page, k]) << np.uint32(k % _BITS)


def distinct_pages(collection: Collection) -> DistinctPages:
    """What was collected, as arrays."""
    n_pages, length = int(collection.pages.used[0]), collection.length
    rows = collection.pages.rows[:n_pages]
    items = rows[:, :length].astype(np.int64) - 1
    query = collection.pairs.rows[items[:, 0], 0].astype(np.int64)
    clicks = np.empty((n_pages, length), np.uint8)
    for k in range(length):
        clicks[:, k] = rows[:, length + k // _BITS] >> np.uint32(k % _BITS) & np.uint32(1)
    return DistinctPages(query, items, clicks, collection.pages.weight[:n_pages].copy())


def frequent_rankings(pages: DistinctPages, page_length: int | None = RANKING_LENGTH) -> dict[int, Ints]:
    """The most frequent ranking of every query that has a page of this length; of equals the one seen first.

    With None the length is ten where a query has such a page, else the most frequent length of its pages.
    """
    lengths = lengths_by_query(pages, page_length)
    rankings = _rankings(pages, lengths)
    n_rankings = int(rankings.used[0])
    numbers, weight = rankings.rows[:n_rankings].astype(np.int64), rankings.weight[:n_rankings]
    best_last = numbers[np.lexsort((-np.arange(n_rankings), weight, numbers[:, 0]))]
    best = best_last[np.diff(best_last[:, 0], append=-1) != 0]
    return {int(ranking[0]): ranking[1 : 1 + lengths[ranking[0]]] for ranking in best}


def pages_by_length(pages: DistinctPages) -> Ints:
    """[query, length]: how many pages of each length a query has."""
    n_queries = int(pages.query.max(initial=-1)) + 1
    table = np.zeros((n_queries, pages.items.shape[1] + 1), np.int64)
    np.add.at(table, (pages.query, page_lengths(pages)), pages.weight)
    return table


def page_lengths(pages: DistinctPages) -> Ints:
    """How many items each distinct page has."""
    lengths: Ints = (pages.items >= 0).sum(axis=1)
    return lengths


def lengths_by_query(pages: DistinctPages, page_length: int | None) -> Ints:
    """The length of the ranking of every query: the given one, or the one that suits the query."""
    table = pages_by_length(pages)
    if page_length is not None:
        return np.full(len(table), page_length)
    longest = table.shape[1] - 1
    frequent = longest - table[:, ::-1].argmax(axis=1)  # of equally frequent lengths the longest
    has_ten = table[:, RANKING_LENGTH] > 0 if longest >= RANKING_LENGTH else np.zeros(len(table), np.bool_)
    chosen: Ints = np.where(has_ten, RANKING_LENGTH, frequent)
    return chosen


def _rankings(pages: DistinctPages, lengths: Ints) -> HashedRows:
    """Rows of a query and the items of a page of its length, weighted by pages."""
    chosen = np.flatnonzero(page_lengths(pages) == lengths[pages.query])
    width = min(int(lengths.max(initial=0)), pages.items.shape[1])
    table = with_room(new_rows(1 + width, np.uint32), len(chosen))
    _count_rankings(pages, chosen, np.zeros(1 + width, np.uint32), table)
    return table


@kernel
def _count_rankings(pages: DistinctPages, chosen: Ints, row: Row, table: HashedRows) -> None:
    for number in range(len(chosen)):
        page = chosen[number]
        row[0] = pages.query[page]
        for k in range(len(row) - 1):
            row[k + 1] = pages.items[page, k]
        add_row(table, row, pages.weight[page])
