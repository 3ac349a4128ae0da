"""The tutorial's shop and the examples of docs/client.md, run against a real service."""

import html
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from running_service import serving

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("--store", tmp_path_factory.mktemp("service") / "store", "--window-seconds", "2") as service:
        yield service.address


@pytest.fixture
def shop(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the tutorial; its client is as patient as a busy machine needs."""
    (block,) = blocks("tutorial.md")
    monkeypatch.setenv("SAFERANK", address)
    module: Any = ModuleType("shop")
    exec(compile(block, "shop.py", "exec"), module.__dict__)
    module.service._link._limit = 20.0
    yield module
    module.service.close()


def links(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page)]


def test_the_shop_shows_clicks_and_learns(shop: Any, address: str) -> None:
    pages = []
    for visitor in range(5):
        browser = shop.app.test_client()
        page = browser.get("/").text
        assert browser.get("/").text == page, "the same visitor sees the same page"
        assert "lamp" in browser.get(links(page)[visitor % 4]).text
        pages.append(links(page))
    assert all(len(page) == 4 for page in pages)
    assert shop.service.flush(30)
    assert shop.service.delivery.accepted == 5
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        view = httpx.get(f"{address}/v1/contexts/lamps", timeout=30).json()
        if view["arms"]["explore"]["pages"] == 5:
            break
        time.sleep(0.2)
    assert view["arms"]["explore"] == {"pages": 5, "clicked_pages": 5, "clicks": 5}
    assert view["base_ranking"] == shop.LAMPS and view["candidates"] == shop.NEW_LAMPS


def test_a_visitor_who_tampers_changes_nothing(shop: Any) -> None:
    browser = shop.app.test_client()
    token = links(browser.get("/").text)[0].partition("token=")[2]
    assert browser.get(f"/lamp/none-such?token={token}").status_code == 200
    assert browser.get(f"/lamp/desk?token={token[:-3]}xyz").status_code == 200
    assert "<script>" not in browser.get("/lamp/<script>").text
    assert shop.service.flush(30)
    assert (shop.service.delivery.accepted, shop.service.delivery.refused) == (0, 2)


def test_without_a_service_the_shop_shows_productions_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFERANK", "http://127.0.0.1:9")
    module: Any = ModuleType("shop")
    exec(compile(blocks("tutorial.md")[0], "shop.py", "exec"), module.__dict__)
    page = module.app.test_client().get("/").text
    assert [re.sub(r"/lamp/(\w+).*", r"\1", link) for link in links(page)] == module.LAMPS
    assert module.app.test_client().get(links(page)[0]).status_code == 200
    assert module.service.close()
    assert module.service.delivery.refused == 0


def test_it_is_thirty_lines() -> None:
    (block,) = blocks("tutorial.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 30


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_client_page_run_with_and_without_a_service(number: int, address: str) -> None:
    for url, fallback in (("http://127.0.0.1:9", True), (address, False)):
        script = (
            blocks("client.md")[number].replace("http://127.0.0.1:8080", url).replace("time_limit=0.1", "time_limit=20")
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert "'desk'" in done.stdout
        if number == 0:
            assert str(fallback) in done.stdout
