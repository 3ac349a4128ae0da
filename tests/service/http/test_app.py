"""Requests and refusals, through the whole application with a fake server behind it."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from saferank.service.calls.export import Bounds
from saferank.service.http.app import SWITCHES_A_SECOND, SWITCHES_AT_ONCE
from saferank.service.http.endpoints import LARGEST_BROWSER_BODY
from saferank.service.http.limits import TenantLimits
from saferank.service.keys import hashed
from saferank.service.wire.calls import CallBody, FeedbackCall, ForgetCall, RankAnswer, RankCall, decoded
from saferank.service.wire.problems import Problem
from saferank.store.contract import StoreUnavailableError
from tests.service.http.service_in_process import BANK, RANK, SHOP, Service
from tests.service.http.test_connections import Guarded

KEYS: dict[str, Any] = {"tenants": {"shop": SHOP, "bank": BANK}}
FEEDBACK = {"token": "token:a,b", "clicks": ["a"]}


def talk(service: Service, dialogue: Callable[[httpx.AsyncClient], Awaitable[Any]], **options: str) -> Any:
    async def run() -> Any:
        async with service.client(**options) as client:
            return await dialogue(client)

    return asyncio.run(run())


def post(
    service: Service, path: str, body: Any, headers: dict[str, str] | None = None, **options: str
) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", **(headers or {})}
    answer: httpx.Response = talk(service, lambda client: client.post(path, content=content, headers=given), **options)
    return answer


def get(service: Service, path: str, headers: dict[str, str] | None = None, **options: str) -> httpx.Response:
    answer: httpx.Response = talk(service, lambda client: client.get(path, headers=headers), **options)
    return answer


def refused(answer: httpx.Response, status: int, field: str | None = None, saying: str = "") -> None:
    """The answer is a complete problem that says what it should."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    body = answer.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:saferank:problem:")
    assert body.get("field") == field, body
    assert saying in body["detail"], body


def test_rank_gives_the_page() -> None:
    answer = post(Service(), "/v1/rank", RANK)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["ranking"] == ["a", "b"]
    assert "explanation" not in answer.json()
    assert answer.json()["safety"] == {"swaps": 0, "explored": None, "allowance_ok": True}


def test_explanation_is_there_when_asked_for() -> None:
    assert post(Service(), "/v1/rank", {**RANK, "explain": True}).json()["explanation"]["arm"] == "off"


@pytest.mark.parametrize(
    ("path", "call"),
    [("/v1/overview", "overview"), ("/v1/contexts", "list_contexts"), ("/v1/feedback", "feedback")],
)
def test_while_the_store_does_not_answer_callers_are_told_so_and_not_where_it_is(path: str, call: str) -> None:
    async def down(*_: object) -> None:
        raise StoreUnavailableError("postgresql://shop@db/rankings: connection refused")

    service = Service()
    setattr(service.server, call, down)
    answer = post(service, path, FEEDBACK) if call == "feedback" else get(service, path)
    refused(answer, 503, None, "the store does not answer at present")
    assert answer.headers["retry-after"] == "1"
    assert "db" not in answer.text


def test_feedback_alone_and_in_a_batch() -> None:
    service = Service()
    assert post(service, "/v1/feedback", FEEDBACK).json()["accepted"] is True
    batch = {"batch": [FEEDBACK, {"token": "forged", "clicks": []}, {"token": "token:a", "clicks": ["z"]}]}
    answer = post(service, "/v1/feedback", batch)
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert results[0]["accepted"] is True
    assert (results[1]["status"], results[2]["status"], results[2]["field"]) == (401, 422, "clicks[0]")


