"""The dashboard in a real browser, with the real service behind it."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from running_service import serving

import saferank
from saferank.client import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

FILES = Path(str(saferank.__file__)).parent / "service" / "dashboard"
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'&amp;" + "x" * 200
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
                for context, items in (("garden chairs", ITEMS), (HOSTILE, NASTY_ITEMS)):
                    page = client.rank(context, items[:4], items[4:], k=4, session_id=f"s{visitor}")
                    client.feedback(page, page.items[visitor % 4 : visitor % 4 + 1])
            assert client.flush(30) and client.delivery.accepted + client.delivery.late == 240
        while any(context["open_pages"] for context in api(service.address, "/v1/contexts")["contexts"]):
            time.sleep(0.1)
        yield service.address


class Watched:
    """A page and everything it asked for or complained about."""

    def __init__(self, page: "Page", address: str) -> None:
        self.page, self.address = page, address
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, context: str = "garden chairs") -> "Page":
        self.page.goto(self.address)
        self.page.get_by_role("link", name=re.compile(re.escape(context[:10]))).click(timeout=WAIT)
        self.page.locator("#title h2", has_text=context[:10]).wait_for(timeout=WAIT)
        return self.page


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


# --- what it shows ---


def test_it_shows_the_context_and_asks_nobody_else(watched: Watched) -> None:
    page = watched.open()
    until(page, "document.querySelectorAll('#matrix .cell').length >= 6")
    texts = {
        name: page.locator(f"#{name}").inner_text() for name in ("rankings", "clicks", "safety", "timeline", "tiles")
    }
    assert all(item in texts["rankings"] for item in api(watched.address, "/v1/contexts/garden%20chairs")["leader"])
    assert "Served by saferank" in texts["clicks"] and "Holdout" in texts["clicks"]
    assert "failed the check before serving" in texts["safety"] and "Leader 1" in texts["timeline"]
    assert "120" in texts["tiles"]
    assert {url for url in watched.requests if not url.startswith(watched.address)} == set()
    assert [complaint for complaint in watched.complaints if "503" not in complaint] == []


def test_it_goes_on_asking_and_pauses_while_nobody_looks(watched: Watched) -> None:
    page = watched.open()
    before = len(watched.requests)
    until(page, "performance.getEntriesByType('resource').length > 20")
    assert len(watched.requests) > before
    page.evaluate("""() => { Object.defineProperty(document, 'hidden', {value: true, configurable: true});
                             document.dispatchEvent(new Event('visibilitychange')); }""")
    page.wait_for_timeout(1500)  # what was under way comes to its end
    before = len(watched.requests)
    page.wait_for_timeout(3500)
    assert len(watched.requests) == before
    page.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }")
    page.wait_for_timeout(3000)
    assert len(watched.requests) > before


def test_hostile_names_are_only_text(watched: Watched) -> None:
    page = watched.open(HOSTILE)
    until(page, "document.querySelectorAll('#matrix .cell').length >= 6")
    assert page.locator("main img, main b, main script").count() == 0
    assert page.locator("#title h2 bdi").inner_text().startswith("<img src=x onerror=alert(1)><U+202E>\"'&amp;xxx")
    assert page.locator("#rankings bdi").first.get_attribute("title") == NASTY_ITEMS[0]
    assert [complaint for complaint in watched.complaints if "503" not in complaint] == []


def test_the_numbers_of_the_chart(watched: Watched) -> None:
    """Wilson's interval for 10 of 100, and Newcombe's tenth example (56 of 70 against 48 of 80)."""
    page = watched.open()
    found = page.evaluate(
        """async () => { const { wilson, difference } = await import('/clickthrough.js');
           return [wilson(10, 100), difference(wilson(56, 70), wilson(48, 80)), wilson(0, 0)]; }"""
    )
    assert [found[0]["low"], found[0]["high"]] == pytest.approx([0.0552, 0.1744], abs=1e-4)
    assert [found[1]["low"], found[1]["high"]] == pytest.approx([0.0524, 0.3339], abs=1e-4)
    assert found[2] == {"share": 0, "low": 0, "high": 1}


# --- looks ---

LOOKS = [
    {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    for width in (1280, 390, 320)
    for scheme in ("light", "dark")
]
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
  const texts = 'h1,h2 bdi,h3,p,dt,dd,button,a,label,.badge,.cell.sure,.cell.wrong,.soft,.move,.chip';
  return [...document.querySelectorAll(texts)]
    .filter((element) => element.innerText && !element.disabled && !element.closest('.unseen, .skip, [hidden], dialog'))
    .filter((element) => ratio(element) < 4.5)
    .map((element) => `${element.tagName}.${element.className} ${ratio(element).toFixed(2)}`);
}"""
"""The texts whose contrast is below what WCAG asks for."""
MOVING = """[...document.querySelectorAll('*')]
  .filter((element) => parseFloat(getComputedStyle(element).transitionDuration) > 0).length"""


