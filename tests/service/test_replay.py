"""Replay finds everything in order, and finds the first thing that is not."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from engine_harness import House, T, run

from saferank.cli import main
from saferank.service.engine import LOG_NAME
from saferank.service.pages import pack, unpack
from saferank.service.replay import DifferenceError, verify
from saferank.store.sqlite import ReadableStore


def make_store(folder: Path) -> Path:
    async def make() -> None:
        h = House(folder, window_seconds=1, rule="paper:0.1")
        await h.start()
        for number in range(60):
            page = h.rank(candidates=["x", f"n{number % 2}"])
            await h.accept(page, *(["b"] if "b" in page.ranking else []))
            h.later(1)
        await h.engine.rollback(T, "c", 1, "test")
        h.rank()
        await h.engine.stop()

    run(make())
    return folder / LOG_NAME


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement, values).rowcount > 0
        connection.commit()


def other_round(body: bytes) -> bytes:
    return pack(unpack(body)._replace(round=999))


def test_a_store_is_verified_in_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "store")
    report = verify(ReadableStore(path))
    assert (report.pages, report.rollbacks, report.contexts) == (61, 1, 1)
    assert report.learnt > 0 and report.leaders > 2 and report.snapshots >= 2
    for name in (tmp_path / "store", path):
        assert main(["replay", str(name)]) == 0
        assert "snapshots are equal to the fold, bit for bit" in capsys.readouterr().out


FIRST = "DELETE FROM event WHERE seq = (SELECT MIN(seq) FROM event WHERE {})"
TAMPERINGS = {
    "a click less": (FIRST.format("kind = 2 AND length(body) > 0"), "is missing"),
    "other clicks": ("UPDATE event SET body = x'06' WHERE kind = 2 AND body = x'01'", "version 2|differs"),
    "a page less": (FIRST.format("kind = 1"), "is missing"),
    "another leader": ("UPDATE leader SET leader = '[]' WHERE version = 2", "version 2"),
    "a leader too many": ("INSERT INTO leader VALUES (1, 999, 1, 1, 'page', '[]', NULL, '[]', NULL)", "are written"),
    "no closing": (FIRST.format("kind = 5"), "is missing"),
    "a lost catalogue": ("DELETE FROM catalogue", "does not hold"),
    "a page of nowhere": ("UPDATE event SET context = 7 WHERE kind = 1", "does not hold"),
    "time going back": ("UPDATE event SET at = at - 100000 WHERE seq = 9", "older than the one before"),
    "a damaged page": ("UPDATE event SET body = x'01' WHERE kind = 1", "does not hold"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_tampered_with_is_found(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, (statement, why) = make_store(tmp_path / "store"), TAMPERINGS[name]
    change(path, statement)
    with pytest.raises(DifferenceError, match=why):
        verify(ReadableStore(path))
    assert main(["replay", str(path)]) == 1
    assert LOG_NAME in capsys.readouterr().err


def test_a_wrong_round_and_a_wrong_snapshot_are_found(tmp_path: Path) -> None:
    path = make_store(tmp_path / "store")
    with closing(sqlite3.connect(path)) as connection:
        seq, body = connection.execute("SELECT seq, body FROM event WHERE kind = 1 LIMIT 1").fetchone()
        snapshot = connection.execute("SELECT body FROM snapshot ORDER BY seq DESC LIMIT 1").fetchone()[0]
    change(path, "UPDATE event SET body = ? WHERE seq = ?", other_round(body), seq)
    with pytest.raises(DifferenceError, match="round 999"):
        verify(ReadableStore(path))
    change(path, "UPDATE event SET body = ? WHERE seq = ?", body, seq)
    verify(ReadableStore(path))
    change(path, "UPDATE snapshot SET body = ?", snapshot.replace(b'"pages": 61', b'"pages": 62'))
    with pytest.raises(DifferenceError, match=r"snapshot of context 1 .* differs from the log in"):
        verify(ReadableStore(path))


def test_what_is_no_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "nothing")]) == 2
    assert "there is no such file" in capsys.readouterr().err
