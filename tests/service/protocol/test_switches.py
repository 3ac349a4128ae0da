"""Switches as the fold of operations: kills, stops of the guardrail, and which unkills begin a comparison again."""

import json
from typing import Any

from saferank.service.protocol.switches import InForce, Release, Switches
from saferank.service.settings import Settings
from saferank.service.wire.calls import moment
from saferank.service.wire.views import ContextSettingsView
from saferank.store.contract import ALL_TENANTS, ContextRow, OperationKind, OperationRow

KILL, UNKILL, ROLLBACK, GUARDRAIL, SETTINGS, RESET, RELEASE, TRAFFIC, KEYS, FORGET = OperationKind
ROW = ContextRow(5, "t", "c", "{}", opened_at=100)


def switches(*operations: tuple[OperationKind, int], at: int = 1000) -> Switches:
    """Operations (kind, context) of tenant t, one after the other."""
    made = Switches()
    made.obey(
        OperationRow(number, at + number, "t", context, kind, json.dumps({"why": f"no. {number}", "version": 1}))
        for number, (kind, context) in enumerate(operations, 1)
    )
    return made


def test_a_stop_of_the_guardrail_is_obeyed_like_a_kill() -> None:
    found = switches((GUARDRAIL, 5))
    assert found.is_killed("t", 5) and not found.is_killed("t", 6) and not found.is_killed("u", 7)
    assert switches((GUARDRAIL, 0)).is_killed("t", 6)
    assert not switches((GUARDRAIL, 5), (UNKILL, 5)).is_killed("t", 5)


def test_a_release_is_noted_and_turns_no_switch() -> None:
    release = Release("9.1", "safe-draw", "anytime:1e-5")
    found = Switches()
    assert Switches().release is None
    found.obey([OperationRow(1, 5, ALL_TENANTS, 0, RELEASE, json.dumps(release._asdict()))])
    assert (found.release, found.acknowledged) == (release, 1)
    assert not found.is_killed("t", 5) and not found.everywhere("t").on and found.to_carry_out(ROW, 0) == []


def test_a_switch_that_is_on_keeps_its_reason_and_notes_the_guardrail() -> None:
    switch = switches((KILL, 5), (GUARDRAIL, 5), (GUARDRAIL, 5)).switch("t", 5)
    assert switch is not None and (switch.since, switch.why, switch.guardrail_at) == (1001, "no. 1", 1002)
    switch = switches((GUARDRAIL, 5), (KILL, 5)).switch("t", 5)
    assert switch is not None and (switch.since, switch.guardrail_at) == (1001, 1001)


def test_only_an_unkill_that_ends_a_stop_of_the_guardrail_begins_a_comparison_again() -> None:
    killed = switches((KILL, 5), (UNKILL, 5), (UNKILL, 5))
    assert killed.restarts(ROW, 0) == []
    stopped = switches((GUARDRAIL, 5), (UNKILL, 5), (UNKILL, 5))
    assert [row.number for row in stopped.restarts(ROW, 0)] == [2]
    assert stopped.restarts(ROW, 2) == [] == stopped.restarts(ROW._replace(id=6), 0)
    assert stopped.restarts(ROW, 0, whole=True) == []


def test_a_tenants_unkill_begins_all_comparisons_again_that_were_there() -> None:
    found = switches((GUARDRAIL, 0), (UNKILL, 0))
    assert [row.number for row in found.restarts(ROW, 0, whole=True)] == [2]
    assert found.restarts(ROW._replace(opened_at=2000), 0) == [] == found.restarts(ROW._replace(tenant="u"), 0)


def test_what_is_in_force_is_what_operators_or_else_the_settings_say() -> None:
    service, found = Settings(mode="shadow", holdout_share=0.1, traffic_share=0.5), Switches()
    usual = InForce(stopped=False, mode="shadow", holdout_share=0.1, traffic_share=0.5)
    assert found.in_force(service, "t", 5) == usual
    done: list[tuple[int, OperationKind, dict[str, Any]]] = [
        (5, SETTINGS, {"mode": "live", "holdout_share": 0}),
        (0, TRAFFIC, {"share": 0.7}),
        (5, RESET, {}),
        (6, KILL, {}),
    ]
    for number, (context, kind, body) in enumerate(done, 1):
        found.obey([OperationRow(number, number, "t", context, kind, json.dumps({"why": "a test", **body}))])
    assert found.in_force(service, "t", 5) == InForce(False, "live", holdout_share=0, traffic_share=0.7)
    assert found.in_force(service, "t", 5, obeyed=2).stopped  # what is to be forgotten is still known
    assert not found.in_force(service, "t", 5, obeyed=3).stopped
    assert found.in_force(service, "t", 6) == usual._replace(stopped=True, traffic_share=0.7)
    assert found.in_force(service, "u", 7) == usual


def test_rollbacks_and_restarts_are_carried_out_in_order() -> None:
    found = switches(
        (GUARDRAIL, 0),
        (ROLLBACK, 5),
        (UNKILL, 0),
        (ROLLBACK, 5),
    )
    assert [row.number for row in found.to_carry_out(ROW, 0)] == [2, 3, 4]
    assert [row.number for row in found.to_carry_out(ROW, 2)] == [3, 4]


def test_a_reset_is_carried_out_like_a_rollback_and_switches_nothing_off() -> None:
    found = switches((RESET, 5), (ROLLBACK, 5), (RESET, 6))
    assert not found.is_killed("t", 5)
    assert [row.number for row in found.to_carry_out(ROW, 0)] == [1, 2]
    assert [row.number for row in found.rollbacks(5, 0)] == [2]  # retention keeps pages for these only
    assert found.contexts_undone() == [5, 6]


def test_the_switch_of_all_tenants_goes_before_their_own() -> None:
    found = Switches()
    rows = [(ALL_TENANTS, KILL), ("t", KILL), ("t", UNKILL), ("t", KILL), (ALL_TENANTS, UNKILL)]
    seen = []
    for number, (tenant, kind) in enumerate(rows, 1):
        found.obey([OperationRow(number, number, tenant, 0, kind, json.dumps({"why": f"no. {number}"}))])
        view = found.everywhere("t")
        seen.append((found.is_killed("t", 5), found.is_killed("u", 6), view.why, view.by_operator))
    assert seen == [(True, True, "no. 1", True)] * 4 + [(True, False, "no. 4", False)]
    assert not found.everywhere("u").on


def test_the_newest_settings_of_a_context_hold_and_switch_nothing_off() -> None:
    found = Switches()
    for number, facts in enumerate([("shadow", None), (None, 0.2)], 1):
        body = json.dumps({"why": f"no. {number}", "mode": facts[0], "holdout_share": facts[1]})
        found.obey([OperationRow(number, 10 * number, "t", 5, SETTINGS, body)])
    newest = ContextSettingsView(holdout_share=0.2, since=moment(20), why="no. 2")
    assert found.settings(5) == newest and found.settings(6) == ContextSettingsView()
    assert found.guardrail(5, 0.03) == found.guardrail(6, 0.03) == 0.03
    assert not found.is_killed("t", 5) and found.to_carry_out(ROW, 0) == []
