"""The real SDKs of Azure Personalizer against a real service: their clicks reach the learner."""

import json
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from saferank.service.keys import hashed
from tests.running_service import serving

ROOT = Path(__file__).parents[4]
SCRIPTS, MODULES = ROOT / "tests" / "sdks", ROOT / "build" / "sdks" / "node_modules"
KEYS = ["python-1", "python-2", "node-1", "node-2"]
"""Each test is a tenant of its own, so that they share a service and nothing else."""
ACTIONS = ["pasta", "soup", "salad"]
SLOTS = [{"id": "top", "baselineAction": "soup"}, {"id": "side", "baselineAction": "salad"}]
TWO_SLOTS = 'personalizer: slots ["top", "side"]'


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tmp_path = tmp_path_factory.mktemp("service")
    tenants = "".join(f'[tenants.{key}]\nrank = ["{hashed(key)}"]\n' for key in KEYS)
    (tmp_path / "serve.toml").write_text(tenants, encoding="utf-8")
    options = ("--config", tmp_path / "serve.toml", "--window-seconds", "2", "--set", "max_lag_seconds=60")
    with serving("--store", tmp_path / "store", *options) as service:
        yield service.address


def learnt(address: str, key: str, context: str, pages: int) -> dict[str, int]:
    """The counts of a context once all its pages are closed."""
    deadline, url = time.monotonic() + 120, f"{address}/v1/contexts/{quote(context)}"
    while time.monotonic() < deadline:
        view = httpx.get(url, headers={"X-API-Key": key}, timeout=120).json()
        if view["arms"]["explore"]["pages"] >= pages:
            break
        time.sleep(0.1)
    counts: dict[str, int] = view["arms"]["explore"]
    return counts


def is_ranking(answer: dict[str, Any], actions: list[str]) -> None:
    assert sorted(entry["id"] for entry in answer["ranking"]) == sorted(actions)
    assert sum(entry["probability"] for entry in answer["ranking"]) == pytest.approx(1)


def test_the_first_python_sdk(address: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        personalizer = pytest.importorskip("azure.cognitiveservices.personalizer", exc_type=ImportError)
        from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
        from msrest.authentication import CognitiveServicesCredentials
    client = personalizer.PersonalizerClient(address, CognitiveServicesCredentials("python-1"))
    actions = [RankableAction(id=action, features=[{"warm": True}]) for action in ACTIONS]
    answer = client.rank(RankRequest(actions=actions, context_features=[{"day": "monday"}], event_id="old-1"))
    is_ranking(answer.as_dict(), ACTIONS)
    assert (answer.event_id, answer.reward_action_id) == ("old-1", answer.ranking[0].id)
    client.events.reward("old-1", value=1.0)
    deferred = client.rank(RankRequest(actions=actions, defer_activation=True))
    client.events.reward(deferred.event_id, value=0.7)
    client.events.activate(deferred.event_id)
    forgotten = client.rank(RankRequest(actions=actions, defer_activation=True))
    client.events.reward(forgotten.event_id, value=0.7)
    with pytest.raises(ErrorResponseException) as refused:
        client.rank(RankRequest(actions=[actions[0], actions[0]]))
    error: Any = refused.value.error
    assert (error.error.code, error.error.target) == ("InvalidRankRequest", "actions[1].id")
    assert learnt(address, "python-1", "personalizer: 3 actions", 2) == {"pages": 2, "clicked_pages": 2, "clicks": 2}
    client.close()


def test_the_second_python_sdk(address: str) -> None:
    ai = pytest.importorskip("azure.ai.personalizer", exc_type=ImportError)
    from azure.core.credentials import AzureKeyCredential
    from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

    with ai.PersonalizerClient(address, AzureKeyCredential("python-2")) as client:
        actions = [{"id": action, "features": [{"warm": True}]} for action in ACTIONS]
        answer = client.rank({"actions": actions, "eventId": "new/1"})
        is_ranking(answer, ACTIONS)
        client.reward("new/1", {"value": 1.0})
        client.rank({"actions": actions, "eventId": "new-2", "deferActivation": True})
        client.activate("new-2")
        slotted = client.rank_multi_slot({"actions": actions, "slots": SLOTS, "eventId": "new-3"})
        assert [slot["id"] for slot in slotted["slots"]] == ["top", "side"] and slotted["eventId"] == "new-3"
        client.reward_multi_slot("new-3", {"reward": [{"slotId": "side", "value": 1.0}]})
        client.activate_multi_slot("new-3")
        with pytest.raises(ResourceNotFoundError, match="no event without slots"):
            client.reward("new-3", {"value": 1.0})
        with pytest.raises(HttpResponseError, match="actions"):
            client.rank({"actions": []})
    with ai.PersonalizerAdministrationClient(address, AzureKeyCredential("python-2")) as administration:
        configuration = administration.get_service_configuration()
        assert (configuration["rewardWaitTime"], configuration["learningMode"]) == ("PT2S", "Online")
        with pytest.raises(ResourceNotFoundError, match="is not offered"):
            administration.get_policy()
    assert learnt(address, "python-2", "personalizer: 3 actions", 2) == {"pages": 2, "clicked_pages": 1, "clicks": 1}
    assert learnt(address, "python-2", TWO_SLOTS, 1) == {"pages": 1, "clicked_pages": 1, "clicks": 1}


def node(script: str, address: str, key: str) -> Any:
    executable = shutil.which("node")
    if executable is None or not MODULES.is_dir():
        pytest.skip("needs Node and its SDKs: make sdks")
    done = subprocess.run(
        [executable, SCRIPTS / script, address, key], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "NODE_PATH": str(MODULES)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_first_node_sdk(address: str) -> None:
    answers = node("legacy.cjs", address, "node-1")
    is_ranking(answers["ranked"], ACTIONS)
    is_ranking(answers["deferred"], ACTIONS)
    assert answers["deferred"]["ranking"][0] == {"id": "pasta", "probability": 0}
    assert answers["deferred"]["rewardActionId"] == answers["deferred"]["ranking"][1]["id"]
    assert answers["refusal"] == {"status": 400, "code": "InvalidRankRequest", "target": "actions[1].id"}
    assert learnt(address, "node-1", "personalizer: 3 actions", 1) == {"pages": 1, "clicked_pages": 1, "clicks": 1}
    assert learnt(address, "node-1", "personalizer: 2 actions", 1) == {"pages": 1, "clicked_pages": 1, "clicks": 1}


def test_the_second_node_sdk(address: str) -> None:
    answers = node("rest.cjs", address, "node-2")
    is_ranking(answers["ranked"], [*ACTIONS, "cake"])
    assert answers["statuses"] == ["201", "204", "201", "204", "201", "204", "204", "200"]
    assert [slot["id"] for slot in answers["slotted"]["slots"]] == ["top", "side"]
    assert answers["refusal"]["target"] == "actions"
    assert learnt(address, "node-2", "personalizer: 4 actions", 2) == {"pages": 2, "clicked_pages": 1, "clicks": 1}
    assert learnt(address, "node-2", TWO_SLOTS, 1) == {"pages": 1, "clicked_pages": 1, "clicks": 1}
