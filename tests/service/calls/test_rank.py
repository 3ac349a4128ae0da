"""Which page a call gets: sessions, requests, holdout, modes, catalogues that change."""

from pathlib import Path
from typing import Any

import pytest

from saferank.service.knowledge.arms import EXPLORE, HOLDOUT, OFF
from saferank.service.knowledge.page_check import Checked
from saferank.service.wire.calls import PageNotes
from saferank.service.wire.problems import Problem
from tests.service.house import BASE, CANDIDATES, T, house, run


def test_a_reload_gets_the_same_page_until_the_window_ends(tmp_path: Path) -> None:
    """Coins are a function of visitor, context and window; 30 different sessions are not all shown the same page."""

    async def test() -> None:
        async with house(tmp_path) as h:
            first = await h.rank(session_id="s")
            for seconds in (0.5, 9.4):
                await h.later(seconds)
                again = await h.rank(session_id="s")
                assert (again.ranking, again.leader_version) == (first.ranking, first.leader_version)
                assert h.record(again).coins == h.record(first).coins
                assert again.impression_id != first.impression_id
            assert h.record(await h.rank(session_id="other")).coins != h.record(first).coins
            assert h.record(await h.rank(context="d", session_id="s")).coins != h.record(first).coins
            await h.later(0.1)
            assert h.record(await h.rank(session_id="s")).coins != h.record(first).coins
            assert len({tuple((await h.rank(session_id=f"s{number}")).ranking) for number in range(30)}) > 1

    run(test())


def test_a_reload_survives_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page, asked = await h.rank(session_id="s", request_id="r"), await h.rank(request_id="r")
            await h.accept(page, page.ranking[0])
            await h.restart()
            assert (await h.rank(session_id="s")).ranking == page.ranking
            again = await h.rank(request_id="r")
            assert again.ranking == asked.ranking and again.impression_id != asked.impression_id

    run(test())


@pytest.mark.parametrize("known_by", ["session_id", "request_id"])
def test_one_page_of_a_visitor_counts_in_a_window_the_first_that_was_shown(tmp_path: Path, known_by: str) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            pages = [await h.rank(**{known_by: "s"}) for _ in range(3)]
            for page in reversed(pages):
                await h.accept(page, page.ranking[0])
            stories = [await h.server.impression(T, page.impression_id) for page in pages]
            assert [story.counted for story in stories] == [True, False, False]
            await h.close()
            view = await h.server.show_context(T, "c")
            assert (view.arms["explore"].clicks, view.arms["repeat"].clicks) == (1, 2)
            assert h.knowledge().pages == 1
            assert all(n == 1 for _, n in (await h.pairs()).values())
            await h.restart()
            await h.rank(**{known_by: "s"})
            await h.close()
            assert h.knowledge().pages == 2  # another window

    run(test())