@pytest.mark.parametrize(
    "watched", LOOKS, indirect=True, ids=lambda look: f"{look['viewport']['width']}-{look['color_scheme']}"
)
def test_it_fits_and_can_be_read(watched: Watched, request: pytest.FixtureRequest) -> None:
    look = request.node.callspec.params["watched"]
    page = watched.open(HOSTILE)
    until(page, "document.querySelectorAll('#matrix .cell').length >= 6")
    assert page.evaluate("document.documentElement.scrollWidth") == look["viewport"]["width"]
    back = [int(part) for part in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))]
    assert (sum(back[:3]) < 3 * 64) == (look["color_scheme"] == "dark")
    assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("watched", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_for_those_who_asked(watched: Watched) -> None:
    page = watched.open()
    assert page.evaluate(MOVING) == 0


# --- by keyboard alone ---


def tab_to(page: "Page", selector: str, most: int = 60) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", "the focus must be visible"
            return
    raise AssertionError(f"{selector} is not reached with {most} presses of Tab")


def test_the_first_stop_skips_to_the_context(watched: Watched) -> None:
    page = watched.open()
    page.reload()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    roles = ("banner", "navigation", "main", "contentinfo")
    assert [page.get_by_role(role).count() for role in roles] == [1] * 4  # type: ignore[arg-type]


def test_the_global_switch_works_and_can_be_cancelled(watched: Watched) -> None:
    page = watched.open()
    until(page, "!document.querySelector('#kill-all').disabled")
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "#kill-all")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'confirm-no'")
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('#confirm').open")
    assert page.evaluate("document.activeElement.id") == "kill-all"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # on Cancel
    until(page, "!document.querySelector('#confirm').open")
    assert not api(watched.address, "/v1/contexts")["killed_everywhere"]["on"]

    switch_by_keyboard(page, "a fire drill")
    page.locator("#killed-everywhere", has_text="a fire drill").wait_for()
    assert api(watched.address, "/v1/contexts")["killed_everywhere"]["on"]
    until(page, "document.querySelector('#kill-all').innerText === 'Switch on everywhere…'")
    page.locator("#title .badge", has_text="switched off").wait_for()

    switch_by_keyboard(page, "over")
    page.locator("#killed-everywhere").wait_for(state="hidden")
    assert not api(watched.address, "/v1/contexts")["killed_everywhere"]["on"]


def switch_by_keyboard(page: "Page", why: str) -> None:
    """With the focus on a switch: open the dialog, give a reason, confirm."""
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'confirm-no'")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "why"
    page.keyboard.press("Control+A")
    page.keyboard.type(why)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "confirm-yes"
    page.keyboard.press("Enter")
    until(page, "!document.querySelector('#confirm').open")


def test_the_switch_of_one_context(watched: Watched) -> None:
    page = watched.open()
    tab_to(page, "[data-action=kill-one]")
    switch_by_keyboard(page, "only this one")
    page.locator("#title", has_text="only this one").wait_for()
    killed = {entry["name"]: entry["killed"] for entry in api(watched.address, "/v1/contexts")["contexts"]}
    assert killed == {"garden chairs": True, HOSTILE: False}
    until(page, "document.activeElement.dataset.action === 'kill-one'")  # redrawn, and still there
    switch_by_keyboard(page, "again")
    page.locator("#title .badge", has_text="live").wait_for()


