"""Kill switches, rollback, contradictions: an operator's means and the service's own brake."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from saferank.policies import POLICIES, policy_kind
from saferank.service.knowledge.arms import EXPLORE, HOLDOUT, OFF, SHADOW
from saferank.service.wire.calls import SettingsCall, moment
from saferank.service.wire.problems import Problem
from saferank.store.contract import OperationKind
from tests.service.house import BASE, House, T, house, run, store_down
from tests.store.stores import alarms_of

QUICK = {"window_seconds": 1, "rule": "paper:0.1"}


async def teach(h: House, favourite: str, pages: int, context: str = "c") -> None:
    """Visitors who click on one item only, and on the first one if it is not there."""
    for _ in range(pages):
        page = await h.rank(context, candidates=["x"])
        await h.accept(page, *([favourite] if favourite in page.ranking else []))
        await h.later(1)
    await h.server.closer.close_due(everything=True)


def test_a_kill_switch_is_at_once_and_survives_restarts(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            before = await h.rank(session_id="s")
            await h.rank("d")
            view = await h.server.kill(T, "c", True, "looks odd")
            assert (view.on, view.why) == (True, "looks odd")
            for _ in range(2):
                killed = await h.rank(session_id="s")
                assert (killed.ranking, killed.mode, h.record(killed).arm) == (BASE[:3], "off", OFF)
                assert h.record(await h.rank("d")).arm == EXPLORE
                assert (await h.server.show_context(T, "c")).killed == view
                assert (await h.server.show_context(T, "c")).mode == "off"
                await h.restart()
            assert (await h.server.kill(T, "c", True, "again")) == view
            assert not (await h.server.kill(T, "c", False, "fine")).on
            assert (await h.rank(session_id="s")).ranking == before.ranking
            await h.restart()
            assert not (await h.server.show_context(T, "c")).killed.on

    run(test())


def test_the_switch_of_a_tenant_is_for_all_its_contexts_and_nobody_elses(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            await h.server.kill(T, None, True, "all")
            for _ in range(2):
                assert {h.record(await h.rank(name)).arm for name in ("c", "new", "newer")} == {OFF}
                assert h.record(await h.rank(tenant="you")).arm == EXPLORE
                assert (await h.server.list_contexts(T)).killed_everywhere.why == "all"
                await h.restart()
            await h.server.kill(T, None, False, "done")
            await h.restart()
            assert h.record(await h.rank()).arm == EXPLORE

    run(test())


def test_an_operator_switches_off_all_tenants_and_no_tenant_can_end_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            view = await h.server.kill_all_tenants(True, "an incident")
            assert (view.on, view.why, view.by_operator) == (True, "an incident", True)
            for _ in range(2):
                for tenant in (T, "you", "new"):
                    assert h.record(await h.rank(tenant=tenant)).arm == OFF
                    assert (await h.server.list_contexts(tenant)).killed_everywhere == view
                    assert (await h.server.show_context(tenant, "c")).killed_everywhere == view
                    assert (await h.server.kill(tenant, None, False, "but we want it")) == view
                assert not (await h.server.show_context(T, "c")).killed.on
                assert (await h.server.overview("you")).markers[0].text == "for all tenants: an incident"
                lines = [facts async for facts in h.server.export("you", None)]
                assert [line["why"] for line in lines if line.get("all_tenants")] == ["an incident"]
                await h.restart()
            assert (await h.server.kill(T, "c", True, "ours")).why == "ours"
            assert not (await h.server.kill_all_tenants(False, "over")).on
            assert [h.record(await h.rank(tenant=tenant)).arm for tenant in (T, "you")] == [OFF, EXPLORE]

    run(test())


def test_the_switch_of_all_tenants_holds_here_while_the_store_is_down(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank(tenant="you")
            with store_down(h), pytest.raises(Problem) as caught:
                await h.server.kill_all_tenants(True, "an incident")
            assert caught.value.status == 503
            assert h.record(await h.rank(tenant="you")).arm == OFF

    run(test())


def test_clicks_that_arrive_while_killed_still_count(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank()
            await h.server.kill(T, "c", True, "pause")
            await h.accept(page, page.ranking[0])
            await h.close()
            assert (await h.server.show_context(T, "c")).arms["explore"].clicks == 1

    run(test())


def test_rollback_brings_an_earlier_leader_back_and_forgets_what_came_after(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:
            await teach(h, "b", 60)
            first = await h.server.show_context(T, "c")
            assert first.leader_version > 1 and first.leader[0] == "b"
            version, pairs = first.leader_version, {(p.better, p.worse): p.n for p in first.pairs}
            await teach(h, "c", 200)
            later = await h.server.show_context(T, "c")
            assert later.leader[:2] == ["b", "c"] or later.leader[0] == "c"
            open_page = await h.rank(session_id="s", candidates=["x"])
            view = await h.server.rollback(T, "c", version, "a bad day")
            assert (view.leader, view.leader_version) == (first.leader, later.leader_version + 1)
            assert view.versions[0].cause == "rollback" and view.versions[0].why == "a bad day"
            assert sum(p.n for p in view.pairs) <= sum(pairs.values())
            await h.accept(open_page, open_page.ranking[0])
            assert not (await h.server.impression(T, open_page.impression_id)).counted
            await h.restart()
            assert (await h.server.show_context(T, "c")).leader == first.leader
            again = await h.server.rollback(T, "c", view.leader_version, "to the rollback itself")
            assert again.leader == first.leader
            original = await h.server.rollback(T, "c", 1, "to the beginning")
            assert (original.leader, original.pairs[0].n) == (BASE[:3], 0)
            await teach(h, "c", 30)
            story = await h.server.leader_at(T, "c", str(version))
            assert story.leader == first.leader

    run(test())


def test_a_reset_forgets_what_was_learnt_and_keeps_the_history(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, snapshot_every=20, **QUICK) as h:  # the replay at its end compares
            await teach(h, "b", 60)
            await h.rank("other")
            learnt = await h.server.show_context(T, "c")
            assert learnt.leader[0] == "b"
            open_page = await h.rank(session_id="s", candidates=["x"])
            view = await h.server.reset(T, "c", "a new catalogue")
            assert (view.leader, view.leader_version) == (BASE[:3], learnt.leader_version + 1)
            assert not any(pair.n or pair.decided for pair in view.pairs)
            newest = view.versions[0]
            assert (newest.cause, newest.why) == ("reset", "a new catalogue")
            assert {pair.better for pair in newest.lost} == {"b"} and view.arms == learnt.arms
            await h.accept(open_page, open_page.ranking[0])
            assert not (await h.server.impression(T, open_page.impression_id)).counted
            await h.restart()
            assert (await h.server.show_context(T, "c")).leader == BASE[:3]
            assert (await h.server.overview(T)).markers[-1].kind == "reset"
            await teach(h, "c", 200)
            assert "c" in (await h.server.show_context(T, "c")).leader[:2]
            for version, leader in ((learnt.leader_version, learnt.leader), (view.leader_version, BASE[:3])):
                assert (await h.server.rollback(T, "c", version, "back")).leader == leader
            with pytest.raises(Problem, match="no context 'q'"):
                await h.server.reset(T, "q", "no")

    run(test())


def test_a_reset_forgets_every_page_size(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:
            for k in (2, 3):
                for _ in range(60):
                    page = await h.rank(candidates=[], k=k)
                    await h.accept(page, *(["b"] if "b" in page.ranking else []))
                    await h.later(1)
            await h.server.closer.close_due(everything=True)
            assert h.knowledge().certified.pairs
            view = await h.server.reset(T, "c", "test")
            assert not h.knowledge().certified.pairs
            assert view.versions[0].cause == "reset"

    run(test())


async def set_to(h: House, **settings: object) -> None:
    """Restart the service with other settings."""
    h.settings = structs.replace(h.settings, **settings)
    await h.restart()


DRAW = {"policy": "safe-draw", "rule": "anytime:0.1", "certificate_days": 2.0}


def test_a_reset_takes_the_terms_that_the_service_is_set_to_now(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, certificate_days=0, **QUICK) as h:  # the replay at its end compares
            await teach(h, "b", 60)
            learnt = await h.server.show_context(T, "c")
            told = await h.rank(candidates=["x"])
            await set_to(h, **DRAW)
            kept = await h.server.show_context(T, "c")
            assert (kept.policy, kept.rule, kept.certificate_days) == ("kl-ucb-br", "paper:0.1", 0)
            view = await h.server.reset(T, "c", "the present policy")
            for _ in range(2):
                assert (view.policy, view.rule, view.certificate_days) == ("safe-draw", "anytime:0.1", 2)
                assert (view.leader, view.window_seconds) == (BASE[:3], 1)
                assert h.fold().terms.first_epoch == h.fold().epoch == 1
                await h.restart()
                assert [row.policy for row in (await h.server.list_contexts(T)).contexts] == ["safe-draw"]
                view = await h.server.show_context(T, "c")
            await h.later(1)
            await teach(h, "c", 15)
            page = await h.rank(candidates=["x"])
            assert (h.record(page).policy, h.record(page).arm) == ("safe-draw", EXPLORE)
            assert h.fold().knowledge.pages > 0
            stories = [await h.server.impression(T, shown.impression_id) for shown in (told, page)]
            assert [story.rule for story in stories] == ["paper:0.1", "anytime:0.1"]
            assert learnt.leader_version < view.leader_version
            with pytest.raises(Problem, match="another policy, rule or lifetime") as caught:
                await h.server.rollback(T, "c", learnt.leader_version, "no")
            assert (caught.value.status, caught.value.field) == (404, "version")
            assert f"the oldest version that can be is {view.leader_version}" in str(caught.value)
            assert (await h.server.rollback(T, "c", view.leader_version, "yes")).leader == BASE[:3]

    run(test())


def test_a_reset_gives_a_context_a_trust_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **{**QUICK, **DRAW}) as h:  # the replay at its end compares

            async def changed(trust: float | None) -> int:
                """How many of 100 first pages are not production's after a reset with this trust."""
                view = await h.server.reset(T, "c", "test", trust=trust)
                assert view.trust == (0.977 if trust is None else trust)
                await h.later(1)
                pages = [await h.rank(candidates=["x"]) for _ in range(100)]
                return sum(page.ranking != BASE[:3] for page in pages)

            await h.rank()
            free, usual, sure = await changed(0.5), await changed(None), await changed(0.99)
            assert free > 50 and 35 > usual >= sure
            assert (await h.server.show_context(T, "c")).trust == 0.99
            await h.restart()
            assert (await h.server.show_context(T, "c")).trust == 0.99

    run(test())


