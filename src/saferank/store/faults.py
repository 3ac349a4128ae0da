"""Damage that no single row shows, in sentences. Both stores ask the same questions in their own SQL."""

from collections.abc import Iterable, Sequence
from typing import Any

from saferank.store.checksums import unsealed
from saferank.store.contract import DamagedStoreError, Fault, OperationRow

AHEAD_MS = 86_400_000
"""Contexts are closed through the past. The clock of a SQLite store may have been set back since, but not by days."""

_FIX = "Restore the store from a backup"

TimesRow = tuple[int, int, int, int, bool]
"""Context, closed through, pruned through, published through, and whether the first two are as they were written."""


def page_faults(name: str, written: int, found: int) -> list[Fault]:
    """What is said when there are not as many pages as were written and not deleted since."""
    if written == found:
        return []
    what = f"{written - found} pages are missing" if found < written else f"{found - written} pages are too many"
    return [Fault(0, f"{name}: {what}: {written} were written, the log has {found}. {_FIX}")]


def check_pages(name: str, written: int, found: int) -> None:
    """DamagedStoreError when pages are missing."""
    for fault in page_faults(name, written, found):
        raise DamagedStoreError(fault.detail)


def operation_faults(name: str, written: int, found: int, newest: int) -> list[Fault]:
    """What is said when operations are missing: they are numbered from 1, and none is ever deleted."""
    if written == found == newest:
        return []
    what = f"{written} were written, the store has {found}, the newest of which is number {newest}"
    return [Fault(0, f"{name}: operations are missing or too many: {what}. {_FIX}")]


def check_operations(name: str, written: int, found: int, newest: int) -> None:
    """DamagedStoreError when operations are missing."""
    for fault in operation_faults(name, written, found, newest):
        raise DamagedStoreError(fault.detail)


def checked_operations(name: str, after: int, rows: Sequence[Sequence[Any]]) -> list[OperationRow]:
    """Operations with larger numbers than ``after``; DamagedStoreError when one is missing or not as it was written.

    Each row begins with how many were written; the only one has nothing else when there are none.
    """
    if not rows:
        raise DamagedStoreError(f"{name}: does not say how many operations were written. {_FIX}")
    written = int(rows[0][0])
    found = [OperationRow(*unsealed(name, "operation", row[1:])) for row in rows if row[1] is not None]
    if [row.number for row in found] != list(range(after + 1, written + 1)):
        check_operations(name, written, after + len(found), found[-1].number if found else after)
    return found


def time_faults(name: str, rows: Iterable[Sequence[int]], now: int) -> list[Fault]:
    """What is said of the times of contexts (``TimesRow``)."""
    found = []
    for context, closed, pruned, published, whole in rows:
        if not whole:
            why = "is damaged: it is not as it was written"
        elif closed > now + AHEAD_MS:
            why = f"is closed through {closed}, which lies in the future"
        elif closed < published:
            why = f"is closed through {closed}, but what was published stands for pages through {published}"
        elif pruned > published:
            why = f"has pages deleted through {pruned}, but what was published stands for pages through {published}"
        else:
            continue
        found.append(Fault(context, f"{name}: the row {context} of table context {why}. {_FIX}"))
    return found
