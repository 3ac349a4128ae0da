"""What both screens of the dashboard share: asking, the key, the global switch, the files."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.running_service import serving
from tests.service.dashboard.browsing import FILES, WAIT, Watched, api, tab_to, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_it_goes_on_asking_and_pauses_while_nobody_looks(watched: Watched) -> None:
    page = watched.open()
    before = len(watched.requests)
    until(page, "performance.getEntriesByType('resource').length > 35")
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


def test_a_lost_connection_is_said_and_found_again(watched: Watched) -> None:
    page = watched.open()
    page.route("**/v1/**", lambda route: route.abort())
    page.locator("#connection", has_text="Connection lost").wait_for()
    assert page.locator("#connection").get_attribute("role") == "alert"
    page.unroute("**/v1/**")
    page.locator("#connection").wait_for(state="hidden")


def test_it_asks_for_a_key_where_one_is_needed(chromium: "Browser", tmp_path: Path) -> None:
    from saferank.service.keys import hashed

    settings = tmp_path / "settings.toml"
    settings.write_text(f'[tenants.shop]\noperate = ["{hashed("an-operate-key")}"]\n', encoding="utf-8")
    with serving("--store", tmp_path / "store", "--config", settings) as service:
        page = chromium.new_page()
        page.set_default_timeout(WAIT)
        page.goto(service.address)
        until(page, "document.activeElement.id === 'key'")
        assert page.locator("#main").is_hidden()
        page.keyboard.type("a wrong key")
        page.keyboard.press("Enter")
        page.locator("#key-problem", has_text="does not open").wait_for()
        page.locator("#key").fill("an-operate-key")
        page.keyboard.press("Enter")
        page.locator("#contexts-more", has_text="No context yet").wait_for()
        kept = page.evaluate("[sessionStorage.length, localStorage.length, document.cookie, location.href]")
        assert kept == [1, 0, "", f"{service.address}/"]
        page.get_by_role("button", name="Forget the key").click()
        page.locator("#key-panel").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        page.close()


def test_the_files_need_nothing_from_elsewhere_and_no_exception_from_the_policy() -> None:
    files = [path for path in FILES.rglob("*") if path.is_file()]
    assert len(files) > 15
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|url\(|@import", text), path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
    page = (FILES / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
