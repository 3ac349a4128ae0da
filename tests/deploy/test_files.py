"""Files for operators name only what exists: metrics of the service, its command, its settings."""

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from saferank.service import limits
from saferank.service.http.openapi import document
from tests.service.http.service_in_process import Service

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SHOWN = {
    "saferank_alarms_total", "saferank_fresh", "saferank_arm_pages_total", "saferank_arm_clicked_pages_total",
    "saferank_arm_clicks_total", "saferank_effect_clicks", "saferank_guardrail_stops_total",
}  # fmt: skip
"""What a dashboard must show."""


def exposed() -> set[str]:
    """Every name of a time series on the metrics page."""
    service = Service()
    service.app.metrics.answered("/v1/rank", 200, 0.001)
    return set(re.findall(r"^(saferank_\w+)", service.app.metrics.text().decode(), re.MULTILINE))


def rules() -> list[dict[str, Any]]:
    content = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def expressions(part: object) -> list[str]:
    """Every expression of a dashboard."""
    if isinstance(part, dict):
        own = [str(part[name]) for name in ("expr", "query") if name in part]
        return own + [found for value in part.values() for found in expressions(value)]
    return [found for entry in part for found in expressions(entry)] if isinstance(part, list) else []


def dashboard() -> dict[str, Any]:
    board: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return board


def metrics_of(texts: list[str]) -> set[str]:
    return set(re.findall(r"\bsaferank_\w+", " ".join(texts)))


def test_alerts_are_complete_and_documented() -> None:
    page = (ROOT / "docs" / "engineers" / "operations.md").read_text(encoding="utf-8")
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert set(rule) >= {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"].endswith(".")
        assert f"| {rule['alert']} |" in page
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_alerts_and_dashboard_name_metrics_that_exist() -> None:
    known = exposed()
    assert metrics_of([rule["expr"] for rule in rules()]) - known == set()
    shown = metrics_of(expressions(dashboard()))
    assert shown - known == set()
    assert shown >= SHOWN


def test_the_endpoint_that_an_alert_names_is_one() -> None:
    service = Service()
    named = {found for rule in rules() for found in re.findall(r'endpoint="([^"]+)"', rule["expr"])}
    assert named and named <= set(document(service.app.endpoints, service.app.settings)["paths"])


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


@pytest.fixture
def unit() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)  # a key that stands there twice is an error
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "saferank.service", encoding="utf-8")
    return parser


def test_the_unit_stops_in_order_and_is_locked_in(unit: configparser.RawConfigParser) -> None:
    service = dict(unit["Service"])
    assert service["ExecStart"].endswith("saferank serve --config /etc/saferank/saferank.toml")
    assert (service["KillSignal"], service["Restart"]) == ("SIGTERM", "on-failure")
    assert service["StateDirectory"] == "saferank"
    assert float(service["TimeoutStopSec"]) > 2 * limits.STOP_SECONDS
    for name in ("NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "DynamicUser"):
        assert service[name] in ("yes", "strict")
    assert "MemoryDenyWriteExecute" not in service  # numba compiles to memory
    assert unit["Install"]["WantedBy"] == "multi-user.target"
