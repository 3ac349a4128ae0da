"""Replay finds everything in order, and finds the first thing that is not."""

import asyncio
import json
import re
import sqlite3
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from saferank.cli import main
from saferank.service.calls.replay import DifferenceError, ReplayReport, verify
from saferank.store.contract import OperationKind, OperationRow, PageRow, Publication, VersionRow
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from saferank.store.page_record import NO_LAW
from saferank.store.record_columns import unpacked
from tests.service.house import BASE, CANDIDATES, House, T, run

ONES, ONES_PAST = bytes([0, 1, 2]), bytes([1, 2, 3])


def make_store(folder: Path) -> Path:
    async def make() -> None:
        h = House(folder, window_seconds=1, rule="paper:0.1")
        await h.start()
        for number in range(60):
            page = await h.rank(candidates=["x", f"n{number % 2}"])
            await h.accept(page, *(["b"] if "b" in page.ranking else []))
            await h.later(1)
        await h.server.rollback(T, "c", 1, "test")
        await h.rank()
        await h.stop()

    run(make())
    return folder / FILE_NAME


def verified(path: Path) -> ReplayReport:
    return asyncio.run(verify(SqliteStore(path.parent, readonly=True)))


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement, values).rowcount > 0
        connection.commit()


def test_a_store_is_verified_in_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "store")
    report = verified(path)
    assert (report.pages, report.rollbacks, report.contexts, report.lost) == (61, 1, 1, 0)
    assert report.legal == report.explored > 50
    assert report.learnt > 0 and report.versions > 2 and (report.snapshots, report.publications) == (1, 1)
    for name in (tmp_path / "store", path):
        assert main(["replay", str(name)]) == 0
        assert "snapshots are equal to the fold, bit for bit" in capsys.readouterr().out


