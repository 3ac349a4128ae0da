"""A group of reports and pages, written in one transaction of SQLite."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from saferank.store.checksums import damaged, page_sum, sealed, sealed_clicks, unsealed_clicks
from saferank.store.contract import MOST_EVENT_IDS, ClickReport, Group, Outcome, PageRow, Written
from saferank.store.embedded.file import insert, select_in
from saferank.store.page_record import TIME_BYTES
from saferank.store.past import Past
from saferank.store.sql import statements


def write_group(connection: sqlite3.Connection, group: Group, now: int, name: str) -> Written:
    """Merge the reports, add the pages that are open; inside a transaction."""
    sql = statements("embedded")
    insert(connection, sql["add_catalogue"], [(*sealed(row), now) for row in group.catalogues])
    merge = _Merge(connection, group, now, name)
    outcomes = tuple(merge.report(report) for report in group.reports)
    left_out = sum(not merge.add(page) for page in group.pages)
    merge.write(connection)
    return Written(outcomes, now, left_out)


def load(connection: sqlite3.Connection, past: Past, now: int) -> None:
    """Add rows of another store as they are; inside a transaction."""
    sql = statements("embedded")
    insert(connection, sql["add_context"], [sealed(row) for row in past.contexts])
    insert(connection, sql["add_page"], [_page_row(page) for page in past.pages])
    connection.execute(sql["count_written"], (len(past.pages),))
    insert(connection, sql["add_waiting"], [(page.context, page.closes_at) for page in past.pages])
    insert(connection, sql["add_delivery"], [(*event, now) for event in past.deliveries])
    insert(connection, sql["add_meta"], [sealed(row) for row in past.meta])


class _Merge:
    """What the store holds of the pages and events of a group, and what becomes of it."""

    def __init__(self, connection: sqlite3.Connection, group: Group, now: int, name: str) -> None:
        pages = [*(report.page for report in group.reports), *group.pages]
        self._now = now
        self._closed = _closed(connection, pages, name)
        self._clicks, self._ids = _clicks(connection, pages, name)
        self._events = _events(connection, group)
        self._changed: dict[bytes, PageRow] = {}
        self._new: dict[int, int] = {}  # context: the earliest end of a window of a new page
        self._added = 0
        self._delivered: list[tuple[str, str, bytes, int]] = []

    def report(self, report: ClickReport) -> Outcome:
        """An event that is known is answered as such even when its page is closed by now: it was counted."""
        page = report.page
        known = None if report.event_id is None else self._events.get((report.tenant, report.event_id))
        if known is not None:
            return Outcome.DUPLICATE if known == report.digest else Outcome.CONFLICT
        if not self._is_open(page):
            return Outcome.LATE
        new = self._merge(page)
        if report.event_id is not None and (new or self._ids.get(page.impression, 0) < MOST_EVENT_IDS):
            self._events[report.tenant, report.event_id] = report.digest
            self._delivered.append((report.tenant, report.event_id, report.digest, self._now))
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
        if self._added:
            connection.execute(sql["count_written"], (self._added,))

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
            self._added += 1
            self._new[page.context] = min(page.closes_at, self._new.get(page.context, page.closes_at))
        self._clicks[page.impression] = clicks
        self._changed[page.impression] = page._replace(clicks=clicks)
        return True


def _page_row(page: PageRow, ids: int = 0) -> tuple[Any, ...]:
    return (*page[:-1], sealed_clicks(page.impression, page.clicks), page_sum(page), ids)


def _closed(connection: sqlite3.Connection, pages: list[PageRow], name: str) -> Mapping[int, int]:
    contexts = {page.context for page in pages}
    rows = select_in(connection, statements("embedded")["closed_through_in"], [(number,) for number in contexts])
    for number, _, whole in rows:
        if not whole:
            raise damaged(name, "context", (number,))
    for number in contexts - {number for number, _, _ in rows}:
        raise KeyError(f"there is no context {number}")
    return {number: closed for number, closed, _ in rows}


def _clicks(
    connection: sqlite3.Connection, pages: list[PageRow], name: str
) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """By page that is there: its clicks, and how many event ids of it are kept."""
    keys = [(impression,) for impression in {page.impression for page in pages}]
    rows = select_in(connection, statements("embedded")["clicks_in"], keys)
    clicks = {impression: unsealed_clicks(name, impression, data) for impression, data, _ in rows}
    return clicks, {impression: ids for impression, _, ids in rows}


def _events(connection: sqlite3.Connection, group: Group) -> dict[tuple[str, str], bytes]:
    keys = {(report.tenant, report.event_id) for report in group.reports if report.event_id is not None}
    rows = select_in(connection, statements("embedded")["deliveries_in"], list(keys))
    return {(tenant, event_id): digest for tenant, event_id, digest in rows}
