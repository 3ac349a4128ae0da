"""Pages with their clicks from the lines of the log."""

import json
from typing import Any

from saferank.service.wire.exports import ExportFormat, lines_of


def page(name: str, minute: int, closes: int, clicks: str) -> dict[str, Any]:
    return {
        "kind": "page", "at": at(minute), "closes_at": at(closes), "impression_id": name, "context": "home",
        "ranking": list("abc"), "clicks": list(clicks), "arm": "explore", "visitor": None, "policy": "p",
        "leader_version": 3,
    }  # fmt: skip


def at(minute: int) -> str:
    return f"2026-03-01T12:{minute:02}:00.000Z"


LINES = [
    {"kind": "opened", "at": at(0), "context": "home"},
    page("one", 0, 10, "ab"),
    page("long", 1, 50, ""),
    page("two", 20, 30, ""),
    {"kind": "version", "at": at(31), "context": "home"},
    page("open", 40, 59, "a"),
]


def converted(form: ExportFormat, now: str) -> list[dict[str, Any]]:
    return [json.loads(line) for facts in LINES for line in lines_of(facts, form, now)]


def test_sessions_have_every_closed_page_once_with_all_its_clicks() -> None:
    pages = {line["impression_id"]: line["clicked"] for line in converted("sessions", at(55))}
    assert pages == {"one": ["a", "b"], "long": [], "two": []}


def test_sessions_tell_arm_and_time_and_may_be_of_one_arm() -> None:
    lines = [*LINES, {**page("held", 5, 9, "c"), "arm": "holdout"}]
    for arm, names in ((None, {"one", "long", "two", "held"}), ("holdout", {"held"}), ("shadow", set())):
        found = [json.loads(line) for facts in lines for line in lines_of(facts, "sessions", at(55), arm)]
        assert {line["impression_id"] for line in found} == names
    assert (found or [json.loads(line) for line in lines_of(lines[-1], "sessions", at(55))])[0].items() >= {
        "arm": "holdout", "issued_at": at(5),
    }.items()  # fmt: skip


def test_ubi_has_a_query_and_an_event_for_every_click() -> None:
    lines = converted("ubi", at(55))
    assert all(set(action) == {"index"} for action in lines[::2])
    documents = lines[1::2]
    assert [document["query_id"] for document in documents if "user_query" in document] == ["one", "long", "two"]
    events = [document for document in documents if "action_name" in document]
    found = [(event["event_attributes"]["object"]["object_id"], event["timestamp"]) for event in events]
    assert found == [("a", at(0)), ("b", at(0))]
    assert events[1]["event_attributes"]["position"] == {"ordinal": {"index": 2}}


def test_events_are_as_they_are() -> None:
    assert converted("events", at(55)) == LINES
