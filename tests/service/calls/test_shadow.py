"""What shadow pages tell over the whole server, and that the bounds cover the truth."""

import random
from pathlib import Path

import pytest

from saferank.service.calls.effect import shadow_view
from saferank.service.knowledge.arms import ShadowCounts, with_shadow_page
from tests.service.house import BASE, T, house, run
from tests.service.knowledge.arms.test_shadow import shadow_record


def test_counted_when_windows_close_kept_over_a_restart_and_summed_over_contexts(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, mode="shadow") as h:
            same = clicks = 0
            for number in range(40):
                page = await h.rank("c" if number % 2 else "d", session_id=f"s{number}")
                assert page.ranking == BASE[:3]
                agrees = list(h.record(page).row[:3]) == BASE[:3]
                same, clicks = same + agrees, clicks + agrees
                await h.accept(page, "a")
                await h.later(0.1)
            assert (await h.server.shadow(T, "c")).pages == 0  # windows are open
            await h.close()
            one, two = await h.server.shadow(T, "c"), await h.server.shadow(T, "d")
            everything = await h.server.shadow(T, None)
            assert (one.pages, two.pages, everything.pages) == (20, 20, 40)
            assert 0 < everything.same == same == one.same + two.same < 40
            assert everything.clicks_where_same == everything.clicks == 1.0
            assert everything.would_have_got is not None and everything.would_have_got.low == clicks / 40
            await h.restart()
            assert await h.server.shadow(T, None) == everything
            assert (await h.server.shadow("another", None)).pages == 0

    run(test())


def test_without_pages_nothing_is_said() -> None:
    view = shadow_view(ShadowCounts())
    assert (view.pages, view.differing_share, view.clicks, view.would_have_got) == (0, None, None, None)


def test_means_and_bounds() -> None:
    view = shadow_view(ShadowCounts(10, 6, 12, 5, 8, 2, 12, 4, 3, 6, 4))
    assert (view.differing, view.differing_share, view.exchanged_pairs, view.new_items) == (4, 0.4, 0.8, 0.2)
    assert (view.clicks, view.clicks_where_same, view.clicks_where_differing) == (1.2, 5 / 6, 7 / 4)
    bounds = (view.would_have_got, view.would_have_got_read_from_the_top, view.would_have_got_by_place)
    assert [(bound.low, bound.high) for bound in bounds if bound] == [(0.5, 1.7), (0.8, 1.6), (0.9, 1.5)]


@pytest.mark.parametrize("reads_from_the_top", [False, True])
def test_bounds_of_the_model_cover_what_the_pages_would_have_got(reads_from_the_top: bool) -> None:
    """Visitors of a known model; the policy's mean clicks, simulated beside, lie within the model's bounds.

    The slack of 0.05 is five standard errors of a mean of 20,000 pages (at most 1.2 clicks of standard deviation), so
    the test fails for correct code with a probability below 1e-5.
    """
    dice, appeal = random.Random(11), {"a": 0.5, "b": 0.4, "c": 0.3, "d": 0.2}

    def clicks_on(page: str) -> int:
        clicks = 0
        for place, item in enumerate(page):
            if reads_from_the_top and clicks and dice.random() < 0.7:
                break
            examined = reads_from_the_top or dice.random() < 0.9**place
            clicks |= (examined and dice.random() < appeal[item]) << place
        return clicks

    counts, got = ShadowCounts(), 0
    for _ in range(20_000):
        chosen = dice.choice(["abcd", "abcd", "acbd", "abdc", "bacd", "dbca"])
        counts = with_shadow_page(counts, shadow_record("abc", chosen), clicks_on("abc"))
        got += clicks_on(chosen[:3]).bit_count()
    view = shadow_view(counts)
    model = view.would_have_got_read_from_the_top if reads_from_the_top else view.would_have_got_by_place
    assert view.would_have_got is not None and model is not None
    assert view.would_have_got.low < model.low - 0.1 and model.high + 0.1 < view.would_have_got.high
    for bounds in (view.would_have_got, model):
        assert bounds.low - 0.05 <= got / 20_000 <= bounds.high + 0.05
