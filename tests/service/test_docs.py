"""What exists is documented in docs/engineers/service.md: settings with their defaults, routes, statuses, metrics."""

import re
from pathlib import Path

import msgspec
from msgspec import structs

from saferank.service.http.metrics import SERVER_METRICS
from saferank.service.http.openapi import document
from saferank.service.settings import Settings
from tests.service.http.service_in_process import Service

PAGE = (Path(__file__).parents[2] / "docs" / "engineers" / "service.md").read_text(encoding="utf-8")


def routes() -> dict[str, dict[str, object]]:
    service = Service()
    described: dict[str, dict[str, object]] = document(service.app.endpoints, service.app.settings)["paths"]
    return described


def test_every_attack_has_the_tests_that_are_named() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs" / "engineers" / "statistics-in-production.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    missing = [name for file, name in named if f"def {name}(" not in (root / file).read_text(encoding="utf-8")]
    assert missing == []
    assert len(named) > 15


def test_every_setting_stands_there_with_its_meaning() -> None:
    known = msgspec.json.schema_components([Settings])[1]["Settings"]["properties"]
    missing = [name for name, field in known.items() if f"| `{name}` | {field['description']} |" not in PAGE]
    assert missing == []
    assert set(known) == set(Settings.__struct_fields__)


def test_defaults_are_current() -> None:
    shown = dict(re.findall(r"\| `(\w+)` \| .* \| ([^|]*) ?\|$", PAGE, re.MULTILINE))
    for name, default in structs.asdict(Settings()).items():
        if default not in ({}, (), None):
            assert shown[name].strip() == str(default), name


def test_no_setting_stands_there_that_is_gone() -> None:
    section = PAGE[PAGE.index("| setting |") :]
    table = section[: section.index("\n\n")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(Settings.__struct_fields__)


def test_every_route_stands_there_and_no_other() -> None:
    known = {f"{method.upper()} {path}" for path, operations in routes().items() for method in operations}
    written = set(re.findall(r"^\| `((?:GET|POST) [^`]+)` \|", PAGE, re.MULTILINE))
    assert written == known | {"GET /", "GET /openapi.json", "GET /docs"}


def test_every_status_stands_there() -> None:
    statuses = {
        status for operations in routes().values() for operation in operations.values()
        for status in operation["responses"] if status != "200"  # type: ignore[index]
    }  # fmt: skip
    assert {status for status in statuses if f"| {status} |" not in PAGE} == set()


def test_every_metric_stands_there() -> None:
    service = Service()
    text = service.app.metrics.text().decode()
    names = set(re.findall(r"^# HELP saferank_(\w+)", text, re.MULTILINE))
    assert {name for name in names if f"| `{name}` |" not in PAGE} == set()
    assert names > set(SERVER_METRICS)