@pytest.mark.parametrize(
    ("change", "field", "saying"),
    [
        ({"context": ""}, "context", "must not be empty"),
        ({"context": "a\x00b"}, "context", "control"),
        ({"context": "line\nfeed"}, "context", "control"),
        ({"context": "a\n"}, "context", "control"),
        ({"context": "c" * 257}, "context", "256"),
        ({"context": 7}, "context", "text"),
        ({"context": None}, "context", "text"),
        ({"base_ranking": []}, "base_ranking", "must not be empty"),
        ({"base_ranking": ["a", "b", "a"]}, "base_ranking[2]", "twice"),
        ({"base_ranking": ["a", "b", 3]}, "base_ranking[2]", "text"),
        ({"base_ranking": "abc"}, "base_ranking", "list"),
        ({"base_ranking": {"a": 1}}, "base_ranking", "list"),
        ({"candidates": ["x", ""]}, "candidates[1]", "empty"),
        ({"candidates": [["x"]]}, "candidates[0]", "text"),
        ({"k": 4}, "k", "more than the 3 items"),
        ({"k": 0}, "k", "at least 1"),
        ({"k": 101}, "k", "at most 100"),
        ({"k": "2"}, "k", "whole number"),
        ({"k": True}, "k", "whole number"),
        ({"k": 1.5}, "k", "whole number"),
        ({"mode": "on"}, "mode", "'live', 'shadow' or 'off'"),
        ({"explain": 1}, "explain", "true or false"),
        ({"Context": "x"}, "Context", "not a field"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(change: dict[str, Any], field: str, saying: str) -> None:
    service = Service()
    refused(post(service, "/v1/rank", {**RANK, **change}), 422, field, saying)
    assert service.server.seen == []


def test_a_missing_field_is_named() -> None:
    refused(post(Service(), "/v1/rank", {"context": "c", "k": 1}), 422, "base_ranking", "missing")


def test_whole_numbers_may_be_written_with_a_point() -> None:
    assert post(Service(), "/v1/rank", json.dumps(RANK).replace('"k": 2', '"k": 2.0').encode()).status_code == 200


def test_lists_are_bounded_by_the_setting() -> None:
    refused(post(Service(max_items=2), "/v1/rank", RANK), 422, "base_ranking", "at most 2")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"token": None}, "token"),
        ({"impression_id": "page"}, "token"),
        ({"clicks": ["a", "a"]}, "clicks[1]"),
        ({"clicks": "a"}, "clicks"),
        ({"clicks": ["z"]}, "clicks[0]"),
        ({"event_id": ""}, "event_id"),
    ],
)
def test_wrong_feedback_is_named(change: dict[str, Any], field: str) -> None:
    refused(post(Service(), "/v1/feedback", {**FEEDBACK, **change}), 422, field)


def test_a_wrong_entry_of_a_batch_refuses_the_batch() -> None:
    service = Service()
    refused(post(service, "/v1/feedback", {"batch": [FEEDBACK, {"token": "t"}]}), 422, "batch[1].clicks", "missing")
    refused(post(service, "/v1/feedback", {"batch": []}), 422, "batch", "batch must not be empty")
    refused(post(service, "/v1/feedback", {"batch": [FEEDBACK], "x": 1}), 422, "x")
    refused(post(service, "/v1/feedback", {"batch": [FEEDBACK] * 1001}), 422, "batch", "1000")
    event = {"action_name": "click", "timestamp": 0}
    refused(post(service, "/ubi_events", [event] * 1001), 422, None, "at most 1000 entries")
    assert service.server.seen == []


def test_a_refusal_of_the_server_is_the_answer() -> None:
    answer = post(Service(), "/v1/feedback", {**FEEDBACK, "token": "forged"})
    refused(answer, 401, "token")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_content_type_must_be_json() -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", ""):
        refused(post(Service(), "/v1/rank", RANK, {"content-type": kind}), 415)
    refused(post(Service(), "/v1/rank", RANK, {"content-encoding": "gzip"}), 415)
    assert post(Service(), "/v1/rank", RANK, {"content-type": "application/json; charset=UTF-8"}).status_code == 200


def test_a_body_that_is_declared_too_large_is_refused_unread() -> None:
    refused(post(Service(max_body_bytes=1000), "/v1/rank", b"x" * 1001), 413, None, "1000 bytes")
    assert post(Service(max_body_bytes=1000), "/v1/rank", json.dumps(RANK).ljust(1000).encode()).status_code == 200


def test_a_key_that_stands_in_web_pages_sends_less() -> None:
    service = Service(**KEYS)
    body = json.dumps(FEEDBACK).ljust(LARGEST_BROWSER_BODY + 1).encode()
    for path in ("/v1/feedback", "/ubi_events"):
        refused(post(service, path, body, {"x-api-key": "shop-feedback"}), 413, None, f"{LARGEST_BROWSER_BODY} bytes")
    assert post(service, "/v1/feedback", body, {"x-api-key": "shop-rank"}).status_code == 200


