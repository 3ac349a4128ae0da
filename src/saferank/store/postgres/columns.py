"""Rows as the columns that the functions of the database take."""

from collections.abc import Sequence
from typing import Any

from saferank.store.contract import Group, PageRow

_DIGITS = 32  # of the clicks of a page, bit(128)


def group_columns(group: Group) -> list[Any]:
    """The columns of a group: its reports, then its pages."""
    reports = group.reports
    pages = [*(report.page for report in reports), *group.pages]
    none = [None] * len(group.pages)
    return [
        len(reports),
        *page_columns(pages),
        _texts([*(report.tenant for report in reports), *none]),
        _texts([*(report.event_id for report in reports), *none]),
        [*(report.digest for report in reports), *none],
    ]


def page_columns(pages: Sequence[PageRow]) -> list[Any]:
    """The columns of pages."""
    impressions, contexts, ends, records, servers, numbers, clicks = columns(pages, 7)
    return [
        impressions, as_array(contexts), as_array(ends), records, _texts(servers), as_array(numbers),
        _texts([f"x{value:0{_DIGITS}x}" for value in clicks]),
    ]  # fmt: skip


def as_array(values: Sequence[int]) -> str:
    """An array as PostgreSQL reads it. psycopg's lists take most of the time of a group."""
    return "{" + ",".join(map(str, values)) + "}"


def _texts(values: Sequence[str | None]) -> str:
    """An array as PostgreSQL reads it."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """The columns of rows that have so many."""
    return [[row[place] for row in rows] for place in range(width)]
