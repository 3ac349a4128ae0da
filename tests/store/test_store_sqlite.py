"""The file: schema versions, all-or-nothing batches, one server per store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from saferank.store.events import Batch, ContextRow, Event, Kind, LeaderRow, SnapshotRow
from saferank.store.lock import StoreLock
from saferank.store.sqlite import ReadableStore, Store, StoreError
from saferank.store.statements import migrations, statements


def event(seq: int) -> Event:
    return Event(seq, Kind.CLOSED, 1, 1000 + seq, None, None)


def test_a_new_store_has_the_newest_schema_and_survives_a_power_cut(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "log")) as store:
        pragma = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "journal_mode", "synchronous")
        }
    assert pragma == {"user_version": max(migrations()), "journal_mode": "wal", "synchronous": 2}


@pytest.mark.parametrize("size", [1, 3, 4, 63, 64, 341, 1000])
def test_batches_of_any_size_come_back(tmp_path: Path, size: int) -> None:
    with closing(Store(tmp_path / "log")) as store:
        batch = Batch(events=[event(seq) for seq in range(1, size + 1)], contexts=[ContextRow(1, "t", "c")], clean=7)
        store.commit(batch)
        with store.reading() as reader:
            assert [Event(*row) for row in reader.rows("events_from", 0)] == batch.events
            assert list(reader.rows("contexts")) == [(1, "t", "c")]
            assert reader.value("meta", "clean") == 7


def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "log")) as store:
        store.commit(Batch(events=[event(1)]))
        with pytest.raises(sqlite3.IntegrityError):
            store.commit(Batch(events=[event(2), event(1)], snapshots=[SnapshotRow(1, 2, b"")]))
        store.commit(Batch(events=[event(2)]))
        with store.reading() as reader:
            assert [row[0] for row in reader.rows("events_from", 0)] == [1, 2]
            assert list(reader.rows("snapshots")) == []


def test_a_store_of_version_1_is_migrated_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(migrations()[1])
        old.execute("PRAGMA user_version = 1")
        old.execute("INSERT INTO meta VALUES ('session_key', x'00')")
        old.execute("INSERT INTO leader VALUES (1, 1, 1, 5, 'opened', '[\"a\"]', NULL, '[]')")
        old.commit()
    with pytest.raises(StoreError, match="older schema version 1; start the service once"):
        ReadableStore(path).check()
    with closing(Store(path)) as store, store.reading() as reader:
        assert LeaderRow(*next(iter(reader.rows("leaders", 1)))) == LeaderRow(
            1, 1, 1, 5, "opened", '["a"]', None, "[]", None
        )
        assert reader.value("meta", "session_key") == b"\0"
    ReadableStore(path).check()


def test_a_newer_schema_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {max(migrations()) + 1}")
    for use in (Store, lambda path: ReadableStore(path).check()):
        with pytest.raises(StoreError, match=r"has schema version 3; this saferank knows versions up to 2: upgrade it"):
            use(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.execute("CREATE TABLE somebody (elses INTEGER)")
    with pytest.raises(StoreError, match="is a database of something else"):
        Store(tmp_path / "other")
    (tmp_path / "text").write_text("not a database, but long enough to look like a file with content" * 50)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        Store(tmp_path / "text")
    with pytest.raises(StoreError, match="there is no such file"):
        ReadableStore(tmp_path / "missing").check()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with (
        closing(Store(tmp_path / "log")) as store,
        store.reading() as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        list(reader.rows("set_meta", "clean", 1))


def test_the_second_server_of_a_store_is_refused(tmp_path: Path) -> None:
    first = StoreLock(tmp_path / "log")
    with pytest.raises(StoreError, match="another server is using this store"):
        StoreLock(tmp_path / "log")
    first.release()
    StoreLock(tmp_path / "log").release()


def test_every_statement_can_be_prepared(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "log")) as store:
        for name, statement in statements().items():
            complete = f"{statement} (NULL)" if name.startswith("add_") else statement
            try:
                store._connection.execute(f"EXPLAIN {complete}", [None] * complete.count("?"))
            except sqlite3.OperationalError as problem:
                assert "values for" in str(problem), name


def test_a_first_start_that_ends_halfway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    with monkeypatch.context() as patched:
        patched.setattr("saferank.store.sqlite.secrets.token_hex", lambda size: "not hexadecimal")
        with pytest.raises(StoreError, match="cannot be used as a store"):
            Store(path)
    with closing(Store(path)) as store, store.reading() as reader:
        assert len(reader.value("meta", "session_key")) == 32
