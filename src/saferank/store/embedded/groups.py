"""A group of reports and pages, written in one transaction of SQLite."""

import sqlite3

from saferank.store.contract import MOST_EVENT_IDS, ClickReport, Group, Outcome, PageRow, Written
from saferank.store.embedded.file import for_many
from saferank.store.page_record import TIME_BYTES
from saferank.store.sql import statements


def write_group(connection: sqlite3.Connection, group: Group, now: int) -> Written:
    """Merge the reports, add the pages that are open; inside a transaction."""
    rows = [(*row, now) for row in group.catalogues]
    for_many(connection, statements("embedded")["add_catalogue"], rows)
    merge = _Merge(connection, group, now)
    outcomes = tuple(map(merge.report, group.reports))
    added = sum(map(merge.add, group.pages))
    merge.write(connection)
    return Written(outcomes, now, len(group.pages) - added)


class _Merge:
    """What the store holds of the pages and events of a group, and what becomes of it."""

    def __init__(self, connection: sqlite3.Connection, group: Group, now: int) -> None:
        sql, self._now = statements("embedded"), now
        contexts, impressions, events = set[tuple[int]](), set[tuple[bytes]](), set[tuple[bytes, str]]()
        for page in group.pages:
            contexts.add((page.context,))
            impressions.add((page.impression,))
        for page, _, event_id in group.reports:
            contexts.add((page.context,))
            impressions.add((page.impression,))
            if event_id is not None:
                events.add((page.impression, event_id))
        self._closed: dict[int, int] = dict(for_many(connection, sql["closed_through_in"], list(contexts)))
        for (number,) in contexts:
            if number not in self._closed:
                raise KeyError(f"there is no context {number}")
        self._clicks: dict[bytes, int] = {}  # of pages that are there
        self._ids: dict[bytes, int] = {}  # how many event ids of them are kept
        for impression, clicks, ids in for_many(connection, sql["clicks_in"], list(impressions)):
            self._clicks[impression], self._ids[impression] = clicks_of(clicks), ids
        self._events: dict[tuple[bytes, str], bytes] = {}
        for impression, event_id, digest in for_many(connection, sql["deliveries_in"], list(events)):
            self._events[impression, event_id] = digest
        self._changed: dict[bytes, PageRow] = {}
        self._new: dict[int, int] = {}  # context: the earliest end of a window of a new page
        self._delivered: list[tuple[bytes, str, bytes, int]] = []

    def report(self, report: ClickReport) -> Outcome:
        """An event that is known is answered as such even when its page is closed by now: it was counted."""
        page = report.page
        known = None if report.event_id is None else self._events.get((page.impression, report.event_id))
        if known is not None:
            return Outcome.DUPLICATE if known == report.digest else Outcome.CONFLICT
        if not self._is_open(page):
            return Outcome.LATE
        new = self._merge(page)
        if report.event_id is not None and (new or self._ids.get(page.impression, 0) < MOST_EVENT_IDS):
            self._events[page.impression, report.event_id] = report.digest
            self._delivered.append((page.impression, report.event_id, report.digest, self._now))
            self._ids[page.impression] = self._ids.get(page.impression, 0) + 1
            self._changed[page.impression] = page._replace(clicks=self._clicks[page.impression])
            new = True
        return Outcome.ACCEPTED if new else Outcome.DUPLICATE

    def add(self, page: PageRow) -> bool:
        """Add an issued page unless it is there; False when it is closed."""
        if not self._is_open(page):
            return False
        if page.impression not in self._clicks:
            self._merge(page)
        return True

    def write(self, connection: sqlite3.Connection) -> None:
        """Bring it into the file."""
        sql, ids, pages = statements("embedded"), self._ids, self._changed.values()
        for_many(connection, sql["add_delivery"], self._delivered)
        rows = [(*page[:-1], packed_clicks(page.clicks), ids.get(page.impression, 0)) for page in pages]
        for_many(connection, sql["add_page"], rows)
        for_many(connection, sql["add_waiting"], list(self._new.items()))

    def _is_open(self, page: PageRow) -> bool:
        issued_at = int.from_bytes(page.impression[:TIME_BYTES], "big")
        return issued_at > self._closed[page.context] and self._now < page.closes_at

    def _merge(self, page: PageRow) -> bool:
        """True when the page or one of its clicks is new."""
        known = self._clicks.get(page.impression)
        clicks = page.clicks | (known or 0)
        if clicks == known:
            return False
        if known is None:
            self._new[page.context] = min(page.closes_at, self._new.get(page.context, page.closes_at))
        self._clicks[page.impression] = clicks
        self._changed[page.impression] = page._replace(clicks=clicks)
        return True


def packed_clicks(clicks: int) -> bytes:
    """The clicks of a page, which may be more than a number of SQLite holds."""
    return clicks.to_bytes((clicks.bit_length() + 7) // 8, "little")


def clicks_of(data: bytes) -> int:
    """The clicks that were packed."""
    return int.from_bytes(data, "little")
