"""Backups. A backup is a store: one SQLite file, copied from a store of either kind and back into either kind."""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from saferank.errors import writing
from saferank.files import is_device
from saferank.store.contract import (
    COPIED,
    RESTORED,
    Chunk,
    CopiedStore,
    DamagedStoreError,
    PageRow,
    Publication,
    StoreError,
)
from saferank.store.embedded.file import PRIVATE_FILE, lock_of
from saferank.store.embedded.store import SqliteStore
from saferank.store.page_record import is_whole

_WHOLE_COLUMN = {
    "page": PageRow._fields.index("record"),
    "publication": Publication._fields.index("body"),
    "snapshot": Publication._fields.index("body"),
}
"""By table: the column whose bytes end with their own CRC-32."""


@dataclass
class Copied:
    """How many rows were copied, by table."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COPIED, 0))

    def sentence(self, what: str) -> str:
        """For people."""
        rows = self.rows
        parts = f"{rows['context']} contexts, {rows['page']} pages, {rows['version']} versions"
        return f"{what}: {parts}, {rows['operation']} operations, and the keys of the store"


async def backup(store: CopiedStore, file: Path) -> Copied:
    """Copy everything that a store holds at one moment into a file; its service may be running.

    The file takes its place when it is complete and on disk. DamagedStoreError names what is damaged in the store.
    """
    if is_device(file):
        raise StoreError(f"{file}: is no file; a backup is a SQLite file")
    target = file.resolve() if file.is_symlink() else file
    if lock_of(target).exists():
        raise StoreError(f"{file}: is the file of a store; a backup would take its place, name another file")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    await store.open()
    try:
        await _check(store)
        with writing(file):
            draft.touch(PRIVATE_FILE, exist_ok=False)
            copied = await _copy(store, SqliteStore(draft))
            _close_file(draft)
            draft.replace(target)
        return copied
    finally:
        await store.close()
        for left in draft.parent.glob(f"{draft.name}*"):
            left.unlink()


async def restore(file: Path, store: CopiedStore) -> Copied:
    """Make a store from a backup, all of it or nothing; StoreError when the store is not empty or a server uses it.

    StoreError, before the store is touched, when the file is no backup, was cut off or is damaged.
    """
    if not file.is_file():
        raise StoreError(f"{file}: there is no such file; name one that `saferank backup` wrote")
    source = SqliteStore(file, readonly=True)
    await source.open()
    try:
        await _check(source)
        return await _copy(source, store, {RESTORED: json.dumps({"at": time.time_ns() // 1_000_000}).encode()})
    finally:
        await source.close()


async def _check(store: CopiedStore) -> None:
    for sentence in await store.damage():
        raise DamagedStoreError(sentence)


async def _copy(source: CopiedStore, target: CopiedStore, facts: dict[str, bytes] | None = None) -> Copied:
    """Copy an open store into another, which is opened and closed, with other facts about the new store."""
    copied = Copied()
    await target.open()
    try:
        await target.fill(_rows_of(source, facts or {}, copied))
    finally:
        await target.close()
    return copied


async def _rows_of(store: CopiedStore, facts: dict[str, bytes], copied: Copied) -> AsyncIterator[Chunk]:
    """The rows of a store; DamagedStoreError names a page or a publication that is not as it was written."""
    async for table, rows in store.dump():
        for row in rows if table in _WHOLE_COLUMN else ():
            if not is_whole(row[_WHOLE_COLUMN[table]]):
                key = row[0].hex() if table == "page" else f"of context {row[0]}, number {row[1]},"
                raise DamagedStoreError(f"{store.name}: the {table} {key} is damaged: its checksum is wrong")
        copied.rows[table] += len(rows)
        yield Chunk(table, [*(row for row in rows if row[0] not in facts), *facts.items()] if table == "meta" else rows)


def _close_file(path: Path) -> None:
    """Make one file of it, which can be read from a read-only folder, and bring it to the disk."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with path.open("rb") as written:
        os.fsync(written.fileno())
