"""What is made while the site is built: formulas are drawn, the page of the HTTP API leaves nothing out."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest
from msgspec import Struct

from saferank.service import wire
from tests.docs.test_docs import script
from tests.service.http.service_in_process import Service


@pytest.fixture(scope="module")
def site_pages() -> ModuleType:
    return script("site_pages")


@pytest.fixture(scope="module")
def http_page(site_pages: ModuleType) -> str:
    page: str = site_pages.http_page()
    return page


def test_formulas_become_mathml_and_nothing_else_changes(site_pages: ModuleType) -> None:
    page = "| $`s_{i}|x`$ | `code` |\n\n```math\na * b\n```\n\n```python\nprice = '$'\n```\n"
    made = site_pages.with_formulas(page)
    inline, block = made.split("\n\n")[:2]
    assert inline.startswith('| <span class="formula"><math ') and inline.endswith("</math></span> | `code` |")
    assert block.startswith('<div class="formula"><math ') and 'display="block"' in block
    assert "*" not in block and "_" not in inline and inline.count("|") == 3
    assert made.endswith("```python\nprice = '$'\n```\n")


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
