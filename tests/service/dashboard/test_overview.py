"""The first screen, with the real service and with made-up answers of 4 and 500 contexts."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from saferank.service.wire.views import SafetyView, TrafficView
from tests.service.dashboard import answers
from tests.service.dashboard.browsing import (
    CHAIRS,
    HOSTILE,
    MOVING,
    Watched,
    api,
    check_look,
    over_looks,
    tab_to,
    until,
    words_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOCUSED = "document.activeElement.dataset.key"


def column(page: "Page", name: str) -> list[str]:
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('#contexts-body .{name}')].map((e) => e.innerText)"
    )
    return found


def test_it_opens_with_the_answer_of_the_service(watched: Watched) -> None:
    page = watched.overview()
    page.locator("#contexts-body a", has_text=CHAIRS).wait_for()
    view = api(watched.address, "/v1/overview")
    assert words_of(page.locator("#sentence")) == view["sentence"]
    assert "240 pages were chosen by kl-ucb-br" in view["sentence"]
    assert "2" in page.locator("#funnel li").first.inner_text()
    assert column(page, "pages") == ["120", "120"]
    assert "Closed pages with a click" in page.locator("#feedback").inner_text()
    assert watched.unexpected() == []


def test_hostile_names_are_only_text(watched: Watched) -> None:
    view = answers.overview(4)
    view["changes"][0]["context"] = view["markers"][3]["context"] = HOSTILE
    view["markers"][0]["text"] = view["sentence"] = HOSTILE
    view["alarms"] = [{"at": answers.ago(minutes=1), "context": HOSTILE, "kind": HOSTILE, "detail": HOSTILE}]
    listed = answers.context_list(4)
    listed["contexts"][0]["name"] = listed["contexts"][0]["why"] = HOSTILE
    watched.answer("**/v1/overview", view)
    watched.answer("**/v1/contexts", listed)
    page = watched.overview()
    until(page, "document.querySelectorAll('#contexts-body tr').length === 4")
    assert page.locator("main img, main b, main script").count() == 0
    assert page.locator("#contexts-body a").first.inner_text().startswith("<img src=x onerror=alert(1)><U+202E>")
    assert watched.unexpected() == []


# --- looks ---


@over_looks
@pytest.mark.parametrize("count", [4, 500])
def test_it_fits_and_can_be_read(watched: Watched, count: int, request: pytest.FixtureRequest) -> None:
    page = watched.overview(count)
    until(page, f"document.querySelectorAll('#contexts-body tr').length === {count}")
    check_look(page, request.node.callspec.params["watched"])
    assert watched.unexpected() == []


@over_looks
def test_an_alarm_and_a_stop_can_be_read(watched: Watched, request: pytest.FixtureRequest) -> None:
    page = watched.overview(4, answers.with_alarm(4))
    page.locator("#alarms .banner", has_text="1 alarm in the last 24 hours").wait_for()
    check_look(page, request.node.callspec.params["watched"])
    several = answers.with_alarm(4)
    (alarm,) = several["alarms"]
    several["alarms"] += [alarm | {"kind": "guardrail"}, alarm]
    page = watched.overview(4, several)
    (banner,) = page.locator("#alarms .banner.alarm", has_text="3 alarms in the last 24 hours").all()
    assert banner.locator("li").count() == 2 and "and 1 more" in banner.inner_text()
    page = watched.overview(4, answers.stopped(4))
    page.locator("#alarms .banner", has_text="Stopped by the guardrail").wait_for()
    assert page.locator("#killed-everywhere").is_hidden(), "once is enough"
    assert "stopped by the guardrail everywhere" in page.locator("#lift").inner_text()
    check_look(page, request.node.callspec.params["watched"])


@pytest.mark.parametrize("watched", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_on_a_phone_the_sentence_is_the_first_screen(watched: Watched) -> None:
    page = watched.overview(500)
    box = page.locator("#sentence").bounding_box()
    assert box is not None and box["y"] + box["height"] < 844 and box["width"] > 340
    tiles = page.locator("#totals").bounding_box()
    assert tiles is not None and box["y"] < tiles["y"]


@pytest.mark.parametrize("watched", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_for_those_who_asked(watched: Watched) -> None:
    assert watched.overview(4).evaluate(MOVING) == 0


# --- what it says ---


TILES = [
    (
        answers.overview(4),
        ["Safe", "Holds", "280,211 pages checked", "0 over the limit", "may have used 57 % of the limit"],
    ),
    (answers.overview(4), ["+5.8 %", "+2.1 % to +9.4 %", "28,000 pages; its share of all is 28,012"]),
    (
        answers.overview(4),
        ["clicks so far", "valid at every look; about", "22.1 % of its pages changed because proven, 9.3 % to learn"],
    ),
    (answers.overview(4, effect=answers.effect(0.4, 1.5, 2.6)), ["more than twice", "+40.0 % to more than twice"]),
    (answers.empty(), ["Nothing shown yet", "Cannot be said", "the policy chose no page in the last 7 days"]),
]


NAME_AND_WORD = "tiles => tiles.map(tile => [...tile.childNodes].map(each => each.textContent))"


@pytest.mark.parametrize(("view", "words"), TILES)
def test_each_tile_has_a_word_a_number_and_what_is_behind_it(
    watched: Watched, view: dict[str, Any], words: list[str]
) -> None:
    said = words_of(watched.overview(4, view).locator("#totals"))
    assert [word for word in words if word not in said] == []
    tiles = watched.overview(4, view).locator("#totals dt")
    assert all(name.lower() != word.lower() for name, word in tiles.evaluate_all(NAME_AND_WORD))
    assert "+150" not in said and "+260" not in said


@pytest.mark.parametrize(("days", "words"), [(None, "cannot be said"), (0.3, "within a day"), (6.4, "in about 6 days")])
def test_a_fresh_service_says_what_is_missing_and_when_it_may_decide(
    watched: Watched, days: float | None, words: str
) -> None:
    view = answers.overview(4, changes=[])
    view["funnel"]["first_decision_days"] = days
    said = watched.overview(4, view).locator("#changes").inner_text()
    assert words in said
    assert [step for step in ("Rank calls arrive", "Clicks arrive", "held out", "guardrail") if step not in said] == []


def test_servers_and_the_share_of_visitors_are_told(watched: Watched) -> None:
    page = watched.overview(4, answers.overview(4, traffic=TrafficView(share=0.25)))
    assert "shop-1 (answers here)" in page.locator("#servers").inner_text()
    assert "for 25 % of visitors" in words_of(page.locator("#hero-state"))


def test_hours_are_named_until_there_are_two_days(watched: Watched) -> None:
    page = watched.overview(4, answers.overview(4, bins=answers.bins(6, 0.05, timedelta(hours=1))))
    assert ":00" in (page.locator("#lift svg").text_content() or "")
    watched.answer("**/v1/overview", answers.overview(4))
    page.locator("#lift svg", has_not_text=":00").wait_for()


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (answers.without_holdout(4), "holdout_share=0.1"),
        (answers.empty(), "Nothing to compare with yet"),
        (answers.overview(4), "the interval that holds at every look"),
        (answers.overview(4, bins=answers.bins(1, 0.05)), "between +2.1 % and +9.4 %"),
    ],
)
def test_the_picture_says_what_it_can(watched: Watched, view: dict[str, Any], words: str) -> None:
    assert words in words_of(watched.overview(4, view).locator("#lift"))


def test_the_lift_is_the_estimate_of_the_service_and_not_a_ratio_of_plain_means(watched: Watched) -> None:
    """On the second day plain means would say +33 %: nothing is worked out from clicks in the browser."""
    page = watched.overview(4)
    bins = [
        {"begin": "2026-02-28T00:00:00.000Z", "served": {"pages": 4}, "holdout": {"pages": 0}, "lift": None},
        {
            "begin": "2026-03-01T00:00:00.000Z",
            "served": {"pages": 60, "clicks": 30},
            "holdout": {"pages": 40, "clicks": 10},
            "lift": 1,
        },
        {
            "begin": "2026-03-02T00:00:00.000Z",
            "served": {"pages": 140, "clicks": 90},
            "holdout": {"pages": 60, "clicks": 35},
            "lift": -0.1,
        },
    ]
    script = f"async () => (await import('/overview/lift.js')).lifts({json.dumps(bins)}).map((p) => [p.lift, p.pages])"
    assert page.evaluate(script) == [[1, 104], [-0.1, 304]]
    marks = page.evaluate(
        "[...document.querySelectorAll('.mark-line')].map((e) => e.getAttribute('class').split(' ')[1])"
    )
    assert marks == ["kill", "unkill", "release", "rollback"]
    assert "another release everywhere: saferank 0.2.0 to 0.3.0" in page.locator("#lift").inner_text()


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ({"closed_pages": 1000, "clicked_pages": 0}, "Are clicks reported"),
        ({"accepted": 90, "late": 10}, "longer window_seconds"),
        ({"accepted": 90, "refused": {"bad token": 10}}, "Many reports are refused"),
    ],
)
def test_feedback_that_does_not_come_back_is_said(watched: Watched, feedback: dict[str, Any], words: str) -> None:
    view = answers.overview(4)
    view["feedback"] = {**view["feedback"], "duplicate": 0, "late": 0, "refused": {}, **feedback}
    page = watched.overview(4, view)
    assert words in page.locator("#feedback .advice").inner_text()


# --- the table ---


def test_columns_sort_both_ways(watched: Watched) -> None:
    page = watched.overview(500)
    until(page, "document.querySelectorAll('#contexts-body tr').length === 500")
    listed = answers.context_list(500)["contexts"]
    by_pages = [f"{entry['pages']:,}" for entry in sorted(listed, key=lambda entry: -entry["pages"])]
    assert column(page, "pages") == by_pages
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Pages", exact=True).click()
    assert column(page, "pages") == by_pages[::-1]
    page.get_by_role("button", name="Context", exact=True).click()
    assert column(page, "name") == sorted(entry["name"] for entry in listed)
    page.get_by_role("button", name="Clicks a page, served").click()
    rates = [float(text) for text in column(page, "served")]
    assert rates == sorted(rates, reverse=True)
    assert page.locator("th[aria-sort]").count() == 1


def test_filters_and_the_way_to_a_context(watched: Watched) -> None:
    page = watched.overview(500)
    until(page, "document.querySelectorAll('#contexts-body tr').length === 500")
    page.locator("#filter").fill("OFFICE")
    until(page, "document.querySelectorAll('#contexts-body tr').length === 50")
    assert page.locator("#contexts-count").inner_text() == "50 of 500"
    page.locator("#only").select_option("stopped")
    assert len(column(page, "name")) < 50
    page.locator("#filter").fill("nothing of the kind")
    page.locator("#contexts-more", has_text="No context is like that.").wait_for()
    page.locator("#only").select_option("all")
    page.locator("#filter").fill("red chair 0")
    watched.answer("**/v1/contexts/red%20chair%200", answers.context("red chair 0"))
    page.locator("#contexts-body a").click()
    page.locator("#title h2", has_text="red chair 0").wait_for()
    page.go_back()
    page.locator("#sentence").wait_for()


def test_thousands_of_contexts_stay_usable(watched: Watched) -> None:
    listed = answers.context_list(4)
    many = [{**listed["contexts"][0], "name": f"query {number}", "pages": number} for number in range(5000)]
    watched.answer("**/v1/overview", answers.overview(4))
    watched.answer("**/v1/contexts", {**listed, "contexts": many})
    page = watched.overview()
    page.locator("#contexts-more", has_text="and 4,500 more contexts").wait_for()
    assert page.locator("#contexts-body tr").count() == 500
    assert page.locator("#contexts-body a[tabindex='0']").count() == 1
    page.locator("#filter").fill("QUERY 499")
    until(page, "document.querySelectorAll('#contexts-body tr').length === 11")


def test_the_keyboard_reaches_everything(watched: Watched) -> None:
    page = watched.overview(500)
    until(page, "document.querySelectorAll('#contexts-body tr').length === 500")
    tab_to(page, "#filter")
    tab_to(page, "[data-key=sort-name]")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "sort-name"
    tab_to(page, "#contexts-body a", most=10)
    first = page.evaluate(FOCUSED)
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End"):
        page.keyboard.press(key)
    assert page.evaluate(FOCUSED) == column(page, "name")[-1] != first
    page.keyboard.press("Home")
    assert page.evaluate(FOCUSED) == first
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#contexts-body')") is None, "the table is one stop"


def test_new_numbers_move_nothing_and_take_no_focus(watched: Watched) -> None:
    page = watched.overview(4)
    until(page, "document.querySelectorAll('#contexts-body tr').length === 4")
    page.locator("#contexts-body a").nth(1).focus()
    focused, order = page.evaluate(FOCUSED), column(page, "name")
    tall = page.evaluate("document.documentElement.scrollHeight")
    listed = answers.context_list(4)
    listed["contexts"][1]["pages"] = 999_999
    watched.answer("**/v1/contexts", listed)
    safety = SafetyView(checked=411_204, over_limit=0, worst_page=0.57)
    watched.answer("**/v1/overview", answers.overview(4, safety=safety))
    page.locator("#contexts-body", has_text="999,999").wait_for()
    page.locator("#totals", has_text="411,204").wait_for()
    assert page.evaluate(FOCUSED) == focused and column(page, "name") == order
    assert page.evaluate("document.documentElement.scrollHeight") == tall
