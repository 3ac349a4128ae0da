"""The whole OpenAPI document against the real service: no 5xx, no answer that the document does not describe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.running_service import serving

# What JSON Schema cannot say: k is at most the length of base_ranking, a context keeps its k, clicks belong to the
# page. And a body may break a limit of bytes before it breaks one of entries.
CONFIGURATION = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]

[[operations]]
include-name = ["POST /v1/rank", "POST /v1/feedback"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 404, 409, 422]

# a guardrail without a holdout, and a policy that cannot take the items of a context, cannot be said in a schema
[[operations]]
include-name = [
  "POST /v1/contexts/{context}/settings", "POST /v1/contexts/{context}/reset", "POST /v1/forget", "POST /v1/beacon",
  "POST /ubi_events", "POST /ubi_queries", "POST /ubi_rank", "GET /v1/export",
]
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 404, 422]
"""


def test_the_document_is_true(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION, encoding="utf-8")
    quiet = (
        "--set",
        "log_level=error",
    )  # its lines are not read, and a full pipe would stop it
    with serving("--store", tmp_path / "store", "--set", "max_items=30", *quiet) as server:  # no keys: all is open
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json"]
        options = ["--seed", "1", "--max-examples", "20", "--no-color"]
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "PYTHONWARNINGS": "default"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
        document = httpx.get(f"{server.address}/openapi.json").json()
        assert f"Tested: {sum(map(len, document['paths'].values()))}" in done.stdout
        assert httpx.get(f"{server.address}/readyz").status_code == 200


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@st.composite
def rank_calls(draw: st.DrawFn) -> dict[str, object]:
    base = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    k = draw(st.integers(1, len(base)))
    call = {"context": f"{draw(names)} {k}", "base_ranking": base, "k": k}
    optional = {
        "candidates": st.lists(names, max_size=8, unique=True), "request_id": names, "session_id": names,
        "mode": st.sampled_from(["live", "shadow", "off"]), "explain": st.booleans(),
    }  # fmt: skip
    return call | draw(st.fixed_dictionaries({}, optional=optional))


def test_every_possible_rank_call_is_answered_and_its_clicks_are_taken(tmp_path: Path) -> None:
    with serving("--store", tmp_path / "store") as server, httpx.Client(base_url=server.address) as client:

        @settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(rank_calls())
        def check(call: dict[str, object]) -> None:
            answer = client.post("/v1/rank", content=json.dumps(call), headers={"content-type": "application/json"})
            assert answer.status_code == 200, answer.text
            page = answer.json()
            assert len(page["ranking"]) == call["k"]
            report = {"token": page["token"], "clicks": page["ranking"][:2]}
            taken = client.post("/v1/feedback", json=report).json()
            assert taken["accepted"] is True, taken

        check()
