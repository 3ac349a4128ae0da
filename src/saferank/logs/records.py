"""The record that everything else uses: distinct pages with weights, and what their numbers stand for.

A log repeats itself: the same page with the same clicks comes again and again. So estimation works on distinct pages,
each with the number of times it was seen, and its cost depends on their number rather than on the size of the log.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.logs.summary import LogSummary
from saferank.randomness import stream
from saferank.verbs import Ints

RANKING_LENGTH = 10
"""The paper's protocol: for each query its most frequent ranking of so many items, where it has one."""


class DistinctPages(NamedTuple):
    """Distinct pages in the order in which they were first seen."""

    query: Ints  # [n] index into ClickLog.queries
    items: Ints  # [n, length] index into ClickLog.pairs; -1 beyond the end of a shorter page
    clicks: NDArray[np.uint8]  # [n, length] 0 or 1
    weight: Ints  # [n] how often exactly this page (query, items, clicks) was seen


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class ClickLog:
    """The pages of some queries of a log."""

    pages: DistinctPages
    queries: tuple[str, ...]  # ids, most frequent first (of equals the first seen)
    pairs: tuple[tuple[int, str], ...]  # (query index, item id) of every attraction, in order of first appearance
    rankings: tuple[tuple[str, ...] | None, ...]  # per query its most frequent ranking of the length asked for
    summary: LogSummary  # of the whole log


def split(log: ClickLog, held_out: float, seed: int = 0) -> tuple[ClickLog, ClickLog]:
    """Two logs, of which the second has each single page with probability ``held_out`` and the first has the others.

    Pages are drawn one by one, not by distinct page: a weight is split by a binomial draw. Queries, pairs, rankings and
    the summary stay those of the whole log, so that parameters of one part fit the pages of the other.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out}, expected a share between 0 and 1")
    random = np.random.Generator(np.random.PCG64(stream(seed, "split").tolist()))
    taken = random.binomial(log.pages.weight, held_out)
    return reweighted(log, log.pages.weight - taken), reweighted(log, taken)


def reweighted(log: ClickLog, weight: Ints) -> ClickLog:
    """The same log with other weights of its distinct pages; those of weight 0 are left out."""
    there = weight > 0
    query, items, clicks, _ = log.pages
    return replace(log, pages=DistinctPages(query[there], items[there], clicks[there], weight[there]))
