"""Old pages go, what they taught stays, and a replay begins where they end."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from saferank.service.calls.replay import ReplayReport, verify
from saferank.service.knowledge.view import pack_catalogue
from saferank.service.wire.problems import Problem
from saferank.store.contract import OperationKind
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from saferank.store.record_columns import unpacked
from tests.service.calls.test_operate import teach
from tests.service.house import BASE, House, T, house, run
from tests.store.stores import alarms_of

DAY = 86_400
KEEP = {"window_seconds": 10, "rule": "paper:0.1", "keep_days": 4}


async def day(h: House) -> None:
    """A few pages, then the rest of a day, and what a server does with it."""
    await h.server.heartbeat.attempt()
    for number in range(8):
        page = await h.rank(candidates=["x"])
        liked = ["b"] if "b" in page.ranking else []
        await h.accept(page, *liked, event_id=f"{h.now}-{number}")
        await h.later(4)
    await h.close()
    await h.server.heartbeat.attempt()
    await h.server.retention.delete_old()
    await h.later(DAY - 42)


async def times(h: House) -> list[float]:
    """The age of every page that is left, in days."""
    return [
        (h.now - unpacked(page.record).issued_at) / 1000 / DAY async for some in h.store.all_pages() for page in some
    ]


def replayed(folder: Path) -> ReplayReport:
    return asyncio.run(verify(SqliteStore(folder, readonly=True)))


def test_pages_go_and_knowledge_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            house(tmp_path / "kept", **{**KEEP, "keep_days": 0}) as kept,
            house(tmp_path / "pruned", **KEEP) as h,
        ):
            for _ in range(12):
                await day(kept)
                await day(h)
            assert len(await times(kept)) == 96
            assert 4 <= max(await times(h)) <= 4 * 1.25 + 1.1
            assert h.server.retention.deleted == 96 - len(await times(h)) > 40
            assert h.server.retention.events == h.server.retention.deleted
            assert h.server.counters()["pages_deleted_total"] == h.server.retention.deleted
            assert h.fold().tallies == kept.fold().tallies and h.fold().pages == 96
            await h.restart()
            await h.rank()

    run(story())
    report = replayed(tmp_path / "pruned")
    assert (report.pruned, report.contexts, report.lost) == (1, 1, 0)
    assert report.pages < 60 and "from their oldest kept snapshot on" in report.sentences()[0]
    assert replayed(tmp_path / "kept").pruned == 0


def test_a_context_that_nobody_asks_for_loses_all_its_pages(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path, **KEEP) as h:
            await day(h)
            leader = (await h.server.show_context(T, "c")).leader
            for _ in range(5):
                await h.later(DAY)
                await h.server.heartbeat.attempt()
                await h.server.retention.delete_old()
            assert await times(h) == []
            await h.restart()
            page = await h.rank(session_id="s0")
            await h.accept(page, page.ranking[0])
            assert (await h.server.show_context(T, "c")).leader == leader

    run(story())


def test_a_visitor_is_not_counted_twice_where_the_log_begins(tmp_path: Path) -> None:
    """Pages of the window in which the snapshot was taken stay: a replay has to know who was there."""

    async def story() -> None:
        async with house(tmp_path, **{**KEEP, "window_seconds": DAY}) as h:
            for number in range(200):
                page = await h.rank(session_id=f"s{number % 3}")
                await h.accept(page, *page.ranking[:1])
                await h.later(DAY // 10)
                await h.server.heartbeat.attempt()
                await h.server.closer.close_due(everything=True)
                await h.server.retention.delete_old()
            assert h.server.retention.deleted > 50
            assert h.fold().tallies[-1][0] > 100  # most are the second page of a visitor in a window

    run(story())


def test_going_back_beyond_what_is_kept_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path, **KEEP) as h:
            for _ in range(12):
                await day(h)
            newest = h.fold().version
            assert newest > 1
            with pytest.raises(Problem, match=r"cannot be restored: the pages .* \(keep_days or forget\)") as refused:
                await h.server.rollback(T, "c", 1, "too old")
            assert (refused.value.status, refused.value.field) == (404, "version")

    run(story())


def test_what_a_rollback_needs_stays_until_the_rollback_is_old(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path, **KEEP) as h:
            await day(h)
            await day(h)
            await h.server.rollback(T, "c", 1, "back to the beginning")
            for _ in range(3):
                await day(h)
            assert h.server.retention.deleted == 0
            for _ in range(5):
                await day(h)
            assert h.server.retention.deleted > 8

    run(story())


def test_an_operator_who_asks_while_the_version_is_being_deleted_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path, **KEEP) as h:
            for _ in range(8):
                await day(h)
            before = h.fold().version
            context = await h.server.known_context(T, "c")
            body = '{"version": 1, "why": "late"}'
            late = await h.store.add_operation(T, context.number, OperationKind.ROLLBACK, body)
            await h.server.follower.follow()
            await h.server.closer.close_due(everything=True)
            assert h.fold().version == before and h.fold().operation == late.number
            assert [row.kind for row in await alarms_of(h.store, context.number)] == ["rollback_refused"]
            await day(h)

    run(story())


def test_a_version_between_a_rollback_and_a_snapshot_can_be_gone_back_to(tmp_path: Path) -> None:
    """The replay at the end compares what was gone back to with what the log gives."""

    async def story() -> None:
        async with house(tmp_path, window_seconds=1, rule="paper:0.1", snapshot_every=45) as h:
            await teach(h, "b", 60)
            await h.server.rollback(T, "c", 1, "first")
            first = h.fold().version
            await teach(h, "b", 60)
            assert h.fold().version > first
            assert len(await h.store.snapshot_heads(1)) == 3  # by number of pages, by the rollback, and by number again
            await h.server.rollback(T, "c", first + 1, "between")

    run(story())


def test_catalogues_of_deleted_pages_go_and_those_in_use_stay(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **{**KEEP, "keep_days": 1}) as h:
            for number in range(8):
                await h.server.heartbeat.attempt()
                for candidates in (["x"], [f"x{number}"]):
                    await h.accept(await h.rank(candidates=candidates))
                await h.close()
                await h.server.heartbeat.attempt()
                await h.server.retention.delete_old()
                await h.later(DAY - 10)
            with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
                kept = {body for (body,) in connection.execute("SELECT body FROM catalogue")}
            assert h.server.retention.catalogues > 0
            assert pack_catalogue((BASE, ["x"])) in kept  # of the context and of the newest pages
            assert pack_catalogue((BASE, ["x7"])) in kept
            assert pack_catalogue((BASE, ["x0"])) not in kept
            assert len(kept) == 9 - h.server.retention.catalogues
            for page in [page async for some in h.store.all_pages() for page in some]:
                assert await h.store.catalogue(unpacked(page.record).catalogue) is not None

    run(test())


def test_a_damaged_context_keeps_its_pages_and_holds_up_no_other(tmp_path: Path) -> None:
    async def test() -> None:
        h = House(tmp_path, **KEEP)
        await h.start()
        for name in ("damaged", "whole"):
            await h.accept(await h.rank(name))
        await h.close()
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute("UPDATE publication SET body = CAST(body || x'00' AS BLOB) WHERE context = 1")
            connection.commit()
        await h.later(9 * DAY)
        await h.server.heartbeat.attempt()
        await h.server.retention.delete_old()
        assert [page.context async for some in h.store.all_pages() for page in some] == [1]
        await h.stop()

    run(test())