def test_unknown_paths_and_methods() -> None:
    refused(get(Service(), "/v2/rank"), 404)
    answer = get(Service(), "/v1/rank")
    refused(answer, 405, None, "POST")
    assert answer.headers["allow"] == "POST"


def test_a_fault_is_told_without_its_insides_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    service.server.fault = RuntimeError("secret inside")
    for answer in (post(service, "/v1/rank", RANK), get(service, "/v1/contexts")):
        refused(answer, 500)
        assert "secret" not in answer.text
    assert len([record for record in caplog.records if record.exc_info]) == 2


def test_every_answer_has_security_headers_and_a_request_id() -> None:
    for answer in (get(Service(), "/healthz"), get(Service(), "/nowhere"), post(Service(), "/v1/rank", RANK)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert len(answer.headers["x-request-id"]) == 16
    assert get(Service(), "/healthz", {"x-request-id": "mine"}).headers["x-request-id"] == "mine"


# --- keys ---


def test_keys_are_needed_and_tell_the_tenant() -> None:
    service = Service(**KEYS)
    answer = post(service, "/v1/rank", RANK)
    refused(answer, 401)
    assert answer.headers["www-authenticate"] == 'Bearer realm="saferank"'
    refused(post(service, "/v1/rank", RANK, {"authorization": "Bearer wrong"}), 401)
    refused(post(service, "/v1/rank", RANK, {"authorization": "Basic shop-rank"}), 401)
    assert post(service, "/v1/rank", RANK, {"authorization": "bearer shop-rank"}).status_code == 200
    assert post(service, "/v1/rank", RANK, {"x-api-key": "bank-rank"}).status_code == 200
    assert [tenant for tenant, _ in service.server.seen] == ["shop", "bank"]


def test_a_feedback_key_can_send_feedback_with_tokens_and_nothing_else() -> None:
    service, key = Service(**KEYS), {"authorization": "Bearer shop-feedback"}
    assert post(service, "/v1/feedback", FEEDBACK, key).status_code == 200
    refused(post(service, "/v1/feedback", {"impression_id": "page", "clicks": []}, key), 403, "impression_id")
    batch = {"batch": [FEEDBACK, {"impression_id": "page", "clicks": []}]}
    refused(post(service, "/v1/feedback", batch, key), 403, "batch[1].impression_id")
    refused(post(service, "/v1/rank", RANK, key), 403)
    refused(post(service, "/v1/kill", {"on": True, "why": "x"}, key), 403)
    for path in ("/v1/contexts", "/v1/contexts/c", "/v1/contexts/c/leader", "/v1/contexts/c/changes",
                 "/v1/impressions/i", "/v1/export"):  # fmt: skip
        refused(get(service, path, key), 403)
        refused(get(service, path), 401)
    assert len(service.server.seen) == 1


def test_a_key_opens_what_its_role_needs_and_no_more() -> None:
    service, switch = Service(**KEYS), {"on": True, "why": "x"}
    calls = {
        "rank": post(service, "/v1/rank", RANK, {"x-api-key": "shop-operate"}),
        "feedback": post(service, "/v1/feedback", FEEDBACK, {"x-api-key": "shop-read"}),
        "read": get(service, "/v1/overview", {"x-api-key": "shop-rank"}),
        "operate": post(service, "/v1/kill", switch, {"x-api-key": "shop-read"}),
    }
    for role, answer in calls.items():
        refused(answer, 403, saying=f"key of role {role}")
    for path in ("/v1/contexts/c/reset", "/v1/contexts/c/rollback", "/v1/contexts/c/settings", "/v1/traffic"):
        refused(post(service, path, switch, {"x-api-key": "shop-rank"}), 403)
    for path in ("/v1/overview", "/v1/contexts", "/v1/export"):
        for role in ("read", "operate"):
            assert get(service, path, {"x-api-key": f"shop-{role}"}).status_code == 200
    assert post(service, "/v1/kill", switch, {"x-api-key": "shop-operate"}).status_code == 200


def test_what_an_operator_does_is_logged_with_the_name_of_the_key_and_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    headers = {"x-api-key": "shop-operate", "x-request-id": "mine"}
    post(Service(**KEYS), "/v1/contexts/c/kill", {"on": True, "why": "x"}, headers)
    (record,) = [record for record in caplog.records if record.getMessage() == "operator action"]
    facts = record.saferank_fields  # type: ignore[attr-defined]
    assert facts == {
        "actor": f"operate {hashed('shop-operate')[7:15]}", "tenant": "shop", "request_id": "mine",
        "path": "/v1/contexts/c/kill",
    }  # fmt: skip


def test_metrics_are_open_to_this_machine_only() -> None:
    service = Service(**KEYS)
    assert get(service, "/metrics").status_code == 200
    refused(get(service, "/metrics", address="192.0.2.7"), 401)
    refused(get(service, "/metrics", {"x-forwarded-for": "192.0.2.7"}), 401)
    assert get(service, "/metrics", {"x-api-key": "shop-read"}, address="192.0.2.7").status_code == 200
    assert get(service, "/healthz", address="192.0.2.7").status_code == 200


def test_without_keys_a_foreign_host_name_is_refused() -> None:
    refused(get(Service(), "/v1/contexts", host="attacker.example"), 421)
    for host in ("127.0.0.1:8080", "localhost:1", "[::1]:80", "[::1]"):
        assert get(Service(), "/v1/contexts", host=host).status_code == 200
    assert get(Service(**KEYS), "/v1/contexts", {"x-api-key": "shop-read"}, host="shop.example").status_code == 200


# --- reading and acting ---


def test_names_of_contexts_may_contain_anything() -> None:
    service = Service()
    for name in ("a/b", "x/leader", "50% off?", "grün & rot", "#1", "a b+c", "%2F"):
        answer = get(service, f"/v1/contexts/{quote(name, safe='')}")
        assert answer.json()["name"] == name
    refused(get(service, "/v1/contexts/unknown/leader"), 404, "context")
    refused(get(service, "/v1/contexts/%00"), 422, "context")
    refused(get(service, "/v1/contexts/%ff"), 422, "context", "UTF-8")


def test_switches() -> None:
    service = Service()
    assert post(service, "/v1/kill", {"on": True, "why": "test"}).json() == {
        "on": True, "since": "2026-03-01T12:00:00.000Z", "why": "test", "by_operator": False,
    }  # fmt: skip
    assert post(service, "/v1/contexts/c/kill", {"on": False, "why": "test"}).json()["on"] is False
    assert post(service, "/v1/contexts/c/rollback", {"version": 0, "why": "test"}).json()["name"] == "c"
    assert post(service, "/v1/contexts/c/reset", {"why": "test"}).json()["name"] == "c"
    for days in (0, 0.5, 3650):
        assert post(service, "/v1/contexts/c/reset", {"why": "test", "certificate_days": days}).status_code == 200
        assert service.server.seen[-2][1] == ("test", days, None)
    for trust in (0.5, 0.99):
        assert post(service, "/v1/contexts/c/reset", {"why": "test", "trust": trust}).status_code == 200
        assert service.server.seen[-2][1] == ("test", None, trust)
    for wrong in (0.4, 1, "0.9", True):
        refused(post(service, "/v1/contexts/c/reset", {"why": "test", "trust": wrong}), 422, "trust")
    for wrong in (-1, 3651, "7", True):
        refused(
            post(service, "/v1/contexts/c/reset", {"why": "test", "certificate_days": wrong}), 422, "certificate_days"
        )
    refused(post(service, "/v1/contexts/unknown/kill", {"on": True, "why": "test"}), 404, "context")
    refused(post(service, "/v1/contexts/unknown/reset", {"why": "test"}), 404, "context")
    refused(post(service, "/v1/contexts/c/reset", {}), 422, "why")


def test_settings_of_a_context() -> None:
    service, path = Service(), "/v1/contexts/c/settings"
    for body in ({"mode": "shadow"}, {"holdout_share": 0.2}, {"mode": "live", "holdout_share": 0}, {}):
        assert post(service, path, {**body, "why": "test"}).json()["name"] == "c"
    for wrong, field in (({"mode": "on"}, "mode"), ({"holdout_share": 0.6}, "holdout_share"),
                         ({"holdout_share": "0.1"}, "holdout_share"), ({"policy": "x"}, "policy")):  # fmt: skip
        refused(post(service, path, {**wrong, "why": "test"}), 422, field)
    refused(post(service, path, {"mode": "off"}), 422, "why")
    refused(post(service, "/v1/contexts/unknown/settings", {"why": "test"}), 404, "context")


def test_calls_of_operators_are_checked() -> None:
    service = Service()
    refused(post(service, "/v1/kill", {"on": "yes", "why": "test"}), 422, "on")
    refused(post(service, "/v1/kill", {"on": True, "why": ""}), 422, "why")
    refused(post(service, "/v1/contexts/c/rollback", {"version": -1, "why": "test"}), 422, "version")


def test_all_tenants_are_switched_off_with_an_operator_key_only() -> None:
    service, path, body = (
        Service(**KEYS, operator_keys=(hashed("boss"),)),
        "/v1/operator/kill",
        {"on": True, "why": "x"},
    )
    for headers, status in (({}, 401), ({"x-api-key": "who"}, 401), ({"x-api-key": "shop-rank"}, 403),
                            ({"x-api-key": "shop-feedback"}, 403)):  # fmt: skip
        refused(post(service, path, body, headers), status)
    assert service.server.seen == []
    answer = post(service, path, body, {"authorization": "Bearer boss"})
    assert (answer.status_code, answer.json()["by_operator"]) == (200, True)
    assert service.server.seen == [("", (True, "x"))]
    refused(post(service, path, {"on": 1, "why": "x"}, {"x-api-key": "boss"}), 422, "on")
    for other in ("/v1/rank", "/v1/kill"):  # it opens nothing else
        refused(post(service, other, RANK, {"x-api-key": "boss"}), 401)


def test_without_operator_keys_nobody_switches_off_all_tenants_unless_there_are_no_keys_at_all() -> None:
    path, body = "/v1/operator/kill", {"on": True, "why": "x"}
    refused(post(Service(**KEYS), path, body, {"x-api-key": "shop-rank"}), 403, saying="saferank keys operator")
    refused(post(Service(**KEYS), path, body), 403, saying="operator_keys")
    assert post(Service(), path, body).status_code == 200
    refused(post(Service(), path, body, host="attacker.example"), 421)
    refused(post(Service(operator_keys=(hashed("boss"),)), path, body), 403)


def test_export_is_lines_of_json() -> None:
    answer = get(Service(), "/v1/export?cursor=start")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["seq"] for line in answer.text.splitlines()] == [1, 2]
    refused(get(Service(), "/v1/export?context=unknown"), 404, "context")
    assert answer.headers["x-saferank-cursor"] == Bounds(1, 7).cursor
    assert "x-saferank-cursor" not in get(Service(), "/v1/export").headers
    refused(get(Service(), "/v1/export?context=%00"), 422, "context")


