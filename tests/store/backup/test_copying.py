"""A backup of either kind of store is restored into either kind, and nothing is different afterwards."""

import asyncio
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from saferank.service.queries.replay import verify
from saferank.store.backup.archive import ArchiveReader, BackupError
from saferank.store.backup.copying import backup, restore
from saferank.store.contract import DamagedStoreError, StoreError
from saferank.store.embedded.store import SqliteStore
from saferank.store.opening import open_store
from saferank.store.tables import TABLES, Chunk, CopiedStore
from tests.service.engine_harness import House, T, run
from tests.store.postgres_database import emptied

EVENT = "click-1"


async def traffic(house: House) -> None:
    """Clicks, an event id, a rollback, a switch, an alarm and an open page."""
    for number in range(40):
        page = await house.rank(candidates=["x", f"n{number % 2}"])
        clicked = ["b"] if "b" in page.ranking else []
        await house.accept(page, *clicked, event_id=EVENT if number == 39 else None)
        await house.later(1)
    await house.engine.rollback(T, "c", 1, "test")
    await house.engine.kill(T, None, True, "stop")
    await house.engine.kill(T, None, False, "go on")
    house.server.alarm("illegal_page", await house.server.known_context(T, "c"), "for the test")
    await house.server.settle()


def rows_of(store: CopiedStore) -> dict[str, list[tuple[object, ...]]]:
    async def read() -> list[Chunk]:
        await store.open()
        try:
            return [chunk async for chunk in store.dump()]
        finally:
            await store.close()

    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in TABLES}
    for chunk in asyncio.run(read()):
        rows[chunk.table] += [tuple(row) for row in chunk.rows]
    return rows


