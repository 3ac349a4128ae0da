"""The tables of GA4 and Segment, over the forms in which their events are exported."""

import json
from pathlib import Path
from typing import Any

import pytest

from saferank.logs import read_log, summarize_log

ITEMS = [{"item_id": "b", "item_list_index": 2}, {"item_id": "a", "item_list_index": 1}]
BIG_QUERY = [
    {
        "event_name": name, "user_pseudo_id": "u", "items": items,
        "event_params": [{"key": "page", "value": {"int_value": 1}},
                         {"key": "item_list_id", "value": {"string_value": "lamps", "int_value": None}}],
    }
    for name, items in (("view_item_list", ITEMS), ("page_view", []), ("select_item", [{"item_id": "b"}]))
]  # fmt: skip
MEASUREMENT = [
    {"name": name, "client_id": "u", "params": {"item_list_name": "lamps", "items": items}}
    for name, items in (("view_item_list", ITEMS), ("select_item", [{"item_id": "b"}]))
]
DATA_LAYER = [
    {"event": "view_item_list", "ecommerce": {"item_list_id": "lamps", "items": ITEMS}},
    {"event": "select_item", "ecommerce": {"items": [{"item_id": "b"}]}},
]
SEGMENT: list[dict[str, Any]] = [
    {
        "event": "Product List Viewed", "anonymousId": "u",
        "properties": {"list_id": "lamps", "products": [{"product_id": "b", "position": 2},
                                                        {"product_id": "a", "position": 1}]},
    },
    {"type": "page", "anonymousId": "u"},
    {"event": "Product Clicked", "anonymousId": "u", "properties": {"product_id": "b", "position": 2}},
]  # fmt: skip


def written(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("form", "events"),
    [("ga4", BIG_QUERY), ("ga4", MEASUREMENT), ("ga4", DATA_LAYER), ("segment", SEGMENT)],
    ids=["big-query", "measurement-protocol", "data-layer", "segment"],
)
def test_a_list_and_a_click(tmp_path: Path, form: str, events: list[dict[str, Any]]) -> None:
    log = read_log(written(tmp_path / "log.ndjson", events), form, queries=1, page_length=None)
    assert (log.queries, log.rankings) == (("lamps",), (("a", "b"),))
    assert log.summary.clicks_by_position == (0, 1)
    assert log.summary.bad == log.summary.stray_clicks == 0


def test_a_click_belongs_to_the_newest_list_of_its_user_that_shows_it(tmp_path: Path) -> None:
    def viewed(user: str, name: str, *items: str) -> dict[str, Any]:
        products = [{"product_id": item} for item in items]
        return {"event": "Product List Viewed", "userId": user, "properties": {"list_id": name, "products": products}}

    def clicked(user: str, item: str, **more: str) -> dict[str, Any]:
        return {"event": "Product Clicked", "userId": user, "properties": {"product_id": item, **more}}

    events = [
        viewed("u", "one", "a", "b"), viewed("u", "two", "b", "c"), viewed("v", "one", "a", "b"),
        clicked("u", "a"), clicked("u", "b"), clicked("v", "b"), clicked("u", "b", list_id="one"),
        clicked("w", "a"), clicked("u", "z"),
    ]  # fmt: skip
    log = read_log(written(tmp_path / "log.ndjson", events), "segment", queries=2, page_length=None)
    pages = {
        (log.queries[query], tuple(clicks))
        for query, clicks in zip(log.pages.query.tolist(), log.pages.clicks.tolist(), strict=True)
    }
    assert pages == {("one", (1, 1)), ("two", (1, 0)), ("one", (0, 1))}
    assert log.summary.stray_clicks == 2


def test_events_without_what_they_need_are_bad_lines(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"event": "Product List Viewed", "properties": {"list_id": "x"}},
        {"event": "Product List Viewed", "properties": {"products": [{"product_id": "a"}]}},
        {"event": "Product List Viewed", "properties": {"list_id": "x", "products": [{"name": "a"}]}},
        {"event": "Product Clicked", "properties": {}},
    ]
    summary = summarize_log(written(tmp_path / "log.ndjson", [*SEGMENT, *bad]), "segment", max_bad=1)
    assert (summary.pages, summary.clicks, summary.bad) == (1, 1, 4)