def test_a_reset_gives_a_context_a_lifetime_of_certificates_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, certificate_days=14, **QUICK) as h:
            await teach(h, "b", 60)
            await h.rank("other")
            view = await h.server.reset(T, "c", "fast fashion", 0.5)
            assert (view.certificate_days, (await h.server.show_context(T, "other")).certificate_days) == (0.5, 14)
            await h.later(1)
            await teach(h, "b", 60)
            assert (await h.server.show_context(T, "c")).leader[0] == "b"
            h.now = h.fold().terms.opened_at + 86_400_000
            await h.later(1.001)
            await h.rank(candidates=["x"])
            expired = await h.server.show_context(T, "c")
            assert (expired.leader, expired.versions[0].cause) == (BASE[:3], "expired")
            assert expired.versions[0].at == moment(h.fold().terms.opened_at + 86_400_000)
            assert (await h.server.reset(T, "c", "without end", 0)).certificate_days == 0
            assert (await h.server.reset(T, "c", "as set")).certificate_days == 14
            lines = [facts async for facts in h.server.export(T, "c")]
            assert [line["terms"]["lifetime_ms"] for line in lines if line["kind"] == "reset"] == [
                43_200_000, 0, 14 * 86_400_000,
            ]  # fmt: skip

    run(test())


def test_a_rollback_that_a_reset_overtakes_is_left_out(tmp_path: Path) -> None:
    """Another operator's rollback, asked for before the reset was known there, comes after it in the log."""

    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:  # the replay at its end leaves it out as well
            await teach(h, "b", 60)
            await h.server.reset(T, "c", "shorter", 1)
            leader = (await h.server.show_context(T, "c")).leader_version
            body = json.dumps({"version": 2, "why": "late"})
            await h.store.add_operation(T, h.fold().context, OperationKind.ROLLBACK, body)
            await h.server.heartbeat.hear()
            await h.server.closer.close_due(everything=True)
            assert (await h.server.show_context(T, "c")).leader_version == leader
            alarms = await alarms_of(h.store, h.fold().context)
            assert [alarm.kind for alarm in alarms] == ["rollback_refused"]

    run(test())


