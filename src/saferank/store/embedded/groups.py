"""A group of reports and pages, written in one transaction of SQLite."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from saferank.store.contract import MOST_EVENT_IDS, ClickReport, Group, Outcome, PageRow, Written
from saferank.store.embedded.file import insert, select_in
from saferank.store.page_record import TIME_BYTES
from saferank.store.sql import statements


def write_group(connection: sqlite3.Connection, group: Group, now: int) -> Written:
    """Merge the reports, add the pages that are open; inside a transaction."""
    sql = statements("embedded")
    insert(connection, sql["add_catalogue"], [(*row, now) for row in group.catalogues])
    merge = _Merge(connection, group, now)
    outcomes = tuple(merge.report(report) for report in group.reports)
    left_out = sum(not merge.add(page) for page in group.pages)
    merge.write(connection)
    return Written(outcomes, now, left_out)


class _Merge:
    """What the store holds of the pages and events of a group, and what becomes of it."""

    def __init__(self, connection: sqlite3.Connection, group: Group, now: int) -> None:
        pages = [*(report.page for report in group.reports), *group.pages]
        self._now = now
        self._closed = _closed(connection, pages)
        self._clicks, self._ids = _clicks(connection, pages)
        self._events = _events(connection, group)
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
        sql = statements("embedded")
        insert(connection, sql["add_delivery"], self._delivered)
        rows = [_page_row(page, self._ids.get(page.impression, 0)) for page in self._changed.values()]
        insert(connection, sql["add_page"], rows)
        insert(connection, sql["add_waiting"], list(self._new.items()))

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


def _page_row(page: PageRow, ids: int) -> tuple[Any, ...]:
    return (*page[:-1], packed_clicks(page.clicks), ids)


def _closed(connection: sqlite3.Connection, pages: list[PageRow]) -> Mapping[int, int]:
    contexts = {page.context for page in pages}
    found = dict(select_in(connection, statements("embedded")["closed_through_in"], [(number,) for number in contexts]))
    for number in contexts - found.keys():
        raise KeyError(f"there is no context {number}")
    return found


def _clicks(connection: sqlite3.Connection, pages: list[PageRow]) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """By page that is there: its clicks, and how many event ids of it are kept."""
    keys = [(impression,) for impression in {page.impression for page in pages}]
    rows = select_in(connection, statements("embedded")["clicks_in"], keys)
    clicks = {impression: clicks_of(data) for impression, data, _ in rows}
    return clicks, {impression: ids for impression, _, ids in rows}


def _events(connection: sqlite3.Connection, group: Group) -> dict[tuple[bytes, str], bytes]:
    keys = {(report.page.impression, report.event_id) for report in group.reports if report.event_id is not None}
    rows = select_in(connection, statements("embedded")["deliveries_in"], list(keys))
    return {(impression, event_id): digest for impression, event_id, digest in rows}
