"""Logs in which pages and clicks are separate lines: joined in memory, then read like ``sessions``.

A click finds its page by a key (the id of a query, or a user): the newest page of the key that shows the item. All
pages of the file are in memory while it is read, about 1 KB for a page of ten items, because a click may come last.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from saferank.logs.errors import GOOD, NOT_JSON
from saferank.logs.formats.byte_chunks import CHUNK, Progress, chunks
from saferank.logs.formats.sessions import BLANK, NO_JSON, SessionsReader, decoded, note_line
from saferank.logs.tables.batch import PageBatch, close_session, forget_closed, new_batch


class JoinedPage(NamedTuple):
    """A page, its clicks so far, and the line that it stands on."""

    query: object
    items: list[object]
    clicked: list[object]
    text: bytes


class Joined:
    """Pages in the order of the file, found by their keys."""

    def __init__(self) -> None:
        self.pages: list[JoinedPage] = []
        self.stray = 0
        self._by_key: dict[object, list[JoinedPage]] = {}

    def show(self, key: object, page: JoinedPage) -> None:
        """A page was shown."""
        self.pages.append(page)
        self._by_key.setdefault(key, []).append(page)

    def click(self, key: object, item: object, query: object = None) -> None:
        """An item of a page was clicked; ``query`` narrows down which. A click without its page is stray."""
        for page in reversed(self._by_key.get(key, ())):
            if item in page.items and query in (None, page.query):
                page.clicked.append(item)
                return
        self.stray += 1


class JoiningReader(SessionsReader):
    """A log of separate pages and clicks; what a line means is the business of ``take_line``."""

    def __init__(self, path: Path, chunk: int = CHUNK) -> None:
        super().__init__(path, chunk)
        self.joined = Joined()

    def take_line(self, record: object, text: bytes) -> int:
        """Take in the JSON value of a line; returns what is wrong with it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last line."""

    def batches(self, progress: Progress) -> Iterator[PageBatch]:
        """All pages in their order; the complete ones of each batch are gone when the next is asked for."""
        batch = new_batch()
        self.tally = batch.tally
        self._read(batch, progress)
        for page in self.joined.pages:
            found = {"query": page.query, "items": page.items, "clicked": list(dict.fromkeys(page.clicked))}
            note_line(batch.tally, self.take_page(batch, found), page.text)
            if batch.pages[0] == len(batch.query):
                close_session(batch)
                yield batch
                forget_closed(batch)
        close_session(batch)
        yield batch

    def _read(self, batch: PageBatch, progress: Progress) -> None:
        self.joined = Joined()
        for data, stop in chunks(self._path, self._chunk, progress):
            for line in data[:stop].tobytes().split(b"\n")[:-1]:
                batch.tally.lines[0] += 1
                record = decoded(line)
                bad = NOT_JSON if record is NO_JSON else GOOD if record is BLANK else self.take_line(record, line)
                note_line(batch.tally, bad, line)
        self.finish()
        batch.tally.stray_clicks[0] += self.joined.stray
