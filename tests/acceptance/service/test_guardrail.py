"""A harmful policy plug-in, served over HTTP, is stopped by the guardrail: durably, until an unkill.

The plug-in (``contrary_policy.py``) passes every check: it exchanges neighbours within the allowance, on every page.
Visitors click on the first pair if its better item is first, with probability 0.8, otherwise with 0.1, on both items or
on neither: so nothing is ever learnt that would stop the exchanges. The service runs interpreted: nothing is compiled.
The guardrail needs some 60 pages of such a loss; that 1,000 pages do not suffice has probability below 1e-9.
"""

import http.client
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from service_process import ServiceProcess

PLUGIN = Path(__file__).parent / "contrary_policy.py"
BASE = ["a", "b", "c", "d"]
WINDOW = 0.4


class Served(ServiceProcess):
    """A service with the plug-in."""

    def _command(self) -> list[str]:
        return [*super()._command(), f"--plugin={PLUGIN}"]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer to a call."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        assert answer.status == 200, content
        return content

    def visit(self, chance: random.Random) -> Any:
        """A page and its clicks."""
        page = self.post("/v1/rank", {"context": "home", "base_ranking": BASE, "k": 4})
        if chance.random() < (0.8 if page["ranking"][0] == "a" else 0.1):
            self.post("/v1/feedback", {"token": page["token"], "clicks": ["a", "b"]})
        return page

    def guardrail(self, path: str = "/v1/contexts/home/effect") -> Any:
        """How far it is from stopping."""
        return self.read(path)["guardrail"]


def stopped_after(service: Served, chance: random.Random, most: int) -> int:
    """Pages until the guardrail has stopped the context."""
    for number in range(1, most + 1):
        service.visit(chance)
        if number % 20 == 0:
            time.sleep(WINDOW / 2)
            if service.guardrail()["stopped"]:
                return number
    raise AssertionError(f"not stopped after {most} pages: {service.read('/v1/contexts/home/effect')}")


def test_a_harmful_plug_in_is_stopped_durably(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    chance, settings = random.Random(14), {"holdout_share": 0.5, "guardrail_drop": 0.03}
    service = Served(tmp_path, policy="contrary", window_seconds=WINDOW, max_lag_seconds=60, **settings)
    with service:
        assert stopped_after(service, chance, 1000) >= 40
        after_stop = [service.visit(chance) for _ in range(30)]
        assert {page["mode"] for page in after_stop} == {"off"}
        assert all(page["ranking"] == BASE for page in after_stop)
        effect = service.read("/v1/contexts/home/effect")
        assert effect["clicks"]["high"] < 0 and effect["guardrail"]["log_evidence"] > 0
        assert service.metrics()["saferank_guardrail_stops_total"] >= 1
        assert service.metrics()['saferank_arm_clicks_total{arm="holdout"}'] > 0
        assert '"kind": "guardrail"' in service.log()
        (stop, *_) = [line for line in service.lines("/v1/export") if line["kind"] == "guardrail"]
        assert stop["served"]["pages"] > 10 and stop["log_evidence"] > 0 and "guardrail" in stop["why"]

        service.kill()
        service.start()
        assert service.guardrail()["stopped"] or service.guardrail("/v1/effect")["stopped"]
        assert {service.visit(chance)["mode"] for _ in range(30)} == {"off"}

        for path in ("/v1/contexts/home/kill", "/v1/kill"):
            service.post(path, {"on": False, "why": "the plug-in is to be tried again"})
        time.sleep(0.01)
        pages = [service.visit(chance) for _ in range(4)]
        assert {page["mode"] for page in pages} == {"live"}
        assert service.read("/v1/contexts/home/effect")["served"]["pages"] <= 4  # a new comparison ...
        assert stopped_after(service, chance, 1000) >= 20  # ... comes to the same
        service.stop()
    command = [sys.executable, "-m", "saferank.cli", "replay", str(service.store)]
    replay = subprocess.run([*command, "--plugin", str(PLUGIN)], check=False, capture_output=True)
    assert replay.returncode == 0, replay.stderr.decode()
    without = subprocess.run(command, check=False, capture_output=True)
    assert without.returncode == 2 and b"by the policy 'contrary', which is not known here" in without.stderr
