"""The second pass over a log: the pages of the selected queries, as weighted distinct pages.

A page is kept as one row of 32-bit numbers: the items, each by its number plus one (0 beyond the end), then the clicks,
one bit each. The query need not stand in the row, because an item is numbered for its query.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.datasets.batch import Batch
from saferank.datasets.fields import Ids
from saferank.datasets.hashed_rows import NOWHERE, HashedRows, add_row, entry_of, new_rows, with_room
from saferank.datasets.sessions import RANKING_LENGTH, Pages
from saferank.verbs import Ints

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


def collected(collection: Collection, batch: Batch) -> Collection:
    """The collection with the complete pages of a batch."""
    n_pages = int(batch.closed[0])
    roomy = collection._replace(
        pairs=with_room(collection.pairs, int(batch.length[:n_pages].sum())), pages=with_room(collection.pages, n_pages)
    )
    _collect_pages(roomy, batch)
    return roomy


@kernel
def _collect_pages(collection: Collection, batch: Batch) -> None:
    for page in range(batch.closed[0]):
        collection.query[0] = batch.query[page]
        query = entry_of(collection.queries, collection.query)
        if query != NOWHERE and not batch.test[page]:
            _put_together(collection, batch, page, query)
            add_row(collection.pages, collection.page, 1)


@kernel
def _put_together(collection: Collection, batch: Batch, page: int, query: int) -> None:
    collection.page[:] = 0
    collection.pair[0] = query
    for k in range(batch.length[page]):
        collection.pair[1] = batch.items[page, k]
        collection.page[k] = add_row(collection.pairs, collection.pair, 1) + 1
        word = collection.length + k // _BITS
        collection.page[word] |= np.uint32(batch.clicks[page, k]) << np.uint32(k % _BITS)


def distinct_pages(collection: Collection) -> Pages:
    """What was collected, as arrays."""
    n_pages, length = int(collection.pages.used[0]), collection.length
    rows = collection.pages.rows[:n_pages]
    items = rows[:, :length].astype(np.int64) - 1
    query = collection.pairs.rows[items[:, 0], 0].astype(np.int64)
    clicks = np.empty((n_pages, length), np.uint8)
    for k in range(length):
        clicks[:, k] = rows[:, length + k // _BITS] >> np.uint32(k % _BITS) & np.uint32(1)
    return Pages(query, items, clicks, collection.pages.weight[:n_pages].copy())


def frequent_rankings(pages: Pages) -> dict[int, Ints]:
    """The most frequent ranking of exactly ten items of every query that has one; of equals the one seen first."""
    rankings = _rankings(pages)
    n_rankings = int(rankings.used[0])
    numbers, weight = rankings.rows[:n_rankings].astype(np.int64), rankings.weight[:n_rankings]
    best_last = numbers[np.lexsort((-np.arange(n_rankings), weight, numbers[:, 0]))]
    best = best_last[np.diff(best_last[:, 0], append=-1) != 0]
    return {int(ranking[0]): ranking[1:] for ranking in best}


def _rankings(pages: Pages) -> HashedRows:
    """Rows of a query and its ten items, weighted by pages."""
    of_ten = np.flatnonzero((pages.items >= 0).sum(axis=1) == RANKING_LENGTH)
    table = with_room(new_rows(1 + RANKING_LENGTH, np.uint32), len(of_ten))
    _count_rankings(pages, of_ten, np.zeros(1 + RANKING_LENGTH, np.uint32), table)
    return table


@kernel
def _count_rankings(pages: Pages, of_ten: Ints, row: Row, table: HashedRows) -> None:
    for number in range(len(of_ten)):
        page = of_ten[number]
        row[0] = pages.query[page]
        for k in range(RANKING_LENGTH):
            row[k + 1] = pages.items[page, k]
        add_row(table, row, pages.weight[page])
