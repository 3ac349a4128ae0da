"""saferank.js in a real browser with a real service behind it, and the route of its beacon."""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import saferank
from saferank.service.keys import hashed
from tests.running_service import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCRIPT = Path(str(saferank.__file__)).parent / "service" / "http" / "adapters" / "saferank.js"
HTML = """<!doctype html><title>shop</title>
<ol data-saferank-token="{token}"><li data-saferank-item="a"><a href="/next">a</a></li>
<li data-saferank-item="b"><button>b <i id="inner">!</i></button></li></ol><p id="elsewhere">elsewhere</p>
<div style="height: 5000px"></div><ul data-saferank-token="{below}"><li data-saferank-item="a">a</li></ul>
<script src="{address}/saferank.js" data-key="shop-feedback" defer></script>"""


class Origin(ThreadingHTTPServer):
    """A web site on this machine; a page of an invented one may not reach services of this machine."""

    html = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.server.html.encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("service")
    roles = (f'{role} = ["{hashed(f"shop-{role}")}"]\n' for role in ("rank", "read", "feedback"))
    keys = "[tenants.shop]\n" + "".join(roles)
    (folder / "serve.toml").write_text(f'cors_origins = ["{origin.url}"]\n{keys}', encoding="utf-8")
    patient = ("--set", "max_lag_seconds=60")
    with serving("--store", folder / "store", "--config", folder / "serve.toml", *patient) as service:
        yield service.address


class Shop:
    """A web page of another origin with two ranked lists."""

    def __init__(self, page: "Page", address: str, origin: Origin) -> None:
        self.page, self.address, self.url = page, address, origin.url
        self.pages = [self._ask("/v1/rank", {"context": "c", "base_ranking": ["a", "b"], "k": 2}) for _ in "12"]
        self.reports: list[Any] = []
        page.on("request", lambda request: self.reports.append(request) if request.method == "POST" else None)
        tokens = {"token": self.pages[0]["token"], "below": self.pages[1]["token"]}
        origin.html = HTML.format(address=address, **tokens)

    def _ask(self, path: str, body: object = None) -> Any:
        method = "GET" if body is None else "POST"
        headers = {"X-API-Key": "shop-read" if body is None else "shop-rank"}
        return httpx.request(method, self.address + path, json=body, headers=headers, timeout=60).json()

    def clicks(self, number: int = 0) -> list[str]:
        found: list[str] = self._ask(f"/v1/impressions/{self.pages[number]['impression_id']}")["clicks"]
        return found

    def until(self, clicks: list[str]) -> None:
        deadline = time.monotonic() + 120
        while sorted(self.clicks()) != clicks:
            assert time.monotonic() < deadline, self.clicks()
            self.page.wait_for_timeout(50)


@pytest.fixture
def shop(chromium: "Browser", address: str, origin: Origin) -> Iterator[Shop]:
    page = chromium.new_page()
    yield Shop(page, address, origin)
    page.close()


def bodies(shop: Shop) -> list[Any]:
    return [json.loads(request.post_data) for request in shop.reports]


def test_impressions_and_clicks_are_reported_once(shop: Shop) -> None:
    with shop.page.expect_response("**/v1/feedback"):
        shop.page.goto(shop.url)
    assert bodies(shop) == [{"token": shop.pages[0]["token"], "clicks": []}], "the list below was not seen"
    shop.page.locator("#elsewhere").click()
    shop.page.locator("#inner").click()
    shop.page.locator("#inner").click()
    shop.until(["b"])  # the answer to this report may still be on its way
    with shop.page.expect_response(lambda answer: shop.pages[1]["token"] in (answer.request.post_data or "")):
        shop.page.mouse.wheel(0, 9000)
    assert [len(body["clicks"]) for body in bodies(shop)] == [0, 1, 0]
    assert bodies(shop)[2]["token"] == shop.pages[1]["token"]
    assert all("token" not in request.url for request in shop.reports)


def test_a_click_that_leaves_the_page_arrives(shop: Shop) -> None:
    shop.page.goto(shop.url)
    shop.page.locator("li a").first.click()
    shop.page.wait_for_url("**/next")
    shop.until(["a"])


def test_what_fetch_cannot_deliver_goes_by_the_beacon(shop: Shop) -> None:
    shop.page.route("**/v1/feedback", lambda route: route.abort())
    shop.page.goto(shop.url)
    shop.page.locator("#inner").click()
    shop.until(["b"])
    assert any("/v1/beacon?key=" in request.url for request in shop.reports)


def test_a_page_can_report_by_itself(shop: Shop) -> None:
    shop.page.goto(shop.url)
    token = shop.pages[0]["token"]
    assert shop.page.evaluate("token => saferank.report(token, ['a', 'b'])", token) is True
    assert shop.page.evaluate("token => saferank.report(token + 'x', ['a'])", token) is False
    assert sorted(shop.clicks()) == ["a", "b"]


def test_in_a_bundle_it_reports_once_it_is_connected(shop: Shop, origin: Origin) -> None:
    tag = f'<script src="{shop.address}/saferank.js" data-key="shop-feedback" defer></script>'
    assert tag in origin.html
    bundle = SCRIPT.read_text(encoding="utf-8").replace("</script>", "")
    origin.html = origin.html.replace(tag, f"<script>{bundle}</script>")
    shop.page.goto(shop.url)
    shop.page.locator("#inner").click()
    assert shop.page.evaluate("token => saferank.report(token, ['a'])", shop.pages[0]["token"]) is False
    assert shop.reports == []
    with shop.page.expect_response("**/v1/feedback"):
        shop.page.evaluate("at => saferank.connect(at + '/', 'shop-feedback')", shop.address)
    shop.page.locator("#inner").click()
    shop.until(["b"])


def test_the_package_for_bundles_is_the_script_that_is_served() -> None:
    folder = Path(__file__).parents[4] / "clients" / "js"
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    assert (folder / package["main"]).read_bytes() == SCRIPT.read_bytes()
    assert all((folder / file).is_file() for file in (*package["files"], package["types"]))
    assert package["version"] == saferank.__version__
    offered = re.search(r"window.saferank = {(.*)}", SCRIPT.read_text(encoding="utf-8"))
    typed = re.findall(r"^  (\w+)\(", (folder / package["types"]).read_text(encoding="utf-8"), re.MULTILINE)
    assert offered is not None and [name.strip() for name in offered[1].split(",")] == typed


def test_the_script_is_small_and_needs_nothing() -> None:
    assert SCRIPT.stat().st_size < 3000
    assert "import" not in SCRIPT.read_text(encoding="utf-8")