BYTE = "UPDATE {0} SET {1} = CAST(substr({1}, 1, 97) || x'99' || substr({1}, 99) AS BLOB)"
DAMAGES = {
    "a page": (BYTE.format("page", "record"), "page [0-9a-f]{32} is damaged: the checksum"),
    "clicks": ("UPDATE page SET clicks = x'01' WHERE length(clicks) > 0", "version [23]|differs"),
    "a leader": ("UPDATE version SET leader = '[]' WHERE version = 2", "version 2 is"),
    "a publication": (BYTE.format("publication", "body"), "a publication is damaged: its checksum"),
    "a snapshot": (BYTE.format("snapshot", "body"), "a publication is damaged: its checksum"),
    "a context": ("UPDATE context SET terms = '{}'", "is damaged"),
    "an operation": ("UPDATE operation SET kind = 6 WHERE kind = 3", "store is damaged|version|differs"),
    "no newest operation": (
        "DELETE FROM operation WHERE number = (SELECT MAX(number) FROM operation)",
        "version|differs",
    ),
    "no catalogue": ("DELETE FROM catalogue", "does not hold"),
    "a page less": (
        "DELETE FROM page WHERE impression = (SELECT MIN(impression) FROM page WHERE length(clicks) > 0)",
        "version [23]|differs",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_named(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, (statement, why) = make_store(tmp_path / "store"), DAMAGES[name]
    change(path, statement)
    with pytest.raises(ValueError, match=why):
        verified(path)
    assert main(["replay", str(path)]) == 1
    assert str(path.parent) in capsys.readouterr().err.replace("\n", "")


def places(path: Path, whole: bytes) -> list[int]:
    """Twelve bytes of a store: of the head, the schema, blocks of tables and indexes, records and publications."""
    with closing(sqlite3.connect(path)) as connection:
        records = [row[0] for row in connection.execute("SELECT record FROM page ORDER BY impression")]
        (body,) = connection.execute("SELECT body FROM publication").fetchone()
        roots = dict(connection.execute("SELECT name, 4096 * (rootpage - 1) FROM sqlite_schema"))
    found = [3, whole.index(b"CREATE TABLE page")]
    found += [roots[name] for name in ("page", "operation", "version")]
    found += [roots[name] + 4 for name in ("page_context", "meta", "sqlite_autoindex_context_1")]
    found += [whole.index(records[number][:40]) + 60 + number for number in (0, 30)]
    return [*found, whole.index(body[:60]) + 30, whole.rindex(body[:60]) + 30]  # the snapshot is equal to it


def test_twelve_flipped_bytes_are_named_by_replay_and_by_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_store(tmp_path / "store")
    whole = path.read_bytes()
    chosen = places(path, whole)
    assert len(set(chosen)) == 12
    for place in chosen:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        for command in (["replay", str(path)], ["backup", str(path), str(tmp_path / "file")]):
            code = main(command)
            said = capsys.readouterr().err.replace("\n", "")
            assert code == 1 and str(path.parent) in said, (place, command, code, said)
        assert not (tmp_path / "file").exists()
    path.write_bytes(whole)
    assert main(["replay", str(path)]) == main(["backup", str(path), str(tmp_path / "file")]) == 0


class Tampered(SqliteStore):
    """A store whose rows are in order, and are not what the pages give."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(folder, readonly=True)
        self._what = what

    async def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[list[PageRow]]:
        async for pages in super().all_pages(context, after):
            yield list(self._tampered(pages))

    def _tampered(self, pages: Sequence[PageRow]) -> Iterator[PageRow]:
        for page in pages:
            if self._what == "other clicks":
                yield page._replace(clicks=page.clicks << 1 & 0b111)
            elif self._what == "clicks on no place":
                yield page._replace(clicks=0b1000)
            elif self._what == "a version that never was":
                record = unpacked(page.record)._replace(knowledge=999)
                yield page._replace(record=record.packed())
            elif self._what == "an illegal page" and not page.clicks:
                row = (*reversed(CANDIDATES), *reversed(BASE))
                record = unpacked(page.record)._replace(row=row[:3], law=NO_LAW._replace(start=ONES, end=ONES_PAST))
                yield page._replace(record=record._replace(challenger=None).packed())
            elif self._what == "another page of production's" and not page.clicks:
                record = unpacked(page.record)
                yield page._replace(record=record._replace(base=record.base[::-1]).packed())
            elif self._what == "another page":
                record = unpacked(page.record)._replace(context="other")
                yield page._replace(record=record.packed())
            else:
                yield page

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        rows = list(await super().versions(context, newest))
        if self._what == "another leader":
            rows[1] = rows[1]._replace(leader="[]")
        if self._what == "a version too many":
            rows.append(rows[-1]._replace(version=len(rows) + 1))
        return rows

    async def publication(self, context: int) -> Publication | None:
        found = await super().publication(context)
        assert found is not None
        if self._what == "another count":
            body = re.sub(rb'(?<="learnt":)\d', lambda digit: b"%d" % (1 + int(digit[0]) % 9), found.body[:-4])
            found = found._replace(body=body + zlib.crc32(body).to_bytes(4, "little"))
        return found


TAMPERINGS = {
    "an illegal page": "was not legal under version [0-9]+: it may have [0-9]+ wrong pairs more",
    "another page of production's": "was not legal under version [0-9]+: it names another page as production's",
    "other clicks": "version|differs",
    "clicks on no place": "clicks on places that it does not have",
    "a version that never was": "names version 999",
    "another page": "in the place of another page",
    "another leader": "version 2 is",
    "a version too many": "versions are written",
    "another count": "publication [0-9]+ differs from the log in learnt",
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_what_was_tampered_with_is_found(tmp_path: Path, what: str) -> None:
    path = make_store(tmp_path / "store")
    with pytest.raises(DifferenceError, match=TAMPERINGS[what]):
        asyncio.run(verify(Tampered(path.parent, what)))


class OtherTerms(SqliteStore):
    """A store whose reset names other terms than those that were taken."""

    def __init__(self, folder: Path, other: dict[str, Any]) -> None:
        super().__init__(folder, readonly=True)
        self._other = other

    async def operations(self, after: int) -> Sequence[OperationRow]:
        rows = []
        for row in await super().operations(after):
            facts = json.loads(row.body)
            if row.kind == OperationKind.RESET:
                facts["terms"] |= self._other
            rows.append(row._replace(body=json.dumps(facts)))
        return rows


def test_terms_that_a_reset_took_are_replayed_and_compared(tmp_path: Path) -> None:
    async def make() -> None:
        h = House(tmp_path, window_seconds=1, rule="paper:0.1", certificate_days=0)
        await h.start()
        await visits(h, 60)
        draw = {"policy": "safe-draw", "rule": "anytime:0.1", "certificate_days": 1.0}
        h.settings = structs.replace(h.settings, **draw)
        await h.restart()
        late = await h.rank(candidates=["x"])  # open at the reset
        await h.server.reset(T, "c", "the present policy")
        await h.accept(late, late.ranking[1])
        for _ in range(4):
            await h.later(0.7 * 86_400)
            await visits(h, 4)
        await h.server.closer.close_due(everything=True)
        states = h.states()
        assert h.fold().epoch == h.fold().terms.first_epoch + 2 == 3
        await h.restart()
        await h.server.known_context(T, "c")
        assert h.states() == states
        await h.stop()

    run(make())
    report = verified(tmp_path / FILE_NAME)
    assert (report.resets, report.pages, report.lost) == (1, 77, 0)
    for changed in ({"lifetime_ms": 5}, {"source_daily_pages": 7}, {"policy": "kl-ucb-br"}):
        with pytest.raises(DifferenceError, match=r"snapshot [0-9]+ differs from the log in .*terms"):
            asyncio.run(verify(OtherTerms(tmp_path, changed)))


async def visits(h: House, pages: int) -> None:
    for _ in range(pages):
        page = await h.rank(candidates=["x"])
        await h.accept(page, *(["b"] if "b" in page.ranking else []))
        await h.later(1)


@pytest.mark.parametrize("pages", [1, 10])
def test_a_cut_tail_is_noticed(tmp_path: Path, pages: int) -> None:
    """The newest pages that are closed are gone: what was published does not follow from the rest."""
    path = make_store(tmp_path / "store")
    newest = "SELECT impression FROM page WHERE length(clicks) > 0 ORDER BY impression DESC LIMIT ?"
    change(path, f"DELETE FROM page WHERE impression IN ({newest})", pages)
    with pytest.raises(DifferenceError, match=r"version|differs"):
        verified(path)


def test_pages_that_a_crash_took_are_counted(tmp_path: Path) -> None:
    async def make() -> None:
        h = House(tmp_path)
        await h.start()
        lost, page = await h.rank(), await h.rank()
        await h.accept(page, page.ranking[0])
        assert h.server.writer.pages.pop(h.record(lost).impression)
        await h.stop()

    run(make())
    report = verified(tmp_path / FILE_NAME)
    assert (report.pages, report.lost) == (1, 1)
    assert "1 issued pages without clicks are missing" in " ".join(report.sentences())


def test_what_is_no_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "nothing")]) == 2
    assert "there is no such file" in capsys.readouterr().err
