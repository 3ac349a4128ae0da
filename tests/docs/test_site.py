"""The documentation site: built strictly, complete, and read in a browser without a request to any other host."""

import functools
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml  # type: ignore[import-untyped]

import saferank

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
TABS = ["For engineers", "For researchers", "The algorithms", "Reference", "Figures"]
WIDE = [
    "index.html", "engineers/service.html", "policies/safe-draw.html", "reference/figures.html", "reference/http.html",
    "reference/cli.html",
]  # fmt: skip


def build(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Build the site of a folder that holds mkdocs.yml and build/docs, as ``make docs`` does."""
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make docs`` builds it: a broken link or a missing anchor ends the build."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for needed in ("src", "clients", "docs"):
        (folder / needed).symlink_to(ROOT / needed)
    gathered = folder / "build" / "docs"
    subprocess.run([sys.executable, ROOT / "docs" / "site_pages.py", gathered], check=True)
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build" / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_command_of_make_docs_is_the_one_tested_here() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(BIN)/python docs/site_pages.py\n\t@$(BIN)/zensical build --strict\n" in makefile


def test_mistakes_end_the_build(tmp_path: Path) -> None:
    """The settings of our site, over two pages with a mistake each."""
    (tmp_path / "build" / "docs").mkdir(parents=True)
    for name, text in {"index.md": "[x](missing.md)", "other.md": "[x](index.md#nowhere)"}.items():
        (tmp_path / "build" / "docs" / name).write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"nav": ["index.md", "other.md"], "plugins": [], "extra_css": []}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    built = build(tmp_path)
    assert built.returncode == 1
    said = built.stdout + built.stderr
    assert all(words in said for words in ("page does not exist", "anchor does not exist", "2 issues found")), said


def test_every_page_can_be_reached(site: Path) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = set(re.findall(r"[\w/-]+\.md", str(settings["nav"])))
    gathered = site.parent / "docs"
    assert named == {path.relative_to(gathered).as_posix() for path in gathered.rglob("*.md")}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 50
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="((?:https?:)?//[^"]*)"')
    assert {path.name: found for path, text in pages.items() if (found := loaded.findall(text))} == {}


def test_markdown_is_understood_everywhere(site: Path) -> None:
    """Lists and tables that Markdown did not recognise are left in a paragraph as they were typed."""
    typed = re.compile(r"<p>(?:(?!</p>).)*?\n(?:- |\* |\|).*?</p>", re.DOTALL)
    left = {path.name: typed.findall(path.read_text(encoding="utf-8"))[:1] for path in site.rglob("*.html")}
    assert {name: found for name, found in left.items() if found} == {}


def test_formulas_are_drawn(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in (site / "policies").glob("*.html")}
    assert {path.name for path, text in pages.items() if "```math" in text or "$<code>" in text} == set()
    assert "<msqrt>" in pages[site / "policies" / "kl-ucb-br.html"]


def test_every_public_name_is_on_the_api_page(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    anchors = {anchor.rpartition(".")[2] for anchor in re.findall(r'id="(saferank\.[\w.]+)"', page)}
    named = {name for name in ("__version__", "click_models", "policies") if f"<code>saferank.{name}</code>" in page}
    assert set(saferank.__all__) - anchors - named == set()


def watch(page: "Page", address: str) -> list[str]:
    """What should not happen on a page, as it happens."""
    wrong: list[str] = []
    own = (address, "data:", "blob:")

    def note(fault: bool, text: str) -> None:
        if fault:
            wrong.append(text)

    page.on("request", lambda request: note(not request.url.startswith(own), f"asked {request.url}"))
    page.on("response", lambda answer: note(answer.status >= 400, f"{answer.status} {answer.url}"))
    page.on("console", lambda said: note(said.type in {"error", "warning"}, f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


def test_a_reader_clicks_through_it(chromium: "Browser", address: str) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    wrong = watch(page, address)
    page.goto(f"{address}/index.html")
    for tab in TABS:
        page.locator(".md-tabs").get_by_role("link", name=tab, exact=True).click()
        page.locator(".md-tabs__item--active", has_text=tab).wait_for()
        page.locator(".md-sidebar--primary .md-nav__link:visible").last.click()
        page.locator("article h1").wait_for()
    page.get_by_title("Dark").click()
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    before = page.url
    page.locator(".md-search__button").click()
    page.locator("input[type=text]:visible, input[type=search]:visible, input:not([type]):visible").fill("certificate")
    page.get_by_text(re.compile(r"^\d+ results$")).wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.partition("?")[0] != before)
    page.locator("article", has_text="certificate").wait_for()
    assert wrong == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chromium: "Browser", address: str, scheme: str) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    wrong = watch(page, address)
    for path in WIDE:
        page.goto(f"{address}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto(f"{address}/index.html")
    cut = "e => [...e].filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    assert page.locator(".start pre > code, .start p, .start picture").evaluate_all(cut) == []
    page.locator("label.md-header__button[for=__drawer]").click()
    page.locator(".md-nav--primary").get_by_text("For engineers").first.wait_for()
    assert wrong == []
    page.close()
