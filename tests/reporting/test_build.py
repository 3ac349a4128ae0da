"""The page in a real browser: offline, silent, fitting, readable in light and dark, and not to be fooled."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from saferank.reporting.reading import ReportError
from saferank.reporting.report import report as make_report
from tests.reporting.planted import SPECIAL, curve, reproduction, true_results, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LAPTOP, PHONE = (1280, 800), (390, 844)


@dataclass
class Heard:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: "Browser", path: Path, size: tuple[int, int] = LAPTOP, scheme: Any = "light") -> Iterator[Any]:
    heard = Heard()
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.on("request", lambda request: heard.requests.append(request.url))
    page.on("console", lambda message: heard.complaints.append(message.text))
    page.on("pageerror", lambda problem: heard.complaints.append(str(problem)))
    page.goto(path.resolve().as_uri())
    yield page, heard
    page.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole report, of a reproduction."""
    return make_report(reproduction(tmp_path_factory.mktemp("full")), tmp_path_factory.mktemp("page")).page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_it_is_offline_silent_and_fits(chromium: "Browser", report: Path, size: tuple[int, int], scheme: str) -> None:
    with opened(chromium, report, size, scheme) as (page, heard):
        assert heard.requests == [report.resolve().as_uri()]
        assert heard.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        pictures = page.locator("[role=img] svg")
        assert pictures.count() == 4 * 2 - 1  # under CM no query holds none of the best
        for place in range(pictures.count()):
            box = pictures.nth(place).bounding_box()
            assert box["width"] > 300 and box["height"] > 150


@pytest.mark.parametrize(("scheme", "light_page"), [("light", True), ("dark", False)])
def test_figures_and_text_follow_the_colour_scheme(
    chromium: "Browser", report: Path, scheme: str, light_page: bool
) -> None:
    with opened(chromium, report, scheme=scheme) as (page, _):
        assert (_brightness(page, "body", "backgroundColor") > 128) == light_page
        assert (_brightness(page, "body", "color") > 128) != light_page
        assert (_brightness(page, "[role=img] svg g[id*=text] g", "fill") > 128) != light_page


def _brightness(page: "Page", selector: str, name: str) -> float:
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{name}")
    return sum(map(float, re.findall(r"\d+", colour)[:3])) / 3


def test_it_is_printed_dark_on_light(chromium: "Browser", report: Path) -> None:
    with opened(chromium, report, scheme="dark") as (page, _):
        page.emulate_media(media="print")
        assert _brightness(page, "body", "color") < 128
        assert _brightness(page, "[role=img] svg g[id*=text] g", "fill") < 128
        assert page.locator("nav").is_hidden()


def test_verdicts_can_be_read_in_light_and_dark(chromium: "Browser", report: Path) -> None:
    for scheme in ("light", "dark"):
        with opened(chromium, report, scheme=scheme) as (page, _):
            text, ground = (_brightness(page, ".verdict", name) for name in ("color", "backgroundColor"))
            assert abs(text - ground) > 90


def test_it_has_what_a_screen_reader_needs(chromium: "Browser", report: Path) -> None:
    with opened(chromium, report) as (page, _):
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.locator("h1").count() == 1
        headings = page.locator("h2").all_inner_texts()
        assert headings == [
            "Summary",
            "The paper's figures",
            "The paper's claims",
            "Where every algorithm ended",
            "Query by query",
            "Safety in clicks",
            "Sensitivity to what the paper leaves open",
            "Beyond the paper: a rule that holds at any time",
            "When the model is wrong",
            "What was run",
        ]
        assert all(len(word) > 40 for word in page.locator("[role=img]").evaluate_all("p => p.map(x => x.ariaLabel)"))
        assert page.locator("th:not([scope])").count() == 0
        repeated = "ids => { const all = ids.map(x => x.id); return all.filter((x, i) => all.indexOf(x) < i) }"
        assert page.locator("[id]").evaluate_all(repeated) == []
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"


