"""The tables of a store as neutral rows: what a backup holds, and what both kinds of stores can read and write.

A row is a tuple of numbers, texts, bytes and None. Checksums are compared when rows are read and made again when they
are written, so they are not part of it. Servers, leases and waiting contexts are of the moment: they are left out.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple, Protocol

from saferank.store.checksums import damaged, sealed, unsealed
from saferank.store.past import LoadableStore

CHUNK = 1000
"""Rows that are read or written in one go."""

Row = tuple[Any, ...]


class TableColumns(NamedTuple):
    """The columns of a table in their order, those that hold bytes, and how many columns name a row in sentences."""

    columns: tuple[str, ...]
    binary: tuple[str, ...] = ()
    key: int = 1
    has_sum: bool = True  # rows have a checksum in the store


_KNOWLEDGE = ("context", "number", "through", "operation", "body")

TABLES = {
    "meta": TableColumns(("name", "value"), ("value",)),
    "context": TableColumns(("id", "tenant", "name", "terms", "opened_at", "closed_through", "pruned_through")),
    "catalogue": TableColumns(("digest", "body"), ("digest", "body")),
    "page": TableColumns(
        ("impression", "context", "closes_at", "record", "server", "number", "clicks"), ("impression", "record")
    ),
    "delivery": TableColumns(("tenant", "event_id", "digest", "at"), ("digest",), has_sum=False),
    "publication": TableColumns((*_KNOWLEDGE, "published_at"), ("body",), 2),
    "snapshot": TableColumns(_KNOWLEDGE, ("body",), 2),
    "version": TableColumns(
        ("context", "version", "at", "cause", "leader", "impression", "evidence", "why"), ("impression",), 2
    ),
    "operation": TableColumns(("number", "at", "tenant", "context", "kind", "body")),
    "alarm": TableColumns(("at", "context", "kind", "detail"), has_sum=False),
}
"""In the order in which they are written."""

_UNSUMMED = {"context": 2, "publication": 1}
"""So many of the last columns of a table change by themselves and are not in the checksum of a row. Those of a context
are kept a second time, inverted."""


class Chunk(NamedTuple):
    """Some rows of a table."""

    table: str
    rows: list[Row]


class CopiedStore(LoadableStore, Protocol):
    """A store whose whole content can be taken out and put in."""

    def dump(self) -> AsyncIterator[Chunk]:
        """All rows of all tables as of one moment, in the order of ``TABLES``; servers may keep writing."""

    async def fill(self, chunks: Iterable[Chunk]) -> None:
        """Write all rows, or none; StoreError unless the store is empty and no server uses it."""


def checked(name: str, table: str, row: Row) -> Row:
    """A neutral row of any table but pages, from one of a store; DamagedStoreError when it is not as it was written."""
    if not TABLES[table].has_sum:
        return row
    summed, rest = _cut(table, row)
    return (*unsealed(name, table, summed, TABLES[table].key), *rest)


def checked_context(name: str, row: Row) -> Row:
    """A neutral row of table context, from one that ends with whether its times are as they were written."""
    if not row[-1]:
        raise damaged(name, "context", row[:1])
    return checked(name, "context", row[:-1])


def summed(table: str, row: Row) -> Row:
    """A row for a store, with its checksum, from a neutral one of any table but pages."""
    if not TABLES[table].has_sum:
        return row
    summed, rest = _cut(table, row)
    return (*sealed(summed), *rest)


def _cut(table: str, row: Row) -> tuple[Row, Row]:
    place = len(row) - _UNSUMMED.get(table, 0)
    return row[:place], row[place:]
