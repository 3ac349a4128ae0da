"""The file of the SQLite store: what cannot be used is refused in a sentence, what is gone is not written to."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from saferank.store.contract import (
    SCHEMA_VERSION,
    DamagedStoreError,
    Group,
    PageRow,
    Store,
    StoreError,
    StoreUnavailableError,
)
from saferank.store.embedded import file
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from saferank.store.sql import statements
from tests.store.stores import now_of, opened, page


async def nothing(store: Store) -> None:
    """Open and close."""


def using(folder: Path, act: Callable[[SqliteStore], Awaitable[None]] = nothing, *, readonly: bool = False) -> None:
    async def within() -> None:
        store = SqliteStore(folder, readonly=readonly)
        await store.open()
        try:
            await act(store)
        finally:
            await store.close()

    asyncio.run(within())


def refused(folder: Path) -> str:
    sentences = set()
    for readonly in (False, True):
        with pytest.raises(StoreError) as problem:
            using(folder, readonly=readonly)
        sentences.add(str(problem.value))
    (sentence,) = sentences
    assert sentence.startswith(str(folder / FILE_NAME))
    return sentence


def test_a_new_store_has_the_present_schema_and_survives_a_power_cut(tmp_path: Path) -> None:
    using(tmp_path)
    with closing(file.for_writing(tmp_path / FILE_NAME)) as connection:
        names = ("user_version", "journal_mode", "synchronous")
        assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == [SCHEMA_VERSION, "wal", 2]


def test_a_store_holds_keys_and_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "store"
    mask = os.umask(0o022)

    async def look(store: Store) -> None:
        modes.update({path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()})

    modes: dict[str, int] = {}
    try:
        using(folder, look)
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / FILE_NAME).chmod(0o644)  # as it was made before
        using(folder, look)
    finally:
        os.umask(mask)
    assert set(modes.values()) == {0o600} and {FILE_NAME, f"{FILE_NAME}.lock", f"{FILE_NAME}-wal"} <= set(modes)


@pytest.mark.parametrize("size", [1, 3, 4, 63, 64, 341, 1000])
def test_groups_of_any_size_come_back(tmp_path: Path, size: int) -> None:
    async def act(store: Store) -> None:
        context, now = await opened(store), await now_of(store)
        rows = [page(context, now) for _ in range(size)]
        await store.write(Group(pages=rows))
        assert list(await store.pages_between(context, now - 1, now)) == rows

    using(tmp_path, act)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    using(tmp_path)
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    assert f"has schema version {version}; this saferank reads version {SCHEMA_VERSION} only" in refused(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 2, SCHEMA_VERSION])
def test_a_database_of_something_else_is_refused(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.executescript(f"CREATE TABLE somebody (elses INTEGER); PRAGMA user_version = {version}")
    assert refused(tmp_path).endswith("is a database of something else; name another folder")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a database, but long enough to look like a file with content" * 50)
    assert "cannot be used as a store: file is not a database" in refused(tmp_path)


def test_a_folder_without_a_store_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file; name the folder of a store"):
        using(tmp_path, readonly=True)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="cannot be used as a store"):
        using(tmp_path / "taken")


@pytest.mark.parametrize("left", [0.3, 0.9])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, left: float) -> None:
    async def act(store: Store) -> None:
        context, now = await opened(store), await now_of(store)
        await store.write(Group(pages=[page(context, now) for _ in range(500)]))

    using(tmp_path, act)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    assert "malformed" in refused(tmp_path)


def test_damage_inside_the_file_is_named_by_reads(tmp_path: Path) -> None:
    async def fill(store: Store) -> None:
        context, now = await opened(store), await now_of(store)
        await store.write(Group(pages=[page(context, now) for _ in range(3000)]))

    async def read(store: Store) -> None:
        with pytest.raises(DamagedStoreError, match="damaged"):
            assert [row async for some in store.all_pages() for row in some]

    using(tmp_path, fill)
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 8 * 4096] = bytes(8 * 4096)  # leaves of the table and of its index take turns
    path.write_bytes(content)
    using(tmp_path, read)


def test_the_second_server_of_a_store_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(StoreError, match="another server is using this store"):
            await SqliteStore(tmp_path).open()
        reader = SqliteStore(tmp_path, readonly=True)
        await reader.open()
        assert await reader.meta("session_key") == await store.meta("session_key")
        with pytest.raises(StoreUnavailableError, match="not open for writing"):
            await reader.write(Group())
        await reader.close()

    using(tmp_path, act)
    using(tmp_path)


def test_no_statement_of_the_hot_path_reads_a_whole_table(tmp_path: Path) -> None:
    using(tmp_path)
    keys = {"deliveries_in": "(VALUES (?, ?), (?, ?))", "clicks_in": "(VALUES (?), (?))"}
    names = [*keys, "closed_through_in", "due", "first_page", "pages_between", "published", "page"]
    with closing(file.for_reading(tmp_path / FILE_NAME)) as connection:
        for name in names:
            statement = statements("embedded")[name].replace("(?)", keys.get(name, "(VALUES (?), (?))"), 1)
            values = (
                dict.fromkeys(("now", "all", "shards", "after")) if name == "due" else [None] * statement.count("?")
            )
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            tables = {step.split()[1] for *_, step in plan if step.startswith("SCAN")}
            assert tables <= {"k", "2", "3", "json_each"}, (name, plan)  # the keys that were given


def test_every_statement_can_be_prepared(tmp_path: Path) -> None:
    using(tmp_path)
    with closing(file.for_reading(tmp_path / FILE_NAME)) as connection:
        for name, statement in statements("embedded").items():
            complete = statement.replace("VALUES (?)", "VALUES (NULL)").replace("IN (?)", "IN (VALUES (NULL))")
            complete = complete.replace("FROM (?)", "FROM (VALUES (NULL, NULL))")
            try:
                connection.execute(f"EXPLAIN {complete}", [None] * complete.count("?"))
            except (sqlite3.OperationalError, sqlite3.ProgrammingError) as problem:
                assert any(part in str(problem) for part in ("values for", "sub-select", "binding")), name


def test_a_first_start_that_ends_halfway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(file, "new_facts", lambda: [("session_key", None)])
        with pytest.raises(StoreError, match="cannot be used as a store"):
            using(tmp_path)
    using(tmp_path)


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / FILE_NAME

    async def act(store: Store) -> None:
        path.rename(tmp_path / "moved")
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(StoreUnavailableError, match="is another file" if replaced else "is gone"):
            await store.open_context("t", "c", "{}", 9)
        path.unlink(missing_ok=True)
        (tmp_path / "moved").rename(path)
        assert await store.open_context("t", "c", "{}", 9)

    using(tmp_path, act)


def test_what_was_acknowledged_into_a_log_that_is_gone_is_kept_and_nothing_more_is(tmp_path: Path) -> None:
    """Commits go to the write-ahead log first. Without its name it would be lost by a crash."""

    async def act(store: Store) -> None:
        first = await store.open_context("t", "c", "{}", 9)
        (tmp_path / f"{FILE_NAME}-wal").unlink()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="-wal: the file is gone"):
                await store.open_context("t", "d", "{}", 9)
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        shutil.copyfile(tmp_path / FILE_NAME, crashed / FILE_NAME)
        copy = SqliteStore(crashed)
        await copy.open()
        assert await copy.contexts() == [first]
        await copy.close()

    using(tmp_path, act)


@pytest.mark.parametrize("left", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_nothing_is_acknowledged_into_a_log_that_was_cut_off(tmp_path: Path, left: float, meanwhile: bool) -> None:
    """SQLite goes on behind the gap, and a recovery, which reads the log from its beginning, never gets there."""
    log = tmp_path / f"{FILE_NAME}-wal"

    async def act(store: SqliteStore) -> None:
        context, now = await opened(store), await now_of(store)
        for _ in range(20):
            await store.write(Group(pages=[page(context, now) for _ in range(5)]))
        size = int(left * log.stat().st_size)
        if meanwhile:

            def cut_off(on: sqlite3.Connection) -> None:
                on.execute("UPDATE page SET events = 7")
                os.truncate(log, size)

            assert store._writer is not None
            with pytest.raises(StoreUnavailableError):
                await store._writer.run(cut_off)
        else:
            os.truncate(log, size)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match="-wal: was cut off while it was in use"):
                await store.write(Group(pages=[page(context, now)]))

    async def after(store: SqliteStore) -> None:
        assert await store.damage() == [] and len([row async for some in store.all_pages() for row in some]) <= 100
        await opened(store, "other")

    using(tmp_path, act)
    using(tmp_path, after)


def test_a_log_that_somebody_has_copied_into_the_file_is_begun_again(tmp_path: Path) -> None:
    async def act(store: Store) -> None:
        context, now = await opened(store), await now_of(store)
        for _ in range(3):
            await store.write(Group(pages=[page(context, now) for _ in range(50)]))
            with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
                assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert await store.count_pages(context, 0) == 150

    using(tmp_path, act)


def test_a_start_after_a_crash_looks_for_damage(tmp_path: Path) -> None:
    path, rows = tmp_path / "crashed" / FILE_NAME, list[PageRow]()

    async def act(store: Store) -> None:
        context, now = await opened(store), await now_of(store)
        rows.append(page(context, now))
        await store.write(Group(pages=[*rows, *(page(context, now)._replace(record=bytes(90)) for _ in range(500))]))
        shutil.copytree(tmp_path / "store", path.parent)

    using(tmp_path / "store", act)
    using(path.parent)  # it is in order, and closed now
    whole = path.read_bytes()
    block = whole.index(rows[0].record) // 4096 * 4096
    path.write_bytes(whole[: block + 3] + bytes([255, 255]) + whole[block + 5 :])
    using(path.parent)  # it was closed: a reader of damaged rows is told
    Path(f"{path}.lock").write_bytes(b"1")
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"is damaged \(.*\)\. Restore the store from a backup"):
            using(path.parent)


def test_a_full_disk_refuses_a_group_and_takes_it_later(tmp_path: Path) -> None:
    async def act(store: SqliteStore) -> None:
        context, now = await opened(store), await now_of(store)
        group = Group(pages=[page(context, now) for _ in range(1000)])
        assert store._writer is not None
        await store._writer.run(lambda on: on.execute("SELECT 1"))
        connection = store._writer._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreUnavailableError, match="disk is full"):
            await store.write(group)
        assert list(await store.pages_between(context, 0, now)) == []
        connection.execute("PRAGMA max_page_count = 1000000")
        assert (await store.write(group)).left_out == 0

    using(tmp_path, act)


def test_the_clock_does_not_go_back_over_a_restart(tmp_path: Path) -> None:
    async def at(moment: int) -> int:
        store = SqliteStore(tmp_path, lambda: moment)
        await store.open()
        now = await now_of(store)
        if now == 5000:
            context = await opened(store)
            await store.write(Group(pages=[page(context, 5007)]))
        await store.close()
        return now

    assert [asyncio.run(at(moment)) for moment in (5000, 4000, 6000)] == [5000, 5007, 6000]
