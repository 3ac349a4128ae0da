"""The page of one context, in a real browser with the real service behind it."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.service.dashboard import answers
from tests.service.dashboard.browsing import (
    CHAIRS,
    HOSTILE,
    MOVING,
    NASTY_ITEMS,
    Watched,
    api,
    check_look,
    over_looks,
    tab_to,
    until,
    words_of,
)
from tests.service.dashboard.test_app import switch_by_keyboard

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

DRAWN = "document.querySelectorAll('#matrix .cell').length >= 6"


def made_up(watched: Watched, **more: Any) -> "Page":
    """A context with a past that is longer than a test."""
    watched.answer("**/v1/contexts/lamps", {**answers.context("lamps"), **more})
    watched.page.goto(f"{watched.address}/#context=lamps")
    until(watched.page, DRAWN)
    return watched.page


def test_it_shows_the_context_and_asks_nobody_else(watched: Watched) -> None:
    page = watched.open()
    until(page, DRAWN)
    texts = {
        name: page.locator(f"#{name}").inner_text() for name in ("rankings", "clicks", "safety", "others", "tiles")
    }
    assert all(item in texts["rankings"] for item in api(watched.address, "/v1/contexts/garden%20chairs")["leader"])
    assert "Served, counted" in texts["clicks"] and "Holdout" in texts["clicks"]
    assert "failed the check before serving" in texts["safety"] and "Version 1" in texts["others"]
    assert "120" in texts["tiles"]
    assert watched.unexpected() == []


def test_hostile_names_are_only_text(watched: Watched) -> None:
    page = watched.open(HOSTILE)
    until(page, "document.querySelectorAll('#matrix .cell').length >= 6")
    assert page.locator("main img, main b, main script").count() == 0
    assert page.locator("#title h2 bdi").inner_text().startswith("<img src=x onerror=alert(1)><U+202E>\"'&amp;xxx")
    assert page.locator("#rankings bdi").first.get_attribute("title") == NASTY_ITEMS[0]
    assert watched.unexpected() == []


@over_looks
def test_it_fits_and_can_be_read(watched: Watched, request: pytest.FixtureRequest) -> None:
    page = watched.open(HOSTILE)
    until(page, DRAWN)
    check_look(page, request.node.callspec.params["watched"])
    page = made_up(watched)
    check_look(page, request.node.callspec.params["watched"])


@pytest.mark.parametrize("watched", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_for_those_who_asked(watched: Watched) -> None:
    assert watched.open().evaluate(MOVING) == 0


# --- for operators ---


def test_changes_by_clicks_stand_apart_and_say_what_left(watched: Watched) -> None:
    page = made_up(watched)
    clicks, others = page.locator("#by-clicks").inner_text(), page.locator("#others").inner_text()
    assert "Version 4" in clicks and "Version 2" in clicks and "Version 3" in others and "Version 1" in others
    assert "lamp-7 is better than lamp-5: lead 52 in 66 comparisons" in clicks
    assert "lamp-3 is better than lamp-2, after 47 comparisons" in clicks, "decided by odds, against the count"
    proofs = page.locator("#by-clicks .evidence")
    assert not proofs.evaluate_all("lists => lists.some((list) => list.scrollHeight > list.clientHeight)"), "cut off"
    newest = page.locator("#by-clicks .timeline > li").first.inner_text()
    assert "Left the page: lamp-5." in newest and "Production's own ranking changed" not in newest
    older = page.locator("#by-clicks .timeline > li").nth(1).inner_text()
    assert "Production's own ranking changed" in older, "lamp-10 came and lamp-5 left without a decided pair"
    assert "came to the end of its time" in others
    assert "Left the page: lamp-5." in page.locator("#rankings").inner_text()


def test_it_speaks_to_operators(watched: Watched) -> None:
    page = made_up(watched)
    assert "They have not been compared yet." in page.locator("#exploring").inner_text()
    assert "optimistic" not in page.locator("body").inner_text() and "chance to win" not in page.content()
    assert page.locator("#exploring details").get_attribute("open") is None


def test_the_matrix_scrolls_inside_its_card(watched: Watched) -> None:
    page = made_up(watched)
    frame = page.locator(".matrix-frame")
    wide, high = (frame.evaluate(f"(e) => e.scroll{side} > e.client{side}") for side in ("Width", "Height"))
    assert wide and high
    frame.evaluate("(e) => e.scrollTo(120, 80)")
    view = answers.context("lamps")
    view["pairs"][0]["n"] += 2
    watched.answer("**/v1/contexts/lamps", view)
    page.wait_for_timeout(2500)  # it has been drawn again
    assert frame.evaluate("(e) => [e.scrollLeft, e.scrollTop]") == [120, 80]


@pytest.mark.parametrize(
    ("effect", "words", "tone"),
    [
        (answers.BETTER, "Better: +5.8 %", "up"),
        (answers.STOPPED, "Worse: \u22128.3 %", "down"),
        (answers.effect(-0.02, 0.01, 0.04), "No difference can be told yet", None),
    ],
)
def test_a_difference_is_coloured_only_by_its_interval(
    watched: Watched, effect: Any, words: str, tone: str | None
) -> None:
    watched.answer("**/v1/contexts/*/effect", msgspec.to_builtins(effect))
    page = made_up(watched)
    verdict = page.locator("#clicks .verdict")
    assert words in words_of(verdict)
    assert [verdict.locator(f".{look}").count() for look in ("up", "down")] == [tone == "up", tone == "down"]
    assert ("Stopped by the guardrail" in page.locator("#clicks").inner_text()) == (effect is answers.STOPPED)


def test_an_unknown_context_is_said_to_be_unknown(watched: Watched) -> None:
    watched.page.goto(f"{watched.address}/#context=nobody")
    watched.page.locator("#title", has_text="There is no such context").wait_for()
    watched.page.get_by_role("link", name="All contexts").click()
    watched.page.locator("#contexts-body a").first.wait_for()


# --- by keyboard alone ---


def test_the_switch_of_one_context(watched: Watched) -> None:
    page = watched.open()
    tab_to(page, "[data-action=kill-one]")
    switch_by_keyboard(page, "only this one")
    page.locator("#title", has_text="only this one").wait_for()
    killed = {entry["name"]: entry["killed"] for entry in api(watched.address, "/v1/contexts")["contexts"]}
    assert killed == {CHAIRS: True, HOSTILE: False}
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
    """Offered for every version but the present one; the dialog says what it does."""
    page = watched.open()

    def with_history(route: "Route") -> None:
        view = api(watched.address, "/v1/contexts/garden%20chairs")
        older = {**view["versions"][-1], "version": 0}
        route.fulfill(json={**view, "versions": [*view["versions"], older]})

    page.route("**/v1/contexts/garden%20chairs", with_history)
    page.get_by_role("button", name="Go back to version 0").first.click()
    assert page.locator("#confirm-title").inner_text() == "Go back to version 0 of “garden chairs”?"
    page.locator("#confirm-yes").click()
    page.locator("#confirm-problem", has_text="That did not work").wait_for()  # the real service knows no version 0


def test_alarms_are_announced(watched: Watched) -> None:
    page = made_up(watched, alarms={"illegal_page": 2, "unheard_of": 1})
    assert page.locator("#alarms .banner").count() == 2
    assert "2 alarms. A page failed the check" in page.locator("#alarms").inner_text()
    assert "1 alarm. Unheard of." in page.locator("#alarms").inner_text()
    assert page.locator("#alarms").get_attribute("aria-live") == "assertive"
