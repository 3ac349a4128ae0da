"""Pages that are made while the site is built: the page of the HTTP API leaves nothing out."""

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

import pytest
from msgspec import Struct

from saferank.service import wire
from tests.service.http.service_in_process import Service

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def http_page() -> str:
    spec = importlib.util.spec_from_file_location("docs_site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page: str = module.http_page()
    return page


def test_every_body_is_on_the_page(http_page: str) -> None:
    modules = [
        importlib.import_module(f"{wire.__name__}.{found.name}") for found in pkgutil.iter_modules(wire.__path__)
    ]
    bodies = {
        value.__name__
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Struct) and value.__struct_fields__
    }
    assert {"EffectView", "OverviewView", "ShadowView", "RankCall"} <= bodies
    others = {"BeaconCall", "UbiEvent", "UbiQuery", "Health"}
    assert [name for name in sorted(bodies | others) if f"\n### {name}\n" not in http_page] == []


def test_every_path_is_on_the_page(http_page: str) -> None:
    paths = {endpoint.path for endpoint in Service().app.endpoints}
    assert {"/v1/rank", "/v1/contexts/{context}/kill", "/v1/beacon", "/ubi_rank", "/healthz", "/metrics"} <= paths
    assert [path for path in sorted(paths) if f" {path}`" not in http_page] == []