def test_links_lead_to_files_and_sections(chromium: "Browser", report: Path) -> None:
    with opened(chromium, report) as (page, _):
        links = page.locator("a").evaluate_all("links => links.map(x => x.getAttribute('href'))")
        assert len({link for link in links if link.endswith(".svg")}) == 4
        assert len({link for link in links if link.endswith(".tex")}) == 8
        for link in links:
            if link.startswith("#"):
                assert page.locator(link).count() == 1
            else:
                assert (report.parent / link).is_file()


def test_it_stays_small(report: Path) -> None:
    assert report.stat().st_size < 3_000_000


def test_every_table_is_there_as_latex(report: Path) -> None:
    tables = {path.stem: path.read_text() for path in (report.parent / "figures").glob("*.tex")}
    assert set(tables) == {
        "endings", "claims", "by-query", "clicks", "sensitivity-1", "sensitivity-2", "study-1", "study-2",
    }  # fmt: skip
    for text in tables.values():
        lines = text.splitlines()
        assert lines[0].startswith("% ") and "a synthetic log with planted users" in lines[0]
        columns = len(lines[1].removeprefix(r"\begin{tabular}{").removesuffix("}"))
        rows = [line for line in lines if line.endswith(r"\\") and "multicolumn" not in line]
        assert {line.replace(r"\&", "").count("&") + 1 for line in rows} == {columns}
        assert [line for line in lines if line in (r"\toprule", r"\midrule", r"\bottomrule")] == [
            r"\toprule", r"\midrule", r"\bottomrule",
        ]  # fmt: skip
    assert r"TopRank & \textbf{56.667 $\pm$ 0.058}" in tables["endings"]  # the best in bold
    assert r"KL-UCB-BR & 170.000 $\pm$ 0.058 & 0 & 170.000 $\pm$ 0.058 & 0 \\" in tables["endings"]
    assert r"\multicolumn{2}{c}{PBM}" in tables["endings"]
    by_query = tables["by-query"]
    assert re.search(r"\nCM & KL-UCB-BR & 2 / 0 / 1 & 0\.40 & 0\.40 & 450 / 450 & worst \\\\\n", by_query)


def test_the_answer_comes_first(chromium: "Browser", report: Path) -> None:
    with opened(chromium, report) as (page, _):
        assert page.locator(".headline").inner_text() == (
            "37 of 42 claims of the paper hold on a synthetic log with planted users, 5 were not run."
        )
        assert page.locator(".answer").all_inner_texts() == [
            "Better than production. Regret as a share of OriginalRank's: under PBM TopRank 11 %, UniRank 12 %, "
            "KL-UCB-BR 34 % and BubbleRank 85 %; under CM TopRank 11 %, UniRank 12 %, KL-UCB-BR 34 % and "
            "BubbleRank 85 %.".replace(" %", "\N{NO-BREAK SPACE}%"),
            "Safety. Pages of a run that break the safety limit: under PBM TopRank 30 and UniRank 20; under CM "
            "TopRank 30 and UniRank 20. None in 120 runs each of OriginalRank, KL-UCB-BR and BubbleRank.",
            "Least regret. PBM: TopRank, 56.667 ± 0.058; of the safe ones KL-UCB-BR, 170.000 ± 0.058. CM: TopRank, "
            "56.667 ± 0.058; of the safe ones KL-UCB-BR, 170.000 ± 0.058.",
        ]
        assert page.locator(".first figure").bounding_box()["y"] < LAPTOP[1] / 3  # Figure 1 is beside them
        assert page.locator("h1").inner_text().endswith("on a synthetic log with planted users")
        assert page.locator(".facts li").first.inner_text() == "data: a synthetic log with planted users"
        assert page.locator("figcaption:has-text('Data: a synthetic log with planted users.')").count() == 4
        nearest = "Not quite like that, and left out: under CM it has 1 of the best 5."
        assert nearest in page.locator("#caption-none_of_best").inner_text()
        assert (
            "Because no query is quite like that: the nearest, query worst, has 1 of the best 5: 5 claims."
            in page.content()
        )
        assert "regret ends at 0.75 times that with the paper rule" in page.content()