def test_a_refusal_is_a_sentence_that_begins_with_its_field() -> None:
    one = "token or impression_id must be given, and only one of them;"
    cases: list[tuple[dict[str, Any], type[CallBody], str]] = [
        ({**RANK, "base_ranking": []}, RankCall, "base_ranking must not be empty"),
        ({"clicks": []}, FeedbackCall, f"{one} neither is"),
        ({"clicks": [], "token": "t", "impression_id": "i"}, FeedbackCall, f"{one} both are"),
        ({"why": "x"}, ForgetCall, "session_id or source must be given"),
    ]
    for body, kind, sentence in cases:
        with pytest.raises(Problem, match=f": {sentence}$"):
            decoded(json.dumps(body).encode(), kind)


def test_a_slip_in_the_query_is_not_answered_with_everything() -> None:
    refused(get(Service(), "/v1/export?format=sessions&arms=holdout"), 422, "arms", "not a field of this call")
    refused(get(Service(), "/v1/export?since=2026-03-01"), 422, "since")
    refused(get(Service(), "/v1/export?arm=holdout"), 422, "arm", "sessions and ubi can be of one")
    refused(get(Service(), "/v1/contexts/home/leader?version=3"), 422, "version")


def test_ready_tells_why_not() -> None:
    service = Service()
    assert get(service, "/readyz").json()["status"] == "ok"
    service.server.reason = "the disk is full"
    answer = get(service, "/readyz")
    refused(answer, 503, None, "the disk is full")
    assert answer.headers["retry-after"] == "1"