def test_a_policy_that_cannot_learn_the_items_of_a_context_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with house(tmp_path, **QUICK) as h:
            await h.rank()
            small = replace(policy_kind("bubble-rank"), largest_catalogue=3)
            monkeypatch.setitem(POLICIES, "bubble-rank", small)
            h.server.settings = structs.replace(h.settings, policy="bubble-rank")
            before = len(await h.store.operations(0))
            with pytest.raises(Problem, match="cannot be served by the policy of the settings") as caught:
                await h.server.reset(T, "c", "no")
            assert caught.value.status == 422
            assert len(await h.store.operations(0)) == before

    run(test())


def test_a_version_between_a_rollback_and_a_later_snapshot_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, snapshot_every=10, **QUICK) as h:  # the replay at its end compares
            await teach(h, "b", 60)
            rolled_back = (await h.server.rollback(T, "c", 1, "from the beginning")).leader_version
            await teach(h, "c", 150)
            versions = (await h.server.changes(T, "c")).changes
            between = next(made for made in versions if made.version == rolled_back + 1)
            assert versions[-1].version > between.version
            view = await h.server.rollback(T, "c", between.version, "one step")
            assert view.leader == between.leader
            assert sum(pair.decided for pair in view.pairs) == len(between.evidence)

    run(test())


