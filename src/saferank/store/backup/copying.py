"""Take a backup of a store, and make a store from one."""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from saferank._version import __version__
from saferank.errors import writing
from saferank.files import replacing
from saferank.store.backup.archive import ArchiveReader, ArchiveWriter
from saferank.store.facts import RESTORED
from saferank.store.tables import Chunk, CopiedStore

_PRIVATE = 0o600
"""A backup holds the keys of its store: only its owner may read it."""


class Copied(NamedTuple):
    """How much was copied."""

    rows: dict[str, int]

    def sentence(self, what: str) -> str:
        """For people."""
        rows = self.rows
        parts = f"{rows['context']} contexts, {rows['page']} pages, {rows['version']} versions"
        return f"{what}: {parts}, {rows['operation']} operations, and the keys of the store"


async def backup(store: CopiedStore, file: Path) -> Copied:
    """Write everything that a store holds at one moment to a file; its service may be running.

    The file takes its place when it is complete and on disk. StoreError names what is damaged in the store.
    """
    await store.open()
    try:
        with writing(file), replacing(file) as out:
            with contextlib.suppress(OSError):  # a pipe has no owner
                os.fchmod(out.fileno(), _PRIVATE)
            with contextlib.closing(ArchiveWriter(out)) as archive:
                async for chunk in store.dump():
                    archive.add(chunk)
                archive.finish(__version__, _now())
            return Copied(archive.rows)
    finally:
        await store.close()


async def restore(file: Path, store: CopiedStore) -> Copied:
    """Make a store from a backup, all of it or nothing; StoreError when the store is not empty.

    BackupError, before the store is touched, when the file is damaged.
    """
    with contextlib.closing(ArchiveReader(file)) as archive:
        await store.open()
        try:
            await store.fill(_marked(archive.chunks()))
        finally:
            await store.close()
        return Copied(archive.manifest.rows)


def _marked(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The rows, and the time of the restore among the facts about the store.

    Visitors may bring back pages that the old service made after the backup, from knowledge that is not in it.
    """
    for table, rows in chunks:
        if table == "meta":
            mark = (RESTORED, json.dumps({"at": _now()}).encode())
            yield Chunk(table, [*(row for row in rows if row[0] != RESTORED), mark])
        else:
            yield Chunk(table, rows)


def _now() -> int:
    return time.time_ns() // 1_000_000