# --- limits ---


def test_a_tenant_that_sends_too_much_is_told_when_to_come_back() -> None:
    service = Service(tenant_rate=0.001, tenant_burst=2, **KEYS)
    key = {"x-api-key": "shop-rank"}
    assert [post(service, "/v1/rank", RANK, key).status_code for _ in range(2)] == [200, 200]
    answer = post(service, "/v1/rank", RANK, key)
    refused(answer, 429, None, "try again")
    assert int(answer.headers["retry-after"]) > 900
    refused(get(service, "/v1/contexts", {"x-api-key": "shop-read"}), 429)
    assert post(service, "/v1/rank", RANK, {"x-api-key": "bank-rank"}).status_code == 200


def test_more_at_a_time_than_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(max_in_flight=2)

    async def dialogue(client: httpx.AsyncClient) -> list[int]:
        gate = _held_rank_calls(service, monkeypatch)
        held = [asyncio.create_task(client.post("/v1/rank", json=RANK)) for _ in range(2)]
        while service.app.in_flight() < 2:
            await asyncio.sleep(0)
        over = (await client.post("/v1/rank", json=RANK)).status_code
        other = (await client.get("/v1/contexts")).status_code
        alive = (await client.get("/healthz")).status_code
        gate.set()
        after = [(await task).status_code for task in held]
        return [over, other, alive, *after, (await client.get("/v1/contexts")).status_code]

    assert talk(service, dialogue) == [503, 200, 200, 200, 200, 200]