def test_a_visitor_never_gets_an_item_that_left(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            gone = (await h.rank(session_id="s")).ranking[-1]
            base = [item for item in BASE if item != gone]
            candidates = [item for item in CANDIDATES if item != gone]
            again = await h.rank(session_id="s", base_ranking=base, candidates=candidates)
            assert gone not in again.ranking

    run(test())


def test_holdout_pages_are_production_and_a_share_by_visitor_context_and_window(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.3) as h:
            pages = {f"s{number}": await h.rank(session_id=f"s{number}") for number in range(1000)}
            held = {session for session, page in pages.items() if h.record(page).arm == HOLDOUT}
            assert all(pages[session].ranking == BASE[:3] for session in held)
            assert all(h.record(pages[session]).arm == EXPLORE for session in pages.keys() - held)
            assert 200 < len(held) < 400  # fails for 1 in 10^11 keys: 7 standard deviations
            other = {
                session for session in pages if h.record(await h.rank(context="d", session_id=session)).arm == HOLDOUT
            }
            assert 40 < len(other & held) < 140  # every context has coins of its own: 90 expected, 6 s.d.
            session = next(iter(held))
            assert (await h.rank(session_id=session)).ranking == BASE[:3]
            assert {h.record(page).share for page in pages.values()} == {0.3}
            await h.later(10)
            again = {session for session in held if h.record(await h.rank(session_id=session)).arm == HOLDOUT}
            assert 40 < len(again) < 150  # and so has every window
            alone = [h.record(await h.rank()).arm for _ in range(500)]
            assert 80 < alone.count(HOLDOUT) < 220  # 7 standard deviations

    run(test())


def test_shadow_shows_production_learns_nothing_and_notes_what_it_would_have_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, mode="shadow") as h:
            pages = [await h.rank() for _ in range(30)]
            before = h.knowledge().learner.save()
            assert {tuple(page.ranking) for page in pages} == {tuple(BASE[:3])}
            assert {page.mode for page in pages} == {"shadow"}
            for page in pages:
                await h.accept(page, page.ranking[2])
            stories = [await h.server.impression(T, page.impression_id) for page in pages]
            await h.close()
            assert h.knowledge().learner.save() == before
            assert len({tuple(story.would_have_shown or ()) for story in stories}) > 1
            assert (await h.server.show_context(T, "c")).arms["shadow"].clicks == 30
            live = await h.rank(mode="live")
            assert live.mode == "live"
            assert h.record(live).arm == EXPLORE

    run(test())