@pytest.mark.usefixtures("blank_figure_files")
def test_a_false_claim_is_shown_as_such(chromium: "Browser", tmp_path: Path) -> None:
    results = true_results(models=("cm",))
    key = ("worst", "cm", "kl-ucb-br")
    results[key] = replace(results[key], regret_mean=[1.0, 2.0, 3.0, 4.0, 999.0])
    made = make_report(write(tmp_path / "results.json", list(results.values())), tmp_path, **SPECIAL)  # type: ignore[arg-type]
    with opened(chromium, made.page) as (page, _):
        assert "do not hold" in page.locator(".headline").inner_text()
        assert page.locator("td .fails").count() == sum(claim.verdict == "does not hold" for claim in made.claims) > 0
        assert page.locator("text=Claims that do not hold").count() == 1


@pytest.mark.usefixtures("blank_figure_files")
def test_plain_results_give_a_page_that_says_what_is_missing(chromium: "Browser", tmp_path: Path) -> None:
    made = make_report(write(tmp_path / "results.json", list(true_results().values())), tmp_path / "out")
    with opened(chromium, made.page, PHONE) as (page, heard):
        assert page.locator(".left-out").count() == 6
        assert "saferank report --optimal ID" in page.content()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        assert heard.complaints == []
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {
        f"{figure}.{form}" for figure in ("all-queries", "by-query") for form in ("png", "svg", "pdf")
    } | {"endings.tex", "claims.tex", "by-query.tex"}


@pytest.mark.usefixtures("blank_figure_files")
def test_hostile_names_stay_text(chromium: "Browser", tmp_path: Path) -> None:
    evil = "\"><script>document.title='owned'</script><img src='http://127.0.0.1:9/x'>{{ 7 * 7 }}\ud800" + "long" * 99
    results = [curve(policy, evil, evil) for policy in (evil, "kl-ucb-br", "original")]
    source = {"command": evil, evil: evil, "machine": {evil: evil}, "reproduction": {"log": evil, "study": "../x.json"}}
    made = make_report(write(tmp_path / "results.json", results, source), tmp_path, optimal=evil)
    with opened(chromium, made.page, PHONE) as (page, heard):
        assert page.title() != "owned"
        assert heard.requests == [made.page.resolve().as_uri()]
        assert page.locator("script, img").count() == 0
        assert "49" not in page.locator("figcaption").first.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.usefixtures("blank_figure_files")
@pytest.mark.parametrize(
    "results",
    [
        [curve("original", rounds=(5,))],
        [curve("kl-ucb-br", "mine", stderr=None)],
        [curve("safe-draw", model) for model in ("pbm", "cm", "dcm", "dbn", "ubm", "ccm")],
    ],
    ids=["one checkpoint", "unknown model, one policy", "six models"],
)
def test_odd_results_make_a_page(results: list[Any], tmp_path: Path) -> None:
    made = make_report(write(tmp_path / "results.json", results), tmp_path)
    assert made.page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert made.page.stat().st_size < 3_000_000


@pytest.mark.usefixtures("blank_figure_files")
def test_a_companion_that_is_gone_or_broken(tmp_path: Path) -> None:
    path = reproduction(tmp_path, models=("cm",))
    (tmp_path / "study.json").unlink()
    assert "study.json is not beside results.json" in make_report(path, tmp_path).page.read_text(encoding="utf-8")
    (tmp_path / "sensitivity.json").write_text('{"results": [')
    with pytest.raises(ValueError, match=r"sensitivity\.json: is not JSON.*cut off"):
        make_report(path, tmp_path)


def test_an_unknown_special_query_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", list(true_results().values()))
    with pytest.raises(ReportError, match="no results of instance 'bset'; there are 'best', 'worst', 'other'"):
        make_report(path, tmp_path, optimal="bset")


@pytest.mark.usefixtures("blank_figure_files")
def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", list(true_results(models=("cm",)).values()))
    first = make_report(path, tmp_path).page.read_bytes()
    assert make_report(path, tmp_path).page.read_bytes() == first
