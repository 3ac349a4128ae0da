"""UBI in this process: what counts, what is ignored by name, what is refused, and every schema-valid body."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.fitting.fit import fit
from saferank.logs import read_log
from saferank.service.http.app import App
from tests.service.house import BASE, House, T, house, run
from tests.service.http.service_in_process import SHOP, Service

NOW = "2026-03-01T12:00:00Z"
COUNTS = {"accepted", "duplicate", "late", "ignored", "refused"}


def client_of(made: House) -> httpx.AsyncClient:
    app = App(made.server)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def event(query_id: str, item: object, action: str = "click", **more: object) -> dict[str, Any]:
    place = {"object": {"object_id": item}, "position": {"ordinal": {"index": 1}}}
    return {"action_name": action, "query_id": query_id, "timestamp": NOW, "event_attributes": place, **more}


def placed(ordinal: object) -> dict[str, Any]:
    return {**event("page", "a"), "event_attributes": {"position": {"ordinal": ordinal}}}


async def post(client: httpx.AsyncClient, path: str, body: object, status: int = 200, key: str = "") -> Any:
    answer = await client.post(path, json=body, headers={"X-API-Key": key} if key else {})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_clicks_count_and_other_actions_are_ignored_by_name(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            page = await made.rank()
            first, second = page.ranking[:2]
            events = [
                event(page.impression_id, first, timestamp=1772366400000),
                event(page.impression_id, first),
                event(page.impression_id, second, "add_to_cart"),
                event("of another service", first),
                event(page.impression_id, "not shown"),
                {"action_name": "hover", "timestamp": NOW},
            ]
            told = await post(client, "/ubi_events", events)
            assert (told["accepted"], told["duplicate"], told["late"]) == (1, 1, 0)
            assert told["ignored"] == {"add_to_cart": 1, "hover": 1}
            assert [(entry["document"], entry["title"], entry["field"]) for entry in told["refused"]] == [
                (3, "Unknown impression", "[3].query_id"),
                (4, "Item not shown", "[4].event_attributes.object.object_id"),
            ]
            assert (await post(client, "/ubi_events", event(page.impression_id, second)))["accepted"] == 1
            await made.close()
            assert (await made.server.show_context(T, "c")).arms["explore"].clicks == 2
            assert (await post(client, "/ubi_events", event(page.impression_id, first)))["late"] == 1

    run(check())


@pytest.mark.parametrize("spelling", ["query_response_hit_ids", "query_response_object_ids"])
def test_a_search_client_gets_its_page_and_reports_it(tmp_path: Path, spelling: str) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            query = {"user_query": "lamp", "client_id": "visitor", "timestamp": NOW, spelling: BASE}
            answer = await post(client, "/ubi_rank", {**query, "query_attributes": {"k": 3, "candidates": ["x"]}})
            assert len(answer["query_response_hit_ids"]) == 3
            assert [hit["_id"] for hit in answer["hits"]["hits"]] == answer["query_response_hit_ids"]
            assert answer["ext"]["ubi"]["query_id"] == answer["query_id"] == answer["query_response_id"]
            shown = {**query, "query_id": answer["query_id"], spelling: answer["query_response_hit_ids"]}
            assert (await post(client, "/ubi_queries", [shown, {"user_query": "no id"}]))["accepted"] == 1
            view = await made.server.show_context(T, "lamp")
            assert (view.base_ranking, view.candidates, view.k) == (BASE, ["x"], 3)
            other = {**shown, spelling: answer["query_response_hit_ids"][::-1]}
            (refused,) = (await post(client, "/ubi_queries", other))["refused"]
            assert (refused["title"], refused["field"]) == ("Other page", spelling)
            unsaid = {"user_query": "lamp", "query_id": answer["query_id"]}
            assert (await post(client, "/ubi_queries", unsaid))["duplicate"] == 1

    run(check())


def test_a_feedback_key_needs_the_token_which_a_setting_says_where_to_find() -> None:
    async def check() -> None:
        service = Service(tenants={"shop": SHOP}, ubi_page_id="event_attributes.token")
        async with service.client() as client:
            named = {"object": {"object_id": "a"}, "token": "token:a.b"}
            token = {"action_name": "click", "timestamp": NOW, "event_attributes": named}
            told = await post(client, "/ubi_events", [token], key="shop-feedback")
            assert told["refused"][0]["title"] == "Item not shown"  # the fake server knows the items a.b only
            guessed = {**token, "event_attributes": {**named, "token": "page"}}
            told = await post(client, "/ubi_events", [guessed], key="shop-feedback")
            assert (told["refused"][0]["status"], told["refused"][0]["field"]) == (403, "[0].event_attributes.token")
            await post(client, "/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"]}, 403, "shop-feedback")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/ubi_events", {"timestamp": NOW}, "action_name"),
        ("/ubi_events", [{"action_name": "click", "timestamp": NOW}, {"action_name": "click"}], "[1].timestamp"),
        ("/ubi_events", {"action_name": "click", "timestamp": "yesterday"}, "timestamp"),
        ("/ubi_events", [7], "[0]"),
        ("/ubi_queries", {"query_id": "1"}, "user_query"),
        ("/ubi_events", {**event("page", True)}, "event_attributes.object.object_id"),
        ("/ubi_events", {**event("page", "a"), "timestamp": 1.5}, "timestamp"),
        ("/ubi_events", [placed(1.5)], "[0].event_attributes.position.ordinal"),
        ("/ubi_events", [placed("first")], "[0].event_attributes.position.ordinal"),
        ("/ubi_events", placed({"index": "first"}), "event_attributes.position.ordinal.index"),
        ("/ubi_events", placed({}), "event_attributes.position.ordinal.index"),
        ("/ubi_rank", {"user_query": "lamp"}, "query_response_hit_ids"),
        ("/ubi_rank", {"user_query": "", "query_response_hit_ids": ["a"]}, "user_query"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a", "b", "a"]}, "query_response_hit_ids[2]"),
        ("/ubi_rank", {"user_query": "q", "query_response_object_ids": ["a", ""]}, "query_response_object_ids[1]"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"], "client_id": ""}, "client_id"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"], "query_id": "\n"}, "query_id"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"], "query_attributes": {"k": 2}},
         "query_attributes.k"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"],
                       "query_attributes": {"candidates": ["a", "x", "x"]}}, "query_attributes.candidates[2]"),
        ("/ubi_rank", {"user_query": "q", "query_response_hit_ids": ["a"], "query_attributes": {"pinned": ["b"]}},
         "query_attributes.pinned[0]"),
    ],
)  # fmt: skip
def test_what_the_schema_forbids_is_refused_by_its_field(path: str, body: object, field: str) -> None:
    async def check() -> None:
        async with Service().client() as client:
            problem = await post(client, path, body, 422)
            assert problem["field"] == field
            assert problem["detail"].startswith(field.partition(".")[0])

    asyncio.run(check())


names = st.text(max_size=8) | st.sampled_from(["click", "view", "a", "b"])
moments = st.datetimes().map(lambda when: when.isoformat() + "Z") | st.integers(0, 10**13)
ids = names | st.integers()
positions = st.fixed_dictionaries(
    {}, optional={"ordinal": st.integers(1, 9) | st.fixed_dictionaries({"index": st.integers(1, 9)})}
)
attributes = st.fixed_dictionaries(
    {"position": positions}, optional={"object": st.fixed_dictionaries({"object_id": ids}), "more": names}
)
events = st.fixed_dictionaries(
    {"action_name": names, "timestamp": moments},
    optional={"query_id": names, "client_id": names, "application": names, "event_attributes": attributes},
)
queries = st.fixed_dictionaries(
    {"user_query": names},
    optional={
        "query_id": names, "client_id": names, "timestamp": moments, "query_response_id": names,
        "query_response_hit_ids": st.lists(names, max_size=4), "query_response_object_ids": st.lists(ids, max_size=4),
        "query_attributes": st.dictionaries(st.sampled_from(["page", "filter"]), names),
    },
)  # fmt: skip
BODIES = {
    "/ubi_events": events | st.lists(events, max_size=3),
    "/ubi_queries": queries | st.lists(queries, max_size=3),
    "/ubi_rank": queries,
}


@pytest.mark.parametrize("path", BODIES)
def test_every_schema_valid_body_gets_an_answer_or_a_problem_that_names_the_field(tmp_path: Path, path: str) -> None:
    examples: list[Any] = []

    @settings(max_examples=80, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(BODIES[path])
    def collect(body: Any) -> None:
        examples.append(body)

    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            for body in examples:
                answer = await client.post(path, json=body)
                if answer.status_code == 200 and path != "/ubi_rank":
                    assert set(answer.json()) == COUNTS
                    for refused in answer.json()["refused"]:
                        assert is_path(body, refused["field"]), (body, refused)
                elif answer.status_code == 200:
                    assert answer.json()["query_id"] and answer.json()["query_response_hit_ids"]
                else:
                    assert answer.status_code == 422 and is_path(body, answer.json()["field"]), (body, answer.text)

    collect()
    run(check())


MISSING = {"query_id", "event_attributes.object.object_id", "object.object_id", "query_response_hit_ids"}
"""What may be missing in a document that is valid, but is needed for a report or a page."""


def is_path(body: Any, field: str) -> bool:
    """True when a field is in the body, or is one of those that are missing there."""
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", field)
    for number, (place, name) in enumerate(parts):
        if place:
            if not isinstance(body, list) or int(place) >= len(body):
                return False
            body = body[int(place)]
        elif not isinstance(body, dict) or name not in body:
            return isinstance(body, dict) and ".".join(name for _, name in parts[number:]) in MISSING
        else:
            body = body[name]
    return bool(parts)


def test_round_trip_queries_and_events_in_leader_moves_export_fit_reads_it(tmp_path: Path) -> None:
    """Everybody clicks c and nothing else: c rises from third to first, and a fit of the export knows why."""

    async def check() -> None:
        async with house(tmp_path / "store", rule="anytime:1e-2") as made, client_of(made) as client:
            for visitor in range(200):
                query = {
                    "user_query": "lamp", "client_id": f"v{visitor}", "query_response_hit_ids": BASE,
                    "query_attributes": {"k": 4},
                }  # fmt: skip
                page = await post(client, "/ubi_rank", query)
                shown = {"query_id": page["query_id"], "query_response_hit_ids": page["query_response_hit_ids"]}
                await post(client, "/ubi_queries", {**query, **shown})
                await post(client, "/ubi_events", [event(page["query_id"], "c"), event(page["query_id"], "c", "view")])
                if visitor % 20 == 19:
                    await made.close()
            await made.close()
            view = await made.server.show_context(T, "lamp")
            assert view.leader[0] == "c" and view.arms["explore"].clicks == 200
            for form in ("ubi", "sessions"):
                answer = await client.get("/v1/export", params={"format": form})
                (tmp_path / form).write_bytes(answer.content)

    run(check())
    for form in ("ubi", "sessions"):
        log = read_log(tmp_path / form, form, queries=1, page_length=None)
        assert (log.summary.pages, log.summary.clicks, log.summary.bad) == (200, 200, 0)
        (instance,) = fit(tmp_path / form, form, ["pbm"], 1, replicates=0, iterations=5).instances
        attraction = dict(zip(instance.items, instance.model.attraction, strict=True))
        assert max(attraction, key=lambda item: attraction[item]) == "c"
