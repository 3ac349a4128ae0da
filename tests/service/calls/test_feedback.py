"""Feedback against the model of tests/reference/service_fold.py, and every way to send it wrongly."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from saferank.service.calls.audit import groups_of
from saferank.service.knowledge.arms import EXPLORE
from saferank.service.knowledge.fold import Fold
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer
from saferank.service.wire.problems import Problem
from saferank.store.record_columns import ClosedPages
from tests.reference.service_fold import ModelPage, ServiceFold
from tests.service.house import House, T, house, run


def model_page(h: House, page: RankAnswer, context: str, session: str | None) -> ModelPage:
    record = h.record(page)
    counted = record.arm == EXPLORE
    return ModelPage(
        page.impression_id, context, page.ranking, groups_of(record), counted, record.issued_at, record.closes_at,
        session,
    )  # fmt: skip


async def one_step(h: House, model: ServiceFold, dice: random.Random, pages: list[RankAnswer]) -> None:
    context, session = dice.choice("cd"), dice.choice([None, "s1", "s2", "s3"])
    if dice.random() < 0.4:
        page = await h.rank(context, session_id=session, tenant=T)
        model.shown(model_page(h, page, context, session))
        pages.append(page)
    else:
        page = dice.choice(pages[-60:])
        event_id = dice.choice([None, None, f"e{dice.randrange(200)}", f"e{dice.random()}"])
        fewest = 1 if event_id is None else 0  # whether a report without clicks is new depends on what is written
        clicks = dice.sample(page.ranking, dice.randrange(fewest, 3))
        clicks += ["not there"] if dice.random() < 0.05 else []
        await same_answer(h, model, page, clicks, event_id, by_id=dice.random() < 0.3)


async def same_answer(
    h: House, model: ServiceFold, page: RankAnswer, clicks: list[str], event_id: str | None, by_id: bool = False
) -> None:
    expected = model.feedback(page.impression_id, clicks, event_id, h.now)
    more = {"impression_id": page.impression_id} if by_id else {}
    answer = await h.click(page, *clicks, event_id=event_id, **more)
    if isinstance(answer, Problem):
        assert answer.status == expected.status
    else:
        assert expected.status == 200
        assert (answer.accepted, answer.duplicate, answer.late) == (
            expected.accepted, expected.duplicate, expected.late,
        )  # fmt: skip


def same_statistics(h: House, model: ServiceFold) -> None:
    for context in h.server.contexts:
        learner = context.fold.knowledge.learner
        for item in map(str, learner.items):
            for other in map(str, learner.items):
                assert learner.duel(item, other) == model.pair(context.row.name, item, other)
    counters = h.server.counters()
    assert counters["feedback_late_total"] == model.late
    assert counters["feedback_duplicate_total"] == model.duplicates
    assert counters["feedback_accepted_total"] == model.accepted


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_reports_is_answered_and_counted_by_the_book(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            dice, model, pages = random.Random(seed), ServiceFold(), [await h.rank()]
            model.shown(model_page(h, pages[0], "c", None))
            for _ in range(400):
                await one_step(h, model, dice, pages)
                await h.later(dice.choice([0, 0.001, 0.1, 0.5, 2]))
                model.close(h.now)
            await h.server.closer.close_due(everything=True)
            same_statistics(h, model)
            assert model.learnt and model.late and model.duplicates  # the mixture was rich

    run(test())


def test_ten_shuffled_copies_count_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            dice, model = random.Random(5), ServiceFold()
            pages = [await h.rank() for _ in range(50)]
            for page in pages:
                model.shown(model_page(h, page, "c", None))
            copies = [(page, [item], f"{page.impression_id}{item}") for page in pages for item in page.ranking[:2]] * 10
            dice.shuffle(copies)
            for page, clicks, event_id in copies:
                await same_answer(h, model, page, clicks, event_id)
            await h.close()
            model.close(h.now)
            same_statistics(h, model)
            assert model.accepted == 100 and model.duplicates == 900

    run(test())


def test_clicks_count_in_display_order_however_they_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        learnt: list[bytes] = []
        learn = Fold._learn

        def noting(fold: Fold, run: ClosedPages) -> None:
            learnt.extend(run.field("impression"))
            learn(fold, run)

        async with house(tmp_path) as h:
            pages = []
            for _ in range(20):
                pages.append(await h.rank())
                await h.later(0.1)
            monkeypatch.setattr(Fold, "_learn", noting)
            for page in reversed(pages):
                await h.accept(page, page.ranking[0])
            assert learnt == []
            await h.close()
            assert learnt == [h.record(page).impression for page in pages]
            monkeypatch.undo()

    run(test())


def test_event_ids_are_remembered_after_the_window_and_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page, other = await h.rank(), await h.rank()
            item = page.ranking[0]
            assert not (await h.accept(page, item, event_id="e")).duplicate
            assert not (await h.accept(other, other.ranking[1], event_id="e")).duplicate  # ids are not shared
            for _ in range(3):
                again = await h.accept(page, item, event_id="e")
                assert (again.accepted, again.duplicate, again.late) == (True, True, False)
                for wrong in [h.refuse(page, event_id="e"), h.refuse(page, page.ranking[1], event_id="e")]:
                    problem = await wrong
                    assert (problem.status, problem.field) == (409, "event_id")
                await h.close()
                await h.restart()
            assert (await h.accept(page, item, event_id="e")).state == "closed"
            assert (await h.accept(page, item, event_id="new")).late

    run(test())


def test_another_tenant_may_use_the_same_event_id(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            mine, yours = await h.rank(), await h.rank(tenant="you")
            await h.accept(mine, mine.ranking[0], event_id="e")
            assert not (await h.accept(yours, yours.ranking[1], event_id="e", tenant="you")).duplicate

    run(test())


async def written(h: House) -> list[object]:
    await h.server.writer.flush()
    return [page async for some in h.store.all_pages() for page in some]


def test_a_page_that_was_shown_as_answered_may_say_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            assert (await h.accept(page, page.ranking[0], shown=page.ranking)).accepted
            await h.refuse(page, page.ranking[0], shown=page.ranking[1:])
            assert h.server.counters()["feedback_not_as_shown_total"] == 1

    run(test())


def test_wrong_reports_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            (hidden,), before = h.record(page).hidden, await written(h)
            letter = "A" if page.token[-10] != "A" else "B"
            cases: list[tuple[Callable[[], Awaitable[Problem]], int, str]] = [
                (lambda: h.refuse(page, "nowhere"), 422, "clicks[0]"),
                (lambda: h.refuse(page, page.ranking[0], hidden), 422, "clicks[1]"),
                (lambda: h.refuse(page.token[:-10] + letter + page.token[-9:], page.ranking[0]), 401, "token"),
                (lambda: h.refuse(page.impression_id, page.ranking[0]), 401, "token"),
                (lambda: h.refuse(page, page.ranking[0], tenant="you"), 403, "token"),
                (lambda: h.refuse(page, impression_id=page.impression_id, tenant="you"), 404, "impression_id"),
                (lambda: h.refuse(page, impression_id="A" * 22), 404, "impression_id"),
                (lambda: h.refuse(page, impression_id="?"), 404, "impression_id"),
                (lambda: h.refuse(page, page.ranking[0], shown=page.ranking[::-1]), 422, "shown"),
                (lambda: h.refuse(page, page.ranking[0], shown=page.ranking[:-1]), 422, "shown"),
            ]
            for attempt, status, field in cases:
                problem = await attempt()
                assert (problem.status, problem.field) == (status, field)
            assert await written(h) == before

    run(test())


def test_a_batch_is_answered_one_by_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            calls = [
                FeedbackCall(token=page.token, clicks=[item]) for item in (page.ranking[0], "nowhere", page.ranking[0])
            ]
            good, bad, again = await h.server.feedback(T, calls)
            assert isinstance(good, FeedbackAnswer) and good.accepted and not good.duplicate
            assert isinstance(bad, Problem) and bad.status == 422
            assert isinstance(again, FeedbackAnswer) and again.duplicate

    run(test())


def test_a_server_remembers_no_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for number in range(200):
                page = await h.rank(session_id=f"s{number}", request_id=f"r{number}")
                await h.accept(page, page.ranking[0], event_id=f"e{number}")
            await h.server.writer.flush()
            assert (h.server.writer.pending, len(h.server.writer.pages)) == (0, 0)
            await h.close()
            assert len(h.fold().visitors) == 200
            await h.later(10)
            await h.accept(await h.rank(session_id="next"), event_id="next")
            await h.close()
            assert len(h.fold().visitors) == 1

    run(test())
