"""Reading UBI: bulk or plain documents, both spellings of the hits, events anywhere in the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from saferank.logs import LogError, read_log, summarize_log

QUERIES: list[dict[str, Any]] = [
    {"query_id": "1", "user_query": "lamp", "query_response_hit_ids": ["a", "b", "c"], "timestamp": 1},
    {"query_id": "2", "user_query": "lamp", "query_response_object_ids": ["a", "b", "c"]},
    {"query_id": "3", "user_query": "", "query_response_hit_ids": [7, 8]},
    {"query_id": "4", "user_query": "nothing found", "query_response_hit_ids": []},
]


def event(query_id: str, item: object, action: str = "click") -> dict[str, Any]:
    place = {"object": {"object_id": item}, "position": {"ordinal": 1}}
    return {"query_id": query_id, "action_name": action, "timestamp": "2026-03-01T12:00:00Z", "event_attributes": place}


EVENTS = [event("1", "b"), event("1", "b"), event("2", "c"), event("2", "a", "add_to_cart"), event("3", 8)]


def written(path: Path, *documents: object) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path


def bulk(documents: list[dict[str, Any]]) -> list[object]:
    return [line for document in documents for line in ({"index": {"_index": "ubi"}}, document)]


@pytest.mark.parametrize(
    "lines",
    [
        [*QUERIES, *EVENTS],
        [*EVENTS, *QUERIES],
        bulk([*QUERIES, *EVENTS]),
        [{"_index": "ubi", "_source": document} for document in [*QUERIES, *EVENTS]],
    ],
    ids=["documents", "events-first", "bulk", "search-results"],
)
def test_pages_and_their_clicks(tmp_path: Path, lines: list[object]) -> None:
    path = written(tmp_path / "log.ndjson", *lines)
    log = read_log(path, "ubi", queries=5, page_length=None)
    assert log.queries == ("lamp", "(no query)")
    assert log.rankings == (("a", "b", "c"), ("7", "8"))
    assert log.summary.clicks_by_position == (0, 2, 1)
    assert (log.summary.pages, log.summary.stray_clicks, log.summary.bad) == (3, 0, 0)
    assert log.summary.lines == len(lines)
    assert summarize_log(path, "ubi") == log.summary or log.summary.warnings


def test_clicks_without_their_page_are_stray_and_bad_lines_are_counted(tmp_path: Path) -> None:
    lines = [*QUERIES, event("none", "a"), event("1", "z"), {"action_name": "click"}, {"user_query": 5}, 7]
    summary = summarize_log(written(tmp_path / "log.ndjson", *lines), "ubi", max_bad=1)
    assert (summary.pages, summary.clicks, summary.stray_clicks, summary.bad) == (3, 0, 2, 3)
    with pytest.raises(LogError, match="line 7: not an object"):
        summarize_log(tmp_path / "log.ndjson", "ubi")


def test_another_format_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "log.ndjson", *QUERIES)
    with pytest.raises(LogError, match="looks like format ubi"):
        summarize_log(path, "ga4")