def without_mark(rows: dict[str, list[tuple[object, ...]]]) -> dict[str, list[tuple[object, ...]]]:
    return {**rows, "meta": [row for row in rows["meta"] if row[0] != "restored"]}


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The address of a new store of a kind."""

    def make(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / "restored")
        return emptied(request.getfixturevalue("postgres_address"))

    return make


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_service_goes_on_where_the_backup_was_taken(tmp_path: Path, target: Callable[[str], str], kind: str) -> None:
    """The first backup is taken while the service runs; the second one of what was restored from the first."""
    first, second, address = tmp_path / "first", tmp_path / "second", target(kind)

    async def story() -> None:
        house = House(tmp_path / "store", window_seconds=1, rule="paper:0.1")
        await house.start()
        await traffic(house)
        before = await house.rank()
        await house.server.settle()
        states = house.states()
        copied = await backup(SqliteStore(house.folder, readonly=True), first)
        assert (copied.rows["page"], copied.rows["context"], copied.rows["operation"]) == (41, 1, 4)
        await restore(first, open_store(address))
        await backup(open_store(address, readonly=True), second)
        await restore(second, SqliteStore(tmp_path / "again"))
        other = House(tmp_path / "again", window_seconds=1, rule="paper:0.1")
        other.now = house.now
        await other.start()
        await other.engine.context(T, "c")
        assert other.states() == states
        assert (await other.accept(before, before.ranking[0])).state == "open"
        assert (await other.refuse(before, before.ranking[0], event_id=EVENT)).status == 409
        await other.later(1)
        page = await other.rank()
        assert page.leader_version == before.leader_version
        await other.accept(page)
        assert (await other.stop_and_replay()).pages == 42
        await house.stop()

    run(story())
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    kept = [list(ArchiveReader(path).chunks()) for path in (first, second)]
    assert [chunk for chunk in kept[0] if chunk.table != "meta"] == [
        chunk for chunk in kept[1] if chunk.table != "meta"
    ]
    report = asyncio.run(verify(open_store(address, readonly=True)))
    assert (report.pages, report.rollbacks, report.publications) == (41, 1, 1)


def test_what_is_in_a_store_is_in_its_backup(tmp_path: Path) -> None:
    make(tmp_path / "store")
    asyncio.run(backup(SqliteStore(tmp_path / "store", readonly=True), tmp_path / "file"))
    asyncio.run(restore(tmp_path / "file", SqliteStore(tmp_path / "new")))
    rows = rows_of(SqliteStore(tmp_path / "store", readonly=True))
    assert without_mark(rows_of(SqliteStore(tmp_path / "new", readonly=True))) == rows
    assert all(rows[name] for name in TABLES if name != "snapshot")
    assert {name for name, _ in rows["meta"]} == {"session_key", "token_keys"}


def make(folder: Path) -> Path:
    async def story() -> None:
        house = House(folder, window_seconds=1, rule="paper:0.1")
        await house.start()
        page = await house.rank()
        await house.accept(page, page.ranking[0], event_id=EVENT)
        await house.engine.kill(T, None, True, "stop")
        house.server.alarm("illegal_page", await house.server.known_context(T, "c"), "for the test")
        await house.server.settle()
        await house.close()
        await house.stop()

    run(story())
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    make(tmp_path / "store")
    asyncio.run(backup(SqliteStore(tmp_path / "store", readonly=True), tmp_path / "file"))
    return tmp_path / "file"


def test_a_file_that_was_cut_off_or_changed_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        begin = archive.getinfo("page.jsonl").header_offset + 60
    damaged = [whole[:size] for size in (0, 10, len(whole) // 2, len(whole) - 1)]
    damaged += [whole[:begin] + bytes([whole[begin] ^ 255]) + whole[begin + 1 :], b"text" * 1000]
    for data in damaged:
        file.write_bytes(data)
        with pytest.raises(BackupError, match=f"^{file}: is (damaged|not a backup)"):
            asyncio.run(restore(file, SqliteStore(tmp_path / "new")))
        assert not (tmp_path / "new").exists()


def test_a_part_with_other_rows_is_noticed(file: Path, tmp_path: Path) -> None:
    """As somebody would change it who packs the archive anew."""
    other = tmp_path / "other"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"stop", b"stay") if name == "operation.jsonl" else data)
    with pytest.raises(BackupError, match="table operation is not as it was written"):
        ArchiveReader(other)


def test_a_backup_of_a_later_form_is_refused(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        facts = json.loads(old.read("manifest.json"))
        new.writestr("manifest.json", json.dumps({**facts, "form": 2, "saferank": "9.0"}))
    with pytest.raises(BackupError, match=r"is a backup of form 2; .* use saferank 9.0"):
        ArchiveReader(other)


def test_a_store_that_is_not_empty_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not empty"):
        asyncio.run(restore(file, SqliteStore(tmp_path / "store")))
    with pytest.raises(StoreError, match="cannot be read"):
        asyncio.run(restore(tmp_path / "nothing", SqliteStore(tmp_path / "new")))


def test_a_database_that_is_used_is_refused(file: Path, postgres_address: str) -> None:
    async def with_a_server() -> None:
        store = open_store(postgres_address)
        await store.open()
        await store.heartbeat("s", 0, 60_000)
        with pytest.raises(StoreError, match="1 servers are running on it"):
            await restore(file, open_store(postgres_address))
        await store.leave("s")
        await store.close()
        await restore(file, open_store(postgres_address))
        with pytest.raises(StoreError, match="is not empty"):
            await restore(file, open_store(postgres_address))

    asyncio.run(with_a_server())


def test_a_damaged_store_is_named_and_the_old_backup_stays(file: Path, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    old = file.read_bytes()
    with closing(sqlite3.connect(tmp_path / "store" / "log.sqlite3")) as connection:
        connection.execute("UPDATE operation SET body = '{}'")
        connection.commit()
    with pytest.raises(DamagedStoreError, match="of table operation is damaged"):
        asyncio.run(backup(SqliteStore(tmp_path / "store", readonly=True), file))
    assert file.read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "store"]


def test_pages_from_after_the_backup_do_not_disturb_a_replay(tmp_path: Path) -> None:
    """A visitor brings a token back that the old service made from knowledge which is not in the backup."""

    async def story() -> None:
        house = House(tmp_path / "store", window_seconds=1, rule="paper:0.1")
        await house.start()
        await house.rank()
        await house.server.settle()
        await backup(SqliteStore(house.folder, readonly=True), tmp_path / "file")
        for _ in range(40):
            page = await house.rank()
            await house.accept(page, *(["b"] if "b" in page.ranking else []))
            await house.later(1)
        late = await house.rank()
        assert late.leader_version > 1
        await restore(tmp_path / "file", SqliteStore(tmp_path / "new"))
        other = House(tmp_path / "new", window_seconds=1, rule="paper:0.1")
        other.now = house.now
        await other.start()
        await other.accept(late, late.ranking[0])
        report = await other.stop_and_replay()
        assert report.foreign == 1 and "name later versions" in " ".join(report.sentences())
        await house.stop()

    run(story())
