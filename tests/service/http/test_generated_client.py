"""A client that is generated from the document, as simply as generators do it, completes rank and feedback.

Generators turn a schema with ``properties`` into a class with these fields. One that stands beside ``oneOf`` or
``anyOf`` is lost: most take the alternatives and forget the rest, so ``clicks`` was missing once.
"""

from dataclasses import asdict, field, make_dataclass
from pathlib import Path
from typing import Any

import httpx

from saferank.service.http.openapi import document
from tests.service.house import House, run
from tests.service.http.service_in_process import Service


def classes_of(described: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, schema in described["components"]["schemas"].items():
        assert not {"oneOf", "anyOf", "allOf"} & schema.keys(), f"{name}: generators lose its fields"
        needed = set(schema.get("required", ()))
        names = sorted(schema.get("properties", {}), key=lambda one: one not in needed)
        fields = [(one, Any) if one in needed else (one, Any, field(default=None)) for one in names]
        made[name] = make_dataclass(name, fields)
    return made


class Generated:
    """One method for each operation, by its name."""

    def __init__(self, described: dict[str, Any], http: httpx.AsyncClient) -> None:
        self.classes, self._http = classes_of(described), http
        named = [operation["operationId"] for each in described["paths"].values() for operation in each.values()]
        assert len(named) == len(set(named))
        self._operations = {
            operation["operationId"]: (method, path, operation)
            for path, operations in described["paths"].items()
            for method, operation in operations.items()
        }

    async def call(self, name: str, body: Any) -> Any:
        method, path, operation = self._operations[name]
        sent = {key: value for key, value in asdict(body).items() if value is not None}
        answer = await self._http.request(method, path, json=sent)
        assert str(answer.status_code) in operation["responses"], answer.text
        assert answer.status_code == 200, answer.text
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        for option in schema.get("anyOf", [schema]):
            kind = self.classes[option["$ref"].rpartition("/")[2]]
            if answer.json().keys() <= kind.__dataclass_fields__.keys():
                return kind(**answer.json())
        raise AssertionError(f"{answer.json()} is none of the answers of {name}")


def test_a_generated_client_completes_rank_and_feedback(tmp_path: Path) -> None:
    async def test() -> None:
        house = House(tmp_path)
        await house.start()
        service = Service()
        service.app.server = house.server
        async with service.client() as http:
            client = Generated((await http.get("/openapi.json")).json(), http)
            rank, report = client.classes["RankCall"], client.classes["FeedbackCall"]
            page = await client.call("rank", rank(context="home", base_ranking=["a", "b", "c"], k=2))
            told = await client.call("feedback", report(token=page.token, clicks=page.ranking[:1]))
            assert (told.accepted, told.duplicate) == (True, False)
        await house.stop()

    run(test())


def test_every_way_to_report_is_described() -> None:
    service = Service()
    paths = document(service.app.endpoints, service.app.settings)["paths"]
    assert {"/v1/rank", "/v1/feedback", "/v1/beacon", "/ubi_events", "/ubi_queries", "/ubi_rank"} <= paths.keys()
    assert "text/plain" in paths["/v1/beacon"]["post"]["requestBody"]["content"]
