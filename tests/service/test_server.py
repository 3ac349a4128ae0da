"""What somebody might try, or a bad day might bring: switches against retries, clocks, limits, damaged files."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from saferank.cli import main
from saferank.service.knowledge.arms import EXPLORE, HOLDOUT, OFF
from saferank.service.knowledge.page_check import Checked
from saferank.service.settings import settings_of
from saferank.service.wire.problems import Problem
from saferank.store.contract import StoreError
from saferank.store.embedded.file import FILE_NAME
from tests.service.house import BASE, CANDIDATES, House, T, house, run, store_down


def test_a_retry_of_a_request_does_not_get_round_a_kill_switch(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            before = await h.rank(request_id="r")
            await h.server.kill(T, "c", True, "looks odd")
            killed = await h.rank(request_id="r")
            assert (killed.ranking, h.record(killed).arm) == (BASE[:3], OFF)
            assert (await h.rank(request_id="r")).ranking == killed.ranking
            await h.server.kill(T, "c", False, "fine")
            assert (await h.rank(request_id="r", mode="off")).ranking == BASE[:3]
            assert before.impression_id != killed.impression_id

    run(test())


def test_a_retry_of_a_request_never_shows_an_item_that_left_and_counts_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(request_id="r")
            gone = page.ranking[0]
            base = [item for item in BASE if item != gone]
            again = await h.rank(
                request_id="r", base_ranking=base, candidates=[item for item in CANDIDATES if item != gone]
            )
            assert gone not in again.ranking
            await h.accept(page, page.ranking[1])
            await h.accept(again, again.ranking[1])
            await h.close()
            assert [(await h.server.show_context(T, "c")).arms[arm].clicks for arm in ("explore", "repeat")] == [1, 1]

    run(test())


def test_a_holdout_page_that_comes_back_is_the_counted_page_of_its_session(tmp_path: Path) -> None:
    async def test() -> None:
        lost = House(tmp_path / "lost", holdout_share=0.5)
        await lost.start()
        pages = {f"s{number}": await lost.rank(session_id=f"s{number}") for number in range(40)}
        # they are not on disk when the copy is made
        session, page = next((name, page) for name, page in pages.items() if lost.record(page).arm == HOLDOUT)
        lost.settings = structs.replace(lost.settings, holdout_share=0.0)
        h = await lost.crashed_copy(tmp_path / "copy")
        await lost.stop()
        assert [row async for some in h.store.all_pages() for row in some] == []
        h.now += 1
        later = await h.rank(session_id=session)
        await h.accept(page, BASE[0])
        assert (h.record(page).arm, h.record(later).arm) == (HOLDOUT, EXPLORE)
        await h.close()
        arms = (await h.server.show_context(T, "c")).arms
        assert [arms[name].pages for name in ("explore", "holdout", "repeat")] == [0, 1, 1]  # blind to the arm
        await h.stop_and_replay()

    run(test())


def test_a_clock_that_was_set_back_stops_no_window(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(session_id="s")
            await h.accept(page, page.ranking[0])
            await h.stop()
            h.now -= 86_400_000
            await h.start()
            assert h.record(await h.rank()).issued_at == h.record(page).issued_at
            await h.later(10)
            assert h.record(await h.rank(session_id="s")).issued_at == h.record(page).closes_at
            assert (await h.server.show_context(T, "c")).arms["explore"].clicked_pages == 1

    run(test())


def test_an_illegal_page_is_told_in_the_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            monkeypatch.setattr("saferank.service.knowledge.view.checked", lambda *_: Checked("it is upside down"))
            assert (await h.rank()).ranking == BASE[:3]
            (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
            fields = record.__dict__["saferank_fields"]
            assert (record.getMessage(), fields["kind"], fields["context"]) == ("alarm", "illegal_page", "c")
            assert fields["detail"] == "it is upside down"

    run(test())


def test_a_tenant_opens_only_so_many_contexts_also_by_tokens(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_contexts=2) as h:
            for name in ("a", "b", "a"):
                await h.rank(name)
            with pytest.raises(Problem, match="has 2 contexts") as caught:
                await h.rank("c")
            assert (caught.value.status, caught.value.field) == (422, "context")
            await h.rank("c", tenant="you")
            with store_down(h):
                unlogged = await h.rank("c")
            assert unlogged.mode == "off"
            assert (await h.refuse(unlogged, unlogged.ranking[0])).status == 422
            await h.restart()
            with pytest.raises(Problem, match="has 2 contexts"):
                await h.rank("c")

    run(test())


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_the_first_and_the_last_moment_are_moments_like_others(tmp_path: Path, at: str) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            if at.startswith("9"):
                assert (await h.server.leader_at(T, "c", at)).version == 1
            else:
                with pytest.raises(Problem, match="there is no leader at"):
                    await h.server.leader_at(T, "c", at)

    run(test())


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)


def scribble(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE publication SET body = substr(body, 1, 40)")
        connection.commit()


@pytest.mark.parametrize("damage", [cut, scribble])
def test_a_damaged_store_is_refused_in_a_sentence_and_a_damaged_context_gets_production(
    tmp_path: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    async def make() -> None:
        h = House(tmp_path)
        await h.start()
        for number in range(200):
            page = await h.rank(candidates=[f"x{number}"])
            await h.accept(page, page.ranking[0])
        await h.close()
        await h.stop()

    async def start() -> None:
        h = House(tmp_path)
        with pytest.raises(StoreError, match=r"log\.sqlite3: "):
            await h.start()

    async def serve() -> None:
        h = House(tmp_path)
        await h.start()
        assert (await h.rank()).mode == "off"
        await h.stop()

    run(make())
    damage(tmp_path / FILE_NAME)
    run(start() if damage is cut else serve())
    assert main(["replay", str(tmp_path)]) in (1, 2)
    told = capsys.readouterr().err
    assert "Traceback" not in told and str(tmp_path) in told.replace("\n", "")


def test_limits_have_sense() -> None:
    for name in ("max_contexts", "max_loaded_contexts"):
        with pytest.raises(ValueError, match=name):
            settings_of({name: 0})
