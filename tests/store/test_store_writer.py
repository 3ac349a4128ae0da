"""The writer's thread: in order, retried until it works, never told to be done before it is."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from saferank.store.events import Batch, Event, Kind
from saferank.store.sqlite import Store
from saferank.store.writer import Writer


class Told:
    def __init__(self, expected: int) -> None:
        self.done: list[int] = []
        self.failed: list[str] = []
        self._expected, self.complete = expected, threading.Event()

    def batch(self, batch: Batch, seconds: float) -> None:
        assert seconds >= 0
        self.done.append(batch.events[-1].seq)
        if len(self.done) == self._expected:
            self.complete.set()


def batch(seq: int) -> Batch:
    return Batch(events=[Event(seq, Kind.CLOSED, 1, seq, None, None)])


def test_batches_are_written_in_order_and_reported_after_the_commit(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "log")) as store:
        told = Told(20)
        writer = Writer(store, told.batch, told.failed.append)
        writer.start()
        for seq in range(1, 21):
            writer.write(batch(seq))
        assert told.complete.wait(30)
        writer.stop()
        assert told.done == list(range(1, 21))
        with store.reading() as reader:
            assert [row[0] for row in reader.rows("events_from", 0)] == told.done


def test_a_full_disk_is_retried_until_it_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(tmp_path / "log")) as store:
        told, commit, tries = Told(2), store.commit, iter(range(100))

        def full_at_first(given: Batch) -> None:
            if next(tries) < 3:
                raise sqlite3.OperationalError("database or disk is full")
            commit(given)

        monkeypatch.setattr(store, "commit", full_at_first)
        writer = Writer(store, told.batch, told.failed.append)
        writer.start()
        writer.write(batch(1))
        writer.write(batch(2))
        assert told.complete.wait(30)
        writer.stop()
        assert told.failed == ["database or disk is full"] * 3
        assert told.done == [1, 2]


def test_stopping_gives_up_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(tmp_path / "log")) as store:
        told, failing = Told(1), threading.Event()

        def full(given: Batch) -> None:
            failing.set()
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(store, "commit", full)
        writer = Writer(store, told.batch, told.failed.append)
        writer.start()
        writer.write(batch(1))
        assert failing.wait(30)
        writer.stop()
        assert told.done == []
