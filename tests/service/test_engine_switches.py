"""Kill switches, rollback, contradictions: an operator's means and the service's own brake."""

from pathlib import Path

import pytest
from engine_harness import BASE, House, T, house, run

from saferank.service.arms import EXPLORE, FROZEN, OFF
from saferank.service.problems import Problem

QUICK = {"window_seconds": 1, "rule": "paper:0.1"}


async def teach(h: House, favourite: str, pages: int, context: str = "c") -> None:
    """Visitors who click on one item only, and on the first one if it is not there."""
    for _ in range(pages):
        page = h.rank(context, candidates=["x"])
        await h.accept(page, *([favourite] if favourite in page.ranking else []))
        h.later(1)
    h.engine.close_due()


def test_a_kill_switch_is_at_once_and_survives_restarts(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            before = h.rank(session_id="s")
            h.rank("d")
            view = await h.engine.kill(T, "c", True, "looks odd")
            assert (view.on, view.why) == (True, "looks odd")
            for _ in range(2):
                killed = h.rank(session_id="s")
                assert (killed.ranking, killed.mode, h.claim(killed).arm) == (BASE[:3], "off", OFF)
                assert h.claim(h.rank("d")).arm == EXPLORE
                assert h.engine.context(T, "c").killed == view
                assert h.engine.context(T, "c").mode == "off"
                await h.restart()
            assert (await h.engine.kill(T, "c", True, "again")) == view
            assert not (await h.engine.kill(T, "c", False, "fine")).on
            assert h.rank(session_id="s") == before
            await h.restart()
            assert not h.engine.context(T, "c").killed.on

    run(test())


def test_the_switch_of_a_tenant_is_for_all_its_contexts_and_nobody_elses(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            await h.engine.kill(T, None, True, "all")
            for _ in range(2):
                assert {h.claim(h.rank(name)).arm for name in ("c", "new", "newer")} == {OFF}
                assert h.claim(h.rank(tenant="you")).arm == EXPLORE
                assert h.engine.contexts(T).killed_everywhere.why == "all"
                await h.restart()
            await h.engine.kill(T, None, False, "done")
            await h.restart()
            assert h.claim(h.rank()).arm == EXPLORE

    run(test())


def test_clicks_that_arrive_while_killed_still_count(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank()
            await h.engine.kill(T, "c", True, "pause")
            await h.accept(page, page.ranking[0])
            h.close()
            assert h.engine.context(T, "c").arms["explore"].clicks == 1

    run(test())


def test_rollback_brings_an_earlier_leader_back_and_forgets_what_came_after(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:
            await teach(h, "b", 60)
            first = h.engine.context(T, "c")
            assert first.leader_version > 1 and first.leader[0] == "b"
            version, pairs = first.leader_version, {(p.better, p.worse): p.n for p in first.pairs}
            await teach(h, "c", 200)
            later = h.engine.context(T, "c")
            assert later.leader[:2] == ["b", "c"] or later.leader[0] == "c"
            open_page = h.rank(session_id="s", candidates=["x"])
            view = await h.engine.rollback(T, "c", version, "a bad day")
            assert (view.leader, view.leader_version) == (first.leader, later.leader_version + 1)
            assert view.versions[0].cause == "rollback" and view.versions[0].why == "a bad day"
            assert sum(p.n for p in view.pairs) <= sum(pairs.values())
            assert h.rank(session_id="s", candidates=["x"]).token != open_page.token
            await h.accept(open_page, open_page.ranking[0])
            assert not (await h.engine.impression(T, open_page.impression_id)).counted
            await h.restart()
            assert h.engine.context(T, "c").leader == first.leader
            again = await h.engine.rollback(T, "c", view.leader_version, "to the rollback itself")
            assert again.leader == first.leader
            original = await h.engine.rollback(T, "c", 1, "to the beginning")
            assert (original.leader, original.pairs[0].n) == (BASE[:3], 0)
            await teach(h, "c", 30)
            story = await h.engine.leader_at(T, "c", str(version))
            assert story.leader == first.leader

    run(test())


def test_items_keep_their_numbers_through_a_rollback(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank(candidates=["x"])
            page = h.rank(candidates=["x", "later"], base_ranking=["later", "a", "b", "c"])
            await h.accept(page, "later")
            await h.engine.rollback(T, "c", 1, "test")
            other = h.rank(candidates=["x", "other"], base_ranking=["other", "a", "b", "c"])
            assert (await h.engine.impression(T, page.impression_id)).clicks == ["later"]
            assert (await h.accept(page, "later")).duplicate
            assert "later" not in other.ranking

    run(test())


@pytest.mark.parametrize("version", [0, 2, 10**15])
def test_unknown_versions_and_contexts_are_404(tmp_path: Path, version: int) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            with pytest.raises(Problem, match="versions 1 to 1") as caught:
                await h.engine.rollback(T, "c", version, "no")
            assert (caught.value.status, caught.value.field) == (404, "version")
            with pytest.raises(Problem, match="no context 'q'"):
                await h.engine.kill(T, "q", True, "no")

    run(test())


async def contradict(h: House) -> None:
    """Visitors who change their minds: b above a, c above b, then a above c, each by itself beyond doubt."""
    for winner, loser in [("b", "a"), ("c", "b"), ("a", "c")] * 2:
        for _ in range(40):
            page = h.rank(base_ranking=[loser, winner], candidates=[], k=2)
            if h.core.state.by_name[T, "c"].contradiction is not None:
                return
            await h.accept(page, winner)
            h.later(1)


def test_a_contradiction_freezes_the_context_on_production_until_a_rollback(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:
            await contradict(h)
            for _ in range(2):
                view = h.engine.context(T, "c")
                assert view.frozen is not None and "contradict" in view.frozen
                assert (view.mode, view.alarms["contradiction"]) == ("off", 1)
                page = h.rank(base_ranking=["q", "a"], candidates=["b"], k=2)
                assert (page.ranking, h.claim(page).arm, page.mode) == (["q", "a"], FROZEN, "off")
                await h.restart()
            assert h.engine.counters()["contexts_frozen"] == 1
            await h.engine.rollback(T, "c", 1, "start again")
            page = h.rank(base_ranking=["a", "b"], candidates=["c"], k=2)
            assert h.claim(page).arm == EXPLORE
            assert h.engine.context(T, "c").frozen is None

    run(test())
