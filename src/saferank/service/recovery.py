"""The state as it was when the service ended: the newest snapshots, and the log from where they end."""

import gc
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from saferank.service.catalogues import unpack_catalogue
from saferank.service.context import Context, SavedContext
from saferank.service.pages import OpenPage
from saferank.service.snapshots import restored
from saferank.service.state import Catalogue, State
from saferank.store.events import ALL, Event, Kind
from saferank.store.sqlite import Reader

PAGE, CLICKS = int(Kind.PAGE), int(Kind.CLICKS)  # compared a million times: numbers are quicker


DAMAGE = (sqlite3.Error, LookupError, ValueError, TypeError, AssertionError, struct.error, zlib.error)
"""What reading a log may raise whose file is damaged."""


def find_catalogue(reader: Reader, digest: bytes) -> Catalogue:
    """A catalogue of the log."""
    body = reader.value("catalogue", digest)
    if body is None:
        raise ValueError(f"the log names a catalogue {digest.hex()} that it does not hold")
    return unpack_catalogue(body)


def rollbacks_are_in_snapshots(context: Context, version: int) -> SavedContext:
    """A rollback is written together with a snapshot, so a start never meets one behind its snapshot."""
    raise ValueError(f"context {context.name!r}: the rollback to version {version} has no snapshot")


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Millions of pages are made and none of them is garbage: looking for some would take a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def restore(state: State, reader: Reader) -> None:
    """Bring an empty state to the end of the log."""
    with without_garbage_collection():
        _restore(state, reader)


def _restore(state: State, reader: Reader) -> None:
    ends: dict[int, int] = {}
    needed = [int(reader.value("meta", "clean") or 0) + 1]
    for number, seq, body in reader.rows("latest_snapshots"):
        context, snapshot = restored(number, body, state.watcher, state.open_pages)
        state.add(context)
        ends[number] = seq
        needed.append(snapshot.oldest_open or needed[0])
    _restore_switches(state, reader)
    for row in reader.rows("events_from", min(needed)):
        seq, _, number, _, _, _ = row
        if number == ALL:
            continue
        if seq > ends.get(number, 0):
            state.apply(Event._make(row))
        else:
            reopen(state, row)
    state.settle()


def _restore_switches(state: State, reader: Reader) -> None:
    """The switches of tenants are in no snapshot; there are few."""
    rows = [row for kind in (Kind.KILL, Kind.UNKILL) for row in reader.rows("rare_events", ALL, kind)]
    for row in sorted(rows):
        state.apply(Event(*row))


def reopen(state: State, row: tuple[Any, ...]) -> None:
    """An event that is in the snapshot of its context, apart from pages that are still open. There may be millions."""
    seq, kind, number, _, impression, body = row
    if kind == PAGE:
        context = state.contexts[number]
        page = OpenPage(context, seq, impression, body)
        if seq <= context.rolled_back_seq:
            page.counted = False
        if page.closes_at > context.closed_to:
            context.keep_open(page)
    elif kind == CLICKS and impression in state.open_pages:
        state.clicks(Event._make(row))
