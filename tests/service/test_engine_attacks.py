"""What somebody might try, or a bad day might bring: switches against retries, clocks, limits, damaged files."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from engine_harness import BASE, CANDIDATES, House, T, house, run

from saferank.cli import main
from saferank.service.arms import EXPLORE, HOLDOUT, OFF, REPEAT
from saferank.service.engine import LOG_NAME
from saferank.service.problems import Problem
from saferank.service.serving_check import Verdict
from saferank.service.settings import Settings
from saferank.store.sqlite import StoreError


def test_a_retry_of_a_request_does_not_get_round_a_kill_switch(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            before = h.rank(request_id="r")
            await h.engine.kill(T, "c", True, "looks odd")
            killed = h.rank(request_id="r")
            assert (killed.ranking, h.claim(killed).arm) == (BASE[:3], OFF)
            assert h.rank(request_id="r") == killed
            await h.engine.kill(T, "c", False, "fine")
            assert h.rank(request_id="r", mode="off").ranking == BASE[:3]
            assert before.impression_id != killed.impression_id

    run(test())


def test_a_retry_of_a_request_never_shows_an_item_that_left_and_counts_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(request_id="r")
            gone = page.ranking[0]
            base = [item for item in BASE if item != gone]
            again = h.rank(request_id="r", base_ranking=base, candidates=[item for item in CANDIDATES if item != gone])
            assert gone not in again.ranking
            assert (h.claim(page).arm, h.claim(again).arm) == (EXPLORE, REPEAT)

    run(test())


def test_a_holdout_page_that_comes_back_takes_no_session_from_a_counted_page(tmp_path: Path) -> None:
    async def test() -> None:
        lost = House(tmp_path / "lost", holdout_share=1.0)
        await lost.start()
        await lost.core.journal.until(lost.core.journal.seq)
        page = lost.rank(session_id="s")  # its event is not on disk when the copy is made
        lost.settings = lost.settings.model_copy(update={"holdout_share": 0.0})
        h = await lost.crashed_copy(tmp_path / "copy")
        await lost.engine.stop()
        assert h.core.state.contexts == {}
        counted = h.rank(session_id="s")
        await h.accept(page, BASE[0])
        assert (h.claim(page).arm, h.claim(counted).arm) == (HOLDOUT, EXPLORE)
        assert h.rank(session_id="s") == counted
        await h.stop_and_replay()

    run(test())


def test_a_switch_of_a_tenant_does_not_make_later_starts_long(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            await h.engine.kill(T, None, True, "all")
            h.rank()
            last = h.core.journal.seq
            await h.restart()
            assert h.core.reader.value("meta", "clean") == last
            assert h.engine.contexts(T).killed_everywhere.on

    run(test())


def test_a_clock_that_was_set_back_stops_no_window(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(session_id="s")
            await h.accept(page, page.ranking[0])
            await h.engine.stop()
            h.now -= 86_400_000
            await h.start()
            assert "clock is behind" in caplog.text
            assert h.rank(session_id="s") == page
            h.later(10)
            later = h.rank(session_id="s")
            assert later.impression_id != page.impression_id
            assert h.claim(later).issued_at == h.claim(page).closes_at
            assert h.engine.context(T, "c").arms["explore"].clicked_pages == 1

    run(test())


def test_an_illegal_page_is_told_in_the_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            monkeypatch.setattr("saferank.service.proposals.check_page", lambda *_: Verdict("it is upside down"))
            assert h.rank().ranking == BASE[:3]
            (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
            fields = record.__dict__["saferank_fields"]
            assert (record.getMessage(), fields["kind"], fields["context"]) == ("alarm", "illegal_page", "c")
            assert fields["detail"] == "it is upside down"

    run(test())


def test_a_tenant_opens_only_so_many_contexts_also_by_tokens(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_contexts=2) as h:
            for name in ("a", "b", "a"):
                h.rank(name)
            with pytest.raises(Problem, match="has 2 contexts") as caught:
                h.rank("c")
            assert (caught.value.status, caught.value.field) == (422, "context")
            h.rank("c", tenant="you")
            h.core.settings = h.settings.model_copy(update={"max_open_pages": 1})
            unlogged = h.rank("c")
            assert unlogged.mode == "off"
            assert (await h.refuse(unlogged, unlogged.ranking[0])).status == 422
            await h.restart()
            with pytest.raises(Problem, match="has 2 contexts"):
                h.rank("c")

    run(test())


def test_beyond_the_open_pages_production_is_served_and_nothing_kept(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, max_open_pages=2) as h:
            pages = [h.rank() for _ in range(3)]
            assert [h.claim(page).arm for page in pages] == [EXPLORE, EXPLORE, OFF]
            assert (pages[2].ranking, len(h.core.state.open_pages)) == (BASE[:3], 2)
            h.close()
            assert h.claim(h.rank()).arm == EXPLORE

    run(test())


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_the_first_and_the_last_moment_are_moments_like_others(tmp_path: Path, at: str) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            if at.startswith("9"):
                assert (await h.engine.leader_at(T, "c", at)).version == 1
            else:
                with pytest.raises(Problem, match="there is no leader at"):
                    await h.engine.leader_at(T, "c", at)

    run(test())


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)


def scribble(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE snapshot SET body = substr(body, 1, 40)")
        connection.commit()


def forget_pages(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM snapshot")
        connection.execute("DELETE FROM meta WHERE name = 'clean'")
        connection.execute("DELETE FROM event WHERE kind = 1")
        connection.commit()


@pytest.mark.parametrize("damage", [cut, scribble, forget_pages])
def test_a_damaged_store_is_refused_in_a_sentence(
    tmp_path: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    async def make() -> None:
        h = House(tmp_path)
        await h.start()
        for number in range(200):
            page = h.rank(candidates=[f"x{number}"])
            await h.accept(page, page.ranking[0])
        await h.engine.stop()

    async def start() -> None:
        h = House(tmp_path)
        with pytest.raises(StoreError, match=r"log\.sqlite3: "):
            await h.start()

    run(make())
    damage(tmp_path / LOG_NAME)
    run(start())
    assert main(["replay", str(tmp_path)]) in (1, 2)
    told = capsys.readouterr().err
    assert "Traceback" not in told and LOG_NAME in told.replace("\n", "")


def test_limits_have_sense() -> None:
    for name in ("max_contexts", "max_open_pages"):
        with pytest.raises(ValueError, match=name):
            Settings.model_validate({name: 0})
