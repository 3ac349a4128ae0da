"""Feedback against the model of tests/reference/service_fold.py, and every way to send it wrongly."""

import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from engine_harness import House, T, house, run
from reference.service_fold import ModelPage, ServiceFold

from saferank.service.arms import EXPLORE
from saferank.service.calls import FeedbackAnswer, FeedbackCall, RankAnswer
from saferank.service.context import Context
from saferank.service.learning import Operation
from saferank.service.problems import Problem


def model_page(h: House, page: RankAnswer, context: str, session: str | None) -> ModelPage:
    claim = h.claim(page)
    groups = [list(claim.row[start:end]) for start, end in zip((0, *claim.group_ends), claim.group_ends, strict=False)]
    counted = claim.arm == EXPLORE
    return ModelPage(
        page.impression_id, context, page.ranking, groups, counted, claim.issued_at, claim.closes_at, session
    )


async def one_step(h: House, model: ServiceFold, dice: random.Random, pages: list[RankAnswer]) -> None:
    context, session = dice.choice("cd"), dice.choice([None, "s1", "s2", "s3"])
    if dice.random() < 0.4:
        expected = model.page_of_session(context, session, h.now) if session else None
        page = h.rank(context, session_id=session, tenant=T)
        assert expected is None or expected.name == page.impression_id
        model.shown(model_page(h, page, context, session))
        pages.append(page)
    else:
        page = dice.choice(pages[-60:])
        clicks = dice.sample(page.ranking, dice.randrange(3)) + (["not there"] if dice.random() < 0.05 else [])
        event_id = dice.choice([None, None, f"e{dice.randrange(200)}", f"e{dice.random()}"])
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
    for context in h.core.state.contexts.values():
        for item in context.items:
            for other in context.items:
                assert context.learner.duel(item, other) == model.pair(context.name, item, other)
    counters = h.engine.counters()
    assert counters["feedback_late_total"] == model.late
    assert counters["feedback_duplicate_total"] == model.duplicates
    assert counters["feedback_accepted_total"] == model.accepted


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_reports_is_answered_and_counted_by_the_book(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            dice, model, pages = random.Random(seed), ServiceFold(), [h.rank()]
            model.shown(model_page(h, pages[0], "c", None))
            for _ in range(400):
                await one_step(h, model, dice, pages)
                h.later(dice.choice([0, 0.001, 0.1, 0.5, 2]))
                model.close(h.now)
            h.engine.close_due()
            same_statistics(h, model)
            assert model.learnt and model.late and model.duplicates  # the mixture was rich

    run(test())


def test_ten_shuffled_copies_count_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            dice, model = random.Random(5), ServiceFold()
            pages = [h.rank() for _ in range(50)]
            for page in pages:
                model.shown(model_page(h, page, "c", None))
            copies = [(page, [item], f"{page.impression_id}{item}") for page in pages for item in page.ranking[:2]] * 10
            dice.shuffle(copies)
            for page, clicks, event_id in copies:
                await same_answer(h, model, page, clicks, event_id)
            h.close()
            model.close(h.now)
            same_statistics(h, model)
            assert model.accepted == 100 and model.duplicates == 900

    run(test())


def test_clicks_count_in_display_order_however_they_arrive(tmp_path: Path) -> None:
    async def test() -> None:
        learnt: list[bytes] = []

        def folded(context: Context, operations: Sequence[Operation]) -> None:
            learnt.extend(operation.page.id for operation in operations)

        async with house(tmp_path) as h:
            pages = []
            for _ in range(20):
                pages.append(h.rank())
                h.later(0.1)
            h.core.folded = folded  # type: ignore[method-assign]
            for page in reversed(pages):
                await h.accept(page, page.ranking[0])
            assert learnt == []
            h.close()
            assert learnt == [h.claim(page).impression for page in pages]

    run(test())


def test_event_ids_are_remembered_after_the_window_and_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page, other = h.rank(), h.rank()
            item = page.ranking[0]
            assert not (await h.accept(page, item, event_id="e")).duplicate
            for _ in range(3):
                again = await h.accept(page, item, event_id="e")
                assert (again.accepted, again.duplicate, again.late) == (True, True, False)
                for wrong in [h.refuse(page, event_id="e"), h.refuse(other, other.ranking[0], event_id="e")]:
                    problem = await wrong
                    assert (problem.status, problem.field) == (409, "event_id")
                h.close()
                await h.restart()
            assert (await h.accept(page, item, event_id="e")).state == "closed"
            assert (await h.accept(page, item, event_id="new")).late

    run(test())


def test_another_tenant_may_use_the_same_event_id(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            mine, yours = h.rank(), h.rank(tenant="you")
            await h.accept(mine, mine.ranking[0], event_id="e")
            assert not (await h.accept(yours, yours.ranking[1], event_id="e", tenant="you")).duplicate

    run(test())


def test_wrong_reports_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank()
            claim, before = h.claim(page), h.core.journal.seq
            hidden = claim.row[-1]
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
            ]
            for attempt, status, field in cases:
                problem = await attempt()
                assert (problem.status, problem.field) == (status, field)
            assert h.core.journal.seq == before

    run(test())


def test_a_batch_is_answered_one_by_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = h.rank()
            calls = [
                FeedbackCall(token=page.token, clicks=[item]) for item in (page.ranking[0], "nowhere", page.ranking[0])
            ]
            good, bad, again = await h.engine.feedback(T, calls)
            assert isinstance(good, FeedbackAnswer) and good.accepted and not good.duplicate
            assert isinstance(bad, Problem) and bad.status == 422
            assert isinstance(again, FeedbackAnswer) and again.duplicate

    run(test())


def test_memory_of_open_pages_is_given_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for number in range(200):
                page = h.rank(session_id=f"s{number}", request_id=f"r{number}")
                await h.accept(page, page.ranking[0], event_id=f"e{number}")
            context = h.core.state.by_name[T, "c"]
            assert len(context.queue) == len(context.sessions) == len(context.requests) == 200
            h.close()
            kept = (context.queue, context.sessions, context.requests, h.core.state.open_pages, h.core.deliveries)
            assert [len(part) for part in kept] == [0] * 5
            assert context.waiting == 0

    run(test())
