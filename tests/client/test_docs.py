"""The tutorial's shop and the examples of docs/engineers/client.md, run against a real service."""

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from werkzeug.serving import make_server

from tests.running_service import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("--store", tmp_path_factory.mktemp("service") / "store", "--window-seconds", "2") as service:
        yield service.address


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of the tutorial behind a real server, with a service of its own that knows its origin."""
    (block,) = blocks("engineers/tutorial.md")
    with socket.create_server(("127.0.0.1", 0)) as bound:
        origin = f"http://127.0.0.1:{bound.getsockname()[1]}"
        options = ("--window-seconds", "6", "--set", f"cors_origins={origin}", "--set", "max_lag_seconds=60")
        alone = ("--set", "holdout_share=0", "--set", "guardrail_drop=0")  # every visitor gets the policy's page
        with serving("--store", tmp_path_factory.mktemp("shop") / "store", *options, *alone) as service:
            module = shop_module(block, service.address)
            module.service._link._limit = 20.0  # as patient as a busy machine needs
            module.origin, module.address = origin, service.address
            server = make_server("127.0.0.1", 0, module.app, threaded=True, fd=bound.fileno())
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield module
            server.shutdown()
            thread.join()
            server.server_close()
            module.service.close()


def shop_module(block: str, address: str) -> Any:
    module: Any = ModuleType("shop")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SAFERANK", address)
        exec(compile(block, "shop.py", "exec"), module.__dict__)
    return module


def shown(page: str) -> list[str]:
    return re.findall(r'data-saferank-item="([^"]+)"', page)


def arm(shop: Any) -> dict[str, int]:
    found: dict[str, int] = httpx.get(f"{shop.address}/v1/contexts/lamps", timeout=120).json()["arms"]["explore"]
    return found


def test_the_shop_shows_clicks_and_learns(shop: Any, chromium: "Browser") -> None:
    for visitor in range(3):
        page = chromium.new_page()  # each has its own cookies
        with page.expect_response("**/v1/feedback") as seen:
            page.goto(shop.origin)
        assert seen.value.ok
        first = page.locator("li").all_inner_texts()
        page.locator("li a").nth(visitor).click()
        page.get_by_role("link", name="back").click()
        assert "token" not in page.url
        second, third = (reloaded(page) for _ in range(2))
        assert second in (first, third), "the same visitor sees the same page, until a window begins"
        page.close()
    deadline = time.monotonic() + 120
    while arm(shop)["clicks"] < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert arm(shop)["clicks"] == arm(shop)["clicked_pages"] == 3
    view = httpx.get(f"{shop.address}/v1/contexts/lamps", timeout=120).json()
    assert view["base_ranking"] == shop.LAMPS and view["candidates"] == shop.NEW_LAMPS


def reloaded(page: "Page") -> list[str]:
    page.reload()
    return page.locator("li").all_inner_texts()


def test_asking_for_a_product_is_no_click(shop: Any) -> None:
    before = httpx.get(f"{shop.address}/v1/export", timeout=120).text.count('"kind":"clicks"')
    page = httpx.get(shop.origin).text
    for lamp in shown(page):
        assert "lamp" in httpx.get(f"{shop.origin}/lamp/{lamp}").text
    assert "<script>" not in httpx.get(f"{shop.origin}/lamp/%3Cscript%3E").text
    assert httpx.get(f"{shop.address}/v1/export", timeout=120).text.count('"kind":"clicks"') == before


def test_without_a_service_the_shop_shows_productions_page() -> None:
    module = shop_module(blocks("engineers/tutorial.md")[0], "http://127.0.0.1:9")
    page = module.app.test_client().get("/").text
    assert shown(page) == module.LAMPS and 'data-saferank-token=""' in page
    assert module.app.test_client().get("/lamp/desk").status_code == 200
    assert module.service.close()


def test_it_is_thirty_lines() -> None:
    (block,) = blocks("engineers/tutorial.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 30


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_client_page_run_with_and_without_a_service(number: int, address: str) -> None:
    for url, fallback in (("http://127.0.0.1:9", True), (address, False)):
        block = blocks("engineers/client.md")[number]
        script = block.replace("http://127.0.0.1:8080", url).replace("time_limit=0.1", "time_limit=20")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert "'desk'" in done.stdout
        if number == 0:
            assert str(fallback) in done.stdout
