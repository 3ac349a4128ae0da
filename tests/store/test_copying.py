"""A backup of either kind of store is restored into either kind, and nothing is different afterwards."""

import asyncio
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from saferank.service.calls.replay import verify
from saferank.service.wire.calls import RankAnswer
from saferank.store.contract import COPIED, SCHEMA_VERSION, Chunk, CopiedStore, DamagedStoreError, StoreError
from saferank.store.copying import backup, restore
from saferank.store.embedded.store import SqliteStore
from saferank.store.opening import open_store
from tests.service.house import House, T, run
from tests.store.postgres_database import emptied

EVENT = "click-1"


async def traffic(house: House) -> RankAnswer:
    """Clicks, an event id, a rollback, a switch, an alarm and an open page; the page of the event id."""
    for number in range(40):
        page = await house.rank(candidates=["x", f"n{number % 2}"])
        clicked = ["b"] if "b" in page.ranking else []
        await house.accept(page, *clicked, event_id=EVENT if number == 39 else None)
        await house.later(1)
    await house.server.rollback(T, "c", 1, "test")
    await house.server.kill(T, None, True, "stop")
    await house.server.kill(T, None, False, "go on")
    house.server.alarm("illegal_page", await house.server.known_context(T, "c"), "for the test")
    await house.server.settle()
    return page


def rows_of(store: CopiedStore) -> dict[str, list[tuple[object, ...]]]:
    async def read() -> list[Chunk]:
        await store.open()
        try:
            return [chunk async for chunk in store.dump()]
        finally:
            await store.close()

    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in COPIED}
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
        reported = await traffic(house)
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
        await other.server.show_context(T, "c")
        assert other.states() == states
        assert (await other.accept(before, before.ranking[0])).state == "open"
        assert (await other.refuse(reported, *reported.ranking, event_id=EVENT)).status == 409
        await other.later(1)
        page = await other.rank()
        assert page.leader_version == before.leader_version
        await other.accept(page)
        assert (await other.stop_and_replay()).pages == 42
        await house.stop()

    run(story())
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    kept = [without_mark(rows_of(SqliteStore(path, readonly=True))) for path in (first, second)]
    assert kept[0] == kept[1]
    assert asyncio.run(verify(SqliteStore(first, readonly=True))).pages == 41  # a backup is a store
    report = asyncio.run(verify(open_store(address, readonly=True)))
    assert (report.pages, report.rollbacks, report.publications) == (41, 1, 1)


def test_what_is_in_a_store_is_in_its_backup(tmp_path: Path) -> None:
    make(tmp_path / "store")
    asyncio.run(backup(SqliteStore(tmp_path / "store", readonly=True), tmp_path / "file"))
    asyncio.run(restore(tmp_path / "file", SqliteStore(tmp_path / "new")))
    rows = rows_of(SqliteStore(tmp_path / "store", readonly=True))
    assert without_mark(rows_of(SqliteStore(tmp_path / "new", readonly=True))) == rows
    assert all(rows[name] for name in COPIED if name != "snapshot")
    assert {name for name, _ in rows["meta"]} == {"session_key", "token_keys"}


def make(folder: Path) -> Path:
    async def story() -> None:
        house = House(folder, window_seconds=1, rule="paper:0.1")
        await house.start()
        page = await house.rank()
        await house.accept(page, page.ranking[0], event_id=EVENT)
        await house.server.kill(T, None, True, "stop")
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
    tree = 4096 + whole[4096:].index(whole[4096:4097])  # the second block: a table or an index
    changed = whole[:tree] + bytes([whole[tree] ^ 255]) + whole[tree + 1 :]
    for data in (*(whole[:size] for size in (0, 10, len(whole) // 2, len(whole) - 1)), changed, b"text" * 1000):
        file.write_bytes(data)
        with pytest.raises(StoreError, match=f"^{file}: is (damaged|empty)|^{file}: cannot be used as a store"):
            asyncio.run(restore(file, SqliteStore(tmp_path / "new")))
        assert not (tmp_path / "new").exists()


def test_a_page_that_was_changed_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    """As no check of the database notices it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "UPDATE page SET record = CAST(substr(record, 1, 97) || x'99' || substr(record, 99) AS BLOB)"
        )
        connection.commit()
    with pytest.raises(DamagedStoreError, match=f"^{file}: the page [0-9a-f]{{32}} is damaged: its checksum is wrong"):
        asyncio.run(restore(file, SqliteStore(tmp_path / "new")))
    asyncio.run(with_rows(SqliteStore(tmp_path / "new", readonly=True), 0))


async def with_rows(store: SqliteStore, count: int) -> None:
    await store.open()
    assert (
        len([page async for some in store.all_pages() for page in some]) == count
        and len(await store.contexts()) == count
    )
    await store.close()


def test_a_backup_of_another_schema_is_refused(file: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match=f"^{file}: has schema version {SCHEMA_VERSION + 1}; this saferank reads"):
        asyncio.run(restore(file, SqliteStore(tmp_path / "new")))


def test_a_pipe_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no file"):
        asyncio.run(backup(SqliteStore(tmp_path / "store", readonly=True), Path("/dev/null")))


@pytest.mark.parametrize("running", [True, False])
def test_a_backup_does_not_take_the_place_of_a_store(file: Path, tmp_path: Path, running: bool) -> None:
    """Its own or another's: a server would write into a file that is gone, and the log beside the new one ruin it."""

    async def story() -> None:
        link, path = tmp_path / "link", tmp_path / "store" / "log.sqlite3"
        link.symlink_to(path)
        store = SqliteStore(tmp_path / "store")
        await store.open()
        if not running:
            await store.close()
        inode = path.stat().st_ino
        for source in (tmp_path / "store", file):
            for place in (path, link):
                with pytest.raises(StoreError, match=f"^{place}: is the file of a store"):
                    await backup(SqliteStore(source, readonly=True), place)
        assert path.stat().st_ino == inode
        if running:
            await store.close()

    asyncio.run(story())


def test_a_store_that_is_not_empty_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not empty"):
        asyncio.run(restore(file, SqliteStore(tmp_path / "store")))
    with pytest.raises(StoreError, match="there is no such file"):
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


def test_a_store_in_use_is_refused(file: Path, tmp_path: Path) -> None:
    async def with_a_server() -> None:
        store = SqliteStore(tmp_path / "new")
        await store.open()
        with pytest.raises(StoreError, match="another server is using this store"):
            await restore(file, SqliteStore(tmp_path / "new"))
        await store.close()

    asyncio.run(with_a_server())


def test_a_damaged_store_is_named_and_the_old_backup_stays(file: Path, tmp_path: Path) -> None:
    old, path = file.read_bytes(), tmp_path / "store" / "log.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE page SET record = x'00'")
        connection.commit()
    with pytest.raises(DamagedStoreError, match=f"^{path}: the page [0-9a-f]{{32}} is damaged"):
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