def test_items_keep_their_numbers_through_a_rollback(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank(candidates=["x"])
            page = await h.rank(candidates=["x", "later"], base_ranking=["later", "a", "b", "c"])
            await h.accept(page, "later")
            await h.server.rollback(T, "c", 1, "test")
            other = await h.rank(candidates=["x", "other"], base_ranking=["other", "a", "b", "c"])
            assert (await h.server.impression(T, page.impression_id)).clicks == ["later"]
            assert (await h.accept(page, "later")).duplicate
            assert "later" not in other.ranking

    run(test())


@pytest.mark.parametrize("version", [0, 2, 10**15])
def test_unknown_versions_and_contexts_are_404(tmp_path: Path, version: int) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await h.rank()
            with pytest.raises(Problem, match="versions 1 to 1") as caught:
                await h.server.rollback(T, "c", version, "no")
            assert (caught.value.status, caught.value.field) == (404, "version")
            with pytest.raises(Problem, match="no context 'q'"):
                await h.server.kill(T, "q", True, "no")

    run(test())


async def contradict(h: House) -> None:
    """Visitors who change their minds: b above a, c above b, then a above c, each by itself beyond doubt."""
    for winner, loser in [("b", "a"), ("c", "b"), ("a", "c")] * 2:
        for _ in range(40):
            page = await h.rank(base_ranking=[loser, winner], candidates=[], k=2)
            await h.accept(page, winner)
            await h.later(1)


def test_a_contradiction_is_an_alarm_and_learning_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, certificate_days=0, **QUICK) as h:
            await contradict(h)
            view = await h.server.show_context(T, "c")
            assert view.alarms["contradiction"] > 0
            assert h.server.counters()["alarms_total"] == view.alarms["contradiction"]
            dropped = [change for change in (await h.server.changes(T, "c")).changes if change.cause == "contradiction"]
            assert dropped and all(change.lost for change in dropped)
            pages, version = h.knowledge().pages, view.leader_version
            assert h.record(await h.rank(base_ranking=["a", "b"], candidates=["c"], k=2)).arm == EXPLORE
            for _ in range(160):  # q is compared on every second page: fewer than 10 wins once in 10^9 runs
                page = await h.rank(base_ranking=["a", "b"], candidates=["q"], k=2)
                await h.accept(page, *(["q"] if "q" in page.ranking else []))
                await h.later(1)
            assert h.knowledge().pages > pages and (await h.server.show_context(T, "c")).leader_version > version

    run(test())


