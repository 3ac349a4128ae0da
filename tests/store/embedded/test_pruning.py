"""What was deleted from a SQLite store does not stay in its files once they are scrubbed."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from saferank.store.contract import CatalogueRow, Group
from saferank.store.embedded.store import SqliteStore

NAME = b"a name that must go"


def holding(folder: Path) -> bool:
    return any(NAME in file.read_bytes() for file in folder.iterdir())


def test_scrubbing_leaves_nothing_in_free_pages_or_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        store = SqliteStore(tmp_path)
        await store.open()
        await store.write(Group(catalogues=[CatalogueRow(bytes(16), 1000 * NAME), CatalogueRow(b"d" * 16, b"stays")]))
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite overwrite what is deleted by themselves
            other.execute("DELETE FROM catalogue WHERE digest = ?", (bytes(16),))
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert NAME in store.path.read_bytes()
        await store.scrub()
        assert not holding(tmp_path)
        assert await store.catalogue(b"d" * 16) == b"stays"
        await store.close()

    asyncio.run(story())
    assert not holding(tmp_path)
