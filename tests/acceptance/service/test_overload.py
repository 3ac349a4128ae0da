"""More than the service takes: refused politely, nothing acknowledged is lost, and afterwards all is well."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import overload
import pytest
from http_load import Answer, Connections
from service_process import ServiceProcess

from tests.limits import NAMES

CALL = {"context": "shelf", "base_ranking": list("abcdef"), "candidates": list("xyz"), "k": 4}
CLIENTS, CALLS = 64, 40


class Stampede:
    """Clients that ask and report without a pause and take no for an answer."""

    def __init__(self, service: ServiceProcess) -> None:
        self.connections = Connections(lambda: service.port, CLIENTS)
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.acknowledged: dict[str, str] = {}

    async def run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(CLIENTS)))
        self.connections.close()

    async def _client(self) -> None:
        for _ in range(CALLS):
            answer = await self._post("/v1/rank", CALL)
            if answer.status == 200:
                page = answer.json()
                clicked = page["ranking"][0]
                answer = await self._post("/v1/feedback", {"token": page["token"], "clicks": [clicked]})
                if answer.status == 200 and answer.json()["accepted"]:
                    self.acknowledged[page["impression_id"]] = clicked

    async def _post(self, path: str, content: dict[str, Any]) -> Answer:
        answer = await self.connections.post(path, content)
        self.statuses[path, answer.status] += 1
        if answer.status != 200:
            assert answer.status in (429, 503), answer.body
            assert int(answer.header("retry-after") or "") >= 1
            assert answer.json()["status"] == answer.status
        return answer


LIMITS = {
    "requests at a time": ({"max_in_flight": 4}, 503),
    "writes that wait": ({"max_pending": 2}, 503),
    "requests of a tenant": ({"tenant_rate": 20, "tenant_burst": 300}, 429),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_too_much_is_refused_politely(tmp_path: Path, limit: str) -> None:
    settings, refusal = LIMITS[limit]
    given, small = {name: value for name, value in settings.items() if name not in NAMES}, NAMES.keys() & settings
    started = ServiceProcess(tmp_path, policy="kl-ucb-br", log_level="warning", max_lag_seconds=60, **given)
    if small:
        started.program = ["tests.limits", *(f"{name}={settings[name]}" for name in small)]
    with started as service:
        stampede = Stampede(service)
        asyncio.run(stampede.run())
        refused = sum(n for (_, status), n in stampede.statuses.items() if status == refusal)
        assert refused > 0, stampede.statuses
        assert stampede.acknowledged, stampede.statuses
        asyncio.run(asyncio.sleep(1.5))
        calm = asyncio.run(one_visit(service))
        assert [answer.status for answer in calm] == [200, 200], calm
        for impression_id, clicked in list(stampede.acknowledged.items())[:20]:
            assert service.read(f"/v1/impressions/{impression_id}")["clicks"] == [clicked]
        assert '"error"' not in service.log()
        assert service.stop() == 0


DEAREST = 0.8
"""A refusal costs at most this share of the processor time of an answer (0.7 measured). The rest of the capacity
follows from it, and from how many calls the machine can send (docs/reference/service-figures.md)."""


def test_under_three_times_the_load_refusals_are_cheap_and_calls_are_answered(tmp_path: Path) -> None:
    settings = {"policy": "kl-ucb-br", "log_level": "warning", "window_seconds": 5}
    with ServiceProcess(tmp_path, **settings) as service:
        found = overload.run(service, times=3.0, seconds=4.0)
        if found["refusal_cost"] > DEAREST:  # 0.58 to 0.78 in ten runs on a shared machine: such a run is repeated once
            found = overload.run(service, times=3.0, seconds=4.0)
        storm = found["overload"]
        statuses = {status for kind in storm["statuses"].values() for status in kind}
        assert statuses <= {"200", "503"}, storm
        assert storm["statuses"]["rank"].get("503", 0) > 0, "nothing was refused: it was no overload"
        assert found["refusal_cost"] <= DEAREST, found
        assert found["shares"]["a_processor_second"] > 0.1, found
        asyncio.run(asyncio.sleep(1.5))
        assert [answer.status for answer in asyncio.run(one_visit(service))] == [200, 200]
        assert '"error"' not in service.log()
        assert service.stop() == 0


async def one_visit(service: ServiceProcess) -> list[Answer]:
    connections = Connections(lambda: service.port, 1)
    page = await connections.post("/v1/rank", CALL)
    report = {"token": page.json()["token"], "clicks": page.json()["ranking"][:1]}
    answers = [page, await connections.post("/v1/feedback", report)]
    connections.close()
    return answers