def test_certificates_end_with_the_epoch_after_their_own(tmp_path: Path) -> None:
    """Earned at issue times of one epoch, renewed or not, they hold to the end of the next one, and a window longer."""

    async def test() -> None:
        day = 86_400
        async with house(tmp_path, certificate_days=1, **QUICK) as h:
            await teach(h, "b", 60)
            known = await h.server.show_context(T, "c")
            assert known.leader[0] == "b"
            await h.later(2 * day - h.now / 1000 % day - 2)
            opened = h.fold().terms.opened_at
            h.now = opened + 2 * day * 1000
            assert (await h.rank(candidates=["x"])).leader_version == known.leader_version
            await h.later(1.001)
            expired = await h.rank(candidates=["x"])
            assert expired.leader_version == known.leader_version + 1
            view = await h.server.show_context(T, "c")
            assert (view.leader, view.versions[0].cause) == (BASE[:3], "expired")
            assert {pair.better for pair in view.versions[0].lost} == {"b"}
            await h.restart()
            await teach(h, "c", 60)
            assert (await h.server.show_context(T, "c")).leader[0] == "c"

    run(test())


def test_a_context_may_have_a_mode_and_a_holdout_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:  # the replay at its end compares
            await h.rank()
            view = await h.server.set_context(T, "c", SettingsCall(mode="shadow", why="first look"))
            assert (view.mode, view.settings.mode, view.settings.why) == ("shadow", "shadow", "first look")
            for _ in range(2):
                assert [h.record(await h.rank(name)).arm for name in ("c", "d")] == [SHADOW, EXPLORE]
                assert h.record(await h.rank(mode="live")).arm == EXPLORE  # a call's own mode goes first
                await h.restart()
            await h.server.set_context(T, "c", SettingsCall(holdout_share=0.5, why="compare"))
            records = [h.record(await h.rank(session_id=f"s{number}")) for number in range(40)]
            assert {record.arm for record in records} == {EXPLORE, HOLDOUT}  # all alike: once in 2^39 runs
            assert {record.share for record in records} == {0.5} and h.record(await h.rank("d")).share == 0
            await h.close()
            effect = await h.server.effect(T, "c")
            assert effect.served.pages + effect.holdout.pages == 40 and effect.why_not is None
            back = await h.server.set_context(T, "c", SettingsCall(why="enough"))
            assert (back.mode, back.settings.mode, back.settings.holdout_share) == ("live", None, None)
            texts = [marker.text for marker in (await h.server.overview(T)).markers if marker.kind == "settings"]
            assert texts == ["mode shadow: first look", "holdout_share 0.5: compare", "as the service is set: enough"]
            lines = [facts async for facts in h.server.export(T, "c")]
            assert [line["mode"] for line in lines if line["kind"] == "settings"] == ["shadow", None, None]
            with pytest.raises(Problem, match="no context 'q'"):
                await h.server.set_context(T, "q", SettingsCall(mode="off", why="no"))

    run(test())


def test_the_guardrail_keeps_its_holdout(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.1, guardrail_drop=0.03) as h:
            await h.rank()
            with pytest.raises(Problem, match="without a holdout the guardrail") as caught:
                await h.server.set_context(T, "c", SettingsCall(holdout_share=0.0, why="no"))
            assert (caught.value.status, caught.value.field) == (422, "holdout_share")
            assert (await h.server.set_context(T, "c", SettingsCall(holdout_share=0.3, why="ok"))).settings.why == "ok"
            bare = SettingsCall(holdout_share=0.0, guardrail_drop=0.0, why="a test")
            assert (await h.server.set_context(T, "c", bare)).settings.guardrail_drop == 0
        async with house(tmp_path / "without") as h:
            await h.rank()
            with pytest.raises(Problem, match="without a holdout the guardrail"):
                await h.server.set_context(T, "c", SettingsCall(guardrail_drop=0.1, why="no"))

    run(test())
