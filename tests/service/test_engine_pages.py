"""Which page a call gets: sessions, requests, holdout, modes, catalogues that change."""

from pathlib import Path

import pytest
from engine_harness import BASE, CANDIDATES, T, house, run

from saferank.service.arms import EXPLORE, HOLDOUT, OFF, REPEAT
from saferank.service.problems import Problem
from saferank.service.serving_check import Verdict


def test_a_reload_gets_the_same_page_and_token_until_the_window_ends(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            first = h.rank(session_id="s")
            h.later(9.999)
            events = h.core.journal.seq
            assert h.rank(session_id="s") == first
            assert h.core.journal.seq == events
            assert h.rank(session_id="other").token != first.token
            assert h.rank(context="d", session_id="s").token != first.token
            h.later(0.001)
            second = h.rank(session_id="s")
            assert second.impression_id != first.impression_id
            assert h.claim(second).arm == EXPLORE

    run(test())


def test_a_reload_survives_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(session_id="s", request_id="r")
            await h.accept(page, page.ranking[0])
            await h.restart()
            assert h.rank(session_id="s") == page
            assert h.rank(request_id="r") == page
            h.later(10)
            assert h.rank(session_id="s").token != page.token

    run(test())


def test_a_session_whose_item_left_gets_a_fresh_page_that_does_not_count(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(session_id="s")
            gone = page.ranking[-1]
            base = [item for item in BASE if item != gone]
            candidates = [item for item in CANDIDATES if item != gone]
            again = h.rank(session_id="s", base_ranking=base, candidates=candidates)
            assert gone not in again.ranking
            assert h.claim(again).arm == REPEAT
            rounds = h.core.state.by_name[T, "c"].learner.round
            assert rounds == 1  # a page that is not counted is not issued either
            await h.accept(again, again.ranking[0])
            h.close()
            assert h.engine.context(T, "c").arms["repeat"].clicks == 1
            assert all(pair.n == 0 for pair in h.engine.context(T, "c").pairs)

    run(test())


def test_the_same_request_gets_the_same_answer(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            first = h.rank(request_id="r")
            assert h.rank(request_id="r") == first
            assert h.rank(request_id="q") != first
            assert h.rank() != h.rank()
            h.later(10)
            assert h.rank(request_id="r").impression_id != first.impression_id

    run(test())


def test_holdout_sessions_always_get_production_and_are_a_fixed_share(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.3) as h:
            pages = {f"s{number}": h.rank(session_id=f"s{number}") for number in range(1000)}
            held = {session for session, page in pages.items() if h.claim(page).arm == HOLDOUT}
            assert all(pages[session].ranking == BASE[:3] for session in held)
            assert all(h.claim(pages[session]).arm == EXPLORE for session in pages.keys() - held)
            assert 200 < len(held) < 400  # fails for 1 in 10^11 keys: 7 standard deviations
            other = {session for session in pages if h.claim(h.rank(context="d", session_id=session)).arm == HOLDOUT}
            assert other == held
            session = next(iter(held))
            assert h.rank(session_id=session) == pages[session]
            alone = [h.claim(h.rank()).arm for _ in range(500)]
            assert 80 < alone.count(HOLDOUT) < 220  # 7 standard deviations

    run(test())


def test_shadow_shows_production_learns_nothing_and_notes_what_it_would_have_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, mode="shadow") as h:
            pages = [h.rank() for _ in range(30)]
            before = h.core.state.by_name[T, "c"].learner.canonical()
            assert {tuple(page.ranking) for page in pages} == {tuple(BASE[:3])}
            assert {page.mode for page in pages} == {"shadow"}
            for page in pages:
                await h.accept(page, page.ranking[2])
            stories = [await h.engine.impression(T, page.impression_id) for page in pages]
            h.close()
            assert h.core.state.by_name[T, "c"].learner.canonical() == before
            assert len({tuple(story.would_have_shown or ()) for story in stories}) > 1
            assert h.engine.context(T, "c").arms["shadow"].clicks == 30
            live = h.rank(mode="live")
            assert live.mode == "live"
            assert h.claim(live).arm == EXPLORE

    run(test())


def test_off_is_production(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(mode="off", candidates=["new"], base_ranking=["q", "r", "s", "t"])
            assert (page.ranking, page.mode, page.safety.swaps, page.safety.explored) == (
                ["q", "r", "s"],
                "off",
                0,
                None,
            )
            assert h.claim(page).arm == OFF

    run(test())


def test_items_come_and_go_and_the_base_changes(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            for number in range(60):
                base = [f"i{(number + place) % 9}" for place in range(5)]
                candidates = [f"i{(number + 5) % 9}", f"new{number}"]
                page = h.rank(base_ranking=base, candidates=candidates)
                assert set(page.ranking) <= {*base, *candidates}
                assert len(set(page.ranking)) == 3
                await h.accept(page, page.ranking[-1])
                h.later(1)
            context = h.core.state.by_name[T, "c"]
            assert {"i0", "a", "new59"} <= set(context.items)
            await h.restart()
            assert h.engine.context(T, "c").candidates == ["i1", "new59"]

    run(test())


def test_alternating_bases_share_what_was_learnt(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, window_seconds=1, rule="paper:0.1") as h:
            bases = [["a", "b", "c"], ["c", "a", "b"]]
            for number in range(400):
                page = h.rank(base_ranking=bases[number // 2 % 2], candidates=[])
                if "b" in page.ranking:
                    await h.accept(page, "b")
                h.later(1)
            for base in bases:
                h.rank(base_ranking=base, candidates=[])
                leader = h.core.state.by_name[T, "c"].leader
                assert leader.index("b") < min(leader.index("a"), leader.index("c"))

    run(test())


def test_another_page_size_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            with pytest.raises(Problem, match="context c has k = 3; use another context name") as caught:
                h.rank(k=2)
            assert (caught.value.status, caught.value.field) == (422, "k")

    run(test())


def test_a_page_that_fails_the_check_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            h.rank()
            monkeypatch.setattr("saferank.service.proposals.check_page", lambda *_: Verdict("made up"))
            page = h.rank()
            assert (page.ranking, page.mode) == (BASE[:3], "off")
            monkeypatch.undo()
            assert h.core.state.by_name[T, "c"].learner.round == 1
            assert h.engine.context(T, "c").alarms["illegal_page"] == 1
            assert h.engine.counters()["alarms_total"] == 1
            assert h.claim(h.rank()).round == 2

    run(test())


def test_contexts_and_tenants_are_apart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            mine, yours = h.rank(), h.rank(tenant="you", k=2)
            assert len(yours.ranking) == 2
            await h.accept(mine, mine.ranking[0])
            h.close()
            assert h.engine.context("you", "c").arms["explore"].clicks == 0
            assert [context.k for context in h.engine.contexts("you").contexts] == [2]
            assert h.engine.contexts("nobody").contexts == []

    run(test())


def test_explanations(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(explain=True)
            assert page.explanation is not None
            assert [note.item for note in page.explanation.positions] == page.ranking
            off = h.rank(explain=True, mode="off")
            assert off.explanation is not None and "production" in off.explanation.text

    run(test())


def test_the_clock_may_go_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank(session_id="s")
            h.now -= 3_600_000
            assert h.rank(session_id="s") == page
            assert (await h.accept(page, page.ranking[0])).state == "open"
            await h.restart()
            fresh = h.rank()
            assert fresh.closes_at >= page.closes_at
            h.now += 3_600_000 + 10_000
            assert (await h.accept(page)).late

    run(test())