def _held_rank_calls(service: Service, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Rank calls are answered when the event is set."""
    gate, rank = asyncio.Event(), service.server.rank

    async def held(tenant: str, call: RankCall) -> RankAnswer:
        await gate.wait()
        return await rank(tenant, call)

    monkeypatch.setattr(service.server, "rank", held)
    return gate


@pytest.mark.parametrize("path", ["/v1/rank", "/v1/feedback", "/v1/beacon", "/v1/kill"])
def test_bodies_that_do_not_end_keep_nobody_out(path: str) -> None:
    service = Service(max_in_flight=1)

    async def dialogue(client: httpx.AsyncClient) -> list[int]:
        gate = asyncio.Event()

        async def body() -> Any:
            yield b"{"
            await gate.wait()
            yield b"}"

        async def slow() -> int:
            headers = {"content-type": "application/json"}
            return (await client.post(path, content=body(), headers=headers)).status_code

        tasks = [asyncio.create_task(slow()) for _ in range(20)]
        for _ in range(500):  # some of the work before the body is read is done in threads
            await asyncio.sleep(0.01)
            if service.app.in_flight() == 0:
                break
        assert service.app.in_flight() == 0
        found = [(await client.get("/v1/contexts")).status_code, (await client.post("/v1/rank", json=RANK)).status_code]
        found += [(await client.post(each, json=FEEDBACK)).status_code for each in ("/v1/feedback", "/v1/beacon")]
        gate.set()
        assert {await task for task in tasks} <= {400, 422}  # the body lacks everything
        assert service.app.in_flight() == 0
        return found

    assert talk(service, dialogue) == [200, 200, 200, 200]


def test_a_body_that_is_whole_needs_a_place_unless_it_is_a_kill_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(max_in_flight=1)

    async def dialogue(client: httpx.AsyncClient) -> list[int]:
        gate, sent = _held_rank_calls(service, monkeypatch), asyncio.Event()

        async def late(content: Any) -> Any:
            await sent.wait()
            yield json.dumps(content).encode()

        def post_late(path: str, content: Any) -> "asyncio.Task[httpx.Response]":
            headers = {"content-type": "application/json"}
            return asyncio.create_task(client.post(path, content=late(content), headers=headers))

        tasks = [post_late("/v1/rank", RANK), post_late("/v1/kill", {"on": True, "why": "now"})]
        for _ in range(20):
            await asyncio.sleep(0)
        working = asyncio.create_task(client.post("/v1/rank", json=RANK))
        while service.app.in_flight() < 1:
            await asyncio.sleep(0)
        sent.set()
        found = [(await task).status_code for task in tasks]
        gate.set()
        return [*found, (await working).status_code]

    assert talk(service, dialogue) == [503, 200, 200]


def test_the_kill_switch_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(max_in_flight=1)
    monkeypatch.setattr(service.app.lag, "is_behind", lambda: True)
    refused(post(service, "/v1/rank", RANK), 503)
    for path in ("/v1/kill", "/v1/contexts/home/kill", "/v1/operator/kill"):
        assert post(service, path, {"on": True, "why": "now"}).status_code == 200


def test_the_kill_switch_is_not_refused_for_the_rate_of_its_tenant() -> None:
    service, key = Service(tenants={"shop": SHOP}, tenant_rate=0.001, tenant_burst=1), {"x-api-key": "shop-rank"}
    operate = {"x-api-key": "shop-operate"}
    assert post(service, "/v1/rank", RANK, key).status_code == 200
    refused(post(service, "/v1/rank", RANK, key), 429)
    for path in ("/v1/kill", "/v1/contexts/home/kill"):
        for on in (True, False):
            assert post(service, path, {"on": on, "why": "now"}, operate).status_code == 200
        refused(post(service, path, {"on": True, "why": "now"}, {"x-api-key": "shop-feedback"}), 403)
    refused(post(service, "/v1/contexts/home/reset", {"why": "now"}, operate), 429)
    assert [get(service, path).status_code for path in ("/healthz", "/readyz")] == [200] * 2


def test_feedback_keys_send_small_bodies_and_are_charged_before_anything_is_read() -> None:
    service = Service(tenants={"shop": SHOP}, tenant_rate=0.001, tenant_burst=4)
    report = {"token": "token:a", "clicks": ["a"]}
    large = {"batch": [{**report, "token": "t" * 100_000} for _ in range(3)]}
    refused(post(service, "/v1/feedback", large, {"x-api-key": "shop-feedback"}), 413)
    assert post(service, "/v1/feedback", large, {"x-api-key": "shop-rank"}).status_code == 200
    refused(post(service, "/v1/feedback", {"nonsense": 1}, {"x-api-key": "shop-feedback"}), 429)


def test_every_document_of_a_list_counts_in_the_rate_of_its_tenant() -> None:
    event = {"action_name": "view", "timestamp": 0}
    for path, body in (("/v1/feedback", {"batch": [FEEDBACK] * 4}), ("/ubi_events", [event] * 4)):
        service = Service(tenant_rate=0.001, tenant_burst=4)
        assert post(service, path, body).status_code == 200
        refused(post(service, path, body), 429, None, "try again")


def test_an_event_loop_that_is_behind_takes_no_new_work(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    assert get(service, "/v1/contexts").status_code == 200
    monkeypatch.setattr(service.app.lag, "is_behind", lambda: True)
    for answer in (get(service, "/v1/contexts"), post(service, "/v1/rank", RANK)):
        refused(answer, 503)
        assert answer.headers["retry-after"] == "1"
    assert [get(service, path).status_code for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3


def test_a_service_that_stops_takes_nothing_new() -> None:
    service = Service()
    service.app.stopping = True
    refused(post(service, "/v1/rank", RANK), 503)
    refused(get(service, "/readyz"), 503)
    assert get(service, "/healthz").status_code == 200


# --- browsers ---


def test_feedback_from_named_origins() -> None:
    service = Service(cors_origins=("https://shop.example",))
    here = {"origin": "https://shop.example"}
    assert post(service, "/v1/feedback", FEEDBACK, here).headers["access-control-allow-origin"] == here["origin"]
    elsewhere = post(service, "/v1/feedback", FEEDBACK, {"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in elsewhere.headers
    assert "access-control-allow-origin" not in post(service, "/v1/rank", RANK, here).headers

    def preflight(origin: str, path: str = "/v1/feedback") -> httpx.Response:
        asked = {"origin": origin, "access-control-request-method": "POST"}
        answer: httpx.Response = talk(service, lambda client: client.options(path, headers=asked))
        return answer

    allowed = preflight("https://shop.example")
    assert (allowed.status_code, allowed.headers["access-control-allow-methods"]) == (204, "POST")
    assert "x-api-key" in allowed.headers["access-control-allow-headers"]
    refused(preflight("https://evil.example"), 405)
    refused(preflight("https://shop.example", "/v1/rank"), 405)
    refused(preflight("https://shop.example", "/ubi_rank"), 405)
    for path in ("/v1/beacon", "/ubi_events", "/ubi_queries"):
        assert preflight("https://shop.example", path).status_code == 204
    assert "access-control-allow-origin" not in post(Service(), "/v1/feedback", FEEDBACK, here).headers


def test_metrics_count_by_endpoint_and_status() -> None:
    service = Service()
    post(service, "/v1/rank", RANK)
    post(service, "/v1/rank", {})
    get(service, "/v1/contexts/some-name")
    get(service, "/nowhere")
    text = get(service, "/metrics").text
    assert 'saferank_requests_total{endpoint="/v1/rank",status="200"} 1.0' in text
    assert 'saferank_requests_total{endpoint="/v1/rank",status="422"} 1.0' in text
    assert 'saferank_requests_total{endpoint="/v1/contexts/{context}",status="200"} 1.0' in text
    assert 'saferank_requests_total{endpoint="none",status="404"} 1.0' in text
    assert 'saferank_request_seconds_count{endpoint="/v1/rank"} 2.0' in text
    assert "saferank_requests_in_flight 1.0" in text
    assert "saferank_alarms_total 1.0" in text
    assert "some-name" not in text  # names from outside must not become labels


def test_kill_calls_have_a_limit_of_their_own() -> None:
    service, switch = Service(tenant_rate=1, tenant_burst=1), {"on": True, "why": "a storm"}
    assert 10 <= SWITCHES_AT_ONCE <= 1000 and 1 <= SWITCHES_A_SECOND <= 100
    service.app.switch_limits = TenantLimits(0.001, 3, time.monotonic)
    assert [post(service, "/v1/rank", RANK).status_code for _ in range(2)] == [200, 429]
    assert [post(service, "/v1/kill", switch).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused(post(service, "/v1/contexts/home/kill", switch), 429, saying="tenant default may send")
    assert post(service, "/v1/operator/kill", switch).status_code == 200  # who cares for all tenants waits for none


def test_no_page_is_made_for_a_client_that_does_not_read_the_ones_before() -> None:
    """A page would wait here until the client reads, however long after a kill switch has returned."""
    service = Service()
    connection = Guarded(service.app.connections, ("127.0.0.1", 1))
    query = {"user_query": "lamp", "query_response_hit_ids": ["a", "b"]}
    for unread, status in ((0, 200), (1, 503), (0, 200)):
        connection.transport.unread = unread
        assert post(service, "/v1/rank", RANK).status_code == status
        assert post(service, "/ubi_rank", query).status_code == status
        assert post(service, "/v1/kill", {"on": True, "why": "it is stuck"}).status_code == 200


def test_the_limit_of_items_holds_for_every_rank_call() -> None:
    service, many = Service(max_items=3), ["a", "b", "c", "d"]
    refused(post(service, "/v1/rank", {**RANK, "base_ranking": many}), 422, "base_ranking", "at most 3")
    query: dict[str, Any] = {"user_query": "lamp", "query_response_hit_ids": many}
    refused(post(service, "/ubi_rank", query), 422, "query_response_hit_ids", "at most 3")
    query = {**query, "query_response_hit_ids": ["a"], "query_attributes": {"candidates": many}}
    refused(post(service, "/ubi_rank", query), 422, "query_attributes.candidates", "at most 3")
    assert not service.server.seen


def test_pages_that_are_asked_for_in_one_turn_of_the_loop_are_bounded_too() -> None:
    service = Service(max_in_flight=4)

    async def dialogue(client: httpx.AsyncClient) -> list[int]:
        answers = await asyncio.gather(*(client.post("/v1/rank", json=RANK) for _ in range(40)))
        assert (await client.post("/v1/rank", json=RANK)).status_code == 200
        return [answer.status_code for answer in answers]

    statuses = talk(service, dialogue)
    assert statuses.count(200) >= 4 and statuses.count(503) > 0 and set(statuses) == {200, 503}
