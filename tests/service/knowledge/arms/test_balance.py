"""The ratio of the arms: what the coins explain, and what they do not."""

import random
from pathlib import Path

import numpy as np
import pytest

from saferank.service.knowledge.arms import (
    BALANCE_ERROR,
    DAY_MS,
    HOLDOUT,
    Balance,
    Bin,
    ComparedArms,
    CountedPages,
    summed,
    waits_for_traffic,
)
from saferank.store.contract import Group
from tests.service.house import T, house, run
from tests.store.stores import alarms_of


def ever_off(holdout: "np.ndarray[tuple[int], np.dtype[np.bool_]]", share: float) -> bool:
    compared = ComparedArms(1)
    size, nothing = len(holdout), np.zeros(len(holdout), np.int64)
    told = compared.count(CountedPages(1 + np.arange(size), ~holdout, np.full(size, share), nothing, holdout, nothing))
    assert (told is not None) == compared.was_off
    return compared.was_off


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_coins_are_in_balance_at_every_look(share: float) -> None:
    assert BALANCE_ERROR * 100 < 1e-3
    dice = np.random.default_rng(1)
    assert not any(ever_off(dice.random(3000) < share, share) for _ in range(100))


@pytest.mark.parametrize(("share", "kept"), [(0.1, 0.7), (0.1, 1.4), (0.5, 0.8), (0.5, 1.2)])
def test_pages_that_are_lost_in_one_arm_are_found(share: float, kept: float) -> None:
    assert ever_off(np.random.default_rng(2).random(20_000) < share * kept, share)


def test_contexts_add_up() -> None:
    parts = [Balance(0.9, 0.81), Balance(-0.3, 0.09), Balance()]
    whole = summed(parts)
    assert whole.excess == pytest.approx(0.9 - 0.3) and whole.square == pytest.approx(0.81 + 0.09)


def test_an_imbalance_raises_one_alarm_and_withholds_the_effect(tmp_path: Path) -> None:
    """Pages of the holdout get lost on their way to the store."""

    async def test() -> None:
        async with house(tmp_path, holdout_share=0.3) as h:
            write = h.store.write

            async def lossy(group: Group) -> object:
                lost = [row for row in group.pages if arms[row.impression] == HOLDOUT and dice.random() < 0.8]
                return await write(group._replace(pages=[row for row in group.pages if row not in lost]))

            arms: dict[bytes, int] = {}
            dice = random.Random(3)
            h.store.write = lossy  # type: ignore[method-assign,assignment]
            for _ in range(3):
                for _ in range(120):
                    record = h.record(await h.rank())
                    arms[record.impression] = record.arm
                await h.close()
            alarms = await alarms_of(h.store, h.server.contexts.loaded(T, "c").number)  # type: ignore[union-attr]
            assert {alarm.kind for alarm in alarms} == {"unbalanced_arms"} and h.fold().alarms["unbalanced_arms"] == 1
            for view in (await h.server.effect(T, "c"), await h.server.effect(T, None)):
                assert view.clicks is None and view.clicks_relative is None and view.clicked_pages is None
                assert "are in the holdout and the coins promised" in str(view.why_not)
            assert {day.lift for day in (await h.server.overview(T)).bins} == {None}
            await h.restart()
            assert (await h.server.effect(T, "c")).clicks is None

    run(test())


def days_of(*clicked: int) -> dict[int, Bin]:
    return {100 + number: Bin(clicked=count) for number, count in enumerate(clicked) if count}


def waits(days: dict[int, Bin], today: int, least: float = 100.0, lifetime: int = 14 * DAY_MS) -> bool:
    return waits_for_traffic(days, today, lifetime, least)


def test_a_context_waits_for_traffic_with_a_band_between_on_and_off() -> None:
    busy = days_of(*[100] * 10)
    assert waits(busy, 100) and waits(busy, 102)  # 2 x 100 x 14 / 28.5 is about 98, of which some has faded
    assert not waits(busy, 103) and not waits(busy, 110)
    off = next(day for day in range(110, 400) if waits(busy, day))
    assert 165 < off < 175  # the projection falls by half in 19 days, from about 420 to 50
    again = {**busy, off: Bin(clicked=40)}
    assert waits(again, off + 1)  # above half, but not above the whole
    assert not waits({**again, off + 1: Bin(clicked=80)}, off + 2)
    assert waits(days_of(*[3] * 300), 400) and not waits(days_of(*[8] * 300), 400)
    assert waits({}, 100, lifetime=0) and not waits(days_of(1), 101, lifetime=0)


def test_contexts_below_the_least_traffic_get_productions_ranking_and_say_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, least_traffic=5) as h:
            for _ in range(20):
                page = await h.rank("busy")
                assert page.mode == "off"
                await h.accept(page, page.ranking[0])
            await h.rank("quiet")
            await h.close()
            view = await h.server.list_contexts(T)
            assert [(c.name, c.waiting, c.why) for c in view.contexts] == [
                ("busy", True, "waiting for traffic"),
                ("quiet", True, "waiting for traffic"),
            ]
            h.now += DAY_MS
            assert (await h.rank("busy")).mode == "live" and (await h.rank("quiet")).mode == "off"
            assert not (await h.server.show_context(T, "busy")).waiting
            assert (await h.server.overview(T)).funnel.waiting == 1

    run(test())
