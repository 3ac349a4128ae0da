"""Closed pages in display order, with the facts of their records as columns."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saferank.service.knowledge.arms import takes_part
from saferank.store.contract import PageRow
from saferank.store.page_record import ID_SIZE, TIME_BYTES, PageRecord
from saferank.store.record_columns import RecordColumns, Selection
from saferank.verbs import Flags, Ints


class NewestPage(NamedTuple):
    """Production's page and the items of the newest page of a size: what a leader is derived from."""

    base: tuple[str, ...]
    items: tuple[str, ...]


class ClosedPages:
    """Pages of one context, in display order."""

    def __init__(self, rows: Sequence[PageRow], records: RecordColumns | None = None) -> None:
        self.rows = rows
        self.records = RecordColumns([row.record for row in rows]) if records is None else records
        self.clicks = [row.clicks for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, which: Selection) -> "ClosedPages":
        """Some of the pages."""
        numbers = np.arange(len(self))[which]
        if len(numbers) == len(self):
            return self
        return ClosedPages([self.rows[number] for number in numbers.tolist()], self.records.select(numbers))

    def cut_where(self, values: Ints) -> "Iterator[ClosedPages]":
        """Runs of pages with the same value."""
        cuts = [0, *(1 + np.flatnonzero(np.diff(values))).tolist(), len(self)]
        for begin, end in itertools.pairwise(cuts):
            if begin < end:
                yield self if end - begin == len(self) else self.select(slice(begin, end))

    # --- columns ---

    @functools.cached_property
    def issued_at(self) -> Ints:
        """When they were issued."""
        return issue_times([row.impression for row in self.rows])

    @property
    def takes_part(self) -> Flags:
        """Pages of which a visitor's first in a window counts."""
        return np.asarray(takes_part(self.records.heads["arm"], self.records.heads["share"]))


def issue_times(impressions: Sequence[bytes]) -> Ints:
    """When pages were issued, by their ids."""
    ids = np.frombuffer(b"".join(impressions), np.uint8).reshape(-1, ID_SIZE)
    times = np.zeros((len(ids), 8), np.uint8)
    times[:, 8 - TIME_BYTES :] = ids[:, :TIME_BYTES]
    return times.view(">i8")[:, 0].astype(np.int64)


def issue_time(page: PageRow) -> int:
    """When a page was issued."""
    return int.from_bytes(page.impression[:TIME_BYTES], "big")


def look_of(record: PageRecord) -> NewestPage:
    """What the leader of a page is derived from."""
    return NewestPage(record.production, record.row or record.production)