def test_off_is_production(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(mode="off", candidates=["new"], base_ranking=["q", "r", "s", "t"])
            assert (page.ranking, page.mode, page.safety.swaps, page.safety.explored) == (
                ["q", "r", "s"],
                "off",
                0,
                None,
            )
            assert h.record(page).arm == OFF

    run(test())


def test_items_come_and_go_and_the_base_changes(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            for number in range(60):
                base = [f"i{(number + place) % 9}" for place in range(5)]
                candidates = [f"i{(number + 5) % 9}", f"new{number}"]
                page = await h.rank(base_ranking=base, candidates=candidates)
                assert set(page.ranking) <= {*base, *candidates}
                assert len(set(page.ranking)) == 3
                await h.accept(page, page.ranking[-1])
                await h.later(1)
            await h.close()
            assert {"i0", "a"} <= set(h.knowledge().learner.items)
            await h.restart()
            assert (await h.server.show_context(T, "c")).candidates == ["i1", "new59"]

    run(test())


def test_alternating_bases_share_what_was_learnt(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=1, rule="paper:0.1") as h:
            bases = [["a", "b", "c"], ["c", "a", "b"]]
            for number in range(400):
                page = await h.rank(base_ranking=bases[number // 2 % 2], candidates=[])
                if "b" in page.ranking:
                    await h.accept(page, "b")
                await h.later(1)
            for base in bases:
                await h.rank(base_ranking=base, candidates=[])
                leader = (await h.server.show_context(T, "c")).leader
                assert leader.index("b") < min(leader.index("a"), leader.index("c"))

    run(test())


def test_pages_of_several_sizes(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for k in (3, 2, 4, 3, 2):
                page = await h.rank(k=k)
                assert len(page.ranking) == k
                await h.accept(page, page.ranking[0])
                await h.close()
            view = await h.server.show_context(T, "c")
            assert (view.k, view.leader) == (2, BASE[:2])
            assert h.knowledge().pages == 5
            await h.restart()
            await h.server.show_context(T, "c")
            assert h.knowledge().pages == 5
            for k in range(1, 12):
                assert len((await h.rank(k=k, base_ranking=list("abcdefghijkl"))).ranking) == k

    run(test())


def test_pages_that_are_too_large_for_the_policy_are_refused_and_open_no_context(tmp_path: Path) -> None:
    async def test() -> None:
        many: dict[str, Any] = {"base_ranking": [f"i{number}" for number in range(70)], "candidates": []}
        async with house(tmp_path, policy="safe-draw", rule="anytime:0.1") as h:
            for context in ("new", "c"):
                with pytest.raises(Problem, match="61 positions: safe-draw takes at most 60; show fewer") as caught:
                    await h.rank(context=context, k=61, **many)
                assert (caught.value.status, caught.value.field) == (422, "k")
                if context == "new":
                    with pytest.raises(Problem, match="new"):
                        await h.server.show_context(T, "new")
                    assert len((await h.rank(context="c", k=60, **many)).ranking) == 60

    run(test())


def test_what_pages_of_ten_prove_moves_the_leader_of_pages_of_four(tmp_path: Path) -> None:
    """Also of a size that no call has asked for before; the log is replayed, and every page is checked again.

    Without trust in production's order, which would hold back items that are not certified yet."""
    call: dict[str, Any] = {"base_ranking": [f"i{number}" for number in range(10)], "candidates": []}

    async def test() -> None:
        async with house(tmp_path, policy="safe-draw", rule="anytime:0.1", trust=0.5) as h:
            await h.accept(await h.rank(k=4, **call), "i0")
            await h.close()
            assert h.fold().leader() == ("i0", "i1", "i2", "i3")
            for _ in range(400):
                for _ in range(5):
                    await h.accept(await h.rank(k=10, **call), "i6")
                await h.close()
                if h.fold().leader()[0] == "i6":
                    break
            assert h.fold().leader()[0] == "i6"
            pages = [await h.rank(k=k, **call) for k in (4, 6) * 10]
            assert all(h.record(page).arm == EXPLORE for page in pages)
            assert sum("i6" in page.ranking for page in pages) >= 15  # the draw leaves it out once in 150 pages or so
            for k in (4, 6):
                story = await h.server.impression(T, (await h.rank(k=k, **call)).impression_id)
                assert story.leader == list((await h.server.show_context(T, "c")).leader) and story.leader[0] == "i6"
            known = h.states()
            await h.restart()
            await h.server.show_context(T, "c")
            assert h.states() == known and h.fold().leader()[0] == "i6"
            await h.server.rollback(T, "c", 1, "as it was")
            await h.close()
            assert h.fold().leader() == ("i0", "i1", "i2", "i3")

    run(test())


def test_a_page_that_fails_the_check_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            monkeypatch.setattr("saferank.service.knowledge.view.checked", lambda *_: Checked("made up"))
            page = await h.rank()
            assert (page.ranking, page.mode) == (BASE[:3], "off")
            monkeypatch.undo()
            assert h.server.counters()["alarms_total"] == 1
            await h.close()
            assert (await h.server.show_context(T, "c")).alarms["illegal_page"] == 1
            safety = (await h.server.overview(T)).safety
            assert (safety.checked, safety.over_limit) == (2, 1)
            assert h.record(await h.rank()).arm == EXPLORE

    run(test())


def test_contexts_and_tenants_are_apart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            mine, yours = await h.rank(), await h.rank(tenant="you", k=2)
            assert len(yours.ranking) == 2
            await h.accept(mine, mine.ranking[0])
            await h.close()
            assert (await h.server.show_context("you", "c")).arms["explore"].clicks == 0
            assert [context.k for context in (await h.server.list_contexts("you")).contexts] == [2]
            assert (await h.server.list_contexts("nobody")).contexts == []

    run(test())


def test_explanations(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(explain=True)
            assert isinstance(page.explanation, PageNotes)
            assert [note.item for note in page.explanation.positions] == page.ranking
            off = await h.rank(explain=True, mode="off")
            assert isinstance(off.explanation, PageNotes) and "production" in off.explanation.text

    run(test())


def test_the_clock_may_go_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank(session_id="s")
            h.now -= 3_600_000
            assert h.record(await h.rank()).issued_at == h.record(page).issued_at
            assert (await h.accept(page, page.ranking[0])).state == "open"
            await h.restart()
            fresh = await h.rank()
            assert fresh.closes_at >= page.closes_at
            h.now += 3_600_000 + 10_000
            assert (await h.accept(page)).late

    run(test())
