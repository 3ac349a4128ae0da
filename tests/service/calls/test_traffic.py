"""What a careful team gets without asking: a holdout, a guardrail, and a share of visitors that can be raised."""

from pathlib import Path

import pytest

from saferank.service.knowledge.arms import EXPLORE, HOLDOUT, OFF
from saferank.service.settings import Settings
from saferank.service.wire.calls import TrafficCall
from tests.service.house import House, T, house, run

VISITORS = [f"visitor {number}" for number in range(200)]


async def arms(h: House) -> dict[str, int]:
    return {who: h.record(await h.rank(session_id=who)).arm for who in VISITORS}


def test_a_service_compares_and_guards_unless_told_otherwise() -> None:
    settings = Settings()
    assert (settings.holdout_share, settings.guardrail_drop, settings.traffic_share) == (0.1, 0.05, 1.0)
    assert settings.unknowable == []


@pytest.mark.parametrize(
    ("asked", "saying"),
    [({"holdout_share": 0}, "whether served pages get more or fewer clicks"), ({"guardrail_drop": 0}, "does not stop")],
)
def test_without_them_the_service_says_what_cannot_be_known(
    tmp_path: Path, asked: dict[str, float], saying: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with house(tmp_path, **{"holdout_share": 0.1, "guardrail_drop": 0.05, **asked}) as h:
            (sentence,) = (await h.server.overview(T)).unknowable
            assert saying in sentence and sentence in caplog.text

    run(test())


def test_a_share_of_visitors_is_raised_without_a_restart_and_keeps_those_it_had(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.2, traffic_share=0.0) as h:
            assert set((await arms(h)).values()) == {OFF}
            few = await h.server.set_traffic(T, TrafficCall(share=0.3, why="a careful start"))
            assert (few.share, few.why) == (0.3, "a careful start")
            first = await arms(h)
            chosen = {who for who, arm in first.items() if arm != OFF}
            assert 40 <= len(chosen) <= 80
            assert {first[who] for who in chosen} == {EXPLORE, HOLDOUT}
            await h.restart()
            assert (await h.server.overview(T)).traffic.share == 0.3
            await h.server.set_traffic(T, TrafficCall(share=0.7, why="it goes well"))
            more = {who for who, arm in (await arms(h)).items() if arm != OFF}
            assert chosen < more and 120 <= len(more) <= 160
            await h.close()
            fold = h.fold()
            assert fold.tallies[OFF][0] > 0  # in the log ...
            effect = await h.server.effect(T, "c")
            assert effect.served.pages + effect.holdout.pages == len(more)  # ... and not in the comparison
            markers = (await h.server.overview(T)).markers
            assert [marker.text for marker in markers if marker.kind == "traffic"][
                -1
            ] == "70% of visitors: it goes well"

    run(test())


def test_a_visitor_without_a_name_is_drawn_for_every_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, traffic_share=0.5) as h:
            pages = [h.record(await h.rank()).arm for _ in range(100)]
            assert 25 <= pages.count(OFF) <= 75

    run(test())
