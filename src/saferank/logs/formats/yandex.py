"""What the two Yandex formats share: lines become pages in compiled code; each format knows only its own records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saferank._kernel import kernel, verb
from saferank.logs.errors import FULL, GOOD, LONG_PAGE, TWICE
from saferank.logs.formats.byte_chunks import CHUNK, Progress, chunks
from saferank.logs.formats.fields import Bytes, Ids, after_line, at_end
from saferank.logs.tables.batch import PageBatch, close_session, forget_closed, new_batch, shown_at
from saferank.logs.tables.reader_counts import ReaderCounts, new_reader_counts, note_bad


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
