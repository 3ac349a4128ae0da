"""Checksums of rows: written with a row, compared when it is read. A row that was changed since is named.

The clicks of a page change after it was written, so they have a checksum of their own (SQLite) or are kept twice, once
with every bit inverted (PostgreSQL, which merges them by itself).
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Any

from saferank.store.contract import DamagedStoreError, PageRow

CLICK_BYTES = 16
"""Room for the clicks of a page: a page shows at most 100 items."""

_SUM_BYTES = 4
_NUMBERS = struct.Struct("<qqq")


def row_sum(values: Sequence[Any]) -> int:
    """The checksum of a row of numbers, texts, bytes and None."""
    return zlib.crc32(ascii(tuple(values)).encode("ascii"))


def page_sum(page: PageRow) -> int:
    """The checksum of a page without its clicks. There may be millions."""
    impression, context, closes_at, record, server, number, _ = page
    return zlib.crc32(record, zlib.crc32(impression + _NUMBERS.pack(context, closes_at, number) + server.encode()))


def sealed(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row with its checksum as its last column."""
    return (*row, row_sum(row))


def unsealed(name: str, table: str, row: Sequence[Any], key: int = 1) -> Sequence[Any]:
    """The row without its checksum; DamagedStoreError names the table and the first ``key`` columns."""
    *values, found = row
    if row_sum(values) != found:
        raise damaged(name, table, values[:key])
    return values


def sealed_clicks(impression: bytes, clicks: int) -> bytes:
    """The clicks of a page as bytes that say whether they are as they were written."""
    body = clicks.to_bytes((clicks.bit_length() + 7) // 8, "little")
    return body + zlib.crc32(body, zlib.crc32(impression)).to_bytes(_SUM_BYTES, "little")


def unsealed_clicks(name: str, impression: bytes, data: bytes) -> int:
    """The clicks; DamagedStoreError when they are not as they were written."""
    clicks = int.from_bytes(data[:-_SUM_BYTES], "little") if isinstance(data, bytes) else -1
    if clicks < 0 or sealed_clicks(impression, clicks) != data:
        raise damaged(name, "clicks", (impression,))
    return clicks


def checked_page(name: str, page: PageRow, found: int) -> PageRow:
    """The page; DamagedStoreError when it is not as it was written."""
    try:
        whole = page_sum(page) == found
    except (AttributeError, TypeError, struct.error):  # a column of another kind
        whole = False
    if not whole:
        raise damaged(name, "page", (page.impression,))
    return page


def unsealed_pages(name: str, rows: Sequence[Sequence[Any]]) -> list[PageRow]:
    """Pages from rows that end with sealed clicks and a checksum; DamagedStoreError names one that was changed.

    There may be millions, so the sums are made by calls over whole columns.
    """
    if not rows:
        return []
    *columns, clicks, found = zip(*rows, strict=True)
    bare = [one.to_bytes(_SUM_BYTES, "little") for one in map(zlib.crc32, columns[0])]  # the clicks of most pages: none
    merged = [
        0 if sealed == none else unsealed_clicks(name, impression, sealed)
        for impression, sealed, none in zip(columns[0], clicks, bare, strict=True)
    ]
    pages = list(map(PageRow, *columns, merged))
    if not _are_whole(columns, found):
        for page, one in zip(pages, found, strict=True):
            checked_page(name, page, one)
    return pages


def _are_whole(columns: Sequence[Sequence[Any]], found: Sequence[Any]) -> bool:
    """True when every page has the sum ``page_sum`` that was found."""
    impressions, contexts, times, records, servers, numbers = columns
    try:
        names = {server: server.encode() for server in set(servers)}
        packed = map(_NUMBERS.pack, contexts, times, numbers)
        heads = [one + two + names[server] for one, two, server in zip(impressions, packed, servers, strict=True)]
        return list(map(zlib.crc32, records, map(zlib.crc32, heads))) == list(found)
    except (AttributeError, TypeError, struct.error):  # a column of another kind
        return False


def damaged(name: str, table: str, key: Sequence[Any]) -> DamagedStoreError:
    """What is said of a row that was changed."""
    words = ", ".join(value.hex() if isinstance(value, bytes) else str(value) for value in key)
    return DamagedStoreError(
        f"{name}: the row {words} of table {table} is damaged: its checksum is wrong. Restore the store from a backup"
    )
