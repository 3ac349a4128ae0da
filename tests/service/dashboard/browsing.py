"""A service with two contexts, a browser that looks at it, and what tests of the dashboard share."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from saferank_client import Client

import saferank
from tests.running_service import serving
from tests.service.dashboard import answers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

FILES = Path(str(saferank.__file__)).parent / "service" / "dashboard"
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'&amp;" + "x" * 200
CHAIRS = "garden chairs"
ITEMS = [f"chair-{i}" for i in range(1, 9)]
NASTY_ITEMS = [f"<b onclick=alert({i})>" + "long" * 55 for i in range(8)]
WAIT = 20_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("service") / "store"
    patient = ("--set", "holdout_share=0.3", "--set", "max_lag_seconds=60")
    with serving("--store", store, "--window-seconds", "2", *patient) as service:
        with Client(service.address, time_limit=20) as client:
            for visitor in range(120):
                for context, items in ((CHAIRS, ITEMS), (HOSTILE, NASTY_ITEMS)):
                    page = client.rank(context, items[:4], items[4:], k=4, session_id=f"s{visitor}")
                    client.feedback(page, page.items[visitor % 4 : visitor % 4 + 1])
            assert client.flush(30) and client.delivery.accepted + client.delivery.late == 240
        while api(service.address, "/v1/contexts/garden%20chairs")["open_pages"] or total(service.address) < 240:
            time.sleep(0.1)
        yield service.address


def words_of(place: "Locator") -> str:
    """The visible text, with blanks that may not be broken as plain ones."""
    return place.inner_text().replace("\u00a0", " ")


def total(address: str) -> int:
    return sum(context["pages"] for context in api(address, "/v1/contexts")["contexts"])


class Watched:
    """A page and everything it asked for or complained about.

    The effect of a context is answered here, so that tests do not depend on how far the comparison has come.
    """

    def __init__(self, page: "Page", address: str) -> None:
        self.page, self.address = page, address
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.answer("**/v1/contexts/*/effect", msgspec.to_builtins(answers.BETTER))

    def answer(self, path: str, body: Any) -> None:
        """Answer a question in place of the service."""
        self.page.unroute(path)
        self.page.route(path, lambda route: route.fulfill(json=body))

    def overview(self, count: int | None = None, view: dict[str, Any] | None = None) -> "Page":
        """The first screen, of the service or of a number of made-up contexts."""
        if count is not None:
            self.answer("**/v1/overview", view or answers.overview(count))
            self.answer("**/v1/contexts", answers.context_list(count))
        self.page.goto(self.address)
        self.page.locator("#status.ok").wait_for()
        return self.page

    def open(self, context: str = CHAIRS) -> "Page":
        self.page.goto(self.address)
        self.page.get_by_role("link", name=re.compile(re.escape(context[:10]))).first.click(timeout=WAIT)
        self.page.locator("#title h2", has_text=context[:10]).wait_for(timeout=WAIT)
        return self.page

    def unexpected(self) -> list[str]:
        """What it complained about, and whom it asked besides its own service."""
        elsewhere = [url for url in self.requests if not url.startswith(self.address)]
        return [complaint for complaint in self.complaints if "503" not in complaint] + elsewhere


@pytest.fixture
def watched(chromium: "Browser", address: str, request: pytest.FixtureRequest) -> Iterator[Watched]:
    options = getattr(request, "param", {})
    page = chromium.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
    page.set_default_timeout(WAIT)
    yield Watched(page, address)
    page.close()


def api(address: str, path: str) -> Any:
    return httpx.get(f"{address}{path}", timeout=30).json()


def until(page: "Page", claim: str) -> None:
    """Wait for a claim in JavaScript; playwright's own way of waiting is forbidden by the content security policy."""
    deadline = time.monotonic() + WAIT / 1000
    while not page.evaluate(claim):
        assert time.monotonic() < deadline, claim
        page.wait_for_timeout(50)


def tab_to(page: "Page", selector: str, most: int = 60) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", "the focus must be visible"
            return
    raise AssertionError(f"{selector} is not reached with {most} presses of Tab")


LOOKS = [
    {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    for width in (1280, 390, 320)
    for scheme in ("light", "dark")
]
over_looks = pytest.mark.parametrize(
    "watched", LOOKS, indirect=True, ids=lambda look: f"{look['viewport']['width']}-{look['color_scheme']}"
)
CONTRAST = """() => {
  const linear = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => rgb.slice(0, 3).reduce((sum, c, i) => sum + linear(c / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    const colour = numbers(getComputedStyle(element).backgroundColor);
    return colour.length === 3 ? colour : ground(element.parentElement);
  };
  const ratio = (element) => {
    const both = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  const texts = 'h1,h2 bdi,h3,p,dt,dd,th,td,button,a,label,.badge,.cell.sure,.cell.wrong,.soft,.move,.chip,.banner';
  return [...document.querySelectorAll(texts)]
    .filter((element) => element.innerText && !element.disabled && !element.closest('.unseen, .skip, [hidden], dialog'))
    .filter((element) => ratio(element) < 4.5)
    .map((element) => `${element.tagName}.${element.className} ${ratio(element).toFixed(2)}`);
}"""
"""The texts whose contrast is below what WCAG asks for."""
MOVING = """[...document.querySelectorAll('*')]
  .filter((element) => parseFloat(getComputedStyle(element).transitionDuration) > 0).length"""


def check_look(page: "Page", look: dict[str, Any]) -> None:
    """No scrolling to the side, the colours that were asked for, and texts that can be read."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide == look["viewport"]["width"], f"{wide} pixels wide"
    back = [int(part) for part in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))]
    assert (sum(back[:3]) < 3 * 64) == (look["color_scheme"] == "dark"), f"the ground is {back}"
    faint = page.evaluate(CONTRAST)
    assert faint == [], faint
