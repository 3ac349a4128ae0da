"""The effect as it is asked for: contexts in memory and published ones, tenants apart, and what is missing."""

from pathlib import Path

import pytest

from saferank.service.knowledge.arms import HOLDOUT
from saferank.service.wire.problems import Problem
from tests.service.house import House, T, house, run


async def shown(h: House, pages: int, context: str = "c", tenant: str = T, session: str | None = None) -> int:
    """Pages whose first item is clicked on every second; all windows end. Returns how many were held out."""
    held_out = 0
    for number in range(pages):
        page = await h.rank(context=context, tenant=tenant, session_id=session)
        held_out += h.record(page).arm == HOLDOUT
        if number % 2:
            await h.accept(page, page.ranking[0], tenant=tenant)
    await h.close()
    return held_out


def test_pages_of_both_arms_their_difference_and_its_interval(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.4) as h:
            held_out = await shown(h, 60)
            view = await h.server.effect(T, "c")
            assert (view.holdout.pages, view.served.pages) == (held_out, 60 - held_out)
            assert (
                view.holdout.clicks + view.served.clicks == 30 == view.holdout.clicked_pages + view.served.clicked_pages
            )
            assert view.clicks is not None and view.clicks.estimate is not None and view.clicks.high is not None
            assert view.clicks.low < view.clicks.estimate < view.clicks.high
            assert view.clicked_pages is not None and -1 <= view.clicked_pages.low < 0
            assert view.clicks_relative is not None and view.clicks_relative.low >= -1
            assert (view.why_not, view.error, view.guardrail) == (None, 0.05, None)
            counts = h.server.counters()
            assert counts["arm_pages_total"]["holdout"] == held_out  # type: ignore[index]
            assert sum(counts["arm_clicks_total"].values()) == 30  # type: ignore[union-attr]
            assert counts["effect_clicks"] == pytest.approx(view.clicks.estimate)
            assert (counts["effect_clicks_low"], counts["effect_clicks_high"]) == (view.clicks.low, view.clicks.high)

    run(test())


def test_reloads_count_in_no_arm(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.5) as h:
            for number in range(12):
                for _ in range(3):
                    await h.rank(session_id=f"s{number}", base_ranking=[*"abcd"] if number % 2 else [*"badc"])
            await h.close()
            view = await h.server.effect(T, "c")
            assert view.served.pages + view.holdout.pages == 12
            assert (await h.server.show_context(T, "c")).arms["repeat"].pages == 24

    run(test())


def test_contexts_that_are_not_in_memory_are_read_from_their_publications(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.5, max_loaded_contexts=1) as h:
            for name in ("one", "two", "three"):
                await shown(h, 20, name)
            await shown(h, 7, "one", tenant="other")
            assert sum(context.row.tenant == T for context in h.server.contexts) < 3
            whole = await h.server.effect(T, None)
            assert whole.served.pages + whole.holdout.pages == 60
            await h.restart()
            assert await h.server.effect(T, None) == whole
            other = await h.server.effect("other", None)
            assert other.served.pages + other.holdout.pages == 7
            parts = [await h.server.effect(T, name) for name in ("one", "two", "three")]
            assert sum(part.served.clicks for part in parts) == whole.served.clicks

    run(test())


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path / "none") as h:
            await shown(h, 3)
            view = await h.server.effect(T, "c")
            assert view.clicks is None and "holdout_share" in str(view.why_not)
            assert "holdout_share" in str((await h.server.effect("nobody", None)).why_not)
            with pytest.raises(Problem, match="no context"):
                await h.server.effect(T, "unknown")
        async with house(tmp_path / "some", holdout_share=0.1, guardrail_drop=0.03) as h:
            await h.rank()
            view = await h.server.effect(T, "c")
            assert "window" in str(view.why_not) and view.guardrail is not None
            assert view.guardrail.log_evidence == pytest.approx(0) and not view.guardrail.stopped

    run(test())
