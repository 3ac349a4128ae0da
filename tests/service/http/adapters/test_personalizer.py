"""Personalizer's API in this process: what counts, what is refused, and every schema-valid body."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.service.engine import open_engine
from saferank.service.http.app import make_app
from saferank.service.http.hub import Hub
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall
from saferank.store.contract import PageRow
from saferank.store.opening import open_store
from tests.postgres_process import PostgresProcess
from tests.service.engine_harness import House, T, house, run
from tests.service.http.service_in_process import SHOP, Service

ACTIONS = [{"id": action, "features": [{"warm": True}]} for action in "abcd"]
SLOTS = [{"id": "top", "baselineAction": "c"}, {"id": "side", "baselineAction": "a"}]
PREFIX = "/personalizer/v1.0"
ONE, TWO = "personalizer: 4 actions", 'personalizer: slots ["top", "side"]'


def client_of(made: House) -> httpx.AsyncClient:
    app = make_app(Hub(made.settings, made.engine))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def post(client: httpx.AsyncClient, path: str, body: object = None, status: int = 204) -> Any:
    answer = await (client.post(PREFIX + path) if body is None else client.post(PREFIX + path, json=body))
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def clicks(made: House, context: str = ONE) -> int:
    return (await made.engine.context(T, context)).arms["explore"].clicks


def test_the_order_of_actions_is_the_base_ranking_and_a_positive_reward_a_click(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            answer = await post(client, "/rank", {"actions": ACTIONS, "eventId": "e"}, 201)
            assert answer["rewardActionId"] == answer["ranking"][0]["id"]
            assert (await made.engine.context(T, ONE)).base_ranking == ["a", "b", "c", "d"]
            await post(client, "/events/e/reward", {"value": 0})
            await post(client, "/events/e/reward", {"value": 0.25})
            await post(client, "/rank", {"actions": ACTIONS, "eventId": "never rewarded"}, 201)
            await made.close()
            assert await clicks(made) == 1
            await post(client, "/events/e/reward", {"value": 1})  # late: accepted, and does not count

    run(check())


def test_an_event_that_is_not_activated_is_no_page_whatever_restarts_between(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made:
            async with client_of(made) as client:
                for name in ("shown", "not shown"):
                    await post(client, "/rank", {"actions": ACTIONS, "eventId": name, "deferActivation": True}, 201)
                    await post(client, f"/events/{name}/reward", {"value": 1})
            await made.restart()
            async with client_of(made) as client:
                await post(client, "/events/shown/activate")
                await post(client, "/events/shown/activate")
            await made.close()
            view = await made.engine.context(T, ONE)
            assert (view.pages, view.arms["explore"].pages, view.arms["explore"].clicks) == (1, 1, 1)
            assert (await made.stop_and_replay()).pages == 2  # both are in the log, and the replay skips the same one
            await made.start()

    run(check())


@pytest.fixture
def postgres_address() -> Iterator[str]:
    process = PostgresProcess()
    yield process.address()
    process.stop()


def test_an_event_of_another_process_is_known_on_postgresql_too(postgres_address: str) -> None:
    async def check() -> None:
        settings = Settings(store=postgres_address, policy="kl-ucb-br", rule="paper:1e-5", freshness_seconds=3600)
        engines = [open_engine(settings) for _ in range(2)]
        for engine in engines:
            await engine.start()
        apps = [make_app(Hub(settings, engine)) for engine in engines]
        here, there = (
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") for app in apps
        )
        body = {"actions": ACTIONS, "slots": SLOTS, "eventId": "e", "deferActivation": True}
        first = await post(here, "/multislot/rank", body, 201)
        assert await post(there, "/multislot/rank", body, 201) == first
        await post(there, "/multislot/events/e/reward", {"reward": [{"slotId": "side", "value": 1}]})
        await post(there, "/multislot/events/e/activate")
        generated = await post(here, "/rank", {"actions": ACTIONS}, 201)
        await post(there, f"/events/{generated['eventId']}/reward", {"value": 1})
        for engine in engines:
            await engine.stop()
        pages = await _pages(postgres_address)
        assert [page.clicks.bit_count() for page in pages] == [2, 1]  # the first one is activated, too

    run(check())


async def _pages(address: str) -> list[PageRow]:
    store = open_store(address)
    await store.open()
    try:
        return [page async for page in store.all_pages()]
    finally:
        await store.close()


def test_slots_have_their_own_actions_and_rewards(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            body = {"actions": ACTIONS, "slots": SLOTS, "eventId": "e"}
            answer = await post(client, "/multislot/rank", body, 201)
            view = await made.engine.context(T, TWO)
            assert (view.base_ranking, view.candidates) == (["c", "a"], ["b", "d"])
            assert [slot["id"] for slot in answer["slots"]] == ["top", "side"]
            both = [{"slotId": "top", "value": 1}, {"slotId": "side", "value": 1}]
            await post(client, "/multislot/events/e/reward", {"reward": both})
            await made.close()
            assert await clicks(made, TWO) == 2

    run(check())


def test_a_repeated_rank_gets_the_same_answer_and_another_question_is_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            first = await post(client, "/rank", {"actions": ACTIONS, "eventId": "e"}, 201)
            assert await post(client, "/rank", {"actions": ACTIONS, "eventId": "e"}, 201) == first
            refused = await post(client, "/rank", {"actions": ACTIONS[:2], "eventId": "e"}, 400)
            assert refused["error"]["target"] == "eventId"
            await made.close()
            assert (await made.engine.context(T, ONE)).pages == 1

    run(check())


def test_excluded_actions_stay_where_they_are_with_probability_zero(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            answer = await post(client, "/rank", {"actions": ACTIONS, "excludedActions": ["a", "c", "unknown"]}, 201)
            assert [entry["id"] for entry in answer["ranking"]][0::2] == ["a", "c"]
            assert [entry["probability"] for entry in answer["ranking"]][0::2] == [0, 0]
            assert answer["rewardActionId"] == answer["ranking"][1]["id"]

    run(check())


def test_features_that_the_settings_name_tell_contexts_apart(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path, personalizer_context=("user.plan",)) as made, client_of(made) as client:
            body = {"actions": ACTIONS, "contextFeatures": [{"day": "monday"}, {"user": {"plan": "free"}}]}
            await post(client, "/rank", body, 201)
            assert [entry.name for entry in (await made.engine.contexts(T)).contexts] == [f"{ONE}, user.plan=free"]

    run(check())


@pytest.mark.parametrize(
    ("path", "body", "code", "target"),
    [
        ("/rank", {"actions": []}, "InvalidRankRequest", "actions"),
        ("/rank", {"actions": [{"id": "a"}, {"id": "a"}]}, "InvalidRankRequest", "actions[1].id"),
        ("/rank", {"actions": [{"id": "a"}], "excludedActions": ["a"]}, "InvalidRankRequest", "excludedActions"),
        ("/multislot/rank", {"actions": ACTIONS, "slots": [{"id": "s" * 250, "baselineAction": "a"}]},
         "InvalidRankRequest", "slots"),
        ("/multislot/rank", {"actions": ACTIONS, "slots": [{"id": "s", "baselineAction": "z"}]},
         "InvalidRankRequest", "slots[0].baselineAction"),
        ("/multislot/rank", {"actions": ACTIONS, "slots": [SLOTS[0], {**SLOTS[1], "excludedActions": ["b"]}]},
         "InvalidRankRequest", "slots[1].excludedActions"),
        ("/events/e/reward", {"value": "much"}, "InvalidRewardRequest", "value"),
        ("/multislot/events/m/reward", {"reward": [{"slotId": "z", "value": 1}]},
         "InvalidRewardRequest", "reward[0].slotId"),
        ("/events/none/reward", {"value": 1}, "ResourceNotFound", "eventId"),
        ("/events/m/activate", None, "ResourceNotFound", "eventId"),
        ("/events/%FF/activate", None, "InvalidEventIdToActivate", "eventId"),
        ("/model", None, "ResourceNotFound", None),
    ],
)  # fmt: skip
def test_refusals_name_the_field(path: str, body: object, code: str, target: str | None) -> None:
    async def check() -> None:
        async with Service().client() as client:
            await post(client, "/rank", {"actions": ACTIONS, "eventId": "e"}, 201)
            await post(client, "/multislot/rank", {"actions": ACTIONS, "slots": SLOTS, "eventId": "m"}, 201)
            refused = await post(client, path, body, 404 if code == "ResourceNotFound" else 400)
            assert (refused["error"]["code"], refused["error"].get("target")) == (code, target)

    asyncio.run(check())


def test_the_key_is_in_its_own_header_and_must_be_a_rank_key() -> None:
    async def check() -> None:
        async with Service(tenants={"shop": SHOP}).client() as client:
            for key, status in (("shop-rank", 201), ("shop-feedback", 403), ("wrong", 401)):
                answer = await client.post(
                    f"{PREFIX}/rank", json={"actions": ACTIONS}, headers={"Ocp-Apim-Subscription-Key": key}
                )
                assert answer.status_code == status
                assert status == 201 or answer.json()["error"]["code"] == "InvalidApiAccess"

    asyncio.run(check())


names = st.text(max_size=6) | st.sampled_from(["a", "b", "c", "top"])
features = st.none() | st.lists(st.dictionaries(names, st.integers() | names | st.booleans(), max_size=2), max_size=2)
actions = st.lists(st.fixed_dictionaries({"id": names}, optional={"features": features}), max_size=5)
common = {"contextFeatures": features, "eventId": st.none() | names, "deferActivation": st.none() | st.booleans()}
slots = st.lists(
    st.fixed_dictionaries(
        {"id": names, "baselineAction": names}, optional={"features": features, "excludedActions": st.lists(names)}
    ),
    max_size=3,
)
rewards = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
BODIES = {
    "/rank": st.fixed_dictionaries(
        {"actions": actions}, optional={**common, "excludedActions": st.none() | st.lists(names, max_size=3)}
    ),
    "/multislot/rank": st.fixed_dictionaries({"actions": actions, "slots": slots}, optional=common),
    "/events/e/reward": st.fixed_dictionaries({"value": rewards}),
    "/multislot/events/m/reward": st.fixed_dictionaries(
        {"reward": st.lists(st.fixed_dictionaries({"slotId": names, "value": rewards}), max_size=3)}
    ),
}


@pytest.mark.parametrize("path", BODIES)
def test_every_schema_valid_body_gets_an_answer_or_a_problem_that_names_the_field(tmp_path: Path, path: str) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            await post(client, "/rank", {"actions": ACTIONS, "eventId": "e"}, 201)
            await post(client, "/multislot/rank", {"actions": ACTIONS, "slots": SLOTS, "eventId": "m"}, 201)
            for body in examples:
                has_form(path, await client.post(PREFIX + path, json=body))

    examples: list[Any] = []

    @settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(BODIES[path])
    def collect(body: Any) -> None:
        examples.append(body)

    collect()
    run(check())


def has_form(path: str, answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert answer.status_code < 500 and error["code"] and error["message"] and error["target"], answer.text
    elif path == "/rank":
        assert answer.status_code == 201 and set(answer.json()) == {"ranking", "eventId", "rewardActionId"}
        assert sum(entry["probability"] for entry in answer.json()["ranking"]) == pytest.approx(1)
    elif path == "/multislot/rank":
        assert answer.status_code == 201 and set(answer.json()) == {"slots", "eventId"}
    else:
        assert answer.status_code == 204 and answer.content == b""


def test_a_generated_event_id_is_the_impression(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as made, client_of(made) as client:
            answer = await post(client, "/rank", {"actions": ACTIONS}, 201)
            call = FeedbackCall(impression_id=answer["eventId"], clicks=[answer["rewardActionId"]])
            (taken,) = await made.engine.feedback(T, [call])
            assert json.loads(taken.model_dump_json())["accepted"] is True  # type: ignore[union-attr]

    run(check())