def test_the_matrix_is_read_with_the_arrow_keys(watched: Watched) -> None:
    page = watched.open()
    until(page, "document.querySelectorAll('#matrix .cell').length >= 6")
    tab_to(page, "#matrix .cell")
    for key, expected in (("ArrowRight", "0,2"), ("ArrowDown", "1,2"), ("ArrowDown", "1,2"), ("ArrowRight", "1,3")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.key") == expected
    said = page.locator("#pairs output").inner_text()
    assert "chair-" in said and said == page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_a_rollback(watched: Watched) -> None:
    """Offered for every leader but the present one; the dialog says what it does."""
    page = watched.open()

    def with_history(route: "Route") -> None:
        view = api(watched.address, "/v1/contexts/garden%20chairs")
        older = {**view["versions"][-1], "version": 0}
        route.fulfill(json={**view, "versions": [*view["versions"], older]})

    page.route("**/v1/contexts/garden%20chairs", with_history)
    page.get_by_role("button", name="Go back to it…").first.click()
    assert page.locator("#confirm-title").inner_text() == "Go back to leader 0 of “garden chairs”?"
    page.locator("#confirm-yes").click()
    page.locator("#confirm-problem", has_text="That did not work").wait_for()  # the real service knows no version 0


# --- trouble ---


def test_a_lost_connection_is_said_and_found_again(watched: Watched) -> None:
    page = watched.open()
    page.route("**/v1/**", lambda route: route.abort())
    page.locator("#connection", has_text="Connection lost").wait_for()
    assert page.locator("#connection").get_attribute("role") == "alert"
    page.unroute("**/v1/**")
    page.locator("#connection").wait_for(state="hidden")


def test_alarms_are_announced(watched: Watched) -> None:
    page = watched.open()
    view = api(watched.address, "/v1/contexts/garden%20chairs")
    bad = {**view, "mode": "off", "frozen": "a above b above a", "alarms": {"illegal_page": 2, "unheard_of": 1}}
    page.route("**/v1/contexts/garden%20chairs", lambda route: route.fulfill(json=bad))
    page.locator("#alarms .banner", has_text="Frozen on production's ranking").wait_for()
    assert page.locator("#alarms .banner").count() == 3 and "Unheard of: 1" in page.locator("#alarms").inner_text()
    assert page.locator("#alarms").get_attribute("aria-live") == "assertive"
    assert "frozen" in page.locator("#title .badge").inner_text()


def test_a_thousand_contexts_stay_usable(watched: Watched) -> None:
    page = watched.open()
    listed = api(watched.address, "/v1/contexts")
    many = [{**listed["contexts"][0], "name": f"query {i}", "pages": i} for i in range(1000)]
    page.route("**/v1/contexts", lambda route: route.fulfill(json={**listed, "contexts": listed["contexts"] + many}))
    page.locator("#contexts-more", has_text="and 802 more contexts").wait_for()
    assert page.locator("#contexts a").count() == 200
    assert page.locator("#contexts a[tabindex='0']").count() == 1
    page.locator("#filter").fill("QUERY 99")
    until(page, "document.querySelectorAll('#contexts a').length === 11")
    assert page.locator("#contexts-count").inner_text() == "11 of 1,002"
    page.locator("#filter").fill("nothing of the kind")
    page.locator("#contexts-more", has_text="No context has such a name.").wait_for()


def test_arrow_keys_walk_through_the_contexts(watched: Watched) -> None:
    page = watched.open()
    tab_to(page, "#contexts a")
    before = page.evaluate("document.activeElement.dataset.key")
    page.keyboard.press(
        "ArrowDown" if page.evaluate("document.activeElement === document.querySelector('#contexts a')") else "ArrowUp"
    )
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#contexts a[aria-current]')?.dataset.key !== " + json.dumps(before))


def test_it_asks_for_a_key_where_one_is_needed(chromium: "Browser", tmp_path: Path) -> None:
    from saferank.service.keys import hashed

    settings = tmp_path / "settings.toml"
    settings.write_text(f'[tenants.shop]\nrank = ["{hashed("a-rank-key")}"]\n', encoding="utf-8")
    with serving("--store", tmp_path / "store", "--config", settings) as service:
        page = chromium.new_page()
        page.set_default_timeout(WAIT)
        page.goto(service.address)
        until(page, "document.activeElement.id === 'key'")
        assert page.locator("#board").is_hidden()
        page.keyboard.type("a wrong key")
        page.keyboard.press("Enter")
        page.locator("#key-problem", has_text="does not open").wait_for()
        page.locator("#key").fill("a-rank-key")
        page.keyboard.press("Enter")
        page.locator("#empty").wait_for()
        kept = page.evaluate("[sessionStorage.length, localStorage.length, document.cookie, location.href]")
        assert kept == [1, 0, "", f"{service.address}/"]
        page.get_by_role("button", name="Forget the key").click()
        page.locator("#key-panel").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        page.close()


# --- the files ---


def test_the_files_need_nothing_from_elsewhere_and_no_exception_from_the_policy() -> None:
    for path in FILES.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|url\(|@import", text), path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
    page = (FILES / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
