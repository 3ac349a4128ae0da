"""A start names damage that no single row shows."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from saferank.service.engine import Engine
from saferank.store.contract import AlarmRow
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from tests.service.engine_harness import House, run

NEWEST = "DELETE FROM page WHERE impression IN (SELECT impression FROM page ORDER BY impression DESC LIMIT 3)"
OLDEST = "DELETE FROM page WHERE impression IN (SELECT impression FROM page ORDER BY impression LIMIT 2)"


@pytest.mark.parametrize(
    ("damage", "context", "why"),
    [
        (NEWEST, 0, "3 pages are missing"),
        (OLDEST, 0, "2 pages are missing"),
        ("UPDATE context SET closed_through = closed_through + (1 << 42)", 1, "table context is damaged"),
        ("UPDATE context SET pruned_through = 1", 1, "table context is damaged"),
    ],
    ids=["acknowledged pages", "published pages", "closed through", "pruned through"],
)
def test_a_start_names_what_is_missing_or_damaged(tmp_path: Path, damage: str, context: int, why: str) -> None:
    async def test() -> None:
        h = House(tmp_path)
        await h.start()
        for _ in range(2):
            for _ in range(4):
                page = await h.rank()
                await h.accept(page, page.ranking[0])
            if not h.fold().pages:
                await h.close()
        await h.stop()
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute(damage)
            connection.commit()
        engine = Engine(h.settings, SqliteStore(tmp_path, clock=lambda: h.now), h, name="alone")
        await engine.start()
        alarms: list[AlarmRow] = []
        while not alarms:
            await asyncio.sleep(0.001)
            alarms = [row for row in await engine.server.store.newest_alarms(100) if row.kind == "damage"]
        assert {row.context for row in alarms} == {context} and why in alarms[0].detail
        assert float(str(engine.counters()["alarms_total"])) >= 1
        await engine.stop()

    run(test())
